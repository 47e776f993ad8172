package shrink

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetUsedUp: the budgets leave some, and nodes under way or not ready take
// all of it. Karpenter says nothing of that.
func budgetUsedUp(p *poolCase) []report.Finding { return p.usedUp(p.states) }

func (p *poolCase) usedUp(states []reasonState) []report.Finding {
	const most = 10
	var out []report.Finding
	for _, group := range grouped(states, p.isUsedUp) {
		first := group[0]
		var names []string
		for _, c := range first.usage.Consumers {
			names = append(names, c.Node.Name()+" ("+strings.Join(consumptions(c), ", ")+")")
		}
		f := report.NewFinding(report.BudgetUsedUp, report.Proven, p.subject(),
			fmt.Sprintf("NodePool %s allows %d for %s, and %s %s all of it: %s.", p.pool.Name, first.allowance.Allowed, named(group),
				plural(len(names), "node"), takes(len(names)), some(names)),
			p.budgetEvidence(first.allowance.DecidedBy, fmt.Sprintf("allows %d of %s", first.allowance.Allowed, plural(first.usage.Total, "node")))...)
		for i, c := range first.usage.Consumers {
			if i == most {
				break
			}
			f.Because = append(f.Because, report.Evidence{Source: "api:nodes/" + c.Node.Name(), Field: "status", Value: strings.Join(consumptions(c), ", "),
				Means: "consumes one of every budget of its pool"})
		}
		f.Arithmetic = fmt.Sprintf("max(0, %d - %d) = %d", first.allowance.Allowed, len(names), first.remaining)
		f.Remedies = []report.Remedy{{Summary: "Find out why these nodes are not ready or do not finish: kubectl noderes explain node NAME says it. Karpenter has no event for a budget that is used up."}}
		out = append(out, f)
	}
	return out
}

func takes(n int) string {
	if n == 1 {
		return "takes"
	}
	return "take"
}
