package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
)

// effort bounds the admissions that are run to find remedies and nearest
// changes. On a machine of many NUMA nodes each goes through every set of them:
// the sets are counted, so that the answer hangs on no clock.
type effort struct {
	sets int
	cut  bool
}

const (
	// cheapNUMANodes is the number up to which the sets are few, and not counted.
	cheapNUMANodes = 11
	// mostSets takes a second or two to go through.
	mostSets = 1 << 22
)

// spend notes one more run; false where that would be too much.
func (e *effort) spend(c node.Config) bool {
	k, nodes := c.Kubelet, len(c.Topology.NUMANodes)
	if e == nil || nodes <= cheapNUMANodes || k.TopologyManagerPolicy == "none" && k.MemoryManagerPolicy != "Static" {
		return true
	}
	sets := 1 << min(nodes, 40)
	if e.sets+sets > mostSets {
		e.cut = true
		return false
	}
	e.sets += sets
	return true
}

func (e *effort) wasCut() bool { return e != nil && e.cut }

// noteCut says in the gaps that a search was cut.
func (n *nodeCase) noteCut(cut bool, what, costs string) {
	if topo, err := n.topo(); cut && err == nil {
		n.gaps.Lack("nodes/"+n.name+" ("+what+")",
			fmt.Sprintf("the search was cut: on %d NUMA nodes each admission goes through up to 2^%[1]d sets of them", len(topo.NUMANodes)), costs, "")
	}
}
