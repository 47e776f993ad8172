package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

const instanceTypeLabel = corev1.LabelInstanceTypeStable

// Class is how patient a method is with pods that must not be disrupted.
type Class string

// Classes of methods.
const (
	Graceful Class = "graceful"
	Eventual Class = "eventual" // goes on where the NodeClaim has a termination grace period
)

// Candidate is a node that a method may choose, with what the choice depends on.
type Candidate struct {
	Node *Node
	Pool *karpenter.NodePool

	Reschedulable []*corev1.Pod
	// Price is in dollars an hour; 0 where it is not known, as Karpenter counts it.
	Price      float64
	PriceKnown bool

	RescheduleDisruptionCost float64
	DisruptionCost           float64
	// Empty: there is nothing on the node that would have to be moved.
	Empty bool
}

// SavingsRatio is the price for each unit of disruption cost.
func (c *Candidate) SavingsRatio() float64 { return c.Price / c.RescheduleDisruptionCost }

// Candidate returns the node as a candidate of a class, or the first blocker that keeps it from being one.
func (c *Cluster) Candidate(n *Node, class Class, now time.Time) (*Candidate, *Blocker) {
	for _, b := range c.Blockers(n, now) {
		if !(b.Forgiven && class == Eventual) {
			return nil, &b
		}
	}
	pool, _ := n.NodePool()
	candidate := &Candidate{
		Node:                     n,
		Pool:                     c.Pools[pool],
		RescheduleDisruptionCost: RescheduleDisruptionCost(n.Pods, c.Rules),
		DisruptionCost:           DisruptionCost(n, now, c.Rules),
	}
	for _, pod := range n.Pods {
		if IsReschedulable(pod) {
			candidate.Reschedulable = append(candidate.Reschedulable, pod)
		}
	}
	candidate.Price, candidate.PriceKnown = c.Price(n)
	candidate.Empty = IsEmpty(n.Pods, c.Rules)
	return candidate, nil
}

// Candidates returns all candidates of a class, in the order of the nodes.
func (c *Cluster) Candidates(class Class, now time.Time) []*Candidate {
	var out []*Candidate
	for _, n := range c.Nodes {
		if candidate, blocker := c.Candidate(n, class, now); blocker == nil {
			out = append(out, candidate)
		}
	}
	return out
}
