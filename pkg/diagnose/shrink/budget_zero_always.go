package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetZeroAlways: the budgets come to 0 for some reasons at all times.
func budgetZeroAlways(p *poolCase) []report.Finding { return p.zeroAlways(p.states) }

func (p *poolCase) zeroAlways(states []reasonState) []report.Finding {
	var out []report.Finding
	for _, group := range grouped(states, func(s reasonState) bool { return p.atZero(s) && !s.changes }) {
		first := group[0]
		f := report.NewFinding(report.BudgetZeroAlways, report.Proven, p.subject(),
			fmt.Sprintf("NodePool %s may never disrupt a node for %s: %s allows 0 of %s, and no window ends that.", p.pool.Name, named(group),
				p.budgetTexts(first.allowance.DecidedBy), p.nodeCount()),
			append(p.budgetEvidence(first.allowance.DecidedBy, "allows 0 at all times"), p.blockingEvents(group)...)...)
		f.Arithmetic = fmt.Sprintf("least of the active budgets over %s = 0, with no change in the nine years searched", p.nodeCount())
		f.Remedies = []report.Remedy{{Summary: "Give the deciding budget a value above 0, a schedule with an end, or the reasons that it is meant for.",
			Command: p.editCommand()}}
		out = append(out, f)
	}
	return out
}
