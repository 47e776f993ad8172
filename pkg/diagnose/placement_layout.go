package diagnose

import (
	"cmp"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// layout says of every CPU who may use it, in the order of the machine.
func (n *nodeCase) layout() []report.PlacementGroup {
	topo, err := n.topo()
	if err != nil {
		return nil
	}
	caches := map[int]cpuset.Set{}
	for _, cpu := range topo.CPUs {
		if cpu.HasUncoreCache {
			set := caches[cpu.UncoreCache]
			set.Add(cpu.ID)
			caches[cpu.UncoreCache] = set
		}
	}
	use := n.cpuUses()
	type place struct{ socket, node, cache int }
	groups := map[place]*report.PlacementGroup{}
	sets := map[place]cpuset.Set{}
	var order []place
	for _, core := range topo.Cores {
		first, _ := core.CPUs.First()
		cpu, _ := topo.CPU(first)
		p := place{cpu.Socket, cpu.NUMANode, -1}
		if cpu.HasUncoreCache {
			p.cache = cpu.UncoreCache
		}
		g := groups[p]
		if g == nil {
			g = &report.PlacementGroup{Socket: p.socket, NUMANode: p.node}
			if cpu.HasUncoreCache {
				g.Cache = caches[p.cache].String()
			}
			groups[p] = g
			order = append(order, p)
		}
		sets[p] = sets[p].Union(core.CPUs)
		g.Cores = append(g.Cores, threads(core, use))
	}
	slices.SortStableFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.socket, b.socket), cmp.Compare(a.node, b.node))
	})
	var out []report.PlacementGroup
	for _, p := range order {
		groups[p].CPUs = sets[p].String()
		out = append(out, *groups[p])
	}
	return out
}

func threads(core topology.Group, use func(int) report.PlacementCPU) report.PlacementCore {
	var out report.PlacementCore
	for id := range core.CPUs.All() {
		out = append(out, use(id))
	}
	return out
}

// cpuUses tells a CPU's use. Where an init container that is done and a later
// container of its pod own the same CPU, the later one is named.
func (n *nodeCase) cpuUses() func(int) report.PlacementCPU {
	state, known := n.cpuCheckpoint()
	reserved, _ := n.reservedCPUs()
	owners := map[int]string{}
	for i := range n.pods {
		c := newPodCase(n, &n.pods[i])
		if !active(c.pod) {
			continue
		}
		for _, k := range c.containers() {
			set, _ := c.ownedCPUs(c.uid, k.Name)
			for id := range set.All() {
				owners[id] = c.pod.Namespace + "/" + c.pod.Name + "/" + k.Name
			}
		}
	}
	return func(id int) report.PlacementCPU {
		cpu := report.PlacementCPU{ID: id, Use: report.CPUUnknown, Owner: owners[id]}
		switch {
		case cpu.Owner != "":
			cpu.Use = report.CPUExclusive
		case reserved.Contains(id):
			cpu.Use = report.CPUReserved
		case known && state.PolicyName == "static" && state.Default.Contains(id), known && state.PolicyName == "none":
			cpu.Use = report.CPUFree
		}
		return cpu
	}
}
