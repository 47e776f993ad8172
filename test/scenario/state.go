package scenario

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
)

func stateOf(n *node.Node) *State {
	cpu, memory := &n.CPU.State, &n.Memory.State
	s := &State{Default: cpu.Default.String()}
	for uid, containers := range cpu.Entries {
		if s.Assignments == nil {
			s.Assignments = map[string]map[string]string{}
		}
		s.Assignments[uid] = map[string]string{}
		for name, set := range containers {
			s.Assignments[uid][name] = set.String()
		}
	}
	for uid, set := range cpu.PodEntries {
		if s.PodAssignments == nil {
			s.PodAssignments = map[string]string{}
		}
		s.PodAssignments[uid] = set.String()
	}
	for uid, containers := range memory.Entries {
		if s.Memory == nil {
			s.Memory = map[string]map[string][]Block{}
		}
		s.Memory[uid] = map[string][]Block{}
		for name, blocks := range containers {
			s.Memory[uid][name] = blocksOf(blocks)
		}
	}
	for uid, blocks := range memory.PodEntries {
		if s.PodMemory == nil {
			s.PodMemory = map[string][]Block{}
		}
		s.PodMemory[uid] = blocksOf(blocks)
	}
	for i := range memory.Nodes {
		n := &memory.Nodes[i]
		to := NodeState{ID: n.ID, Assignments: n.Assignments, Cells: n.Cells.IDs()}
		for _, t := range n.Tables {
			to.Tables = append(to.Tables, MemTable{string(t.Type), t.Total, t.SystemReserved, t.Allocatable, t.Reserved, t.Free})
		}
		s.Machine = append(s.Machine, to)
	}
	return s
}

func blocksOf(from []memorymanager.Block) []Block {
	var list []Block
	for _, b := range from {
		list = append(list, Block{b.Nodes.IDs(), string(b.Type), b.Size})
	}
	return list
}
