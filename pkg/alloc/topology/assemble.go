package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// thread is a usable CPU with what tells its core from others. Two threads are of one core if all but the CPU is equal
// (cadvisor, getCoresInfo): the same ids in another NUMA node are another core.
type thread struct {
	cpu  int
	core coreKey
}

type coreKey struct {
	numa         int
	id, pkg      int    // core_id, physical_package_id
	book, drawer string // s390x only
}

// levelCache is a cache as cadvisor weighs it.
type levelCache struct {
	id, level int
	cpus      int // number of CPUs that share it
}

// nodeCacheLevel: caches above this level are shared by a node or by a part of it, those below belong to a core.
const nodeCacheLevel = 2

// assemble fills the lists and counts from threads, which come in cadvisor's order: by the name of the CPU's folder, cpu10 before
// cpu2. caches gives the caches of a CPU; an error ends the search for caches in that node, as in the kubelet.
func (t *Topology) assemble(threads []thread, caches func(cpu int) ([]levelCache, error)) error {
	type core struct {
		key    coreKey
		cpus   []int
		uncore *levelCache
	}
	var cores []*core
	byKey := map[coreKey]*core{}
	coresOfNode := map[int]int{}
	nodeOf := map[int]int{}
	for _, th := range threads {
		if node, twice := nodeOf[th.cpu]; twice {
			return fmt.Errorf("cpu %d is listed twice, in NUMA node %d and %d", th.cpu, node, th.core.numa)
		}
		nodeOf[th.cpu] = th.core.numa
		c := byKey[th.core]
		if c == nil {
			c = &core{key: th.core}
			byKey[th.core] = c
			cores = append(cores, c)
			coresOfNode[th.core.numa]++
		}
		c.cpus = append(c.cpus, th.cpu)
	}
	if len(cores) == 0 {
		return errors.New("no usable cpu: none is online with a known core and package")
	}

	noCaches := map[int]bool{}
	for _, c := range cores {
		if noCaches[c.key.numa] {
			continue
		}
		list, err := caches(c.cpus[0])
		if err != nil {
			if !errors.Is(err, errNoCache) {
				return err
			}
			noCaches[c.key.numa] = true
			t.note(fmt.Sprintf("%s/cpu%d/cache", cpuDir, c.cpus[0]),
				fmt.Sprintf("%v; the kubelet looks for no further uncore cache in NUMA node %d", err, c.key.numa))
			continue
		}
		ofNode := coresOfNode[c.key.numa] * len(c.cpus)
		for i, cache := range list {
			if cache.level > nodeCacheLevel && cache.cpus != ofNode {
				c.uncore = &list[i]
				break
			}
		}
	}

	for _, c := range cores {
		lowest := slices.Min(c.cpus)
		for _, id := range c.cpus {
			cpu := CPU{ID: id, Core: lowest, Socket: c.key.pkg, NUMANode: c.key.numa, UncoreCache: c.key.pkg}
			if c.uncore != nil {
				cpu.UncoreCache, cpu.HasUncoreCache = c.uncore.id, true
			}
			t.CPUs = append(t.CPUs, cpu)
		}
	}
	slices.SortFunc(t.CPUs, func(a, b CPU) int { return cmp.Compare(a.ID, b.ID) })
	t.count()
	return nil
}

// count fills in the groups and counts from the CPUs, which are in order.
func (t *Topology) count() {
	t.Cores = t.group(func(c CPU) int { return c.Core })
	t.Sockets = t.group(func(c CPU) int { return c.Socket })
	t.UncoreCaches = t.group(func(c CPU) int { return c.UncoreCache })
	t.NumCPUs = len(t.CPUs)
	t.NumCores = len(t.Cores)
	t.NumSockets = len(t.Sockets)
	t.NumUncoreCaches = len(t.UncoreCaches)
	nodes := t.group(func(c CPU) int { return c.NUMANode })
	t.NumNUMANodes = len(nodes)
	for _, g := range nodes {
		n := t.ensureNode(g.ID)
		n.CPUs = g.CPUs
	}
}

func (t *Topology) group(id func(CPU) int) []Group {
	at := map[int]int{}
	var groups []Group
	for _, c := range t.CPUs {
		i, ok := at[id(c)]
		if !ok {
			i = len(groups)
			at[id(c)] = i
			groups = append(groups, Group{ID: id(c)})
		}
		groups[i].CPUs.Add(c.ID)
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return groups
}

// ensureNode returns the node with that id, adding it in order. The pointer is good until the next call.
func (t *Topology) ensureNode(id int) *NUMANode {
	i, ok := slices.BinarySearchFunc(t.NUMANodes, id, func(n NUMANode, id int) int { return cmp.Compare(n.ID, id) })
	if !ok {
		t.NUMANodes = slices.Insert(t.NUMANodes, i, NUMANode{ID: id})
	}
	return &t.NUMANodes[i]
}
