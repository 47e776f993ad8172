package shrink

import (
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeBudgets are the budgets of the node's pool, for the reasons for which
// this node could go; none count for one that goes already.
func nodeBudgets(n *nodeCase) []report.Finding {
	if n.pool == nil || !n.node.Managed() || n.going() {
		return nil
	}
	wanted := n.reasons()
	var states []reasonState
	for _, s := range n.pool.states {
		if slices.Contains(wanted, s.reason) {
			states = append(states, s)
		}
	}
	return slices.Concat(budgetInvalid(n.pool), n.pool.zeroNow(states), n.pool.zeroAlways(states), n.pool.usedUp(states))
}

// reasons are those for which Karpenter could disrupt the node as it is; where
// its pods are not known it could be for either of the two that they decide on.
func (n *nodeCase) reasons() []karpenter.Reason {
	var out []karpenter.Reason
	switch {
	case n.pool.pool.IsStatic():
	case n.pool.onlyEmpty():
		out = append(out, karpenter.Empty) // with pods once they are gone
	case n.podsErr != nil:
		out = append(out, karpenter.Empty, karpenter.Underutilized)
	case n.empty():
		out = append(out, karpenter.Empty)
	default:
		out = append(out, karpenter.Underutilized)
	}
	if n.node.NodeClaim != nil && n.node.NodeClaim.IsTrue(karpenter.ConditionDrifted) {
		out = append(out, karpenter.Drifted)
	}
	return out
}

// empty: nothing on the node would have to be moved.
func (n *nodeCase) empty() bool {
	var pods int
	for _, p := range n.node.Pods {
		if disruption.IsReschedulable(p) {
			pods++
		}
	}
	return pods == 0 || n.version.rules.EmptyByCost && disruption.RescheduleDisruptionCost(n.node.Pods, n.version.rules) <= 1
}
