package floor

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Kind is what makes a floor.
type Kind string

// Kinds of floors.
const (
	Requests       Kind = "requests"        // the sum of a resource
	LargePods      Kind = "large pods"      // few of the pods that request so much fit a node
	NodeSelection  Kind = "node selection"  // pods ask for nodes with different values of a label
	TopologySpread Kind = "topology spread" // on hostname, DoNotSchedule
	AntiAffinity   Kind = "anti-affinity"   // on hostname, required
)

// Floor is one lower bound and what makes it.
type Floor struct {
	By Kind
	Bound
	// Pods are those that it counts.
	Pods []*corev1.Pod
	// Resource of Requests and LargePods, in thousandths of its unit. Each of the latter requests Each or more.
	Resource corev1.ResourceName
	Each     int64
	// Label of NodeSelection, and what its values need, by value.
	Label  string
	Values []Value
	// Constraint of TopologySpread and AntiAffinity.
	Constraint *Constraint
}

// Value is what the pods that ask for one value of a label need of the nodes that have it.
type Value struct {
	Value string
	Nodes int
	Pods  int
}

// Pool is what bounds are computed from.
type Pool struct {
	// Nodes are those that stay, Leaving those that are on their way out, Starting those that are not registered yet.
	Nodes, Leaving, Starting []*disruption.Node
	// Pods are those of Nodes that have to be somewhere.
	Pods []*corev1.Pod

	at    []int // the node of each pod
	rooms []room
	needs []amounts // of each pod
	names []corev1.ResourceName
}

// Of reads the nodes of a pool. Bounds are of those that stay and are registered; pods that are about to end need nothing.
func Of(nodes []*disruption.Node) *Pool {
	p := &Pool{}
	requested := map[corev1.ResourceName]bool{}
	for _, n := range nodes {
		switch {
		case n.MarkedForDeletion():
			p.Leaving = append(p.Leaving, n)
			continue
		case n.Node == nil:
			p.Starting = append(p.Starting, n)
			continue
		}
		for _, pod := range n.Pods {
			if !disruption.IsReschedulable(pod) || ended(pod) {
				continue
			}
			p.Pods = append(p.Pods, pod)
			p.at = append(p.at, len(p.Nodes))
			need := requests(pod)
			p.needs = append(p.needs, need)
			for name := range need {
				requested[name] = true
			}
		}
		p.Nodes = append(p.Nodes, n)
		p.rooms = append(p.rooms, roomOf(n))
	}
	p.names = slices.Sorted(maps.Keys(requested))
	return p
}

// Floors are all that could be computed, the highest first.
func (p *Pool) Floors() []Floor {
	floors := slices.Concat(p.byRequests(), p.byLargePods(), p.bySelection(), p.byTopology())
	slices.SortStableFunc(floors, func(a, b Floor) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return floors
}

// Largest is the node with the most room for the pool's pods by a resource, and that room, in thousandths; nil where that is not
// known of every node.
func (p *Pool) Largest(name corev1.ResourceName) (largest *disruption.Node, room int64) {
	for i, r := range p.rooms {
		if r.of(name) == endless {
			return nil, 0
		}
		if largest == nil || r.of(name) > room {
			largest, room = p.Nodes[i], r.of(name)
		}
	}
	return largest, room
}

// all are the indexes of the pods and of the nodes.
func (p *Pool) all() (pods, nodes []int) {
	for i := range p.Pods {
		pods = append(pods, i)
	}
	for i := range p.Nodes {
		nodes = append(nodes, i)
	}
	return pods, nodes
}

// byRequests is one floor for each resource that the pods request.
func (p *Pool) byRequests() []Floor {
	pods, nodes := p.all()
	var out []Floor
	for _, name := range p.names {
		if b, ok := p.sumOf(name, pods, nodes); ok && b.Nodes > 0 {
			out = append(out, Floor{By: Requests, Bound: b, Resource: name, Pods: p.requesting(name, 1)})
		}
	}
	slices.SortStableFunc(out, func(a, b Floor) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return out
}

func (p *Pool) sumOf(name corev1.ResourceName, pods, nodes []int) (Bound, bool) {
	var need int64
	for _, i := range pods {
		need = sum(need, p.needs[i][name])
	}
	holds := make([]int64, 0, len(nodes))
	for _, i := range nodes {
		holds = append(holds, p.rooms[i].of(name))
	}
	return Least(need, holds)
}

// requesting are the pods that request at least so much.
func (p *Pool) requesting(name corev1.ResourceName, least int64) []*corev1.Pod {
	var out []*corev1.Pod
	for i, pod := range p.Pods {
		if p.needs[i][name] >= least {
			out = append(out, pod)
		}
	}
	return out
}

// mostSizes bounds how many sizes of pods are looked at for each resource, the largest first.
const mostSizes = 64

// byLargePods counts pods instead of summing up what they request: of those that request r or more a node holds as many as r goes
// into its room. It is told where it says more than the sum.
func (p *Pool) byLargePods() []Floor {
	var out []Floor
	pods, nodes := p.all()
	for _, name := range p.names {
		if name == corev1.ResourcePods {
			continue
		}
		best := Floor{By: LargePods, Resource: name}
		best.Bound, _ = p.sumOf(name, pods, nodes)
		found := false
		for _, size := range p.sizes(name) {
			var n int64
			for i := range p.Pods {
				if p.needs[i][name] >= size {
					n++
				}
			}
			holds := make([]int64, 0, len(p.Nodes))
			for _, r := range p.rooms {
				holds = append(holds, r.of(name)/size)
			}
			if b, ok := Least(n, holds); ok && b.Nodes > best.Nodes {
				best.Bound, best.Each, found = b, size, true
			}
		}
		if found {
			best.Pods = p.requesting(name, best.Each)
			out = append(out, best)
		}
	}
	return out
}

// sizes are what pods request of a resource, each once, the largest first.
func (p *Pool) sizes(name corev1.ResourceName) []int64 {
	var out []int64
	for _, need := range p.needs {
		if need[name] > 0 {
			out = append(out, need[name])
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	slices.Reverse(out)
	return out[:min(len(out), mostSizes)]
}
