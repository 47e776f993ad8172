package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// driftQueued: the node is to be replaced because it no longer is what its pool
// asks for. Marking asks no budget, replacing does, one node of a dynamic pool
// in a pass (Karpenter 1.14, pkg/controllers/disruption/drift.go).
func driftQueued(n *nodeCase) []report.Finding {
	if n.pool == nil || !n.node.Managed() || n.going() {
		return nil
	}
	claim := n.node.NodeClaim
	computed := n.unmarkedDrift()
	reason, confidence, when := string(computed), report.Likely, "as its objects show, though Karpenter has not marked it yet (it looks every 5 min)"
	var because []report.Evidence
	if c := claim.Condition(karpenter.ConditionDrifted); c != nil && c.Status == "True" {
		reason, confidence, when = c.Reason, report.Proven, n.since(c.LastTransitionTime)
		e := n.claimField("status.conditions["+karpenter.ConditionDrifted+"]", c.Reason, driftMeans(reason))
		e.At = c.LastTransitionTime
		because = append(because, e)
	}
	if reason == "" {
		return nil
	}
	because = append(because, n.driftEvidence(reason)...)
	queue, sums, evidence := n.driftQueue()
	f := report.NewFinding(report.DriftQueued, confidence, n.subject(),
		fmt.Sprintf("%s is to be replaced because it is drifted (%s) %s; %s.", n.title(), cut(reason, 60), when, queue), append(because, evidence...)...)
	f.Arithmetic = sums
	return []report.Finding{f}
}

// unmarkedDrift is drift that the objects show. A label that a NodeClaim lacks
// is none: each has those of its pool's requirements from its launch on, so that
// the bundle holds it in part.
func (n *nodeCase) unmarkedDrift() disruption.DriftReason {
	claim, pool := n.node.NodeClaim, n.pool.pool
	computed := n.karpenter.DriftOf(pool, claim, n.at)
	if computed != disruption.RequirementsDrifted {
		return computed
	}
	for _, key := range disruption.Unsatisfied(claim.Labels, pool.Spec.Template.Spec.Requirements) {
		if _, ok := claim.Labels[key]; ok {
			return computed
		}
	}
	return ""
}

func driftMeans(reason string) string {
	switch disruption.DriftReason(reason) {
	case disruption.NodePoolDrifted:
		return "the pool's template has changed since the NodeClaim was made"
	case disruption.RequirementsDrifted:
		return "its labels no longer satisfy the pool's requirements"
	case disruption.InstanceTypeNotFoundDrift:
		return "the provider does not offer its instance type any more"
	}
	return "found by the provider"
}

func (n *nodeCase) driftEvidence(reason string) []report.Evidence {
	claim, pool := n.node.NodeClaim, n.pool
	switch disruption.DriftReason(reason) {
	case disruption.NodePoolDrifted:
		field := "metadata.annotations[" + karpenter.NodePoolHashAnnotation + "]"
		return []report.Evidence{n.claimField(field, valueOr(cut(claim.Annotations[karpenter.NodePoolHashAnnotation], 80), "(absent)"), "the template that it was made of"),
			pool.field(field, valueOr(cut(pool.pool.Annotations[karpenter.NodePoolHashAnnotation], 80), "(absent)"), "the template as it is")}
	case disruption.RequirementsDrifted:
		var out []report.Evidence
		requirements := pool.pool.Spec.Template.Spec.Requirements
		for _, key := range disruption.Unsatisfied(claim.Labels, requirements) {
			value, ok := claim.Labels[key]
			if !ok {
				value = "(absent)"
			}
			for _, r := range requirements {
				if r.Key == key && len(out) < mostPods {
					out = append(out, pool.field("spec.template.spec.requirements["+cut(key, 80)+"]", fmt.Sprintf("%s %s", r.Operator, some(r.Values)), "the NodeClaim's label is "+cut(value, 80)))
				}
			}
		}
		return out
	}
	return nil
}

// driftQueue says where the node stands in the way of its replacement: first its
// own blockers, then the budgets.
func (n *nodeCase) driftQueue() (text, sums string, because []report.Evidence) {
	usage := n.pool.usage(karpenter.Drifted)
	allowance := n.pool.budgets.Allowed(karpenter.Drifted, usage.Total, n.at)
	remaining := allowance.Remaining(len(usage.Consumers))
	sums = fmt.Sprintf("budgets for Drifted: %s allowed of %s, %d consumed, %s remaining", allowed(allowance.Allowed), plural(usage.Total, "node"), len(usage.Consumers), allowed(remaining))
	for _, i := range allowance.DecidedBy {
		if len(because) < mostNamed {
			because = append(because, n.pool.field(fmt.Sprintf("spec.disruption.budgets[%d].nodes", i), n.pool.budgets.Budgets[i].Nodes, "decides for Drifted"))
		}
	}
	if !n.pool.nodesKnown() {
		return "what its budgets allow is not known without the nodes", "", because
	}
	if _, blocker := n.karpenter.Candidate(n.node, disruption.Eventual, n.at); blocker != nil {
		return "first it has to get rid of what keeps it (" + cut(blocker.Text, 200) + ")", sums, because
	}
	if n.podsErr != nil || n.pdbsErr != nil {
		return "whether a pod keeps it is not known", sums, because
	}
	switch {
	case allowance.Err != nil:
		return "its budgets cannot be evaluated, which allows 0", sums, because
	case allowance.Allowed == 0:
		until := "and that never changes"
		if at, ok := n.pool.budgets.NextChange(karpenter.Drifted, usage.Total, n.at); ok {
			until = "until " + utc(at)
		}
		return "the budgets allow 0 for Drifted, " + until, sums, because
	case remaining == 0:
		return fmt.Sprintf("the %s that the budgets allow for Drifted are used up by nodes under way or not ready", plural(allowance.Allowed, "node")), sums, because
	}
	if n.pool.static() {
		return "the budgets leave room, so that Karpenter replaces it as soon as its new node is ready", sums, because
	}
	return "the budgets leave room, so that its turn comes, if its pods find places on other nodes or a new one: one drifted node is taken in a pass, empty ones first, then those drifted longest", sums, because
}
