package topology

import (
	"cmp"
	"errors"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// New makes a topology from CPUs and NUMA nodes that are known otherwise, as cpumanager/topology.Discover does from cadvisor's: of each
// CPU the id of its core is only a key, by which CPUs of one NUMA node and socket belong together, and CPUs without an uncore cache get
// the socket's id for it. A node's own list of CPUs is filled in. CPUs of nodes that are not listed are left out.
func New(cpus []CPU, nodes []NUMANode) (*Topology, error) {
	t := &Topology{NUMANodes: slices.Clone(nodes)}
	slices.SortStableFunc(t.NUMANodes, func(a, b NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	for i := range t.NUMANodes {
		t.NUMANodes[i].CPUs = cpuset.Set{}
		if i > 0 && t.NUMANodes[i].ID == t.NUMANodes[i-1].ID {
			return nil, errors.New("a NUMA node is listed twice")
		}
	}
	type core struct{ node, socket, key int }
	lowest := map[core]int{}
	cache := map[core]CPU{}
	seen := map[int]bool{}
	for _, c := range cpus {
		if _, ok := t.NUMANode(c.NUMANode); !ok {
			continue
		}
		if c.ID < 0 || c.ID >= cpuset.MaxCPUs {
			return nil, cpuset.ErrRange
		}
		if seen[c.ID] {
			return nil, errors.New("cpus provided are not unique")
		}
		seen[c.ID] = true
		key := core{c.NUMANode, c.Socket, c.Core}
		if low, ok := lowest[key]; !ok || c.ID < low {
			lowest[key] = c.ID
		}
		if _, ok := cache[key]; !ok {
			cache[key] = c
		}
		t.CPUs = append(t.CPUs, c)
	}
	for i := range t.CPUs {
		c := &t.CPUs[i]
		key := core{c.NUMANode, c.Socket, c.Core}
		c.Core = lowest[key]
		c.UncoreCache, c.HasUncoreCache = cache[key].UncoreCache, cache[key].HasUncoreCache
		if !c.HasUncoreCache {
			c.UncoreCache = c.Socket
		}
	}
	slices.SortFunc(t.CPUs, func(a, b CPU) int { return cmp.Compare(a.ID, b.ID) })
	t.count()
	return t, nil
}
