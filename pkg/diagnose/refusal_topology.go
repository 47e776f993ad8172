package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// topologyRefused: the policy admits no set of NUMA nodes that the resources'
// hints have in common. It names the resource whose hints keep the merge from
// being admitted, or that each has good ones and they do not meet.
func (n *nodeCase) topologyRefused(a *attempt, subject report.Subject) []report.Finding {
	container, wishes := n.wishes(a)
	k := a.from.config.Kubelet
	because := []report.Evidence{
		n.configEvidence("topologyManagerPolicy", k.TopologyManagerPolicy, "the policy that says no"),
		n.configEvidence("topologyManagerScope", k.TopologyManagerScope, ""),
	}
	if container == "" {
		subject.Container = ""
	}
	who, need := who(container), ""
	if k.TopologyManagerScope == "pod" {
		need = " (pod scope: of all its containers together)"
	}
	var reasons, sums []string
	for _, w := range wishes {
		reason, sum := w.refusal(k.TopologyManagerPolicy)
		if reason == "" {
			continue
		}
		reasons = append(reasons, reason)
		if sum != "" {
			sums = append(sums, sum)
		}
	}
	text := strings.Join(reasons, "; ")
	if len(reasons) == 0 {
		var each []string
		for _, w := range wishes {
			each = append(each, w.wanted(k.TopologyManagerPolicy))
		}
		text = "each resource has NUMA nodes that it prefers, but they are not the same: " + strings.Join(each, ", ")
	}
	for _, w := range wishes {
		because = append(because, n.wishEvidence(a, container, w)...)
	}
	summary := fmt.Sprintf("%s needs %s%s, and topologyManagerPolicy %s refuses it: %s.", who, needs(wishes), need, k.TopologyManagerPolicy, text)
	f := n.refusal(a, report.TopologyAffinityRefused, subject, summary, because...)
	f.Arithmetic = strings.Join(sums, "; ")
	for _, w := range wishes {
		if w.name == "cpu" {
			sizes := a.cpuRemedies(container, int(w.need)-1, -1)
			if len(sizes) == 0 {
				sizes = a.cpuRemedies(container, int(w.need)+1, 1)
			}
			f.Remedies = append(f.Remedies, sizes...)
		}
	}
	f.Remedies = append(append(f.Remedies, a.roomRemedies(n)...), a.policyRemedies()...)
	out := append(n.hiddenPoolRefusal(a, subject), f)
	for _, w := range wishes {
		if w.name == "cpu" && w.sum() < w.need {
			out = append(out, n.cpusExhausted(a, container, subject))
		}
	}
	if other, bound := a.withoutGroups(); bound && other.Admit {
		out = append(out, n.groupConflict(a, container, subject))
	}
	return append(out, n.initTrap(a, container, subject)...)
}

// wishes are those of the container, or pod, whose merge was refused.
func (n *nodeCase) wishes(a *attempt) (container string, out []wish) {
	var offered []*trace.Hints
	for _, s := range a.trace.Steps {
		switch {
		case s.Hints != nil:
			offered = append(offered, s.Hints)
		case s.Merge != nil && s.Merge.Admit:
			offered = nil
		case s.Merge != nil:
			container = s.Container
		}
	}
	requests := a.container(container)
	for _, o := range offered {
		for _, r := range o.Resources {
			w := wish{name: r.Name, hints: r.Hints}
			switch o.Provider {
			case "cpu":
				w.need = uint64(requests.CPUs)
				w.free, w.total = a.cpusByNode()
				if _, reusable := a.freeCPUs(); !reusable.IsEmpty() {
					w.barred = fmt.Sprintf(": CPUs %s of the init containers have to be used again", reusable)
				}
			case "memory":
				w.need = sizeOf(requests.Memory, r.Name)
				w.free, w.total = a.memoryByNode(r.Name)
				w.barred = a.groupsText()
			default:
				w.need = deviceNeed(a.pod, container, r.Name)
			}
			out = append(out, w)
		}
	}
	return container, out
}

// groupsText names the NUMA nodes that are bound by the memory they serve.
func (a *attempt) groupsText() string {
	if bound := a.bound(); len(bound) > 0 {
		return ": " + strings.Join(bound, ", ")
	}
	return ""
}

func sizeOf(requests []alloc.MemoryRequest, name string) uint64 {
	for _, r := range requests {
		if string(r.Type) == name {
			return r.Size
		}
	}
	return 0
}

// deviceNeed is the number of devices that a container, or the whole pod, asks for.
func deviceNeed(p node.Pod, container, name string) uint64 {
	var init, sum uint64
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; container == "" || c.Name == container {
			q := c.Resources.Limits[corev1.ResourceName(name)]
			init = max(init, uint64(max(q.Value(), 0)))
		}
	}
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; container == "" || c.Name == container {
			q := c.Resources.Limits[corev1.ResourceName(name)]
			sum += uint64(max(q.Value(), 0))
		}
	}
	return max(init, sum)
}

// cpusByNode are the CPUs of each NUMA node that the pod could get, and all
// that it has.
func (a *attempt) cpusByNode() (free, total map[int]uint64) {
	free, total = map[int]uint64{}, map[int]uint64{}
	set, reusable := a.freeCPUs()
	set = set.Union(reusable)
	for _, n := range a.from.config.Topology.NUMANodes {
		if n.CPUs.IsEmpty() {
			continue
		}
		free[n.ID], total[n.ID] = uint64(set.Intersection(n.CPUs).Size()), uint64(n.CPUs.Size())
	}
	return free, total
}

// memoryByNode is the memory of a type on each NUMA node, in bytes: what is
// free, and what containers can have at all.
func (a *attempt) memoryByNode(name string) (free, total map[int]uint64) {
	free, total = map[int]uint64{}, map[int]uint64{}
	for _, n := range a.node.Memory.State.Nodes {
		for _, t := range n.Tables {
			if string(t.Type) == name {
				free[n.ID], total[n.ID] = t.Free, t.Allocatable
			}
		}
	}
	return free, total
}

func ids(nodes []int) string { return idList(nodes) }

// wishEvidence are the amounts behind the hints, NUMA node by NUMA node.
func (n *nodeCase) wishEvidence(a *attempt, container string, w wish) []report.Evidence {
	out := []report.Evidence{a.requestEvidence(container, corev1.ResourceName(w.name), w.amount(w.need))}
	if least, known := w.least(); known {
		var preferred []string
		for _, h := range w.hints {
			if h.Preferred && h.Aligned {
				preferred = append(preferred, ids(h.Mask.IDs()))
			}
		}
		out[0].Means = fmt.Sprintf("by what they have in all, %s would do", plural(least, "NUMA node"))
		const most = 8
		switch {
		case len(preferred) == 0:
			out[0].Means += "; of those none has it free"
			if most, _ := w.most(least); most >= w.need {
				out[0].Means = strings.TrimSuffix(out[0].Means, "none has it free") + "none is offered"
			}
		case len(preferred) > most:
			out[0].Means += fmt.Sprintf("; %d sets have it free", len(preferred))
		default:
			out[0].Means += "; that have it free: " + strings.Join(preferred, " or ")
		}
	} else {
		out[0].Means = w.wanted("")
	}
	free, reusable := a.freeCPUs()
	free = free.Union(reusable)
	if w.name == "cpu" {
		out = append(out, n.defaultSetEvidence(a, a.node.CPU.State.Default, "the shared pool"),
			n.setAsideEvidence(a, "never given to a container"))
	}
	for _, id := range w.nodes() {
		switch {
		case w.name == "cpu":
			node, _ := a.from.config.Topology.NUMANode(id)
			out = append(out, n.numaCPUsEvidence(node,
				fmt.Sprintf("%d of %d CPUs free (%s), %d needed; %s", w.free[id], w.total[id], setOrNone(free.Intersection(node.CPUs)), w.need, a.heldText(id))))
		default:
			out = append(out, n.freeMemoryEvidence(id, w.name, w.free[id],
				fmt.Sprintf("%s of %s free, %s needed", bytes(w.free[id]), bytes(w.total[id]), bytes(w.need))))
		}
	}
	return out
}

// heldText names the pods with CPUs of a NUMA node, as the replay has it.
func (a *attempt) heldText(id int) string {
	node, _ := a.from.config.Topology.NUMANode(id)
	var out []string
	for _, p := range a.from.pods {
		for _, set := range a.node.CPU.State.Entries[string(p.UID)] {
			if !set.Intersection(node.CPUs).IsEmpty() {
				out = append(out, p.Namespace+"/"+p.Name)
				break
			}
		}
	}
	const most = 6
	switch {
	case len(out) == 0:
		return "held by no pod that counts"
	case len(out) > most:
		return fmt.Sprintf("held by %s and %d more", strings.Join(out[:most], ", "), len(out)-most)
	}
	return "held by " + strings.Join(out, ", ")
}
