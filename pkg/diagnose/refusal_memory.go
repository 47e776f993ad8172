package diagnose

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryRefused: no set of NUMA nodes that the Memory Manager may use has the
// memory. Where only the rule of the groups forbids a set, that rule is the
// cause (memorymanager/policy_static.go, calculateHints and Allocate).
func (n *nodeCase) memoryRefused(a *attempt, container string, subject report.Subject) report.Finding {
	if other, bound := a.withoutGroups(); bound && (other.Admit || a.needsGroup(container) && !strings.Contains(other.Message, "[memorymanager]")) {
		f := n.groupConflict(a, container, subject)
		if !other.Admit {
			f.Because = append(f.Because, n.configEvidence("topologyManagerPolicy", a.from.config.Kubelet.TopologyManagerPolicy,
				fmt.Sprintf("if the nodes could be joined, the answer would be %s (replayed)", other.Reason)))
		}
		return f
	}
	need := a.container(container).Memory
	if len(need) == 0 {
		return n.refusal(a, report.MemoryExhausted, subject, fmt.Sprintf("The Memory Manager would refuse the pod: %s.", clip(a.result.Message)),
			report.Evidence{Source: a.source, Field: "spec.containers[].resources.requests", Value: requestsText(a.pod.Pod)})
	}
	var texts, sums []string
	var because []report.Evidence
	for _, r := range need {
		w := wish{name: string(r.Type), need: r.Size}
		w.free, w.total = a.memoryByNode(w.name)
		most, at := w.most(1)
		because = append(because, a.requestEvidence(container, r.Type, fmt.Sprint(r.Size)))
		because = append(because, n.memoryEvidence(a, w)...)
		if most >= r.Size {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s of %s, and no set of NUMA nodes that it may use has that free: the most on one node is %s (node %s), on all %d together %s",
			bytes(r.Size), r.Type, bytes(most), ids(at), len(w.free), bytes(w.sum())))
		sums = append(sums, fmt.Sprintf("%s on node %s: %d < %d", r.Type, ids(at), most, r.Size))
	}
	if len(texts) == 0 {
		texts = append(texts, "memory of "+plural(len(need), "type")+", and no NUMA node has all of them free")
	}
	because = append(because, n.configEvidence("topologyManagerPolicy", a.from.config.Kubelet.TopologyManagerPolicy, ""))
	f := n.refusal(a, report.MemoryExhausted, subject, fmt.Sprintf("%s asks for %s.", who(container), strings.Join(texts, "; ")), because...)
	f.Arithmetic = strings.Join(sums, "; ")
	f.Remedies = append(a.memoryRemedies(container), a.roomRemedies(n)...)
	return f
}

// needsGroup: no NUMA node alone has as much for containers as this one asks
// for, and together they have it free.
func (a *attempt) needsGroup(container string) bool {
	beyond := false
	for _, r := range a.container(container).Memory {
		w := wish{name: string(r.Type), need: r.Size}
		w.free, w.total = a.memoryByNode(w.name)
		if w.sum() < r.Size {
			return false
		}
		if least, known := w.least(); known && least > 1 {
			beyond = true
		}
	}
	return beyond
}

// withoutGroups is the answer on the same node as if no NUMA node were bound by
// what it serves already. bound is false where none is.
func (a *attempt) withoutGroups() (result node.Result, bound bool) {
	n, err := a.from.start()
	if err != nil {
		return result, false
	}
	for i := range n.Memory.State.Nodes {
		m := &n.Memory.State.Nodes[i]
		bound = bound || m.Assignments > 0
		m.Assignments = 0
		if one, ok := hint.MaskOf(m.ID); ok {
			m.Cells = one
		}
	}
	if !bound {
		return result, false
	}
	result, err = n.Admit(a.pod, nil)
	return result, err == nil
}

// groupConflict: a NUMA node that serves containers alone may not join a group
// of nodes, nor one of a group serve alone or join another, so that memory
// which is free cannot be used together.
func (n *nodeCase) groupConflict(a *attempt, container string, subject report.Subject) report.Finding {
	need := a.container(container).Memory
	var because []report.Evidence
	var texts, sums []string
	for _, r := range need {
		w := wish{name: string(r.Type), need: r.Size}
		w.free, w.total = a.memoryByNode(w.name)
		because = append(because, a.requestEvidence(container, r.Type, fmt.Sprint(r.Size)))
		because = append(because, n.memoryEvidence(a, w)...)
		if most, at := w.most(1); most < r.Size {
			texts = append(texts, fmt.Sprintf("%s of %s, more than NUMA node %s has free (%s)", bytes(r.Size), r.Type, ids(at), bytes(most)))
			sums = append(sums, fmt.Sprintf("%s: %d free on node %s < %d ≤ %d free on all NUMA nodes", r.Type, most, ids(at), r.Size, w.sum()))
		} else {
			texts = append(texts, fmt.Sprintf("%s of %s", bytes(r.Size), r.Type))
		}
	}
	bound := a.bound()
	f := n.refusal(a, report.MemoryGroupConflict, subject,
		fmt.Sprintf("%s asks for %s; the NUMA nodes that have it together cannot be joined to a group: %s.", who(container), join(texts), strings.Join(bound, ", ")), because...)
	f.Arithmetic = strings.Join(sums, "; ")
	f.Remedies = append(append(a.memoryRemedies(container), a.roomRemedies(n)...),
		report.Remedy{Summary: "Spread reservedMemory over the NUMA nodes so that each has as much for containers.", Caution: "The kubelet needs a restart with its memory_manager_state removed, on a drained node."})
	return f
}

// bound says of each NUMA node whose memory is in use how that binds it.
func (a *attempt) bound() []string {
	var bound []string
	for _, m := range a.node.Memory.State.Nodes {
		switch {
		case m.Assignments == 0:
		case m.Cells.Count() > 1:
			bound = append(bound, fmt.Sprintf("node %d belongs to the group %s", m.ID, ids(m.Cells.IDs())))
		default:
			bound = append(bound, fmt.Sprintf("node %d serves containers alone", m.ID))
		}
	}
	const most = 4
	if len(bound) > most {
		bound = append(bound[:most], fmt.Sprintf("%d more are bound", len(bound)-most))
	}
	return bound
}

// memoryEvidence is the memory of each NUMA node with the group it is bound to.
func (n *nodeCase) memoryEvidence(a *attempt, w wish) []report.Evidence {
	var out []report.Evidence
	for _, m := range a.node.Memory.State.Nodes {
		if _, has := w.free[m.ID]; !has {
			continue
		}
		group := "serves nobody yet"
		switch {
		case m.Cells.Count() > 1:
			group = fmt.Sprintf("of the group %s, %s", ids(m.Cells.IDs()), plural(m.Assignments, "assignment"))
		case m.Assignments > 0:
			group = fmt.Sprintf("serves %s alone", plural(m.Assignments, "assignment"))
		}
		out = append(out, n.freeMemoryEvidence(m.ID, w.name, w.free[m.ID],
			fmt.Sprintf("%s of %s for containers; %s", bytes(w.free[m.ID]), bytes(w.total[m.ID]), group)))
	}
	return out
}
