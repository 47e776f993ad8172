package disruption

import (
	"cmp"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Order sorts candidates as Emptiness and multi-node consolidation try them: by savings ratio, highest first, or before 1.14 by
// disruption cost, lowest first. Karpenter leaves the order of equal ones open; here it is that of their names.
func Order(candidates []*Candidate, rules karpenter.Rules) []*Candidate {
	out := slices.Clone(candidates)
	slices.SortFunc(out, func(a, b *Candidate) int {
		first := cmp.Compare(a.DisruptionCost, b.DisruptionCost)
		if rules.OrderBySavingsRatio {
			first = cmp.Compare(b.SavingsRatio(), a.SavingsRatio())
		}
		return cmp.Or(first, cmp.Compare(a.Node.Name(), b.Node.Name()))
	})
	return out
}

// SingleNodeOrder is the order of single-node consolidation: that of Order, taking one of each pool in turn. Pools that an earlier
// pass did not reach go first in Karpenter; here pools go by name.
func SingleNodeOrder(candidates []*Candidate, rules karpenter.Rules) []*Candidate {
	byPool := map[string][]*Candidate{}
	for _, candidate := range Order(candidates, rules) {
		byPool[candidate.Pool.Name] = append(byPool[candidate.Pool.Name], candidate)
	}
	pools := slices.Sorted(maps.Keys(byPool))
	out := make([]*Candidate, 0, len(candidates))
	for i := 0; len(out) < len(candidates); i++ {
		for _, pool := range pools {
			if i < len(byPool[pool]) {
				out = append(out, byPool[pool][i])
			}
		}
	}
	return out
}

// DriftOrder is the order in which drifted nodes of dynamic pools are replaced, one for each pass: those without pods that have to
// go somewhere first, then by how long they have been drifted.
func DriftOrder(candidates []*Candidate) []*Candidate {
	out := slices.Clone(candidates)
	slices.SortFunc(out, func(a, b *Candidate) int {
		return cmp.Or(
			cmp.Compare(min(len(a.Reschedulable), 1), min(len(b.Reschedulable), 1)),
			driftedSince(a).Compare(driftedSince(b)),
			cmp.Compare(a.Node.Name(), b.Node.Name()))
	})
	return out
}
