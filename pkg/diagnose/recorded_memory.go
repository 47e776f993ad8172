package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// withRecordedMemory is the machine with the memory and huge pages that the
// Memory Manager's checkpoint notes for it, where nobody collected the files
// that tell. What was read stays as it was read.
func (n *nodeCase) withRecordedMemory(t *topology.Topology) *topology.Topology {
	state, err := n.memState()
	if err != nil || len(state.MachineState) == 0 {
		return t
	}
	filled := *t
	filled.NUMANodes = slices.Clone(t.NUMANodes)
	for i := range filled.NUMANodes {
		node := &filled.NUMANodes[i]
		recorded, ok := state.MachineState[node.ID]
		if !ok {
			continue
		}
		if table, ok := recorded.MemoryMap[corev1.ResourceMemory]; ok && !node.HasMemTotal {
			node.MemTotal, node.HasMemTotal = table.Total, true
		}
		dir := fmt.Sprintf("sys/devices/system/node/node%d/hugepages", node.ID)
		if _, err := fs.Stat(n.fsys, dir); len(node.HugePages) > 0 || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(recorded.MemoryMap)) {
			size, ok := hugePageSize(name)
			if !ok {
				continue
			}
			node.HugePages = append(node.HugePages, topology.HugePages{SizeKiB: size / 1024, Count: recorded.MemoryMap[name].Total / size, HasCount: true})
		}
	}
	return &filled
}

// hugePageSize is the size in bytes in a resource's name, hugepages-2Mi.
func hugePageSize(name corev1.ResourceName) (uint64, bool) {
	text := string(name)
	if len(text) <= len(corev1.ResourceHugePagesPrefix) || text[:len(corev1.ResourceHugePagesPrefix)] != corev1.ResourceHugePagesPrefix {
		return 0, false
	}
	const longest = 16
	text = text[len(corev1.ResourceHugePagesPrefix):]
	if len(text) > longest {
		return 0, false
	}
	q, err := resource.ParseQuantity(text)
	size, exact := q.AsInt64()
	return uint64(size), err == nil && exact && size >= 1024
}

// memoryKnown says whether the machine's memory is known to be compared with
// the checkpoint. lscpu does not list NUMA nodes without CPUs.
func (n *nodeCase) memoryKnown(t *topology.Topology) bool {
	for _, node := range t.NUMANodes {
		if !node.HasMemTotal {
			return false
		}
	}
	state, err := n.memState()
	if err != nil || t.Source != topology.Lscpu {
		return err == nil
	}
	for id := range state.MachineState {
		if _, ok := t.NUMANode(id); !ok {
			return false
		}
	}
	return true
}
