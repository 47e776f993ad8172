package cpumanager

import (
	"cmp"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// machine is a topology in a form that is quick to count in: CPUs, cores, sockets, NUMA nodes and uncore caches have places in
// ascending order of their ids, so that the order of places is the order of ids.
type machine struct {
	cpus   []cpu
	placed [cpuset.MaxCPUs]int16 // by CPU id; -1: none such
	all    cpuset.Set

	numas, sockets, cores, uncores []group

	perCore, perSocket, perUncore int // the kubelet's averages
	numaFirst                     bool
	numSockets                    int

	masks    []hint.Mask // of NUMA nodes with CPUs, in the order of hints
	masksErr error
}

type cpu struct{ id, numa, socket, core, uncore int16 } // places but for id

// group is a core, a socket, a NUMA node or an uncore cache.
type group struct {
	id   int
	set  cpuset.Set
	cpus []int16 // places
	// Places of what shares a CPU with it. A core is in one NUMA node and one socket.
	numas, sockets, cores, uncores []int16
}

func newMachine(t *topology.Topology) *machine {
	m := &machine{
		perCore:    t.CPUsPerCore(),
		perSocket:  t.CPUsPerSocket(),
		perUncore:  t.CPUsPerUncoreCache(),
		numaFirst:  t.NumSockets >= t.NumNUMANodes,
		numSockets: t.NumSockets,
		cpus:       make([]cpu, len(t.CPUs)),
	}
	for i := range m.placed {
		m.placed[i] = -1
	}
	place := func(id func(topology.CPU) int, set func(c *cpu, place int16)) []group {
		byID := map[int][]int16{}
		for i, c := range t.CPUs {
			byID[id(c)] = append(byID[id(c)], int16(i))
		}
		groups := make([]group, 0, len(byID))
		for id, cpus := range byID {
			groups = append(groups, group{id: id, cpus: cpus})
		}
		slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.id, b.id) })
		for g := range groups {
			for _, i := range groups[g].cpus {
				set(&m.cpus[i], int16(g))
				groups[g].set.Add(t.CPUs[i].ID)
			}
		}
		return groups
	}
	m.numas = place(func(c topology.CPU) int { return c.NUMANode }, func(c *cpu, p int16) { c.numa = p })
	m.sockets = place(func(c topology.CPU) int { return c.Socket }, func(c *cpu, p int16) { c.socket = p })
	m.cores = place(func(c topology.CPU) int { return c.Core }, func(c *cpu, p int16) { c.core = p })
	m.uncores = place(func(c topology.CPU) int { return c.UncoreCache }, func(c *cpu, p int16) { c.uncore = p })
	for i, c := range t.CPUs {
		m.cpus[i].id = int16(c.ID)
		m.placed[c.ID] = int16(i)
		m.all.Add(c.ID)
	}
	for _, groups := range [][]group{m.numas, m.sockets, m.cores, m.uncores} {
		for g := range groups {
			groups[g].relate(m.cpus)
		}
	}
	ids := make([]int, len(m.numas))
	for i := range m.numas {
		ids[i] = m.numas[i].id
	}
	m.masks, m.masksErr = hint.Subsets(ids)
	return m
}

func (g *group) relate(cpus []cpu) {
	for _, i := range g.cpus {
		c := cpus[i]
		g.numas = insert(g.numas, c.numa)
		g.sockets = insert(g.sockets, c.socket)
		g.cores = insert(g.cores, c.core)
		g.uncores = insert(g.uncores, c.uncore)
	}
}

func insert(places []int16, p int16) []int16 {
	if i, found := slices.BinarySearch(places, p); !found {
		return slices.Insert(places, i, p)
	}
	return places
}

// inNodes returns the CPUs of the NUMA nodes in the mask.
func (m *machine) inNodes(mask hint.Mask) cpuset.Set {
	var set cpuset.Set
	for i := range m.numas {
		if mask.Has(m.numas[i].id) {
			set = set.Union(m.numas[i].set)
		}
	}
	return set
}

// socketsOf returns which sockets the NUMA nodes in the mask touch, by place.
func (m *machine) socketsOf(mask hint.Mask) (touched cpuset.Set) {
	for i := range m.numas {
		if mask.Has(m.numas[i].id) {
			for _, s := range m.numas[i].sockets {
				touched.Add(int(s))
			}
		}
	}
	return touched
}
