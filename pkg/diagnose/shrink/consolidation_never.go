package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// consolidationNever: without a duration in consolidateAfter no node of the
// pool ever becomes consolidatable, and so none is removed as empty either
// (Karpenter 1.14, pkg/controllers/disruption/emptiness.go and
// consolidation.go: ShouldDisrupt).
func consolidationNever(p *poolCase) []report.Finding {
	after := p.pool.Disruption().ConsolidateAfter
	if p.static() || after.Set {
		return nil
	}
	value, says := after.Text, "consolidateAfter is Never"
	if !after.IsNever() {
		value, says = "(absent)", "consolidateAfter is absent from the stored object, which Karpenter takes for Never"
	}
	f := report.NewFinding(report.ConsolidationNever, report.Proven, p.subject(),
		fmt.Sprintf("NodePool %s never gives up a node for being empty or underutilized: %s.", p.pool.Name, says),
		p.field("spec.disruption.consolidateAfter", value, "no node of the pool becomes Consolidatable"))
	f.Because = append(f.Because, p.quotes(unconsolidatable, karpenter.ConsolidationDisabled(p.pool.Name))...)
	patch := `{"spec":{"disruption":{"consolidateAfter":"5m"}}}`
	f.Remedies = []report.Remedy{{
		Summary: "Give consolidateAfter a duration, such as 5m.",
		Command: p.mergeCommand(patch), Patch: patch,
		Effect:  "each node's clock then counts from its last pod event; drift, expiry and repair do not depend on it",
		Caution: "Every node of the pool that was quiet for longer becomes a candidate at once, as far as its budgets and blockers let it.",
	}}
	return []report.Finding{f}
}

// quotes is the last event with this message on any node of the pool.
func (p *poolCase) quotes(reason, message string) []report.Evidence {
	for _, node := range p.nodes {
		if found := p.nodeOf(node).quote(reason, message); len(found) > 0 {
			return found
		}
	}
	return nil
}
