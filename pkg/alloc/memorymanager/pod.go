package memorymanager

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

// AllocatePod gives a pod with pod-level resources its memory, and shares it out to its containers.
func (m *Manager) AllocatePod(p *alloc.PodRequests, near hint.Hint) error {
	if !m.static || p.QOS != corev1.PodQOSGuaranteed || p.MemoryErr != nil {
		return nil
	}
	if err := checkPodPool(p); err != nil {
		return err
	}
	nodes, err := m.choose(p.UID, p.Memory, near)
	if err != nil {
		return err
	}
	// As the kubelet's, these differences wrap around where containers ask for more than the pod.
	pool := make([]Block, 0, len(p.Memory))
	for _, total := range p.Memory {
		pool = append(pool, Block{nodes, total.Type, total.Size})
	}
	whole := append([]Block{}, pool...)
	own := make(map[string][]Block, len(p.Containers))
	for i := range p.Containers {
		c := &p.Containers[i]
		if len(c.Memory) == 0 {
			if c.Kind == alloc.Init {
				own[c.Name] = positive(pool)
			}
			continue
		}
		blocks := []Block{}
		for _, r := range c.Memory {
			if r.Size > 0 {
				blocks = append(blocks, Block{nodes, r.Type, r.Size})
			}
			if c.Kind == alloc.Init {
				continue
			}
			found := false
			for j := range pool {
				if pool[j].Type == r.Type {
					pool[j].Size -= r.Size
					found = true
				}
			}
			if !found && c.Kind == alloc.App && r.Size > 0 {
				pool = append(pool, Block{nodes, r.Type, -r.Size})
			}
		}
		own[c.Name] = blocks
	}
	if m.State.PodEntries == nil {
		m.State.PodEntries = map[string][]Block{}
	}
	m.State.PodEntries[p.UID] = whole
	for _, total := range p.Memory {
		if err := m.State.charge(nodes, total.Type, total.Size); err != nil {
			return err
		}
	}
	shared := positive(pool)
	for i := range p.Containers {
		name := p.Containers[i].Name
		blocks, ok := own[name]
		if !ok {
			blocks = append([]Block{}, shared...)
		}
		m.State.set(p.UID, name, blocks)
	}
	return nil
}

func positive(blocks []Block) []Block {
	list := []Block{}
	for _, b := range blocks {
		if b.Size > 0 {
			list = append(list, b)
		}
	}
	return list
}
