package disruption

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Static is where a pool with spec.replicas stands. Nothing shrinks it but that number.
type Static struct {
	Replicas int64
	Running  int // neither deleting nor chosen to be
	Pending  int // chosen, their replacements awaited
	Deleting int
}

// Surplus is how many nodes go at once, without a budget, because replicas is lower. Nodes whose replacements are awaited are none
// (pkg/controllers/static/deprovisioning).
func (s Static) Surplus() int64 { return max(0, int64(s.Running)-s.Replicas) }

// StaticOf counts the NodeClaims of a static pool.
func StaticOf(pool *karpenter.NodePool, nodes []*Node) Static {
	out := Static{}
	if pool.Spec.Replicas != nil {
		out.Replicas = *pool.Spec.Replicas
	}
	for _, n := range nodes {
		if n.NodeClaim == nil || n.NodeClaim.Labels[karpenter.NodePoolLabel] != pool.Name {
			continue
		}
		switch {
		case n.Deleting():
			out.Deleting++
		case n.Marked:
			out.Pending++
		default:
			out.Running++
		}
	}
	return out
}
