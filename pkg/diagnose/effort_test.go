package diagnose

import (
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// The runs are bounded only where each goes through very many sets of NUMA nodes.
func TestEffort(t *testing.T) {
	const wanted = 5000
	for _, c := range []struct {
		nodes            int
		topology, memory string
		want             int
	}{
		{8, "restricted", "Static", wanted},
		{11, "restricted", "Static", wanted},
		{12, "restricted", "None", 1024},
		{16, "best-effort", "Static", 64},
		{20, "restricted", "Static", 4},
		{20, "none", "Static", 4},
		{20, "none", "None", wanted},
	} {
		config := node.Config{
			Topology: &topology.Topology{NUMANodes: make([]topology.NUMANode, c.nodes)},
			Kubelet:  kubeletconfig.Config{TopologyManagerPolicy: c.topology, MemoryManagerPolicy: c.memory},
		}
		var e effort
		runs := 0
		for runs < wanted && e.spend(config) {
			runs++
		}
		if runs != c.want || e.wasCut() != (c.want < wanted) {
			t.Errorf("%+v: %d runs, cut %v", c, runs, e.wasCut())
		}
	}
}
