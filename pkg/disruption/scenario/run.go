package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Run says of the scenario what the replay says, by the rules of Karpenter 1.14.
func Run(s *Scenario) *Output {
	out := &Output{ID: s.ID, NodePools: map[string]*Pool{}}
	if err := s.run(out); err != nil {
		out.Error = err.Error()
	}
	return out
}

func (s *Scenario) run(out *Output) error {
	rules := karpenter.DefaultRules()
	now, err := time.Parse(time.RFC3339Nano, s.Now)
	if err != nil {
		return err
	}
	pools := map[string]*karpenter.NodePool{}
	for _, raw := range s.NodePools {
		if !s.Options.NoDefaults {
			if raw, err = karpenter.WithDefaults(raw, rules); err != nil {
				return err
			}
		}
		pool, err := karpenter.DecodeNodePool(raw)
		if err != nil {
			return fmt.Errorf("decoding NodePool: %w", err)
		}
		pools[pool.Name] = &pool
		out.NodePools[pool.Name] = &Pool{Reasons: map[string]*Reason{}}
	}
	cluster, err := s.cluster(pools, rules, now)
	if err != nil {
		return err
	}
	for name, pool := range pools {
		out.NodePools[name] = s.pool(cluster, pool, now)
	}
	if len(s.Nodes) > 0 {
		s.nodes(cluster, out, now)
	}
	return nil
}

func (s *Scenario) pool(c *disruption.Cluster, object *karpenter.NodePool, now time.Time) *Pool {
	budgets := budget.NewPool(object.Disruption())
	usage := disruption.UsageOf(object.Name, karpenter.Empty, c.Nodes, c.Rules)
	out := &Pool{Total: usage.Total, Consuming: len(usage.Consumers), Reasons: map[string]*Reason{}}
	for i := range budgets.Budgets {
		out.Budgets = append(out.Budgets, s.budget(&budgets.Budgets[i], usage.Total, now))
	}
	for _, reason := range c.Rules.Reasons() {
		usage := disruption.UsageOf(object.Name, reason, c.Nodes, c.Rules)
		allowance := budgets.Allowed(reason, usage.Total, now)
		out.Reasons[string(reason)] = &Reason{
			ByReason: allowance.Least, Error: text(allowance.Err), Must: allowance.Allowed, Remaining: allowance.Remaining(len(usage.Consumers)),
		}
	}
	return out
}

func (s *Scenario) budget(b *budget.Budget, total int, now time.Time) Budget {
	var out Budget
	active, err := b.Active(now)
	out.Active, out.ActiveError = active, text(err)
	allowed, err := b.Allowed(total, now)
	out.Allowed, out.Error = allowed, text(err)
	for _, nodes := range s.EvalNodes {
		if out.AtNodes == nil {
			out.AtNodes = map[string]int{}
		}
		out.AtNodes[strconv.Itoa(nodes)], _ = b.Allowed(nodes, now)
	}
	return out
}

func (s *Scenario) nodes(c *disruption.Cluster, out *Output, now time.Time) {
	out.Nodes = map[string]*Result{}
	for _, n := range c.Nodes {
		out.Nodes[n.Name()] = result(c, n, now)
	}
	out.Methods = map[string]*Method{}
	for _, m := range disruption.Methods(c.Rules) {
		method := &Method{Reason: string(m.Reason), Class: string(m.Class), Candidates: []string{}}
		for _, candidate := range c.Candidates(m.Class, now) {
			if len(c.Filter(m, candidate)) == 0 {
				method.Candidates = append(method.Candidates, candidate.Node.Name())
			}
		}
		slices.Sort(method.Candidates)
		out.Methods[m.Name] = method
	}
	out.Balanced = balanced(c, out.Methods["SingleNodeConsolidation"].Candidates, now)
}

func result(c *disruption.Cluster, n *disruption.Node, now time.Time) *Result {
	out := &Result{}
	if blockers := c.NodeBlockers(n); len(blockers) > 0 {
		out.NodeError = blockers[0].Text
	}
	if blockers := c.PodBlockers(n, now); len(blockers) > 0 {
		out.PodsError = blockers[0].Text
	}
	if n.NodeClaim != nil {
		if condition := n.NodeClaim.Condition(karpenter.ConditionConsolidatable); condition != nil {
			out.Consolidatable = string(condition.Status)
		}
		if condition := n.NodeClaim.Condition(karpenter.ConditionDrifted); condition != nil {
			out.Drifted = string(condition.Status) + "/" + condition.Reason
		}
	}
	candidate, blocker := c.Candidate(n, disruption.Graceful, now)
	if blocker != nil {
		out.CandidateError = blocker.Text
	} else {
		out.Candidate, out.Empty, out.Price = true, candidate.Empty, rounded(candidate.Price)
		out.Cost, out.OldCost = rounded(candidate.RescheduleDisruptionCost), rounded(candidate.DisruptionCost)
	}
	_, blocker = c.Candidate(n, disruption.Eventual, now)
	out.Eventual = blocker == nil
	return out
}

func balanced(c *disruption.Cluster, names []string, now time.Time) *Balanced {
	candidates := c.Candidates(disruption.Graceful, now)
	totals := c.Totals(candidates)
	out := &Balanced{Totals: map[string]Totals{}, Deletes: map[string]*Score{}}
	for pool, t := range totals {
		out.Totals[pool] = Totals{rounded(t.Cost), rounded(t.Disruption)}
	}
	for _, candidate := range candidates {
		if _, listed := slices.BinarySearch(names, candidate.Node.Name()); !listed {
			continue
		}
		score := disruption.ScoreDelete(candidate, totals[candidate.Pool.Name])
		out.Deletes[candidate.Node.Name()] = &Score{
			Score:              rounded(score.Value()),
			SavingsFraction:    rounded(score.SavingsFraction),
			DisruptionFraction: rounded(score.DisruptionFraction),
			Threshold:          score.Threshold(),
			Approved:           score.Approved(),
			CanPass:            disruption.CanPassThreshold(candidate, totals),
		}
	}
	return out
}

// rounded is the number to six decimals; an infinite one is the largest there is.
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
