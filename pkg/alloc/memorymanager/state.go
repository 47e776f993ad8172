// Package memorymanager replays the kubelet's memory manager with its Static policy (kubelet 1.37, pkg/kubelet/cm/memorymanager):
// from which NUMA nodes a container gets its memory, and what the state file holds after it.
package memorymanager

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

// Block is memory of one type that a container or pod holds on a set of nodes.
type Block struct {
	Nodes hint.Mask
	Type  corev1.ResourceName
	Size  uint64 // bytes
}

// State is what the memory manager keeps in its state file.
type State struct {
	Nodes      []Node                        // ascending by ID; none with the policy None
	Entries    map[string]map[string][]Block // by pod UID and container name; blocks ascending by type
	PodEntries map[string][]Block            // by pod UID; only with PodLevelResourceManagers
}

// Node is the memory of a NUMA node.
type Node struct {
	ID          int
	Assignments int       // blocks on the node
	Cells       hint.Mask // the nodes of the group that it belongs to, itself among them
	Tables      []Table   // ascending by type
}

// Table is one type of memory on a node, in bytes.
type Table struct {
	Type corev1.ResourceName
	checkpoint.MemoryTable
}

func (n *Node) table(t corev1.ResourceName) *Table {
	for i := range n.Tables {
		if n.Tables[i].Type == t {
			return &n.Tables[i]
		}
	}
	return nil
}

// StateOf returns the state that a checkpoint has. The error names a node id that no mask can hold.
func StateOf(c checkpoint.MemoryState) (State, error) {
	s := State{Entries: map[string]map[string][]Block{}, PodEntries: map[string][]Block{}}
	for _, id := range c.Nodes() {
		from := c.MachineState[id]
		cells, ok := hint.MaskOf(from.Cells...)
		if !ok {
			return State{}, fmt.Errorf("NUMA node %d: a cell is not between 0 and 63", id)
		}
		n := Node{ID: id, Assignments: from.NumberOfAssignments, Cells: cells}
		for _, t := range slices.Sorted(maps.Keys(from.MemoryMap)) {
			n.Tables = append(n.Tables, Table{t, from.MemoryMap[t]})
		}
		s.Nodes = append(s.Nodes, n)
	}
	blocks := func(from []checkpoint.Block) ([]Block, error) {
		var to []Block
		for _, b := range checkpoint.SortedBlocks(from) {
			nodes, ok := hint.MaskOf(b.NUMAAffinity...)
			if !ok {
				return nil, errors.New("a block's NUMA node is not between 0 and 63")
			}
			to = append(to, Block{nodes, b.Type, b.Size})
		}
		return to, nil
	}
	var err error
	for uid, containers := range c.Entries {
		s.Entries[uid] = map[string][]Block{}
		for name, from := range containers {
			if s.Entries[uid][name], err = blocks(from); err != nil {
				return State{}, err
			}
		}
	}
	for uid, from := range c.PodEntries {
		if s.PodEntries[uid], err = blocks(from); err != nil {
			return State{}, err
		}
	}
	return s, nil
}

// Clone returns a state that shares nothing with s.
func (s State) Clone() State {
	c := State{Nodes: cloneNodes(s.Nodes), Entries: make(map[string]map[string][]Block, len(s.Entries)), PodEntries: make(map[string][]Block, len(s.PodEntries))}
	for uid, containers := range s.Entries {
		to := make(map[string][]Block, len(containers))
		for name, blocks := range containers {
			to[name] = slices.Clone(blocks)
		}
		c.Entries[uid] = to
	}
	for uid, blocks := range s.PodEntries {
		c.PodEntries[uid] = slices.Clone(blocks)
	}
	return c
}

func cloneNodes(nodes []Node) []Node {
	clone := slices.Clone(nodes)
	for i := range clone {
		clone[i].Tables = slices.Clone(clone[i].Tables)
	}
	return clone
}

func (s *State) node(id int) *Node {
	i, ok := slices.BinarySearchFunc(s.Nodes, id, func(n Node, id int) int { return cmp.Compare(n.ID, id) })
	if !ok {
		return nil
	}
	return &s.Nodes[i]
}

func (s *State) get(uid, container string) []Block { return s.Entries[uid][container] }

func (s *State) set(uid, container string, blocks []Block) {
	containers := s.Entries[uid]
	if containers == nil {
		containers = map[string][]Block{}
		s.Entries[uid] = containers
	}
	containers[container] = blocks
}

func (s *State) delete(uid, container string) {
	delete(s.Entries[uid], container)
	if len(s.Entries[uid]) == 0 {
		delete(s.Entries, uid)
	}
}

// charge books size bytes of a type on the nodes of a block, the lowest nodes first.
func (s *State) charge(nodes hint.Mask, memory corev1.ResourceName, size uint64) error {
	for rest := nodes; rest != 0; rest &= rest - 1 {
		n := s.node(rest.Lowest())
		if n == nil {
			return hint.ErrNilPointer
		}
		n.Assignments++
		n.Cells = nodes
		if size == 0 {
			continue
		}
		t := n.table(memory)
		if t == nil {
			return hint.ErrNilPointer
		}
		moved := min(t.Free, size)
		t.Free -= moved
		t.Reserved += moved
		size -= moved
	}
	return nil
}

// release takes blocks off the books.
func (s *State) release(blocks []Block) error {
	for _, b := range blocks {
		size := b.Size
		for rest := b.Nodes; rest != 0; rest &= rest - 1 {
			id := rest.Lowest()
			n := s.node(id)
			if n == nil {
				return hint.ErrNilPointer
			}
			n.Assignments--
			if n.Assignments == 0 {
				n.Cells = 1 << id
			}
			if size == 0 {
				continue
			}
			t := n.table(b.Type)
			if t == nil {
				return hint.ErrNilPointer
			}
			moved := min(t.Reserved, size)
			t.Reserved -= moved
			t.Free += moved
			size -= moved
		}
	}
	return nil
}

// Book charges the machine with blocks that someone holds. The error is that of a block on a node that there is not.
func (s *State) Book(blocks []Block) error {
	for _, b := range blocks {
		if err := s.charge(b.Nodes, b.Type, b.Size); err != nil {
			return err
		}
	}
	return nil
}
