package shrink

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetZeroNow: the budgets come to 0 for some reasons, until a window closes.
func budgetZeroNow(p *poolCase) []report.Finding { return p.zeroNow(p.states) }

func (p *poolCase) zeroNow(states []reasonState) []report.Finding {
	var out []report.Finding
	for _, group := range grouped(states, func(s reasonState) bool { return p.atZero(s) && s.changes }) {
		first := group[0]
		f := report.NewFinding(report.BudgetZeroNow, report.Proven, p.subject(),
			fmt.Sprintf("NodePool %s may disrupt 0 of %s for %s until %s: %s decides%s.", p.pool.Name, p.nodeCount(), named(group),
				p.instant(first.until), p.budgetTexts(first.allowance.DecidedBy), p.relief(first)),
			p.budgetEvidence(first.allowance.DecidedBy, "allows 0 now")...)
		for _, i := range p.windows() {
			if !slices.Contains(first.allowance.DecidedBy, i) {
				f.Because = append(f.Because, p.budgetEvidence([]int{i}, "")...)
			}
		}
		f.Because = append(f.Because, p.blockingEvents(group)...)
		f.Arithmetic = fmt.Sprintf("least of the active budgets over %s = 0; from %s: %s", p.nodeCount(), utc(first.until), p.amountOf(first.next))
		f.Remedies = p.zeroRemedies(group)
		out = append(out, f)
	}
	return out
}

// relief are the budgets that keep the 0 up to its end, where the window of
// those that decide now closes before.
func (p *poolCase) relief(s reasonState) string {
	last := p.budgets.Allowed(s.reason, p.counted(s.usage), s.until.Add(-1)).DecidedBy
	last = slices.DeleteFunc(slices.Clone(last), func(i int) bool { return slices.Contains(s.allowance.DecidedBy, i) })
	if len(last) == 0 {
		return ""
	}
	return " now, and at the end " + p.budgetTexts(last)
}

// budgetTexts are the budgets that decide.
func (p *poolCase) budgetTexts(indexes []int) string {
	var out []string
	for _, i := range indexes {
		out = append(out, p.budgetText(i))
	}
	return some(out)
}

// grouped puts states together that the same budgets decide, until the same
// moment and with the same consumers.
func grouped(states []reasonState, wanted func(reasonState) bool) [][]reasonState {
	var out [][]reasonState
	for _, s := range states {
		if !wanted(s) {
			continue
		}
		place := slices.IndexFunc(out, func(g []reasonState) bool {
			return g[0].until.Equal(s.until) && slices.Equal(g[0].allowance.DecidedBy, s.allowance.DecidedBy) &&
				g[0].allowance.Allowed == s.allowance.Allowed && g[0].next.Allowed == s.next.Allowed && len(g[0].usage.Consumers) == len(s.usage.Consumers)
		})
		if place < 0 {
			out = append(out, []reasonState{s})
			continue
		}
		out[place] = append(out[place], s)
	}
	return out
}
