package checkpoint

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MemoryState is the content of memory_manager_state. Sizes are bytes.
type MemoryState struct {
	// Version is the form of the file: 1 (to kubelet 1.35, and 1.36 without PodLevelResourceManagers), 2 (1.36 with it) or 3 (from
	// 1.37). Forms 1 and 2 without pod entries look alike and are told apart by the checksum that fits; where none does, 1 is assumed.
	Version      int
	PolicyName   string // None or Static
	MachineState map[int]NUMANodeState
	Entries      map[string]map[string][]Block // by pod UID and container name; blocks in the order of the file, which is random
	PodEntries   map[string][]Block            // by pod UID

	// Checksums, LegacyDiffers and Notes are as in CPUState.
	Checksums     []Checksum
	LegacyDiffers []string
	Notes         []string
}

// NUMANodeState is the memory of a node as the memory manager accounts for it.
type NUMANodeState struct {
	NumberOfAssignments int
	MemoryMap           map[corev1.ResourceName]MemoryTable // memory and hugepages-<size>
	Cells               []int                               // the nodes of the group that this one belongs to, itself among them
}

// MemoryTable is one kind of memory on a node.
type MemoryTable struct {
	Total, SystemReserved, Allocatable, Reserved, Free uint64
}

// Block is memory of one kind that a container or pod holds on a group of nodes.
type Block struct {
	NUMAAffinity []int
	Type         corev1.ResourceName
	Size         uint64
}

// MemoryAssignment is one entry of a MemoryState.
type MemoryAssignment struct {
	PodUID, Container string
	Blocks            []Block
}

// Assignments returns the entries in the order of pod UID and container name, their blocks in the order of type, nodes and size.
func (s MemoryState) Assignments() []MemoryAssignment {
	var list []MemoryAssignment
	for _, uid := range slices.Sorted(maps.Keys(s.Entries)) {
		for _, name := range slices.Sorted(maps.Keys(s.Entries[uid])) {
			list = append(list, MemoryAssignment{uid, name, SortedBlocks(s.Entries[uid][name])})
		}
	}
	return list
}

// Nodes returns the node ids of the machine state, ascending.
func (s MemoryState) Nodes() []int { return slices.Sorted(maps.Keys(s.MachineState)) }

// SortedBlocks returns blocks in the order of type, nodes and size.
func SortedBlocks(blocks []Block) []Block {
	sorted := slices.Clone(blocks)
	slices.SortStableFunc(sorted, func(a, b Block) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), slices.Compare(a.NUMAAffinity, b.NUMAAffinity), cmp.Compare(a.Size, b.Size))
	})
	return sorted
}

// ReadMemory reads a memory_manager_state file, with the same rules as ReadCPU: data alone counts in form 3, what could be read is
// returned beside an error, and the error matches ErrCorrupt for a wrong checksum and ErrEmpty for a file without content.
// A node, container or pod of which any part could not be read is left out and named.
func ReadMemory(data []byte) (MemoryState, error) {
	if err := checkNotEmpty(data); err != nil {
		return MemoryState{}, err
	}
	var r reader
	var top rawMemory
	top.read(&r, "", data)
	if top.data == "" && top.dataChecksum == 0 {
		state := top.state()
		candidates := top.candidates()
		state.Version = candidates[0].version
		if top.whole {
			var sum Checksum
			sum, state.Version = legacyChecksum(top.checksum, candidates)
			state.addChecksum(&r, sum, true)
		}
		state.Notes = r.notes
		return state, r.err()
	}

	var inner rawMemory
	inner.read(&r, "data", []byte(top.data))
	state := inner.state()
	state.Version = 3
	state.addChecksum(&r, dataChecksum(top.data, top.dataChecksum), true)
	if top.whole {
		sum, _ := legacyChecksum(top.checksum, top.candidates())
		state.addChecksum(&r, sum, false)
	}
	if top.whole && inner.whole {
		state.LegacyDiffers = top.differences(inner)
	}
	state.Notes = r.notes
	return state, r.err()
}

func (s *MemoryState) addChecksum(r *reader, sum Checksum, decides bool) {
	s.Checksums = append(s.Checksums, sum)
	if decides && !sum.OK {
		r.fail("", &ChecksumError{sum})
	}
}
