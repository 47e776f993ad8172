package cgroup

import (
	"fmt"
	"strings"

	"k8s.io/utils/cpuset"
)

// maxID is above any CPU or NUMA node number of a Linux kernel (NR_CPUS is at
// most 8192). It keeps a list such as 0-4294967295 from filling the memory.
const maxID = 65536

// CPUSetCPUs reads cpuset.cpus. An empty set means that nothing was configured
// and the group has what its parent has: see CPUSetCPUsEffective. The root
// group has only the effective files.
func (g Group) CPUSetCPUs() (cpuset.CPUSet, error) { return readFile(g, "cpuset.cpus", parseList) }

// CPUSetCPUsEffective reads cpuset.cpus.effective, the CPUs that the group's
// processes may run on.
func (g Group) CPUSetCPUsEffective() (cpuset.CPUSet, error) {
	return readFile(g, "cpuset.cpus.effective", parseList)
}

// CPUSetMems reads cpuset.mems, NUMA nodes; empty as in CPUSetCPUs.
func (g Group) CPUSetMems() (cpuset.CPUSet, error) { return readFile(g, "cpuset.mems", parseList) }

// CPUSetMemsEffective reads cpuset.mems.effective, NUMA nodes.
func (g Group) CPUSetMemsEffective() (cpuset.CPUSet, error) {
	return readFile(g, "cpuset.mems.effective", parseList)
}

// CPUSetPartition reads cpuset.cpus.partition: "member", "root", "isolated",
// or the latter two followed by " invalid (reason)".
func (g Group) CPUSetPartition() (string, error) {
	return readFile(g, "cpuset.cpus.partition", parseWord)
}

// parseList parses a list such as "0-3,8,10-11", in ascending order and without
// overlap, as the kernel prints a bitmap (%*pbl). An empty file is the empty set.
func parseList(data []byte) (cpuset.CPUSet, error) {
	none := cpuset.New()
	if strings.Trim(string(data), "\n") == "" {
		return none, nil
	}
	text, err := singleLine(data)
	if err != nil {
		return none, err
	}
	var ids []int
	next := 0 // the lowest number that may follow
	for span := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(span, "-")
		if !isRange {
			high = low
		}
		first, err := listID(low)
		if err != nil {
			return none, badText(1, span, err.Error())
		}
		last, err := listID(high)
		if err != nil {
			return none, badText(1, span, err.Error())
		}
		if first < next || last < first {
			return none, badText(1, span, "list is not in ascending order")
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
		next = last + 1
	}
	return cpuset.New(ids...), nil
}

func listID(text string) (int, error) {
	id, err := kernelUint(text)
	if err != nil {
		return 0, err
	}
	if id >= maxID {
		return 0, fmt.Errorf("number above %d", maxID-1)
	}
	return int(id), nil
}
