package cpumanager

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

// Hints returns where a container's CPUs can be. ok is false for no preference. The list is good until the next call.
func (m *Manager) Hints(p *alloc.PodRequests, c *alloc.ContainerRequests) (list []hint.Hint, ok bool, err error) {
	if !m.static || c.CPUs == 0 {
		return nil, false, nil
	}
	if set, has := m.State.get(p.UID, c.Name); has {
		if set.Size() != c.CPUs {
			return nil, true, nil
		}
		return m.generate(set, cpuset.Set{}, c.CPUs)
	}
	return m.generate(m.State.Default.Difference(m.Reserved), m.reuse.of(p.UID), c.CPUs)
}

// PodHints returns where all CPUs of a pod can be.
func (m *Manager) PodHints(p *alloc.PodRequests) (list []hint.Hint, ok bool, err error) {
	if !m.static || p.CPUs == 0 || p.Unmanaged {
		return nil, false, nil
	}
	if p.PodLevel && checkPodPool(p) != nil {
		return nil, true, nil
	}
	var assigned cpuset.Set
	for i := range p.Containers {
		set, has := m.State.get(p.UID, p.Containers[i].Name)
		if !has {
			continue
		}
		if set.Size() != p.Containers[i].CPUs {
			return nil, true, nil
		}
		assigned = assigned.Union(set)
	}
	if assigned.Size() == p.CPUs {
		return m.generate(assigned, cpuset.Set{}, p.CPUs)
	}
	return m.generate(m.State.Default.Difference(m.Reserved), m.reuse.of(p.UID).Union(assigned), p.CPUs)
}

// generate goes through all sets of NUMA nodes. The preferred are the smallest that could hold n CPUs if all were free.
func (m *Manager) generate(available, reusable cpuset.Set, n int) ([]hint.Hint, bool, error) {
	mc := m.machine
	if mc.masksErr != nil {
		return nil, false, mc.masksErr
	}
	var free, total [64]int32
	var reused hint.Mask
	for i := range mc.numas {
		numa := &mc.numas[i]
		total[numa.id] = int32(len(numa.cpus))
		free[numa.id] = int32(available.Intersection(numa.set).Size())
		if again := reusable.Intersection(numa.set).Size(); again > 0 {
			free[numa.id] += int32(again)
			reused |= 1 << numa.id
		}
	}
	least := len(mc.numas)
	m.hints = m.hints[:0]
	for _, mask := range mc.masks {
		size := mask.Count()
		var all, matching int32
		for rest := mask; rest != 0; rest &= rest - 1 {
			id := rest.Lowest()
			all += total[id]
			matching += free[id]
		}
		if int(all) >= n && size < least {
			least = size
		}
		if reused&^mask == 0 && int(matching) >= n {
			m.hints = append(m.hints, hint.Hint{Mask: mask, Aligned: true})
		}
	}
	for i := range m.hints {
		h := &m.hints[i]
		h.Preferred = h.Mask.Count() == least || m.options.bySocket && m.socketAligned(h.Mask, least)
	}
	return m.hints, true, nil
}

// socketAligned reports whether the nodes touch no more sockets than the smallest set of nodes would have to.
func (m *Manager) socketAligned(mask hint.Mask, least int) bool {
	perSocket := len(m.machine.numas) / max(m.machine.numSockets, 1)
	if perSocket == 0 {
		return false
	}
	return m.machine.socketsOf(mask).Size() == (least+perSocket-1)/perSocket
}
