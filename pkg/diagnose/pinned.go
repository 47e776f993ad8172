package diagnose

import (
	"slices"

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

// pinnedOn are those whose CPUs the machine has, all of them: of a set that
// names others nothing says where it lies.
func (c *podCase) pinnedOn(topo *topology.Topology) []pinned {
	all := topo.AllCPUs()
	return slices.DeleteFunc(c.pinned(), func(k pinned) bool { return !k.cpus.IsSubsetOf(all) })
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
