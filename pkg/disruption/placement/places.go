package placement

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Places calls yield for each node that stays and that a pod of a node that goes may go to: it fails no check for certain. It ends
// where yield returns false. ok is false where there is too much to look at.
func (p *Planner) Places(pod *corev1.Pod, from *disruption.Node, yield func(*disruption.Node) bool) (ok bool) {
	s := p.shapeOf(pod)
	if s.failed == nil && !p.spend(len(p.targets)) {
		return false
	}
	for place, check := range p.checks(s) {
		if check == Fits && p.targets[place].node != from && !yield(p.targets[place].node) {
			break
		}
	}
	return true
}
