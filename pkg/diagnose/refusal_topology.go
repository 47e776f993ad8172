package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// wish is what one resource wants of the NUMA nodes: the hints that its
// provider gave to the Topology Manager.
type wish struct {
	name string
	need uint64 // CPUs, bytes or devices
	// free and total are of each NUMA node, by id; nil where they are not known
	// (devices).
	free, total map[int]uint64
	hints       []hint.Hint
}

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
	f.Remedies = append(n.roomRemedies(a, "", false),
		report.Remedy{Summary: "Ask for what one of the sets of NUMA nodes above has free, or let the policy be best-effort.",
			Caution: "Another policy needs a restart of the kubelet, and best-effort places the pod across NUMA nodes."})
	out := []report.Finding{f}
	for _, w := range wishes {
		if w.name == "cpu" && w.sum() < w.need {
			out = append(out, n.cpusExhausted(a, container, subject))
		}
	}
	if a.admitsWithoutGroups() {
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
			case "memory":
				w.need = sizeOf(requests.Memory, r.Name)
				w.free, w.total = a.memoryByNode(r.Name)
			default:
				w.need = deviceNeed(a.pod, container, r.Name)
			}
			out = append(out, w)
		}
	}
	return container, out
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

// refusal says in what way this resource alone makes the policy say no; "" if
// it does not. sum is the arithmetic of it.
func (w wish) refusal(policy string) (reason, sum string) {
	preferred, single := false, false
	for _, h := range w.hints {
		preferred = preferred || h.Preferred
		single = single || h.Preferred && (!h.Aligned || h.Mask.Count() == 1)
	}
	refuses := len(w.hints) == 0 || policy == "single-numa-node" && !single || policy == "restricted" && !preferred
	switch {
	case !refuses:
		return "", ""
	case w.free == nil && len(w.hints) == 0:
		return fmt.Sprintf("no set of NUMA nodes has %s free", w.text()), ""
	case w.free == nil && policy == "single-numa-node":
		return fmt.Sprintf("no NUMA node alone has %s", w.text()), ""
	case w.free == nil:
		return fmt.Sprintf("of the smallest sets of NUMA nodes that have %s in all, none has them free", w.text()), ""
	case w.sum() < w.need:
		return fmt.Sprintf("all NUMA nodes together have %s free", w.amountOf(w.sum())), w.sumText()
	case len(w.hints) == 0:
		return fmt.Sprintf("no set of NUMA nodes can give %s, though they have %s free together", w.text(), w.amountOf(w.sum())), w.sumText()
	case policy == "single-numa-node":
		most, at := w.most(1)
		if most >= w.need {
			return fmt.Sprintf("%s are free on NUMA node %s, which other containers or a group of NUMA nodes bar", w.text(), ids(at)), ""
		}
		return fmt.Sprintf("no NUMA node alone has %s free, the most is %s (node %s)", w.text(), w.amountOf(most), ids(at)),
			fmt.Sprintf("%s: %s on node %s < %s", w.name, w.amount(most), ids(at), w.amount(w.need))
	}
	least, _ := w.least()
	most, at := w.most(least)
	return fmt.Sprintf("%s would go into %s if nothing else were there, so only sets of that many are preferred, and the best of them (%s) has %s free",
		w.text(), plural(least, "NUMA node"), ids(at), w.amountOf(most)), w.leastText(least, at)
}

// least is the size of the smallest sets of nodes that would do if all of them
// were free: those the kubelet prefers. It counts reserved CPUs and what others
// hold as well (generateCPUTopologyHints).
func (w wish) least() (n int, known bool) {
	if w.total == nil {
		return 0, false
	}
	var sizes []uint64
	for _, v := range w.total {
		sizes = append(sizes, v)
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	var sum uint64
	for i, v := range sizes {
		if sum += v; sum >= w.need {
			return i + 1, true
		}
	}
	return len(sizes), true
}

// most is the largest free amount of a set of k nodes, and that set.
func (w wish) most(k int) (sum uint64, nodes []int) {
	all := w.nodes()
	slices.SortStableFunc(all, func(a, b int) int {
		switch {
		case w.free[a] > w.free[b]:
			return -1
		case w.free[a] < w.free[b]:
			return 1
		}
		return a - b
	})
	nodes = all[:min(k, len(all))]
	slices.Sort(nodes)
	for _, id := range nodes {
		sum += w.free[id]
	}
	return sum, nodes
}

func (w wish) nodes() []int {
	out := make([]int, 0, len(w.free))
	for id := range w.free {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func (w wish) sum() uint64 {
	var sum uint64
	for _, v := range w.free {
		sum += v
	}
	return sum
}

// amount shows an amount in the resource's unit.
func (w wish) amount(v uint64) string {
	if w.name == string(corev1.ResourceMemory) || strings.HasPrefix(w.name, corev1.ResourceHugePagesPrefix) {
		return bytes(v)
	}
	return fmt.Sprint(v)
}

// amountOf shows an amount and of what it is.
func (w wish) amountOf(v uint64) string {
	if w.name == "cpu" {
		return plural(v, "CPU")
	}
	return w.amount(v) + " of " + w.name
}

func (w wish) text() string { return w.amountOf(w.need) }

func needs(wishes []wish) string {
	var out []string
	for _, w := range wishes {
		out = append(out, w.text())
	}
	if len(out) == 0 {
		return "what its containers ask for"
	}
	return join(out)
}

func (w wish) sumText() string {
	if w.free == nil {
		return ""
	}
	most, _ := w.most(len(w.free))
	return fmt.Sprintf("%s: free on all %s %s < %s", w.name, plural(len(w.free), "NUMA node"), w.amount(most), w.amount(w.need))
}

// leastText is the arithmetic of "preferred": by totals k nodes would do, by
// what is free they do not, and more nodes are not preferred.
func (w wish) leastText(least int, best []int) string {
	var total, free uint64
	for _, id := range best {
		total, free = total+w.total[id], free+w.free[id]
	}
	return fmt.Sprintf("%s: %s: %s in all ≥ %s, %s free < %s; all %s: %s free",
		w.name, numaText(best), w.amount(total), w.amount(w.need), w.amount(free), w.amount(w.need), plural(len(w.free), "NUMA node"), w.amount(w.sum()))
}

// wanted lists the sets that the policy could take of this resource.
func (w wish) wanted(policy string) string {
	var sets []string
	for _, h := range w.hints {
		switch {
		case !h.Preferred || policy == "single-numa-node" && h.Mask.Count() > 1:
		case !h.Aligned:
			return w.name + " any"
		default:
			sets = append(sets, ids(h.Mask.IDs()))
		}
	}
	const most = 6
	text := strings.Join(sets[:min(most, len(sets))], " or ")
	if len(sets) > most {
		text += fmt.Sprintf(" or %d more sets", len(sets)-most)
	}
	return fmt.Sprintf("%s on %s", w.name, text)
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
	for _, id := range w.nodes() {
		switch {
		case w.name == "cpu":
			node, _ := a.from.config.Topology.NUMANode(id)
			out = append(out, n.fileEvidence(cpuStatePath, fmt.Sprintf("free on NUMA node %d", id), setOrNone(free.Intersection(node.CPUs)),
				fmt.Sprintf("%d of %d CPUs free, %d needed; held by %s", w.free[id], w.total[id], w.need, a.holders(id))))
		default:
			out = append(out, n.fileEvidence(memoryStatePath, fmt.Sprintf("machineState[%d].memoryMap[%s].free", id, w.name), fmt.Sprint(w.free[id]),
				fmt.Sprintf("%s of %s free, %s needed", bytes(w.free[id]), bytes(w.total[id]), bytes(w.need))))
		}
	}
	return out
}

// holders are the pods with CPUs of a NUMA node.
func (a *attempt) holders(id int) string {
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
		return "no pod"
	case len(out) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(out[:most], ", "), len(out)-most)
	}
	return strings.Join(out, ", ")
}

// initTrap: the CPUs of an init container have to be used again, so that only
// sets with their NUMA nodes remain for the containers after it; without the
// init container the pod would get in (found by running it).
func (n *nodeCase) initTrap(a *attempt, container string, subject report.Subject) []report.Finding {
	_, reusable := a.freeCPUs()
	if container == "" || reusable.IsEmpty() || a.container(container).CPUs == 0 {
		return nil
	}
	p := a.pod.DeepCopy()
	var kept []corev1.Container
	var dropped []string
	for _, c := range p.Spec.InitContainers {
		k := a.container(c.Name)
		if k.Kind == alloc.Init && k.CPUs > 0 {
			dropped = append(dropped, c.Name)
			continue
		}
		kept = append(kept, c)
	}
	p.Spec.InitContainers = kept
	if !a.from.admits(node.Pod{Pod: p, Devices: a.pod.Devices}) {
		return nil
	}
	var nodes []int
	for _, m := range a.from.config.Topology.NUMANodes {
		if !m.CPUs.Intersection(reusable).IsEmpty() {
			nodes = append(nodes, m.ID)
		}
	}
	free, _ := a.freeCPUs()
	here := 0
	for _, id := range nodes {
		m, _ := a.from.config.Topology.NUMANode(id)
		here += m.CPUs.Intersection(free.Union(reusable)).Size()
	}
	need := a.container(container).CPUs
	f := n.refusal(a, report.InitContainerNUMATrap, subject,
		fmt.Sprintf("Init container %s got CPUs %s on NUMA node %s, which container %s has to use again; so only sets of NUMA nodes with %s remain for it, and there %d of %d CPUs are to be had.",
			join(dropped), reusable, ids(nodes), container, ids(nodes), here, need),
		a.requestEvidence(container, corev1.ResourceCPU, fmt.Sprint(need)),
		a.requestEvidence(dropped[0], corev1.ResourceCPU, fmt.Sprint(a.container(dropped[0]).CPUs)),
		n.configEvidence("topologyManagerScope", a.from.config.Kubelet.TopologyManagerScope, "container by container: the init container's place is chosen before it is known what follows"))
	f.Arithmetic = fmt.Sprintf("NUMA node %s: %d free with those to be used again < %d", ids(nodes), here, need)
	f.Remedies = []report.Remedy{
		{Summary: fmt.Sprintf("Ask for as many CPUs in init container %s as in the largest container, or for a fraction of a CPU.", dropped[0]), Effect: "Without CPUs of its own for it the pod would be admitted (replayed)."},
		{Summary: "topologyManagerScope pod chooses the NUMA nodes once for the whole pod.", Caution: "It needs a restart of the kubelet and concerns all pods."},
	}
	return []report.Finding{f}
}
