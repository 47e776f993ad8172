package disruption

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Method is one of the ways in which Karpenter disrupts nodes. In each pass the first that finds something to do acts.
type Method struct {
	Name   string
	Reason karpenter.Reason // whose budgets it uses
	Class  Class

	filter func(*Cluster, *Candidate) []Blocker
}

var (
	emptiness   = Method{"Emptiness", karpenter.Empty, Graceful, (*Cluster).emptinessFilter}
	staticDrift = Method{"StaticDrift", karpenter.Drifted, Eventual, (*Cluster).staticDriftFilter}
	drift       = Method{"Drift", karpenter.Drifted, Eventual, (*Cluster).driftFilter}
	multiNode   = Method{"MultiNodeConsolidation", karpenter.Underutilized, Graceful, (*Cluster).consolidationFilter}
	singleNode  = Method{"SingleNodeConsolidation", karpenter.Underutilized, Graceful, (*Cluster).consolidationFilter}
)

// Methods returns the methods of a version in the order of a pass. Repair, which 1.15 can run as the first of them, is not among
// them: what it does depends on the provider's policies and not on candidates.
func Methods(rules karpenter.Rules) []Method {
	switch {
	case rules.DriftBeforeEmptiness:
		return []Method{drift, emptiness, multiNode, singleNode}
	case !rules.StaticPools:
		return []Method{emptiness, drift, multiNode, singleNode}
	}
	return []Method{emptiness, staticDrift, drift, multiNode, singleNode}
}

// Filter returns everything for which the method leaves a candidate of its class, in the method's order (its ShouldDisrupt).
func (c *Cluster) Filter(m Method, candidate *Candidate) []Blocker { return m.filter(c, candidate) }

func (c *Cluster) emptinessFilter(candidate *Candidate) []Blocker {
	if candidate.Pool.IsStatic() {
		return []Blocker{{Check: CheckStaticNodePool}}
	}
	var out []Blocker
	if !candidate.Pool.Disruption().ConsolidateAfter.Set {
		out = append(out, Blocker{Check: CheckConsolidationNever, Text: karpenter.ConsolidationDisabled(candidate.Pool.Name)})
	}
	if !candidate.Empty {
		out = append(out, Blocker{Check: CheckNotEmpty})
	}
	return append(out, candidate.consolidatable()...)
}

func (c *Cluster) staticDriftFilter(candidate *Candidate) []Blocker {
	var out []Blocker
	if !candidate.Pool.IsStatic() {
		out = append(out, Blocker{Check: CheckDynamicNodePool})
	}
	return append(out, candidate.drifted()...)
}

func (c *Cluster) driftFilter(candidate *Candidate) []Blocker {
	var out []Blocker
	if candidate.Pool.IsStatic() {
		out = append(out, Blocker{Check: CheckStaticNodePool})
	}
	return append(out, candidate.drifted()...)
}

func (c *Cluster) consolidationFilter(candidate *Candidate) []Blocker {
	pool := candidate.Pool
	if pool.IsStatic() {
		return []Blocker{{Check: CheckStaticNodePool}}
	}
	var out []Blocker
	if instanceType, known := c.instanceType(candidate.Node); !known {
		out = append(out, Blocker{Check: CheckInstanceTypeNotFound, Text: karpenter.InstanceTypeNotFound(instanceType)})
	}
	labels := candidate.Node.Labels()
	if _, ok := labels[karpenter.CapacityTypeLabel]; !ok {
		out = append(out, Blocker{Check: CheckNoCapacityType, Text: karpenter.NoLabel(karpenter.CapacityTypeLabel)})
	}
	if _, ok := labels[corev1.LabelTopologyZone]; !ok {
		out = append(out, Blocker{Check: CheckNoZone, Text: karpenter.NoLabel(corev1.LabelTopologyZone)})
	}
	if !pool.Disruption().ConsolidateAfter.Set {
		out = append(out, Blocker{Check: CheckConsolidationNever, Text: karpenter.ConsolidationDisabled(pool.Name)})
	}
	switch {
	case candidate.Empty && c.Rules.EmptyByCost:
		out = append(out, Blocker{Check: CheckEmpty})
	case pool.Disruption().ConsolidationPolicy == karpenter.WhenEmpty:
		out = append(out, Blocker{Check: CheckPolicyWhenEmpty, Text: karpenter.PolicyWhenEmpty(pool.Name, c.Rules)})
	}
	return append(out, candidate.consolidatable()...)
}

// consolidatable goes by the condition that Karpenter set, as its methods do; TimerOf says when it should be there.
func (c *Candidate) consolidatable() []Blocker {
	if c.Node.NodeClaim.IsTrue(karpenter.ConditionConsolidatable) {
		return nil
	}
	return []Blocker{{Check: CheckNotConsolidatable}}
}

func (c *Candidate) drifted() []Blocker {
	if c.Node.NodeClaim.IsTrue(karpenter.ConditionDrifted) {
		return nil
	}
	return []Blocker{{Check: CheckNotDrifted}}
}
