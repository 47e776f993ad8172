package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetsOpen says what each reason may do now where no budget stands in the
// way of any.
func budgetsOpen(p *poolCase) []report.Finding {
	if p.hasInvalid() {
		return nil
	}
	if !p.nodesKnown() {
		for _, s := range p.states {
			if p.atZero(s) {
				return nil
			}
		}
		return []report.Finding{report.NewFinding(report.EvidenceMissing, report.Proven, p.subject(),
			fmt.Sprintf("What NodePool %s may disrupt now is not known: its nodes cannot be counted. The gaps say what is missing.", p.pool.Name),
			p.field("spec.disruption.budgets", plural(len(p.budgets.Budgets), "budget"), "none is 0 now"))}
	}
	var now, because = []string{}, []report.Evidence{}
	next := ""
	for _, s := range p.states {
		if p.atZero(s) || p.isUsedUp(s) {
			return nil
		}
		now = append(now, fmt.Sprintf("%s %s", s.reason, amount(remainingOf(s))))
		if s.changes && next == "" {
			next = fmt.Sprintf("; %s becomes %s at %s", s.reason, amount(s.next.Allowed), p.instant(s.until))
		}
		because = append(because, p.budgetEvidence(s.allowance.DecidedBy, fmt.Sprintf("decides for %s: %s of %s", s.reason, amount(s.allowance.Allowed), plural(s.usage.Total, "node")))...)
	}
	if len(because) == 0 {
		because = append(because, p.field("spec.disruption.budgets", plural(len(p.budgets.Budgets), "budget"), "none of them limits a reason now"))
	}
	for _, i := range p.windows() {
		because = append(because, p.budgetEvidence([]int{i}, "")...)
	}
	f := report.NewFinding(report.BudgetsOpen, report.Proven, p.subject(),
		fmt.Sprintf("The budgets of NodePool %s leave now, of %s: %s%s.", p.pool.Name, plural(p.total(), "node"), join(now), next), unique(because)...)
	if consumers := p.consumers(); len(consumers) > 0 {
		f.Arithmetic = fmt.Sprintf("what the budgets allow, less %s consuming", plural(len(consumers), "node"))
	}
	return []report.Finding{f}
}

// unique keeps the first evidence of each field of an object.
func unique(list []report.Evidence) []report.Evidence {
	seen := map[[2]string]bool{}
	var out []report.Evidence
	for _, e := range list {
		if key := [2]string{e.Source, e.Field}; !seen[key] {
			seen[key] = true
			out = append(out, e)
		}
	}
	return out
}
