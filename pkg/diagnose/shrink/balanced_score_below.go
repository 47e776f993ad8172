package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// balancedScoreBelow: not even the node's deletion would be approved, so no
// replacement would. Karpenter skips it without an event.
func balancedScoreBelow(n *nodeCase) []report.Finding {
	if !n.weighs() || !n.version.rules.BalancedPolicy || n.pool.pool.Disruption().ConsolidationPolicy != karpenter.Balanced {
		return nil
	}
	candidate, blocker := n.karpenter.Candidate(n.node, disruption.Graceful, n.at)
	if blocker != nil || !candidate.PriceKnown || disruption.CanPassThreshold(candidate, n.totals()) {
		return nil
	}
	totals := n.totals()[n.pool.pool.Name]
	score := disruption.ScoreDelete(candidate, totals)
	_, priced, _ := n.savings()
	f := report.NewFinding(report.BalancedScoreBelow, report.Likely, n.subject(),
		fmt.Sprintf("Deleting node %s would score %.2f, below the %.2f that the policy Balanced asks for, and a replacement scores less: it saves %.1f%% of the pool's cost for %.1f%% of its disruption.",
			n.node.Name(), score.Value(), score.Threshold(), 100*score.SavingsFraction, 100*score.DisruptionFraction),
		append(priced, n.pool.field("spec.disruption.consolidationPolicy", string(karpenter.Balanced), "moves are weighed against the pool's cost and disruption"))...)
	f.Arithmetic = fmt.Sprintf("(%s / %s) / (%s / %s) = %.3f < %.2f", dollars(candidate.Price), dollars(totals.Cost), dollars(candidate.RescheduleDisruptionCost), dollars(totals.Disruption),
		score.Value(), score.Threshold())
	f.Remedies = []report.Remedy{{Summary: "Move pods off the node, or choose WhenEmptyOrUnderutilized for the pool, which does not weigh disruption."}}
	if n.metrics.PoolCosts == nil {
		n.gaps.Miss(metricsFile, n.metricsErr, "the pool's cost is the sum of the known prices of its nodes, not Karpenter's own figure", "get pods/proxy of Karpenter's controller")
	}
	return []report.Finding{f}
}
