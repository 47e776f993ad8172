package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// search finds the nearest changes with which a refused pod would be admitted.
// Every one of them was run; the runs are bounded.
type search struct {
	*whatIf
	refused trial
	world   world
	runs    int
	effort  effort
	found   []report.Nearest
}

const maxRuns = 500

// nearest lists sizes that fit now, then pods whose end makes room, then other
// settings of the kubelet.
func (q *whatIf) nearest(t trial, w world) []report.Nearest {
	s := &search{whatIf: q, refused: t, world: w}
	if s.blocked() {
		return nil
	}
	container := s.target()
	s.fewerCPUs(container)
	s.moreCPUs(container)
	s.initCPUs(container)
	s.memory(container)
	s.withoutPods()
	s.otherSettings()
	s.now.noteCut(s.effort.cut, "nearest changes", "other changes with which the pod would be admitted, and whether a size found is the largest")
	return s.found
}

// more reports whether another run may be made.
func (s *search) more() bool {
	s.runs++
	return s.runs <= maxRuns && s.effort.spend(s.world.config)
}

// blocked: a selector, port or taint, which no size mends.
func (s *search) blocked() bool {
	return slices.ContainsFunc(s.refused.misfits, func(m misfit) bool { return m.resource == "" || m.resource == corev1.ResourcePods })
}

// target is the container to change: the one at which the pod was refused, else
// the one with most CPUs.
func (s *search) target() string {
	if s.refused.attempt != nil {
		if container, _ := s.refused.failure(); container != "" {
			return container
		}
	}
	best, most := "", int64(-1)
	for _, list := range [][]corev1.Container{s.pod.Spec.Containers, s.pod.Spec.InitContainers} {
		for i := range list {
			if n := list[i].Resources.Requests.Cpu().MilliValue(); n > most {
				best, most = list[i].Name, n
			}
		}
	}
	return best
}

// try runs a pod and notes it with the change if it is admitted.
func (s *search) try(w world, pod *corev1.Pod, change string) bool {
	if !s.more() {
		return false
	}
	t, err := s.run(s.changed, w, pod)
	if err != nil || !t.admitted() {
		return false
	}
	if change != "" {
		s.note(t, change)
	}
	return true
}

// note has the CPUs of the container that the change is about, beside those of
// the others where the pod has several.
func (s *search) note(t trial, change string) { s.noteOf(s.whatIf, t, change) }

func (s *search) noteOf(q *whatIf, t trial, change string) {
	found := report.Nearest{Change: change}
	about := s.target()
	for _, p := range q.places(t) {
		if p.Name == about {
			found.CPUs, found.NUMANodes = p.CPUs, p.NUMANodes
		}
		found.Containers = append(found.Containers, p)
	}
	if len(found.Containers) == 1 {
		found.Containers = nil
	} else {
		found.Container = about
	}
	s.found = append(s.found, found)
}

// request of a container, and the pod with another one in its place; a limit
// that equals the request goes along.
func (s *search) request(container string, name corev1.ResourceName) (resource.Quantity, bool) {
	for _, list := range [][]corev1.Container{s.pod.Spec.InitContainers, s.pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				q, ok := list[i].Resources.Requests[name]
				return q, ok && q.Sign() > 0
			}
		}
	}
	return resource.Quantity{}, false
}

func (s *search) with(container string, name corev1.ResourceName, q resource.Quantity) *corev1.Pod {
	return requesting(s.pod, container, name, q)
}

// cpus are those of the container, where the refusal is for CPUs.
func (s *search) cpus(container string) (milli int64, ok bool) {
	if a := s.refused.attempt; a != nil && strings.Contains(a.result.Message, "[memorymanager]") {
		return 0, false
	}
	q, has := s.request(container, corev1.ResourceCPU)
	if !has {
		return 0, false
	}
	for _, m := range s.refused.misfits {
		if m.resource != corev1.ResourceCPU {
			return 0, false
		}
	}
	return q.MilliValue(), true
}

// fewerCPUs is the largest whole number of CPUs that fits now, and where
// none does the largest fraction, which shares CPUs.
func (s *search) fewerCPUs(container string) {
	milli, ok := s.cpus(container)
	if !ok {
		return
	}
	whole := (milli - 1) / 1000
	for n, tries := whole, 0; n > 0 && tries < 160; n, tries = n-1, tries+1 {
		q := *resource.NewQuantity(n, resource.DecimalSI)
		if s.try(s.world, s.with(container, corev1.ResourceCPU, q), changeText(container, corev1.ResourceCPU, milliQuantity(milli), q)) {
			return
		}
	}
	// Who asks for many CPUs is not served by a shared pool.
	const most = 4000
	fraction := milli - 1
	if n := s.changed; n.object != nil {
		if room, ok := n.object.Status.Allocatable[corev1.ResourceCPU]; ok {
			fraction = min(fraction, room.MilliValue()-n.usedOf(corev1.ResourceCPU, s.pod))
		}
	}
	if fraction%1000 == 0 {
		fraction--
	}
	if fraction <= 0 || milli > most || milli%1000 != 0 && len(s.refused.misfits) == 0 {
		return
	}
	q := milliQuantity(fraction)
	s.try(s.world, s.with(container, corev1.ResourceCPU, q), changeText(container, corev1.ResourceCPU, milliQuantity(milli), q)+", which is no whole number and shares CPUs")
}

// initCPUs: what an init container has takes from, or binds, the containers
// after it.
func (s *search) initCPUs(container string) {
	for i := range s.pod.Spec.InitContainers {
		c := &s.pod.Spec.InitContainers[i]
		if c.Name == container || s.refused.attempt == nil || s.refused.container(c.Name).CPUs == 0 {
			continue
		}
		s.fewerCPUs(c.Name)
	}
}

// moreCPUs: a larger request can be admitted where a smaller is not, by whole
// cores or because more NUMA nodes are preferred for it.
func (s *search) moreCPUs(container string) {
	milli, ok := s.cpus(container)
	if !ok || milli%1000 != 0 || len(s.refused.misfits) > 0 {
		return
	}
	topo, err := s.now.topo()
	if err != nil {
		return
	}
	for n, tries := milli/1000+1, 0; n <= int64(topo.NumCPUs) && tries < 80; n, tries = n+1, tries+1 {
		q := *resource.NewQuantity(n, resource.DecimalSI)
		if s.try(s.world, s.with(container, corev1.ResourceCPU, q), changeText(container, corev1.ResourceCPU, milliQuantity(milli), q)) {
			return
		}
	}
}

// memory is the largest size in MiB that fits now; and, where the policy wants
// CPUs and memory on the same NUMA nodes, sizes just above what one node, two
// and so on have.
func (s *search) memory(container string) {
	const mi = 1 << 20
	was, ok := s.request(container, corev1.ResourceMemory)
	if !ok || s.refused.attempt == nil && len(s.refused.misfits) == 0 {
		return
	}
	for _, m := range s.refused.misfits {
		if m.resource != corev1.ResourceMemory {
			return
		}
	}
	sized := func(n int64) (*corev1.Pod, string) {
		q := *resource.NewQuantity(n*mi, resource.BinarySI)
		return s.with(container, corev1.ResourceMemory, q), changeText(container, corev1.ResourceMemory, was, q)
	}
	least, _ := sized(1)
	if !s.try(s.world, least, "") {
		return // no size of memory helps
	}
	low, high := int64(1), (was.Value()-1)/mi
	for high > low && s.runs < maxRuns && !s.effort.cut {
		mid := low + (high-low+1)/2
		if p, _ := sized(mid); s.try(s.world, p, "") {
			low = mid
		} else {
			high = mid - 1
		}
	}
	p, change := sized(low)
	s.try(s.world, p, change)
	if s.refused.attempt == nil || s.refused.result.Reason != "TopologyAffinityError" {
		return
	}
	_, total := s.refused.memoryByNode(string(corev1.ResourceMemory))
	var sizes []uint64
	for _, v := range total {
		sizes = append(sizes, v)
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	var sum uint64
	for _, v := range sizes {
		if sum += v; sum > 1<<50 {
			return
		}
		n := int64(sum/mi) + 1
		if n <= was.Value()/mi {
			continue
		}
		if p, change := sized(n); s.try(s.world, p, change) {
			return
		}
	}
}

// withoutPods are the pods of which each alone, once gone, makes room.
func (s *search) withoutPods() {
	const most = 6
	a := s.refused.attempt
	if a == nil || a.crash != nil || a.result.Admit {
		return
	}
	found := 0
	for _, p := range s.world.pods {
		uid := string(p.UID)
		if len(a.node.CPU.State.Entries[uid]) == 0 && len(a.node.Memory.State.Entries[uid]) == 0 && !asksDevices(p.Pod) {
			continue
		}
		w := s.world
		w.managers = w.without(uid)
		if !s.more() {
			return
		}
		t, err := s.run(s.changed, w, s.pod, p.UID)
		if err != nil || !t.admitted() {
			continue
		}
		s.note(t, "the end of pod "+p.Namespace+"/"+p.Name)
		if found++; found == most {
			return
		}
	}
}

// otherSettings are changes of the policies that a restart of the kubelet would
// bring, under which all pods of the node are admitted again.
func (s *search) otherSettings() {
	a := s.refused.attempt
	if a == nil || a.crash != nil || a.result.Admit || s.now.configErr != nil {
		return
	}
	k := s.changed.config
	var candidates []Setting
	switch a.result.Reason {
	case "SMTAlignmentError":
		candidates = append(candidates, Setting{"cpuManagerPolicyOptions", "full-pcpus-only", "false"})
	case "TopologyAffinityError":
		other := map[string]string{"container": "pod", "pod": "container"}[k.TopologyManagerScope]
		if other != "" {
			candidates = append(candidates, Setting{Field: "topologyManagerScope", Value: other})
		}
		if k.TopologyManagerPolicy == "single-numa-node" {
			candidates = append(candidates, Setting{Field: "topologyManagerPolicy", Value: "restricted"})
		}
		candidates = append(candidates, Setting{Field: "topologyManagerPolicy", Value: "best-effort"})
	}
	for _, c := range candidates {
		if !s.more() {
			return
		}
		q, err := newWhatIf(s.now, Template{s.pod, s.source}, append(slices.Clone(s.set), c))
		if err != nil {
			continue
		}
		w, err := q.world(q.changed)
		if err != nil || w.readmitted != nil && len(w.readmitted.Refused) > 0 {
			continue
		}
		t, err := q.run(q.changed, w, q.pod)
		if err != nil || !t.admitted() {
			continue
		}
		change := "setting " + c.String() + " and a restart of the kubelet"
		if w.readmitted != nil && len(w.readmitted.CheckpointsRemoved) > 0 {
			change += " with its state file removed"
		}
		s.noteOf(q, t, change)
	}
}

func milliQuantity(milli int64) resource.Quantity {
	return *resource.NewMilliQuantity(milli, resource.DecimalSI)
}

func changeText(container string, name corev1.ResourceName, was, is resource.Quantity) string {
	return fmt.Sprintf("%[2]s %[3]s instead of %[4]s for container %[1]s", container, name, is.String(), was.String())
}
