package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// FromLscpu reads the table of lscpu -p with any columns, as long as CPU, Core and Socket are among them; the last comment line before
// the first row names them. What lscpu cannot tell differs from the kubelet's view in these points:
//   - core and socket ids are lscpu's own numbers. The kubelet uses core ids only to group, and the groups are the same; a socket's
//     number can differ from its physical_package_id where packages are not numbered from 0.
//   - without a Node column, or with an empty one, each socket stands for a NUMA node, as the kubelet does without node folders.
//   - an L3 cache (or higher) counts as uncore by the kubelet's rule, with the number of rows that have its id as the number of CPUs
//     that share it. The id is lscpu's, so only grouping and order are sure.
//   - memory, huge pages and distances are unknown.
//
// Rows without a core or socket, as lscpu -a prints for offline CPUs, are left out.
func FromLscpu(text []byte) (*Topology, error) {
	return fromLscpu(text, func(row lscpuRow) (int, error) { return row.socket.n, nil })
}

// fromLscpu asks nodeOf for the NUMA node of each CPU if the table has none.
func fromLscpu(text []byte, nodeOf func(lscpuRow) (int, error)) (*Topology, error) {
	table, err := parseLscpu(string(text))
	if err != nil {
		return nil, fmt.Errorf("lscpu: %w", err)
	}
	t := &Topology{Source: Lscpu}
	rows := map[int]lscpuRow{}
	var online, offline cpuset.Set
	var ids []int
	withNode := 0
	for _, row := range table.rows {
		if row.offline {
			offline.Add(row.cpu)
		} else {
			online.Add(row.cpu)
		}
		kernel := KernelCPU{ID: row.cpu, CoreID: row.core.n, PackageID: row.socket.n, HasIDs: row.core.ok && row.socket.ok}
		t.Kernel.CPUs = append(t.Kernel.CPUs, kernel)
		switch {
		case row.offline:
			continue
		case !kernel.HasIDs:
			t.note("lscpu", fmt.Sprintf("cpu %d has no core or socket: the kubelet leaves it out", row.cpu))
			continue
		}
		if row.node.ok {
			withNode++
		}
		ids = append(ids, row.cpu)
		rows[row.cpu] = row
	}
	if withNode > 0 && withNode < len(ids) {
		return nil, errors.New("lscpu: some cpus have a NUMA node and some have none")
	}
	t.Kernel.Online = List{online, true}
	t.Kernel.Offline = List{offline, table.hasOnline}
	slices.SortFunc(t.Kernel.CPUs, func(a, b KernelCPU) int { return a.ID - b.ID })

	shared := t.lscpuCaches(table, rows)
	var threads []thread
	for _, id := range byName(ids) {
		row := rows[id]
		key := coreKey{numa: row.node.n, id: row.core.n, pkg: row.socket.n}
		if !row.node.ok {
			if key.numa, err = nodeOf(row); err != nil {
				return nil, fmt.Errorf("lscpu: %w", err)
			}
		}
		threads = append(threads, thread{id, key})
	}
	if withNode == 0 {
		t.note("lscpu", "no NUMA nodes named")
	}
	err = t.assemble(threads, func(cpu int) ([]levelCache, error) {
		var list []levelCache
		for i, c := range table.caches {
			if cell := rows[cpu].caches[i]; cell.ok {
				list = append(list, levelCache{id: cell.n, level: c.level, cpus: shared[i][cell.n].Size()})
			}
		}
		return list, nil
	})
	if err != nil {
		return nil, fmt.Errorf("lscpu: %w", err)
	}
	return t, nil
}

// lscpuCaches returns, for each cache column, the CPUs by cache id, and puts the caches into the kernel's view.
func (t *Topology) lscpuCaches(table lscpuTable, rows map[int]lscpuRow) []map[int]cpuset.Set {
	shared := make([]map[int]cpuset.Set, len(table.caches))
	var kernel cacheList
	for i, c := range table.caches {
		shared[i] = map[int]cpuset.Set{}
		for cpu, row := range rows {
			if cell := row.caches[i]; cell.ok {
				set := shared[i][cell.n]
				set.Add(cpu)
				shared[i][cell.n] = set
			}
		}
		for id, set := range shared[i] {
			kernel.add(Cache{Level: c.level, Type: c.typ, ID: id, HasID: true, Shared: set})
		}
	}
	t.Kernel.Caches = kernel.sorted()
	return shared
}

// byName orders CPU ids as their folders are listed: cpu1, cpu10, cpu2.
func byName(ids []int) []int {
	slices.SortFunc(ids, func(a, b int) int { return strings.Compare(strconv.Itoa(a), strconv.Itoa(b)) })
	return ids
}
