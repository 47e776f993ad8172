package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// What a replay leaves differs from the state files: pods that ended, or came
// later, no longer count, and containers before the refused one do. Evidence
// quotes the file to the letter and says in words what the replay makes of it.

// sharedPoolEvidence quotes the shared pool of the file, with the replayed one beside
// it where it differs.
func (n *nodeCase) sharedPoolEvidence(pool cpuset.Set, means string) report.Evidence {
	state, err := n.cpuState()
	switch {
	case err != nil:
		return n.fileEvidence(cpuStatePath, "defaultCpuSet", "not read", fmt.Sprintf("%s; as replayed: %s", means, setOrNone(pool)))
	case state.Default != pool:
		means += "; as replayed: " + setOrNone(pool)
	}
	return n.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), means)
}

// freeMemoryEvidence quotes what the file has free of a type of memory on a NUMA
// node; free is what the replay has.
func (n *nodeCase) freeMemoryEvidence(id int, name string, free uint64, means string) report.Evidence {
	raw := "absent"
	if state, err := n.memState(); err == nil {
		if t, ok := state.MachineState[id].MemoryMap[corev1.ResourceName(name)]; ok {
			raw = fmt.Sprint(t.Free)
		}
	}
	if raw != fmt.Sprint(free) {
		means = fmt.Sprintf("as replayed %d: %s", free, means)
	}
	return n.fileEvidence(memoryStatePath, fmt.Sprintf("machineState[%d].memoryMap[%s].free", id, name), raw, means)
}

// numaCPUsEvidence quotes the CPUs of a NUMA node.
func (n *nodeCase) numaCPUsEvidence(node topology.NUMANode, means string) report.Evidence {
	source := n.source(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node.ID))
	if topo, err := n.topo(); err == nil && topo.Source == topology.Lscpu {
		source = "node:lscpu -p"
	}
	return report.Evidence{Source: source, Field: fmt.Sprintf("CPUs of NUMA node %d", node.ID), Value: node.CPUs.String(), Means: means}
}
