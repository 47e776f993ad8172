package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// plan puts all pods that need a place onto the targets as Karpenter does, the largest first, each onto the first node that takes it
// (pkg/controllers/provisioning/scheduling/queue.go and scheduler.go). Where one finds none Karpenter would plan a new node.
func (p *Planner) plan(a *Answer, n *disruption.Node, move []*corev1.Pod, own int) {
	for _, doubt := range []struct {
		is  bool
		why DoubtReason
	}{{p.known.NodesUnknown, DoubtNodes}, {p.known.NodeClaimsUnknown, DoubtNodeClaims}, {p.known.PodsUnknown, DoubtPods}} {
		if doubt.is {
			a.Doubts = append(a.Doubts, Doubt{nil, doubt.why})
		}
	}
	if len(a.Doubts) > 0 {
		return
	}
	if len(move)+len(a.LeftOut) == 0 { // nothing is simulated
		a.Outcome = ProbablyRemovable
		return
	}
	if !p.known.PoolsUnknown && !slices.ContainsFunc(p.pools, func(of *pool) bool { return of.bar == "" }) {
		a.doubt(nil, DoubtPools)
		return
	}
	if !p.spend(sorting * (len(move) + len(p.others))) {
		a.doubt(nil, DoubtEffort)
		return
	}
	queue := p.queue(n, move)
	for _, q := range queue {
		for _, why := range q.shape.doubts {
			if !q.moves {
				why = DoubtOthers
			}
			a.doubt(q.pod, why)
		}
	}
	if len(a.Doubts) > 0 {
		return
	}
	moves, failed, ok := p.firstFit(queue, own, true)
	if ok && failed == nil {
		a.Moves, a.Outcome = moves, ProbablyRemovable
		return
	}
	if !ok {
		a.doubt(nil, DoubtEffort)
		return
	}
	why := DoubtPacking
	if !failed.moves {
		why = DoubtOthers
	}
	a.doubt(failed.pod, why)
	if moves, failed, ok := p.firstFit(queue, own, false); ok && failed == nil {
		used := map[*disruption.Node]bool{}
		for _, m := range moves {
			used[m.To] = true
		}
		for _, t := range p.targets {
			if t.protected && used[t.node] {
				a.Protected = append(a.Protected, t.node)
			}
		}
		slices.SortStableFunc(a.Protected, byName)
	}
}

// sorting is what a pod costs in a queue, in pairs of a pod and a node.
const sorting = 20

// doubt notes each kind once, with the first pod that has it.
func (a *Answer) doubt(pod *corev1.Pod, why DoubtReason) {
	if !slices.ContainsFunc(a.Doubts, func(d Doubt) bool { return d.Why == why }) {
		a.Doubts = append(a.Doubts, Doubt{pod, why})
	}
}

type queued struct {
	pod   *corev1.Pod
	shape *shape
	moves bool // it is on the node in question
}

// queue is the order in which places are looked for.
func (p *Planner) queue(n *disruption.Node, move []*corev1.Pod) []*queued {
	var out []*queued
	for _, pod := range move {
		out = append(out, &queued{pod, p.shapeOf(pod), true})
	}
	for _, o := range p.others {
		if o.from != n {
			out = append(out, &queued{o.pod, p.shapeOf(o.pod), false})
		}
	}
	cpu, memory := p.resource(corev1.ResourceCPU), p.resource(corev1.ResourceMemory)
	slices.SortStableFunc(out, func(a, b *queued) int {
		return cmp.Or(cmp.Compare(b.shape.need.most.at(cpu), a.shape.need.most.at(cpu)), cmp.Compare(b.shape.need.most.at(memory), a.shape.need.most.at(memory)),
			a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	return out
}

// taken is what a plan has put on a target already.
type taken struct {
	used  vector
	ports []hostPort
}

// firstFit returns the first pod that finds no place; ok is false where it gave up.
func (p *Planner) firstFit(queue []*queued, own int, protect bool) (moves []Move, failed *queued, ok bool) {
	on := map[int]*taken{}
	for _, q := range queue {
		found := false
		for _, t := range p.targets {
			if t.place == own || protect && t.protected && q.moves {
				continue
			}
			if p.effort--; p.effort < 0 {
				return nil, nil, false
			}
			if found = p.takes(q.shape, t, on[t.place]); !found {
				continue
			}
			there := on[t.place]
			if there == nil {
				there = &taken{}
				on[t.place] = there
			}
			there.used.addAll(q.shape.need.most)
			there.ports = append(there.ports, q.shape.ports...)
			if q.moves {
				moves = append(moves, Move{q.pod, t.node})
			}
			break
		}
		if !found {
			return nil, q, true
		}
	}
	return moves, nil, true
}

// takes reports whether the target takes a pod of the shape whatever may count.
func (p *Planner) takes(s *shape, t *target, there *taken) bool {
	if !t.initialized || t.odd || t.ambiguous || t.node.Node.Spec.Unschedulable || !s.ask(t).strict {
		return false
	}
	if ready := t.node.ReadyStatus(); ready != "" && ready != corev1.ConditionTrue {
		return false
	}
	if conflict(s.ports, t.portsMost, true) != nil || there != nil && conflict(s.ports, there.ports, true) != nil {
		return false
	}
	for i := range max(len(s.need.most), len(t.usedMost)) {
		free := t.allocatable.at(i) - t.usedMost.at(i)
		if there != nil {
			free -= there.used.at(i)
		}
		if s.need.most.at(i) > free {
			return false
		}
	}
	return true
}
