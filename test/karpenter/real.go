package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/utils/pdb"

	"github.com/noderes/kubectl-noderes/pkg/disruption/scenario"
)

var reasons = []v1.DisruptionReason{v1.DisruptionReasonEmpty, v1.DisruptionReasonDrifted, v1.DisruptionReasonUnderutilized}

// runReal says of the scenario what the real code says.
func runReal(crd *crd, s *scenario.Scenario) (out *scenario.Output) {
	out = &scenario.Output{ID: s.ID, NodePools: map[string]*scenario.Pool{}}
	defer func() {
		if p := recover(); p != nil {
			out.Error = fmt.Sprintf("panic: %v", p)
		}
	}()
	if err := answer(crd, s, out); err != nil {
		out.Error = err.Error()
	}
	return out
}

func answer(crd *crd, s *scenario.Scenario, out *scenario.Output) error {
	now, err := time.Parse(time.RFC3339Nano, s.Now)
	if err != nil {
		return err
	}
	pools := map[string]*v1.NodePool{}
	for _, raw := range s.NodePools {
		if !s.Options.NoDefaults {
			if raw, err = crd.defaulted(raw); err != nil {
				return err
			}
		}
		pool, err := realPool(raw)
		if err != nil {
			return err
		}
		pools[pool.Name] = pool
	}
	c, err := newCluster(s, now, pools)
	if err != nil {
		return err
	}
	if err := c.budgets(s, out); err != nil {
		return err
	}
	if len(s.Nodes) == 0 {
		return nil
	}
	return c.nodes(s, out)
}

func (c *cluster) budgets(s *scenario.Scenario, out *scenario.Output) error {
	consuming, total, err := c.counts()
	if err != nil {
		return err
	}
	for name, pool := range c.pools {
		result := &scenario.Pool{Total: total[name], Consuming: consuming[name], Reasons: map[string]*scenario.Reason{}}
		for i := range pool.Spec.Disruption.Budgets {
			b := &pool.Spec.Disruption.Budgets[i]
			var own scenario.Budget
			active, err := b.IsActive(c.clock)
			own.Active, own.ActiveError = active, text(err)
			allowed, err := b.GetAllowedDisruptions(c.clock, result.Total)
			own.Allowed, own.Error = allowed, text(err)
			for _, nodes := range s.EvalNodes {
				if own.AtNodes == nil {
					own.AtNodes = map[string]int{}
				}
				own.AtNodes[strconv.Itoa(nodes)], _ = b.GetAllowedDisruptions(c.clock, nodes)
			}
			result.Budgets = append(result.Budgets, own)
		}
		out.NodePools[name] = result
	}
	for _, reason := range reasons {
		remaining, err := disruption.BuildDisruptionBudgetMapping(c.ctx, c.state, c.clock, c.kube, c.provider, silent{}, reason)
		if err != nil {
			return err
		}
		for name, pool := range c.pools {
			allowed, err := pool.GetAllowedDisruptionsByReason(c.clock, out.NodePools[name].Total, reason)
			out.NodePools[name].Reasons[string(reason)] = &scenario.Reason{
				ByReason: allowed, Error: text(err), Remaining: remaining[name],
				Must: pool.MustGetAllowedDisruptions(c.clock, out.NodePools[name].Total, reason),
			}
		}
	}
	return nil
}

// counts asks for the numbers that the real code keeps to itself: with budgets of a known value it says how much of them is left.
func (c *cluster) counts() (consuming, total map[string]int, err error) {
	const plenty = 1000000
	left, err := c.remainingOf(strconv.Itoa(plenty))
	if err != nil {
		return nil, nil, err
	}
	all, err := c.remainingOf("100%")
	if err != nil {
		return nil, nil, err
	}
	consuming, total = map[string]int{}, map[string]int{}
	for name := range c.pools {
		consuming[name] = plenty - left[name]
		total[name] = all[name] + consuming[name]
	}
	return consuming, total, nil
}

func (c *cluster) remainingOf(nodes string) (map[string]int, error) {
	saved := c.pools
	defer func() { c.pools = saved }()
	c.pools = map[string]*v1.NodePool{}
	for name, pool := range saved {
		changed := pool.DeepCopy()
		changed.Spec.Disruption.Budgets = []v1.Budget{{Nodes: nodes}}
		c.pools[name] = changed
	}
	return disruption.BuildDisruptionBudgetMapping(c.ctx, c.state, c.clock, c.kube, c.provider, silent{}, v1.DisruptionReasonEmpty)
}

func (c *cluster) nodes(s *scenario.Scenario, out *scenario.Output) error {
	limits, err := pdb.NewLimits(c.ctx, c.kube)
	if err != nil {
		return err
	}
	pools, instanceTypes, err := disruption.BuildNodePoolMap(c.ctx, c.kube, c.provider)
	if err != nil {
		return err
	}
	out.Nodes = map[string]*scenario.Result{}
	for _, n := range c.state.DeepCopyNodes() {
		result := &scenario.Result{NodeError: text(n.ValidateNodeDisruptable(c.clock))}
		out.Nodes[n.Name()] = result
		if n.Node != nil {
			_, err := n.ValidatePodsDisruptable(c.ctx, c.kube, limits, c.clock, silent{})
			result.PodsError = text(err)
		}
		if n.NodeClaim != nil {
			if condition := n.NodeClaim.StatusConditions().Get(v1.ConditionTypeConsolidatable); condition != nil {
				result.Consolidatable = string(condition.Status)
			}
			if condition := n.NodeClaim.StatusConditions().Get(v1.ConditionTypeDrifted); condition != nil {
				result.Drifted = string(condition.Status) + "/" + condition.Reason
			}
		}
		candidate := func(class string) (*disruption.Candidate, error) {
			return disruption.NewCandidate(c.ctx, c.kube, silent{}, c.clock, n, limits, pools, instanceTypes, c.queue, class)
		}
		graceful, err := candidate(disruption.GracefulDisruptionClass)
		result.CandidateError = text(err)
		if err == nil {
			result.Candidate, result.Empty, result.Price = true, graceful.IsEmpty(), rounded(graceful.Price)
			result.Cost, result.OldCost = rounded(graceful.RescheduleDisruptionCost), rounded(graceful.DisruptionCost)
		}
		_, err = candidate(disruption.EventualDisruptionClass)
		result.Eventual = err == nil
	}
	return c.methods(out)
}

func (c *cluster) methods(out *scenario.Output) error {
	base := disruption.MakeConsolidation(c.clock, c.state, c.kube, c.prov, c.provider, silent{}, c.queue)
	out.Methods = map[string]*scenario.Method{}
	for name, m := range map[string]disruption.Method{
		"Emptiness":               disruption.NewEmptiness(base),
		"StaticDrift":             disruption.NewStaticDrift(c.state, c.prov, c.provider),
		"Drift":                   disruption.NewDrift(c.kube, c.state, c.prov, silent{}, c.clock),
		"MultiNodeConsolidation":  disruption.NewMultiNodeConsolidation(base),
		"SingleNodeConsolidation": disruption.NewSingleNodeConsolidation(base),
	} {
		candidates, totals, err := disruption.GetCandidatesWithTotals(c.ctx, c.state, c.kube, silent{}, c.clock, c.provider, m.ShouldDisrupt, m.Class(), c.queue, c.cost)
		if err != nil {
			return err
		}
		method := &scenario.Method{Reason: string(m.Reason()), Class: m.Class(), Candidates: []string{}}
		for _, candidate := range candidates {
			method.Candidates = append(method.Candidates, candidate.Name())
		}
		slices.Sort(method.Candidates)
		out.Methods[name] = method
		if name == "SingleNodeConsolidation" {
			out.Balanced = balanced(candidates, totals)
		}
	}
	return nil
}

func balanced(candidates []*disruption.Candidate, totals map[string]disruption.NodePoolTotals) *scenario.Balanced {
	out := &scenario.Balanced{Totals: map[string]scenario.Totals{}, Deletes: map[string]*scenario.Score{}}
	for pool, t := range totals {
		out.Totals[pool] = scenario.Totals{Cost: rounded(t.TotalCost), Disruption: rounded(t.TotalDisruptionCost)}
	}
	evaluator := disruption.NewBalancedEvaluator(totals, silent{})
	for _, candidate := range candidates {
		score := disruption.ScoreMove(candidate.Price, candidate.RescheduleDisruptionCost, totals[candidate.NodePool.Name], v1.BalancedK)
		out.Deletes[candidate.Name()] = &scenario.Score{
			Score:              rounded(score.Score()),
			SavingsFraction:    rounded(score.SavingsFraction),
			DisruptionFraction: rounded(score.DisruptionFraction),
			Threshold:          score.Threshold(),
			Approved:           score.Approved(),
			CanPass:            evaluator.CanPassThreshold(candidate),
		}
	}
	return out
}

func rounded(f float64) float64 {
	if math.IsInf(f, 1) {
		return math.MaxFloat64
	}
	return math.Round(f*1e6) / 1e6
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
