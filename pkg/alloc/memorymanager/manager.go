package memorymanager

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// Config is what the memory manager is started with.
type Config struct {
	Policy         string // None or Static
	ReservedMemory []kubeletconfig.MemoryReservation
	Reservation    corev1.ResourceList // of the node, eviction thresholds included
}

// Manager is a memory manager. It is not for concurrent use.
type Manager struct {
	State State

	static bool
	rules  alloc.Rules
	empty  []Node
	masks  []hint.Mask // of all nodes, in the order of hints
	noMask error

	reuse  reuse
	hints  []hint.Hint
	tables []*Table
}

// reuse is the memory that init containers leave to the later containers of their pod.
type reuse struct {
	uid    string
	blocks []Block // one for each type and set of nodes
}

func (r *reuse) find(uid string, nodes hint.Mask, t corev1.ResourceName) *Block {
	if r.uid != uid {
		return nil
	}
	for i := range r.blocks {
		if r.blocks[i].Nodes == nodes && r.blocks[i].Type == t {
			return &r.blocks[i]
		}
	}
	return nil
}

func (r *reuse) size(uid string, nodes hint.Mask, t corev1.ResourceName) uint64 {
	if b := r.find(uid, nodes, t); b != nil {
		return b.Size
	}
	return 0
}

func (r *reuse) update(uid string, kind alloc.Kind, blocks []Block) {
	if r.uid != uid {
		r.uid, r.blocks = uid, r.blocks[:0]
	}
	for _, b := range blocks {
		old := r.find(uid, b.Nodes, b.Type)
		switch {
		case kind == alloc.Init && old == nil:
			r.blocks = append(r.blocks, b)
		case kind == alloc.Init:
			old.Size = max(old.Size, b.Size)
		case old != nil:
			old.Size -= min(old.Size, b.Size)
		}
	}
}

// New returns a manager that has no state yet. The errors are the possible ones; the kubelet's is one of them.
func New(nodes []topology.NUMANode, c Config, r alloc.Rules) (*Manager, []error) {
	m := &Manager{rules: r}
	switch c.Policy {
	case "None":
		return m, nil
	case "Static":
	case "BestEffort":
		return nil, []error{fmt.Errorf("policy %q is not available for platform %q", c.Policy, "linux")}
	default:
		return nil, []error{fmt.Errorf("unknown policy: %q", c.Policy)}
	}
	reserved, errs := readReserved(nodes, c.Reservation, c.ReservedMemory)
	if len(errs) > 0 {
		return nil, errs
	}
	m.static = true
	m.empty = emptyNodes(nodes, reserved)
	return m, nil
}

// Start takes over a state, or an empty one. The errors are the possible ones, a nil among them if the start can succeed as well.
func (m *Manager) Start(s State) []error {
	m.State = s
	if m.State.Entries == nil {
		m.State.Entries = map[string]map[string][]Block{}
	}
	if !m.rules.PodLevelResourceManagers {
		m.State.PodEntries = nil
	}
	if !m.static {
		return nil
	}
	errs := m.validate()
	ids := make([]int, len(m.State.Nodes))
	for i := range m.State.Nodes {
		ids[i] = m.State.Nodes[i].ID
	}
	m.masks, m.noMask = hint.Subsets(ids)
	return errs
}

// Get returns the blocks of a container.
func (m *Manager) Get(uid, container string) []Block { return m.State.get(uid, container) }

// Started drops what the init containers before a container that starts have held.
func (m *Manager) Started(p *alloc.PodRequests, container string) error {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Kind == alloc.App || c.Name == container {
			return nil
		}
		if c.Kind == alloc.Sidecar {
			continue
		}
		if err := m.Remove(p.UID, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// Remove releases what a container holds.
func (m *Manager) Remove(uid, container string) error {
	if !m.static {
		return nil
	}
	if pod, ok := m.State.PodEntries[uid]; ok && m.rules.PodLevelResourceManagers {
		m.State.delete(uid, container)
		if len(m.State.Entries[uid]) > 0 {
			return nil
		}
		delete(m.State.PodEntries, uid)
		return m.State.release(pod)
	}
	blocks := m.State.get(uid, container)
	if blocks == nil {
		return nil
	}
	m.State.delete(uid, container)
	return m.State.release(blocks)
}

// RemoveStale releases the entries that active does not know, in the order of pod UID and container name.
func (m *Manager) RemoveStale(active func(uid, container string) bool) error {
	if !m.static {
		return nil
	}
	type entry struct{ uid, container string }
	var stale []entry
	for uid, containers := range m.State.Entries {
		for name := range containers {
			if !active(uid, name) {
				stale = append(stale, entry{uid, name})
			}
		}
	}
	slices.SortFunc(stale, func(a, b entry) int {
		if a.uid != b.uid {
			return strings.Compare(a.uid, b.uid)
		}
		return strings.Compare(a.container, b.container)
	})
	for _, e := range stale {
		if err := m.Remove(e.uid, e.container); err != nil {
			return err
		}
	}
	return nil
}
