package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Together is a resource of which pods request more than there is. Amounts are in thousandths of its unit.
type Together struct {
	Resource corev1.ResourceName
	// Need is the sum of what the pods request, Free that of what the nodes have free that may take any of them.
	Need, Free int64
	Nodes      int
}

// NowhereTogether: the pods do not all fit on the nodes that stay, and for none of them a new node can be made, both proven.
func (a *Answer) NowhereTogether() bool {
	return a.Together != nil && !slices.ContainsFunc(a.Pods, func(pod Pod) bool { return !pod.NewNode.Barred })
}

// newNodes asks the pools for each of the pods, of which one at least needs a new node.
func (p *Planner) newNodes(a *Answer, n *disruption.Node) {
	told := map[*shape]NewNode{}
	for i := range a.Pods {
		s := p.shapeOf(a.Pods[i].Pod)
		answer, ok := told[s]
		if !ok {
			if !p.spend(len(p.pools)) {
				return
			}
			answer = p.newNode(s, n)
			told[s] = answer
		}
		a.Pods[i].NewNode = answer
	}
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
