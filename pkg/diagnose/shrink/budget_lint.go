package shrink

import (
	"fmt"
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// budgetNeverFires: a schedule without any hit is taken for one that is always
// open.
func budgetNeverFires(p *poolCase) []report.Finding {
	var out []report.Finding
	for i := range p.budgets.Budgets {
		b := &p.budgets.Budgets[i]
		if !b.NeverFires() {
			continue
		}
		f := report.NewFinding(report.BudgetNeverFires, report.Proven, p.subject(),
			fmt.Sprintf("The schedule %q of budgets[%d] of NodePool %s has no hit in any year, so Karpenter takes the budget for always active: %q holds at all times.", *b.Schedule, i, p.pool.Name, b.Nodes),
			p.field(budgetPath(i, "schedule"), *b.Schedule, "no day of the calendar has a hit"))
		f.Remedies = []report.Remedy{{Summary: "Write a day that exists in the month, or drop the budget.", Command: p.editCommand()}}
		out = append(out, f)
	}
	return out
}

// budgetInert: a budget limits nothing, because it names no reason or because
// its windows have no length.
func budgetInert(p *poolCase) []report.Finding {
	var out []report.Finding
	for i := range p.budgets.Budgets {
		b := &p.budgets.Budgets[i]
		var why, remedy string
		var evidence report.Evidence
		switch {
		case b.IsInert():
			why, remedy = "its list of reasons is empty, which stands for none", "Leave reasons out to limit every reason, or name those that are meant."
			evidence = p.field(budgetPath(i, "reasons"), "[]", "an empty list applies to no reason; an absent one to all")
		case b.NeverActive():
			why, remedy = "its windows have no length", "Give the window a duration above 0."
			evidence = p.field(budgetPath(i, "duration"), b.Duration.Duration.String(), "no hit of the schedule opens a window")
		default:
			continue
		}
		f := report.NewFinding(report.BudgetInert, report.Proven, p.subject(),
			fmt.Sprintf("budgets[%d] of NodePool %s (nodes %q) limits nothing: %s.", i, p.pool.Name, b.Nodes, why), evidence)
		f.Remedies = []report.Remedy{{Summary: remedy, Command: p.editCommand()}}
		out = append(out, f)
	}
	return out
}

// stopsEmpty are the windows that are 0 for every reason, Empty too.
func (p *poolCase) stopsEmpty() []int {
	var out []int
	for _, i := range p.windows() {
		b := &p.budgets.Budgets[i]
		if b.Reasons == nil && !b.NeverActive() && isZero(b.Nodes) {
			out = append(out, i)
		}
	}
	return out
}

// isZero: the value allows none of any number of nodes; a number that wraps
// below 0 allows none either.
func isZero(nodes string) bool {
	whole := budget.New(karpenter.Budget{Nodes: nodes})
	n, err := whole.Allowed(1000, time.Time{})
	return err == nil && n <= 0
}

// budgetWithoutReasons: a window meant to keep pods where they are keeps empty
// nodes too.
func budgetWithoutReasons(p *poolCase) []report.Finding {
	windows := p.stopsEmpty()
	if len(windows) == 0 || p.hasInvalid() {
		return nil
	}
	total := max(1, p.total())
	f := report.NewFinding(report.BudgetWithoutReasons, report.Proven, p.subject(),
		fmt.Sprintf("%s of NodePool %s %s no reasons, so Empty is stopped for %s too, although removing an empty node moves no pod.", p.budgetTexts(windows),
			p.pool.Name, names(len(windows)), stoppedText(p.budgets, karpenter.Empty, total, p.at)),
		p.budgetEvidence(windows, "no reasons: limits every reason")...)
	if s, ok := p.suggest(); ok {
		f.Remedies = []report.Remedy{s}
	}
	return []report.Finding{f}
}

func names(n int) string {
	if n == 1 {
		return "names"
	}
	return "name"
}

func (p *poolCase) hasInvalid() bool {
	return slices.ContainsFunc(p.budgets.Budgets, func(b budget.Budget) bool { return b.ScheduleError() != nil || b.NodesError() != nil })
}

// budgetDefaultReplaced: outside the windows nothing limits a reason, since
// budgets of one's own replace the default of 10 %.
func budgetDefaultReplaced(p *poolCase) []report.Finding {
	if p.hasInvalid() || p.pool.Spec.Disruption == nil {
		return nil
	}
	total := max(1, p.total())
	var open []string
	var from time.Time
	for _, s := range p.states {
		for _, segment := range p.budgets.Timeline(s.reason, total, p.at, p.at.Add(7*24*time.Hour)) {
			if segment.Allowed == budget.Unlimited {
				open = append(open, string(s.reason))
				if from.IsZero() || segment.From.Before(from) {
					from = segment.From
				}
				break
			}
		}
	}
	if len(open) == 0 {
		return nil
	}
	summary := fmt.Sprintf("NodePool %s has no limit for %s outside its windows: budgets of its own replace the default of 10%%.", p.pool.Name, join(open))
	if len(p.budgets.Budgets) == 0 {
		summary = fmt.Sprintf("NodePool %s has an empty list of budgets, which is no limit for any reason at any time: the default of 10%% stands only where the list is absent.", p.pool.Name)
	}
	f := report.NewFinding(report.BudgetDefaultReplaced, report.Proven, p.subject(), summary,
		p.field("spec.disruption.budgets", plural(len(p.budgets.Budgets), "budget"), "unlimited for "+join(open)+" at some time of the week"))
	f.Remedies = []report.Remedy{p.addBudget("10%", from)}
	return []report.Finding{f}
}

// addBudget is a patch that adds a budget without window and reasons, evaluated
// at a moment when it decides.
func (p *poolCase) addBudget(nodes string, at time.Time) report.Remedy {
	with := p.pool.Disruption()
	with.Budgets = append(slices.Clone(with.Budgets), karpenter.Budget{Nodes: nodes})
	pool := budget.NewPool(with)
	effect := ""
	if p.nodesKnown() {
		var values []string
		for _, s := range p.states {
			values = append(values, fmt.Sprintf("%s %s", s.reason, amount(pool.Allowed(s.reason, s.usage.Total, at).Allowed)))
		}
		effect = fmt.Sprintf("evaluated over %s at %s: %s", plural(p.total(), "node"), utc(at), join(values))
	}
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/disruption/budgets/-","value":{"nodes":%q}}]`, nodes)
	return report.Remedy{Summary: fmt.Sprintf("Add a budget of %q for all times.", nodes), Command: p.patchCommand(patch), Effect: effect}
}

func (p *poolCase) patchCommand(patch string) string {
	return "kubectl patch nodepools.karpenter.sh " + shellWord(p.pool.Name) + " --type=json -p " + shellWord(patch)
}

func (p *poolCase) editCommand() string {
	return "kubectl edit nodepools.karpenter.sh " + shellWord(p.pool.Name)
}

// budgetOneBarsMultiNode: a pool that allows one node at a time gives
// multi-node consolidation one candidate, and it needs two.
func budgetOneBarsMultiNode(p *poolCase) []report.Finding {
	total := p.total()
	if !p.nodesKnown() || p.hasInvalid() || total < 2 || p.pool.IsStatic() || p.pool.Disruption().ConsolidationPolicy == karpenter.WhenEmpty || !p.pool.Disruption().ConsolidateAfter.Set {
		return nil
	}
	most, decided := 0, []int(nil)
	for _, segment := range p.budgets.Timeline(karpenter.Underutilized, total, p.at, p.at.Add(7*24*time.Hour)) {
		if segment.Allowed > most {
			most, decided = segment.Allowed, segment.DecidedBy
		}
	}
	if most != 1 {
		return nil
	}
	f := report.NewFinding(report.BudgetOneBarsMultiNode, report.Proven, p.subject(),
		fmt.Sprintf("NodePool %s allows at most 1 of %d nodes for Underutilized at any time of the week, so its nodes cannot be merged several at once: multi-node consolidation needs two candidates, and this pool gives one.",
			p.pool.Name, total), p.budgetEvidence(decided, "allows 1")...)
	var effects []string
	for _, value := range []string{"2", "10%", "20%"} {
		b := budget.New(karpenter.Budget{Nodes: value})
		n, _ := b.Allowed(total, p.at)
		effects = append(effects, fmt.Sprintf("%q gives %d", value, n))
	}
	f.Remedies = []report.Remedy{{Summary: "Allow two or more for Underutilized.", Command: p.editCommand(),
		Effect: fmt.Sprintf("of %d nodes %s", total, join(effects))}}
	return []report.Finding{f}
}

// budgetLocalTime: schedules are in UTC, so a window moves by the clock of a
// zone with daylight saving. It is told where a zone was asked for.
func budgetLocalTime(p *poolCase) []report.Finding {
	if p.zone == nil {
		return nil
	}
	_, offset := p.at.In(p.zone).Zone()
	var change time.Time
	for day := 0; day < 366 && change.IsZero(); day++ {
		at := p.at.Add(time.Duration(day) * 24 * time.Hour)
		if _, other := at.In(p.zone).Zone(); other != offset {
			change = at
		}
	}
	if change.IsZero() {
		return nil
	}
	_, other := change.In(p.zone).Zone()
	var moving []int
	for _, i := range p.windows() {
		if w := p.windowText(&p.budgets.Budgets[i]); w != "" {
			moving = append(moving, i)
		}
	}
	if len(moving) == 0 {
		return nil
	}
	f := report.NewFinding(report.BudgetLocalTime, report.Proven, p.subject(),
		fmt.Sprintf("The windows of NodePool %s stand in UTC and move by %s on the clock of %s when that changes, within a day before %s: %s.", p.pool.Name,
			span(time.Duration(max(other-offset, offset-other))*time.Second), p.zone, utc(change), p.budgetTexts(moving)),
		p.budgetEvidence(moving, "")...)
	return []report.Finding{f}
}
