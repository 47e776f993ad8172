package disruption

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Usage is how a pool's nodes count for its budgets.
type Usage struct {
	Total     int // the nodes that percentages are of
	Consumers []Consumer
}

// Consumer is a node that takes one from every budget of its pool.
type Consumer struct {
	Node *Node
	Why  []Consumption
}

// Consumption is why a node consumes.
type Consumption string

// Reasons to consume. A node of several still consumes one.
const (
	NotReady Consumption = "NotReady" // its Ready condition is not True, or absent
	Deleting Consumption = "Deleting" // its NodeClaim is being deleted, for whatever reason
	Marked   Consumption = "Marked"   // a command is under way for it
)

// UsageOf counts the nodes of a pool for a reason (pkg/controllers/disruption/helpers.go:BuildDisruptionBudgetMapping). Nodes that are
// not initialized do not count at all, nor do those whose instance is already terminating.
func UsageOf(pool string, reason karpenter.Reason, nodes []*Node, rules karpenter.Rules) Usage {
	var usage Usage
	for _, n := range nodes {
		if name, _ := n.NodePool(); name != pool || !Counts(n) {
			continue
		}
		usage.Total++
		if why := consumptions(n, reason, rules); len(why) > 0 {
			usage.Consumers = append(usage.Consumers, Consumer{n, why})
		}
	}
	return usage
}

// Counts reports whether the node is one of those that percentages are of.
func Counts(n *Node) bool {
	return n.Managed() && n.Initialized() && !n.NodeClaim.IsTrue(karpenter.ConditionInstanceTerminating)
}

func consumptions(n *Node, reason karpenter.Reason, rules karpenter.Rules) []Consumption {
	var why []Consumption
	ignoresReady := rules.UnhealthyIgnoresNotReady && reason == karpenter.Unhealthy
	if !ignoresReady && n.ReadyStatus() != corev1.ConditionTrue {
		why = append(why, NotReady)
	}
	switch {
	case n.Deleting():
		why = append(why, Deleting)
	case n.Marked:
		why = append(why, Marked)
	}
	return why
}
