package shrink

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// poolCase is one NodePool with its nodes and its budgets.
type poolCase struct {
	*Cluster
	pool    *karpenter.NodePool
	nodes   []*disruption.Node // by name
	budgets budget.Pool
	states  []reasonState // of every reason
}

// Answer is what is told of one pool.
type Answer struct {
	UID      string
	Findings []report.Finding
	Budgets  []report.NodePoolBudgets
	Timeline []report.TimelineSegment
	Capacity []report.NodePoolCapacity
}

// NodePool applies the rules to one pool, and those of nodes to its nodes: what
// holds of many is told of a few of them and counted for the others. ok is false where there is no such pool.
func (c *Cluster) NodePool(name string) (answer Answer, ok bool) {
	pool := c.karpenter.Pools[name]
	if pool == nil {
		return Answer{}, false
	}
	p := c.poolCase(pool)
	c.noteNodes()
	capacity := p.capacityFacts()
	findings := append(apply(poolRules, p), apply(budgetRules, p)...)
	return Answer{UID: string(pool.UID), Findings: c.settled(append(findings, p.ofNodes(findings)...)),
		Budgets: []report.NodePoolBudgets{p.budgetFacts()}, Capacity: capacity}, true
}

// Budgets applies the rules of budgets to one pool. ok is false where there is
// no such pool.
func (c *Cluster) Budgets(name string) (answer Answer, ok bool) {
	pool := c.karpenter.Pools[name]
	if pool == nil {
		return Answer{}, false
	}
	p := c.poolCase(pool)
	c.noteNodes()
	return Answer{UID: string(pool.UID), Findings: c.settled(apply(budgetRules, p)), Budgets: []report.NodePoolBudgets{p.budgetFacts()}, Timeline: p.timeline(c.ahead)}, true
}

// poolCase is made once for each pool.
func (c *Cluster) poolCase(pool *karpenter.NodePool) *poolCase {
	if p := c.poolCases[pool.Name]; p != nil {
		return p
	}
	p := &poolCase{Cluster: c, pool: pool, budgets: budget.NewPool(pool.Disruption())}
	for _, n := range c.karpenter.Nodes {
		if name, ok := n.NodePool(); ok && name == pool.Name {
			p.nodes = append(p.nodes, n)
		}
	}
	p.states = p.evaluate()
	c.poolCases[pool.Name] = p
	return p
}

// usage counts the pool's nodes for a reason of Karpenter's version.
func (p *poolCase) usage(reason karpenter.Reason) disruption.Usage {
	for _, s := range p.states {
		if s.reason == reason {
			return s.usage
		}
	}
	return disruption.UsageOf(p.pool.Name, reason, p.nodes, p.version.rules)
}

func (p *poolCase) subject() report.Subject {
	return report.Subject{Kind: "NodePool", Name: p.pool.Name}
}

// field is evidence from the pool's API object.
func (p *poolCase) field(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:nodepools.karpenter.sh/" + p.pool.Name, Field: field, Value: value, Means: means}
}
