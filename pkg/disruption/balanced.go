package disruption

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// balancedK is how many times more disruptive than saving a move may be (pkg/apis/v1/nodepool.go:BalancedK).
const balancedK = 2

// Totals are what a pool's moves are measured against.
type Totals struct {
	Cost       float64 // dollars an hour of all nodes
	Disruption float64 // disruption cost of all nodes
}

// Totals returns those of every pool that has a candidate (pkg/controllers/disruption/balanced.go:computeNodePoolTotals). candidates
// are all of the class Graceful, before any method's filter.
func (c *Cluster) Totals(candidates []*Candidate) map[string]Totals {
	costs := c.poolCosts()
	own := map[*Node]*Candidate{}
	out := map[string]Totals{}
	for _, candidate := range candidates {
		own[candidate.Node] = candidate
		t := out[candidate.Pool.Name]
		t.Cost += candidate.Price
		out[candidate.Pool.Name] = t
	}
	for pool, t := range out {
		if cost := costs[pool]; cost > 0 {
			t.Cost = cost
		}
		out[pool] = t
	}
	for _, n := range c.Nodes {
		pool, _ := n.NodePool()
		t, ok := out[pool]
		switch candidate := own[n]; {
		case !ok:
			continue
		case candidate != nil:
			t.Disruption += candidate.RescheduleDisruptionCost
		default:
			t.Disruption += stateCost(n, c.Rules)
		}
		out[pool] = t
	}
	return out
}

// poolCosts is the price of all NodeClaims of each pool, of those that carry all labels of a price; an unknown price counts 0
// (pkg/state/cost/cost.go).
func (c *Cluster) poolCosts() map[string]float64 {
	if c.PoolCosts != nil {
		return c.PoolCosts
	}
	costs := map[string]float64{}
	for _, n := range c.Nodes {
		if n.NodeClaim == nil || !hasPriceLabels(n.NodeClaim.Labels) {
			continue
		}
		if pool := n.NodeClaim.Labels[karpenter.NodePoolLabel]; c.Pools[pool] != nil {
			price, ok := c.priceOf(n.NodeClaim.Labels)
			if !ok && n.OwnPrice != nil {
				price = *n.OwnPrice
			}
			costs[pool] += price
		}
	}
	return costs
}

// priceLabels are those without which a NodeClaim's cost is not tracked.
var priceLabels = []string{corev1.LabelInstanceTypeStable, karpenter.CapacityTypeLabel, corev1.LabelTopologyZone, karpenter.NodePoolLabel}

func hasPriceLabels(labels map[string]string) bool {
	for _, key := range priceLabels {
		if _, ok := labels[key]; !ok {
			return false
		}
	}
	return true
}

// Score measures a move of a Balanced pool: what it saves against what it disrupts, each as a share of the pool's.
type Score struct {
	SavingsFraction, DisruptionFraction float64
}

// ScoreMove scores a move that saves so many dollars an hour at such a disruption cost.
func ScoreMove(savings, disruptionCost float64, totals Totals) Score {
	if totals.Cost <= 0 || totals.Disruption <= 0 {
		return Score{}
	}
	return Score{savings / totals.Cost, disruptionCost / totals.Disruption}
}

// ScoreDelete scores taking the node away without replacement, the best that any move of it can score.
func ScoreDelete(candidate *Candidate, totals Totals) Score {
	return ScoreMove(candidate.Price, candidate.RescheduleDisruptionCost, totals)
}

// Value is savings over disruption: 0 where nothing is saved, infinite where nothing is disrupted.
func (s Score) Value() float64 {
	switch {
	case s.SavingsFraction <= 0:
		return 0
	case s.DisruptionFraction == 0:
		return math.Inf(1)
	}
	return s.SavingsFraction / s.DisruptionFraction
}

// Threshold is the value from which on a move is approved.
func (Score) Threshold() float64 { return 1.0 / balancedK }

// Approved reports whether the value reaches the threshold.
func (s Score) Approved() bool { return s.Value() >= s.Threshold() }

// CanPassThreshold reports whether single-node consolidation looks at the candidate at all. It skips one of a Balanced pool, without
// an event, if not even its deletion would be approved; it does not where the pool has no known cost.
func CanPassThreshold(candidate *Candidate, totals map[string]Totals) bool {
	t, ok := totals[candidate.Pool.Name]
	if candidate.Pool.Disruption().ConsolidationPolicy != karpenter.Balanced || !ok || t.Cost <= 0 {
		return true
	}
	return ScoreDelete(candidate, t).Approved()
}
