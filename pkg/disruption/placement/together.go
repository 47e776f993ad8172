package placement

import corev1 "k8s.io/api/core/v1"

// Together is a resource of which pods request more than there is. Amounts are in thousandths of its unit.
type Together struct {
	Resource corev1.ResourceName
	// Need is the sum of what the pods request, Free that of what the nodes have free that may take any of them.
	Need, Free int64
	Nodes      int
}

// together looks for a resource that the nodes which may take any of the pods have too little of for all of them.
func (p *Planner) together(move []*corev1.Pod, own int) *Together {
	var need vector
	shapes := map[*shape]bool{}
	for _, pod := range move {
		s := p.shapeOf(pod)
		need.addAll(s.need.least)
		shapes[s] = true
	}
	if len(move) < 2 || !p.spend(len(shapes)*len(p.targets)) {
		return nil
	}
	var free vector
	endless := map[int]bool{}
	nodes := 0
	for _, t := range p.targets {
		takes := false
		for s := range shapes {
			takes = takes || p.checks(s)[t.place] == Fits
		}
		if !takes || t.place == own {
			continue
		}
		nodes++
		for i := range need {
			endless[i] = endless[i] || t.endless[i]
			free.add(i, max(0, t.free(i)))
		}
	}
	for i, amount := range need {
		if amount > free.at(i) && !endless[i] {
			return &Together{p.names[i], amount, free.at(i), nodes}
		}
	}
	return nil
}
