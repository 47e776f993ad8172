package memorymanager

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

// Hints is what the memory manager offers.
type Hints struct {
	// Types are the requested types; none: no preference.
	Types []alloc.MemoryRequest
	// Lists has one list for each type where a container has its memory already. Otherwise All holds for every type, and if it is empty
	// there is no preference: it is at the allocation that the container is refused.
	Lists [][]hint.Hint
	All   []hint.Hint
	// Impossible: no set of nodes would do.
	Impossible bool
}

// Hints returns where a container's memory can be. It is good until the next call.
func (m *Manager) Hints(p *alloc.PodRequests, c *alloc.ContainerRequests) (Hints, error) {
	if !m.static || c.MemoryErr != nil || len(c.Memory) == 0 {
		return Hints{}, nil
	}
	if blocks := m.State.get(p.UID, c.Name); blocks != nil {
		return again(blocks, c.Memory), nil
	}
	all, err := m.calculate(p.UID, c.Memory)
	return Hints{Types: c.Memory, All: all}, err
}

// PodHints returns where all memory of a pod can be.
func (m *Manager) PodHints(p *alloc.PodRequests) (Hints, error) {
	if !m.static || p.QOS != corev1.PodQOSGuaranteed || p.Unmanaged || p.MemoryErr != nil || len(p.Memory) == 0 {
		return Hints{}, nil
	}
	if p.PodLevel && checkPodPool(p) != nil {
		return Hints{Types: p.Memory, Impossible: true}, nil
	}
	for i := range p.Containers {
		if blocks := m.State.get(p.UID, p.Containers[i].Name); blocks != nil {
			return again(blocks, p.Memory), nil
		}
	}
	all, err := m.calculate(p.UID, p.Memory)
	return Hints{Types: p.Memory, All: all}, err
}

// again returns the hints for memory that is allocated already; no preference if it is not what is requested.
func again(blocks []Block, requests []alloc.MemoryRequest) Hints {
	if len(blocks) != len(requests) {
		return Hints{}
	}
	h := Hints{Types: requests, Lists: make([][]hint.Hint, len(requests))}
	for _, b := range blocks {
		i := 0
		for i < len(requests) && requests[i].Type != b.Type {
			i++
		}
		if i == len(requests) || requests[i].Size != b.Size {
			return Hints{}
		}
		h.Lists[i] = append(h.Lists[i], hint.Hint{Mask: b.Nodes, Aligned: true, Preferred: true})
	}
	return h
}

// calculate goes through all sets of nodes (policy_static.go, calculateHints). The preferred are the smallest that could hold the
// requests if nothing else were there.
func (m *Manager) calculate(uid string, requests []alloc.MemoryRequest) ([]hint.Hint, error) {
	if m.noMask != nil {
		return nil, m.noMask
	}
	if len(requests) == 0 {
		return nil, nil
	}
	var place [64]int8
	m.tables = m.tables[:0] // those of the first request, then of the next
	for i := range m.State.Nodes {
		place[m.State.Nodes[i].ID] = int8(i)
	}
	for _, r := range requests {
		for i := range m.State.Nodes {
			t := m.State.Nodes[i].table(r.Type)
			if t == nil {
				return nil, hint.ErrNilPointer
			}
			m.tables = append(m.tables, t)
		}
	}
	m.hints = m.hints[:0]
	least := len(m.State.Nodes)
	for _, mask := range m.masks {
		possible, enough := true, true
		for i, r := range requests {
			tables := m.tables[i*len(m.State.Nodes):]
			var free, allocatable uint64
			for rest := mask; rest != 0; rest &= rest - 1 {
				t := tables[place[rest.Lowest()]]
				free += t.Free
				allocatable += t.Allocatable
			}
			if allocatable < r.Size {
				possible = false
				break
			}
			if enough && free+m.reuse.size(uid, mask, r.Type) < r.Size {
				enough = false
			}
		}
		if !possible {
			continue
		}
		size := mask.Count()
		least = min(least, size)
		if enough && m.groupAllows(mask, size, &place) {
			m.hints = append(m.hints, hint.Hint{Mask: mask, Aligned: true})
		}
	}
	for i := range m.hints {
		m.hints[i].Preferred = m.hints[i].Mask.Count() == least
	}
	return m.hints, nil
}

// groupAllows reports whether the nodes can be used together: a node of a group with others only in just that group.
func (m *Manager) groupAllows(mask hint.Mask, size int, place *[64]int8) bool {
	if size == 1 {
		return m.State.Nodes[place[mask.Lowest()]].Cells.Count() <= 1
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		n := &m.State.Nodes[place[rest.Lowest()]]
		if n.Assignments > 0 && n.Cells != mask {
			return false
		}
	}
	return true
}

// best returns the first preferred of the narrowest hints, or the narrowest if none is preferred (findBestHint).
func best(hints []hint.Hint) hint.Hint {
	b := hints[0]
	for _, h := range hints[1:] {
		if h.Preferred && !b.Preferred || h.Preferred == b.Preferred && h.Mask.Narrower(b.Mask) {
			b = h
		}
	}
	return b
}
