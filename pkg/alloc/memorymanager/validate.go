package memorymanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

var (
	errEmptyMachine = errors.New("[memorymanager] machine state can not be empty when it has memory assignments")
	errDifferent    = errors.New("[memorymanager] the expected machine state is different from the real one")
)

// validate checks a state that was read at kubelet start, and fills in an empty one (policy_static.go, validateState). The kubelet
// books all blocks on an empty machine in the order of maps; where blocks of different sets of nodes share a node, that order decides
// which set the node belongs to, and the result is one of several.
func (m *Manager) validate() []error {
	if len(m.State.Nodes) == 0 {
		if len(m.State.Entries) != 0 {
			return []error{errEmptyMachine}
		}
		m.State.Nodes = cloneNodes(m.empty)
		return nil
	}
	expected := State{Nodes: cloneNodes(m.empty)}
	groups := make([][]hint.Mask, len(expected.Nodes))
	for _, uid := range slices.Sorted(maps.Keys(m.State.Entries)) {
		if pod := m.State.PodEntries[uid]; len(pod) > 0 && m.rules.PodLevelResourceManagers {
			if err := expected.book(pod, uid, "", groups); err != nil {
				return []error{err}
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(m.State.Entries[uid])) {
			if err := expected.book(m.State.Entries[uid][name], uid, name, groups); err != nil {
				return []error{err}
			}
		}
	}
	if !m.equalButGroups(expected) {
		return []error{errDifferent}
	}
	certain, possible := true, true
	for i, masks := range groups {
		real := m.State.Nodes[i].Cells
		if len(masks) == 0 {
			masks = []hint.Mask{expected.Nodes[i].Cells}
		}
		possible = possible && slices.Contains(masks, real)
		certain = certain && len(masks) == 1
	}
	switch {
	case !possible:
		return []error{errDifferent}
	case !certain:
		return []error{nil, errDifferent}
	}
	return nil
}

// book charges the blocks, and notes for each node the sets that it was part of.
func (s *State) book(blocks []Block, uid, container string, groups [][]hint.Mask) error {
	for _, b := range blocks {
		size := b.Size
		for rest := b.Nodes; rest != 0; rest &= rest - 1 {
			n := s.node(rest.Lowest())
			if n == nil {
				return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses the NUMA that does not exist", uid, container)
			}
			n.Assignments++
			t := n.table(b.Type)
			if t == nil {
				return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses memory resource that does not exist", uid, container)
			}
			moved := min(t.Free, size)
			t.Free -= moved
			t.Reserved += moved
			size -= moved
			for i := range s.Nodes {
				if &s.Nodes[i] == n && !slices.Contains(groups[i], b.Nodes) {
					groups[i] = append(groups[i], b.Nodes)
				}
			}
		}
	}
	return nil
}

// equalButGroups compares all but the cells. What is free and reserved need only agree in sum over the nodes of a group.
func (m *Manager) equalButGroups(expected State) bool {
	if len(m.State.Nodes) != len(expected.Nodes) {
		return false
	}
	for i := range m.State.Nodes {
		n, e := &m.State.Nodes[i], &expected.Nodes[i]
		if n.ID != e.ID || n.Assignments != e.Assignments || len(n.Tables) != len(e.Tables) {
			return false
		}
		for j := range n.Tables {
			t, et := &n.Tables[j], &e.Tables[j]
			if t.Type != et.Type || t.Total != et.Total || t.SystemReserved != et.SystemReserved || t.Allocatable != et.Allocatable {
				return false
			}
			var free, reserved uint64
			for rest := n.Cells; rest != 0; rest &= rest - 1 {
				a, b := m.State.node(rest.Lowest()), expected.node(rest.Lowest())
				if a == nil || b == nil || a.table(t.Type) == nil || b.table(t.Type) == nil {
					return false
				}
				free += a.table(t.Type).Free - b.table(t.Type).Free
				reserved += a.table(t.Type).Reserved - b.table(t.Type).Reserved
			}
			if free != 0 || reserved != 0 {
				return false
			}
		}
	}
	return true
}
