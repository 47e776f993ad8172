package checkpoint

import (
	"strconv"
	"strings"
)

// candidates are the texts that the legacy checksum of a memory file can be made of; see rawCPU.candidates.
func (m *rawMemory) candidates() []candidate {
	v1 := []candidate{{1, m.text("MemoryManagerCheckpoint", false)}, {1, m.text("MemoryManagerCheckpointV1", false)}}
	v2 := []candidate{{2, m.text("MemoryManagerCheckpoint", true)}, {2, m.text("MemoryManagerCheckpointV2", true)}}
	if len(m.podEntries) > 0 {
		return v2
	}
	return append(v1, v2...)
}

func (m *rawMemory) text(name string, withPods bool) string {
	var b strings.Builder
	b.WriteString("(*state." + name + "){PolicyName:(string)" + m.policyName + " MachineState:(state.NUMANodeMap)")
	writeMap(&b, m.machineState == nil, m.machineState, writeNode)
	b.WriteString(" Entries:(state.ContainerMemoryAssignments)")
	writeMap(&b, m.entries == nil, m.entries, func(b *strings.Builder, containers map[string][]Block) {
		writeMap(b, containers == nil, containers, writeBlocks)
	})
	if withPods {
		b.WriteString(" PodEntries:(state.PodMemoryAssignments)")
		writeMap(&b, m.podEntries == nil, m.podEntries, func(b *strings.Builder, blocks []Block) {
			b.WriteString("{MemoryBlocks:([]state.Block)")
			writeBlocks(b, blocks)
			b.WriteByte('}')
		})
	}
	b.WriteString(checksumTail)
	return b.String()
}

func writeNode(b *strings.Builder, n rawNode) {
	b.WriteString("<*>{NumberOfAssignments:(int)" + strconv.Itoa(n.assignments) + " MemoryMap:(map[v1.ResourceName]*state.MemoryTable)")
	writeMap(b, n.memoryMap == nil, n.memoryMap, func(b *strings.Builder, t MemoryTable) {
		b.WriteString("<*>{TotalMemSize:(uint64)" + strconv.FormatUint(t.Total, 10) +
			" SystemReserved:(uint64)" + strconv.FormatUint(t.SystemReserved, 10) +
			" Allocatable:(uint64)" + strconv.FormatUint(t.Allocatable, 10) +
			" Reserved:(uint64)" + strconv.FormatUint(t.Reserved, 10) +
			" Free:(uint64)" + strconv.FormatUint(t.Free, 10) + "}")
	})
	b.WriteString(" Cells:")
	writeInts(b, n.cells)
	b.WriteByte('}')
}

func writeBlocks(b *strings.Builder, blocks []Block) {
	if blocks == nil {
		b.WriteString("<nil>")
		return
	}
	b.WriteByte('[')
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("{NUMAAffinity:")
		writeInts(b, block.NUMAAffinity)
		b.WriteString(" Type:(v1.ResourceName)" + string(block.Type) + " Size:(uint64)" + strconv.FormatUint(block.Size, 10) + "}")
	}
	b.WriteByte(']')
}

func writeInts(b *strings.Builder, ids []int) {
	b.WriteString("([]int)")
	if ids == nil {
		b.WriteString("<nil>")
		return
	}
	b.WriteByte('[')
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(id))
	}
	b.WriteByte(']')
}
