package diagnose

import (
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// pinned is a container with CPUs of its own.
type pinned struct {
	container
	cpus cpuset.Set
}

// pinned lists the containers of an active pod that hold CPUs of their own and
// still run or will.
func (c *podCase) pinned() []pinned {
	if !active(c.pod) {
		return nil
	}
	var out []pinned
	for _, k := range c.containers() {
		if set, ok := c.ownedCPUs(c.uid, k.Name); ok && !set.IsEmpty() && !k.finished() {
			out = append(out, pinned{k, set})
		}
	}
	return out
}

// numaNodesWith are the NUMA nodes that a set touches.
func numaNodesWith(topo *topology.Topology, set cpuset.Set) []topology.NUMANode {
	var out []topology.NUMANode
	for _, n := range topo.NUMANodes {
		if !n.CPUs.Intersection(set).IsEmpty() {
			out = append(out, n)
		}
	}
	return out
}

func nodeIDs(nodes []topology.NUMANode) []int {
	var ids []int
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// coreEvidence says which CPUs are threads of one core.
func (n *nodeCase) coreEvidence(topo *topology.Topology, core cpuset.Set, means string) (source, field, value, meaning string) {
	first, _ := core.First()
	if topo.Source == topology.Lscpu {
		return "node:lscpu -p", "CORE", core.String(), means
	}
	return n.source("sys/devices/system/cpu/cpu" + strconv.Itoa(first) + "/topology/core_id"), "", core.String(), means
}
