package cpumanager

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// EmptyPodSharedPoolError is the refusal of a pod with pod-level resources whose exclusive containers leave nothing for the others.
type EmptyPodSharedPoolError string

func (e EmptyPodSharedPoolError) Error() string { return string(e) }

// Reason is the reason of a pod refused by it.
func (EmptyPodSharedPoolError) Reason() string { return "EmptyPodSharedPoolError" }

// checkPodPool returns the refusal of a pod whose shared containers would have no CPUs (policy_static.go, validatePodScopeResources).
func checkPodPool(p *alloc.PodRequests) error {
	exclusive, shared := 0, false
	for i := range p.Containers {
		c := &p.Containers[i]
		switch {
		case c.Kind == alloc.Init:
			if c.CPUs == 0 && exclusive >= p.CPUs {
				return EmptyPodSharedPoolError("pod rejected, pod has shared init containers but no cpus available for them")
			}
		case c.CPUs == 0:
			shared = true
		default:
			exclusive += c.CPUs
		}
	}
	if shared && exclusive >= p.CPUs {
		return EmptyPodSharedPoolError("pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers")
	}
	return nil
}

// AllocatePod gives a pod with pod-level resources its CPUs, and shares them out to its containers.
func (m *Manager) AllocatePod(p *alloc.PodRequests, near hint.Hint, tr *trace.Trace) error {
	if !m.static || p.CPUs == 0 {
		return nil
	}
	if err := checkPodPool(p); err != nil {
		return err
	}
	if err := m.enforceSMT(p.CPUs); err != nil {
		return err
	}
	bubble, err := m.allocate(p.CPUs, near, cpuset.Set{}, tr)
	if err != nil {
		return err
	}
	if m.State.PodEntries == nil {
		m.State.PodEntries = map[string]cpuset.Set{}
	}
	m.State.PodEntries[p.UID] = bubble

	own := make(map[string]cpuset.Set, len(p.Containers))
	var sidecars cpuset.Set
	pool := bubble
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.CPUs == 0 {
			if c.Kind == alloc.Init {
				own[c.Name] = pool
			}
			continue
		}
		set, err := m.take(pool, c.CPUs)
		if err != nil {
			return err
		}
		own[c.Name] = set
		switch c.Kind {
		case alloc.Sidecar:
			sidecars = sidecars.Union(set)
			pool = bubble.Difference(sidecars)
		case alloc.App:
			pool = pool.Difference(set)
		}
	}
	for i := range p.Containers {
		name := p.Containers[i].Name
		set, ok := own[name]
		if !ok {
			set = pool
		}
		m.State.set(p.UID, name, set)
	}
	return nil
}
