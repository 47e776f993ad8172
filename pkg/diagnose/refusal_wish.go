package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
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
	// barred says why NUMA nodes that have enough free are not offered.
	barred string
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
		return fmt.Sprintf("no set of NUMA nodes is offered for %s, though they have %s free together%s", w.text(), w.amountOf(w.sum()), w.barred), ""
	case policy == "single-numa-node":
		most, at := w.most(1)
		if most >= w.need {
			return w.freeButBarred(at), ""
		}
		return fmt.Sprintf("no NUMA node alone has %s free, the most is %s (node %s)", w.text(), w.amountOf(most), ids(at)),
			fmt.Sprintf("%s: %s on node %s < %s", w.name, w.amount(most), ids(at), w.amount(w.need))
	}
	least, _ := w.least()
	most, at := w.most(least)
	if most >= w.need {
		return w.freeButBarred(at), ""
	}
	return fmt.Sprintf("%s would go into %s if nothing else were there, so only sets of that many are preferred, and the best of them (%s) has %s free",
		w.text(), plural(least, "NUMA node"), ids(at), w.amountOf(most)), w.leastText(least, at)
}

func (w wish) freeButBarred(at []int) string {
	return fmt.Sprintf("%s would be free on %s, which is not offered%s", w.text(), numaText(at), w.barred)
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
	if len(sets) == 0 {
		return w.name + " on no NUMA node"
	}
	const most = 6
	text := strings.Join(sets[:min(most, len(sets))], " or ")
	if len(sets) > most {
		text += fmt.Sprintf(" or %d more sets", len(sets)-most)
	}
	return fmt.Sprintf("%s on %s", w.name, text)
}
