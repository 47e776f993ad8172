package memorymanager

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

var (
	errNoDefault          = errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
	errDefaultPreferred   = errors.New("[memorymanager] failed to find the default preferred hint")
	errNoExtended         = errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
	errExtendedPreferred  = errors.New("[memorymanager] failed to find the extended preferred hint")
	errViolatesAllocation = errors.New("[memorymanager] preferred hint violates NUMA node allocation")
)

// Allocate gives a container its memory. near is the topology manager's hint.
func (m *Manager) Allocate(p *alloc.PodRequests, c *alloc.ContainerRequests, near hint.Hint) error {
	if !m.static || p.QOS != corev1.PodQOSGuaranteed || p.Unmanaged {
		return nil
	}
	if c.MemoryErr == nil && len(c.Memory) == 0 && !m.rules.MemoryPinsNothing {
		return nil
	}
	if c.MemoryErr != nil {
		return c.MemoryErr
	}
	if blocks := m.State.get(p.UID, c.Name); blocks != nil {
		m.reuse.update(p.UID, c.Kind, blocks)
		return nil
	}
	nodes, err := m.choose(p.UID, c.Memory, near)
	if err != nil {
		return err
	}
	blocks := make([]Block, 0, len(c.Memory))
	for _, r := range c.Memory {
		blocks = append(blocks, Block{nodes, r.Type, r.Size})
		size := r.Size
		size -= min(size, m.reuse.size(p.UID, nodes, r.Type))
		if err := m.State.charge(nodes, r.Type, size); err != nil {
			return err
		}
	}
	m.reuse.update(p.UID, c.Kind, blocks)
	m.State.set(p.UID, c.Name, blocks)
	m.shrinkInit(p, c, blocks)
	return nil
}

// choose returns the nodes to allocate on: the hint's, or more where these have not enough free.
func (m *Manager) choose(uid string, requests []alloc.MemoryRequest, near hint.Hint) (hint.Mask, error) {
	if !near.Aligned {
		hints, err := m.calculate(uid, requests)
		if err != nil {
			return 0, err
		}
		if len(hints) == 0 {
			return 0, errNoDefault
		}
		if !asksMemory(requests) {
			return 0, hint.ErrNilPointer
		}
		b := best(hints)
		if !b.Preferred && near.Preferred {
			return 0, errDefaultPreferred
		}
		near = b
	}
	enough, err := m.satisfies(near.Mask, requests)
	if err != nil {
		return 0, err
	}
	if !enough {
		hints, err := m.calculate(uid, requests)
		if err != nil {
			return 0, err
		}
		wider := hints[:0:0]
		for _, h := range hints {
			if near.Mask&^h.Mask == 0 && asksMemory(requests) {
				wider = append(wider, h)
			}
		}
		if len(wider) == 0 {
			return 0, errNoExtended
		}
		b := best(wider)
		if !b.Preferred && near.Preferred {
			return 0, errExtendedPreferred
		}
		near = b
	}
	if near.Mask.Count() > 1 {
		for rest := near.Mask; rest != 0; rest &= rest - 1 {
			if n := m.State.node(rest.Lowest()); n.Assignments > 0 && n.Cells != near.Mask {
				return 0, errViolatesAllocation
			}
		}
	}
	return near.Mask, nil
}

// asksMemory: the choice among hints goes by those for the type memory.
func asksMemory(requests []alloc.MemoryRequest) bool {
	for _, r := range requests {
		if r.Type == corev1.ResourceMemory {
			return true
		}
	}
	return false
}

// satisfies reports whether the nodes have enough free, without what init containers leave.
func (m *Manager) satisfies(nodes hint.Mask, requests []alloc.MemoryRequest) (bool, error) {
	enough := true
	for _, r := range requests {
		var free uint64
		for rest := nodes; rest != 0; rest &= rest - 1 {
			n := m.State.node(rest.Lowest())
			if n == nil {
				return false, hint.ErrNilPointer
			}
			t := n.table(r.Type)
			if t == nil {
				return false, hint.ErrNilPointer
			}
			free += t.Free
		}
		if free < r.Size {
			enough = false
		}
	}
	return enough, nil
}

// shrinkInit takes what a container got off the blocks of the init containers before it that it reuses, so that the blocks of a pod
// add up to the memory that it holds.
func (m *Manager) shrinkInit(p *alloc.PodRequests, c *alloc.ContainerRequests, blocks []Block) {
	for _, b := range blocks {
		size := b.Size
		for i := range p.Containers {
			init := &p.Containers[i]
			if init.Kind == alloc.App || init.Name == c.Name || size == 0 {
				break
			}
			if init.Kind != alloc.Init {
				continue
			}
			held := m.State.get(p.UID, init.Name)
			for j := range held {
				if held[j].Type == b.Type && held[j].Nodes == b.Nodes {
					moved := min(held[j].Size, size)
					held[j].Size -= moved
					size -= moved
				}
			}
		}
	}
}

// EmptyPodSharedPoolError is the refusal of a pod with pod-level resources whose exclusive containers leave nothing for the others.
type EmptyPodSharedPoolError string

func (e EmptyPodSharedPoolError) Error() string { return string(e) }

// Reason is the reason of a pod refused by it.
func (EmptyPodSharedPoolError) Reason() string { return "EmptyPodSharedPoolError" }

// checkPodPool returns the refusal of a pod whose shared containers would have no memory. Of several types the first is named; the
// kubelet names any.
func checkPodPool(p *alloc.PodRequests) error {
	exclusive := map[corev1.ResourceName]uint64{}
	shared := false
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.MemoryErr != nil {
			return EmptyPodSharedPoolError(c.MemoryErr.Error())
		}
		if c.Kind == alloc.Init {
			if len(c.Memory) > 0 {
				continue
			}
			for _, total := range p.Memory {
				if exclusive[total.Type] >= total.Size {
					return EmptyPodSharedPoolError(fmt.Sprintf("pod rejected, pod has shared init containers but no %s available for them", total.Type))
				}
			}
			continue
		}
		shared = shared || len(c.Memory) == 0
		for _, r := range c.Memory {
			exclusive[r.Type] += r.Size
		}
	}
	if !shared {
		return nil
	}
	for _, total := range p.Memory {
		if exclusive[total.Type] >= total.Size {
			return EmptyPodSharedPoolError(fmt.Sprintf(
				"pod rejected, sum of exclusive container %s requests equals pod budget, leaving no memory for shared containers", total.Type))
		}
	}
	return nil
}
