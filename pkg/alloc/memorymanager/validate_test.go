package memorymanager

import (
	"errors"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// Blocks of {0,1} and of {1} share node 1: in which group it ends hangs on the order in which the kubelet books them.
func TestValidateByChance(t *testing.T) {
	m := &Manager{static: true, empty: emptyNodes([]topology.NUMANode{{ID: 0, MemTotal: 100}, {ID: 1, MemTotal: 100}}, nil)}
	s := State{Nodes: cloneNodes(m.empty), Entries: map[string]map[string][]Block{"p": {
		"init": {{Nodes: 0b11, Type: "memory", Size: 10}},
		"app":  {{Nodes: 0b10, Type: "memory", Size: 20}},
	}}}
	for _, b := range []Block{s.Entries["p"]["init"][0], s.Entries["p"]["app"][0]} {
		if err := s.charge(b.Nodes, b.Type, b.Size); err != nil {
			t.Fatal(err)
		}
	}
	if errs := m.Start(s); len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], errDifferent) {
		t.Errorf("%v", errs)
	}
	s.Nodes[0].Assignments++
	if errs := m.Start(s); len(errs) != 1 || !errors.Is(errs[0], errDifferent) {
		t.Errorf("wrong count: %v", errs)
	}
	if errs := m.Start(State{Entries: s.Entries}); len(errs) != 1 || !errors.Is(errs[0], errEmptyMachine) {
		t.Errorf("no machine: %v", errs)
	}
}
