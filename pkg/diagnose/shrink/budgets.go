package shrink

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// reasonState is what all budgets of a pool allow for one reason now.
type reasonState struct {
	reason    karpenter.Reason
	allowance budget.Allowance
	usage     disruption.Usage
	remaining int
	// until is when the allowance changes, next what it changes to.
	until   time.Time
	next    budget.Allowance
	changes bool
}

// atZero: the budgets themselves come to 0, whatever consumes them. A
// percentage of no nodes does not tell, nor one of nodes that are not known.
func (p *poolCase) atZero(s reasonState) bool {
	if s.allowance.Err != nil || s.allowance.Allowed > 0 {
		return false
	}
	return slices.ContainsFunc(s.allowance.DecidedBy, func(i int) bool { return isZero(p.budgets.Budgets[i].Nodes) })
}

// usedUp: the budgets leave some, and the consumers take all of it.
func (p *poolCase) isUsedUp(s reasonState) bool {
	return p.nodesKnown() && s.allowance.Err == nil && s.allowance.Allowed > 0 && s.remaining == 0
}

// nodesKnown: the pool's nodes can be counted. Otherwise a percentage tells
// nothing but whether it is 0 %.
func (p *poolCase) nodesKnown() bool { return p.nodesErr == nil && p.claimsErr == nil }

// tells: the value does not depend on how many nodes there are, or they are known.
func (p *poolCase) tells(i int) bool {
	nodes := p.budgets.Budgets[i].Nodes
	return p.nodesKnown() || !strings.HasSuffix(nodes, "%") || isZero(nodes)
}

// told: nothing that holds for the reason now depends on nodes that are not known.
func (p *poolCase) told(s reasonState) bool {
	for i := range p.budgets.Budgets {
		b := &p.budgets.Budgets[i]
		if active, _ := b.Active(p.at); active && b.AppliesTo(s.reason) && !p.tells(i) {
			return p.atZero(s)
		}
	}
	return true
}

// noteNodes leaves gaps where the pool's nodes cannot be counted.
func (c *Cluster) noteNodes() {
	const costs = "which nodes count for a budget and which consume it is not known, nor what a percentage comes to"
	c.gaps.Miss("cluster/nodes.json", c.nodesErr, costs, "list nodes")
	c.gaps.Miss("cluster/nodeclaims.karpenter.sh.json", c.claimsErr, costs, "list nodeclaims.karpenter.sh")
}

// evaluate tells the budgets for every reason of Karpenter's version.
func (p *poolCase) evaluate() []reasonState {
	var out []reasonState
	for _, reason := range p.version.rules.Reasons() {
		s := reasonState{reason: reason, usage: disruption.UsageOf(p.pool.Name, reason, p.nodes, p.version.rules)}
		total := p.counted(s.usage)
		s.allowance = p.budgets.Allowed(reason, total, p.at)
		s.remaining = s.allowance.Remaining(len(s.usage.Consumers))
		if s.until, s.changes = p.budgets.NextChange(reason, total, p.at); s.changes {
			s.next = p.budgets.Allowed(reason, total, s.until)
		}
		out = append(out, s)
	}
	return out
}

// manyNodes stand in for nodes that are not known: of them no percentage but
// 0 % comes to 0, and none is less for rounding.
const manyNodes = 100

// counted is over how many nodes the budgets are evaluated.
func (p *poolCase) counted(u disruption.Usage) int {
	if !p.nodesKnown() {
		return manyNodes
	}
	return u.Total
}

// amountOf is what is allowed, in words: of nodes that are not known only
// whether there is a limit.
func (p *poolCase) amountOf(a budget.Allowance) string {
	if !p.nodesKnown() && slices.ContainsFunc(a.DecidedBy, func(i int) bool { return !p.tells(i) }) {
		return "more than 0"
	}
	return amount(a.Allowed)
}

// budgetFacts are the pool's budgets as a report shows them.
func (p *poolCase) budgetFacts() report.NodePoolBudgets {
	facts := report.NodePoolBudgets{NodePool: p.pool.Name, Budgets: []report.Budget{}, Reasons: []report.BudgetReason{}}
	for i := range p.budgets.Budgets {
		facts.Budgets = append(facts.Budgets, p.budgetFact(i))
	}
	for _, s := range p.states {
		r := report.BudgetReason{Reason: string(s.reason), DecidedBy: s.allowance.DecidedBy}
		if p.nodesKnown() {
			total := s.usage.Total
			facts.Nodes = &total
		}
		if p.told(s) {
			r.Allowed = limit(s.allowance.Allowed)
		}
		if p.nodesKnown() || s.allowance.Allowed == budget.Unlimited {
			r.Remaining = limit(remainingOf(s))
		}
		if s.changes {
			r.Until = metav1.NewTime(s.until)
			if p.nodesKnown() {
				r.NextChange = limit(s.next.Allowed)
			}
		}
		facts.Reasons = append(facts.Reasons, r)
	}
	for _, c := range p.consumers() {
		facts.Consumers = append(facts.Consumers, report.BudgetConsumer{Node: c.Node.Name(), Why: consumptions(c)})
	}
	return facts
}

// remainingOf is unlimited where the allowance is.
func remainingOf(s reasonState) int {
	if s.allowance.Allowed == budget.Unlimited {
		return budget.Unlimited
	}
	return s.remaining
}

// consumers are those of any reason. Those of Unhealthy are part of the others'.
func (p *poolCase) consumers() []disruption.Consumer {
	var most []disruption.Consumer
	for _, s := range p.states {
		if len(s.usage.Consumers) > len(most) {
			most = s.usage.Consumers
		}
	}
	return most
}

func consumptions(c disruption.Consumer) []string {
	var why []string
	for _, w := range c.Why {
		why = append(why, string(w))
	}
	return why
}

func (p *poolCase) budgetFact(i int) report.Budget {
	b := &p.budgets.Budgets[i]
	fact := report.Budget{Index: i, Nodes: b.Nodes}
	if b.Schedule != nil {
		fact.Schedule = *b.Schedule
	}
	if b.Duration != nil {
		fact.Duration = span(b.Duration.Duration)
	}
	if b.Reasons != nil {
		reasons := []string{}
		for _, r := range b.Reasons {
			reasons = append(reasons, string(r))
		}
		fact.Reasons = &reasons
	}
	active, err := b.Active(p.at)
	if err != nil {
		fact.Error = err.Error()
		return fact
	}
	fact.Active = &active
	allowed, err := b.Allowed(p.total(), p.at)
	if err != nil {
		fact.Error = err.Error()
		allowed = 0
	}
	if p.tells(i) || !active {
		fact.Allowed = limit(allowed)
	}
	if b.Schedule == nil {
		return fact
	}
	if next, ok := b.NextChange(p.at); ok {
		if active {
			fact.Closes = metav1.NewTime(next)
		} else {
			fact.Opens = metav1.NewTime(next)
		}
	}
	fact.Window = p.windowText(b)
	return fact
}

// windowText is the open or the next window by the clock, in UTC and in the
// viewer's zone; "" where it is as long as a day or not known.
func (p *poolCase) windowText(b *budget.Budget) string {
	w, ok := b.Current(p.at)
	if !ok {
		from, opens := b.NextChange(p.at)
		if !opens {
			return ""
		}
		if w, ok = b.Current(from); !ok {
			return ""
		}
	}
	if w.From.IsZero() || w.To.IsZero() || w.To.Sub(w.From) >= 24*time.Hour {
		return ""
	}
	const clock = "15:04"
	text := w.From.UTC().Format(clock) + "-" + w.To.UTC().Format(clock) + " UTC"
	if p.zone != nil {
		text += ", " + w.From.In(p.zone).Format(clock) + "-" + w.To.In(p.zone).Format(clock) + " " + p.zone.String()
	}
	return text
}

// total is the number of counted nodes.
func (p *poolCase) total() int {
	if len(p.states) == 0 {
		return 0
	}
	return p.states[0].usage.Total
}

// nodeCount is the number of counted nodes in words.
func (p *poolCase) nodeCount() string {
	if !p.nodesKnown() {
		return "an unknown number of nodes"
	}
	return plural(p.total(), "node")
}

// limit writes Karpenter's largest number as no limit.
func limit(n int) *report.Limit {
	if n == budget.Unlimited {
		return &report.Limit{Unlimited: true}
	}
	return &report.Limit{Value: uint64(max(0, n))}
}

func amount(n int) string {
	if n == budget.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(max(0, n))
}

// timeline is what the budgets allow for each reason from the moment on; none
// where the nodes are not known.
func (p *poolCase) timeline(length time.Duration) []report.TimelineSegment {
	if !p.nodesKnown() {
		return nil
	}
	var out []report.TimelineSegment
	for _, s := range p.states {
		for _, segment := range p.budgets.Timeline(s.reason, s.usage.Total, p.at, p.at.Add(length)) {
			out = append(out, report.TimelineSegment{NodePool: p.pool.Name, Reason: string(s.reason), From: metav1.NewTime(segment.From),
				To: metav1.NewTime(segment.To), Allowed: *limit(segment.Allowed), DecidedBy: segment.DecidedBy})
		}
	}
	return out
}

// named are reasons of the same state, in one text.
func named(states []reasonState) string {
	var out []string
	for _, s := range states {
		out = append(out, string(s.reason))
	}
	return join(out)
}

// budgetPath is a budget's field in the pool's object.
func budgetPath(i int, field string) string {
	path := fmt.Sprintf("spec.disruption.budgets[%d]", i)
	if field != "" {
		path += "." + field
	}
	return path
}

// budgetText is a budget in a few words: its value and its window.
func (p *poolCase) budgetText(i int) string {
	b := &p.budgets.Budgets[i]
	text := fmt.Sprintf("budgets[%d] (nodes %q", i, b.Nodes)
	if b.Schedule != nil {
		text += fmt.Sprintf(" at %q", *b.Schedule)
		if b.Duration != nil {
			text += " for " + span(b.Duration.Duration)
		}
	}
	if b.Reasons != nil {
		var reasons []string
		for _, r := range b.Reasons {
			reasons = append(reasons, string(r))
		}
		text += ", reasons [" + strings.Join(reasons, ", ") + "]"
	}
	return text + ")"
}

// budgetEvidence quotes the budgets, with the window of each.
func (p *poolCase) budgetEvidence(indexes []int, means string) []report.Evidence {
	var out []report.Evidence
	for _, i := range indexes {
		b := &p.budgets.Budgets[i]
		says := means
		if window := p.windowText(b); window != "" {
			says = strings.TrimPrefix(says+"; window "+window, "; ")
		}
		if b.Schedule != nil {
			if next, ok := b.NextChange(p.at); ok {
				word := "opens "
				if active, _ := b.Active(p.at); active {
					word = "closes "
				}
				says = strings.TrimPrefix(says+"; "+word+p.instant(next), "; ")
			}
			schedule := *b.Schedule
			if b.Duration != nil {
				schedule += " + " + span(b.Duration.Duration)
			}
			out = append(out, p.field(budgetPath(i, ""), b.Nodes+" at "+schedule, says))
			continue
		}
		out = append(out, p.field(budgetPath(i, "nodes"), b.Nodes, says))
	}
	return out
}

// windows are the budgets that have a schedule and can be evaluated.
func (p *poolCase) windows() []int {
	var out []int
	for i := range p.budgets.Budgets {
		if b := &p.budgets.Budgets[i]; b.Schedule != nil && b.ScheduleError() == nil {
			out = append(out, i)
		}
	}
	return out
}

// blockingEvents quotes what Karpenter said of the pool's budgets, by reason.
func (p *poolCase) blockingEvents(states []reasonState) []report.Evidence {
	var out []report.Evidence
	for _, e := range p.eventsOn("NodePool", p.pool.Name) {
		if e.Reason != "DisruptionBlocked" {
			continue
		}
		for _, s := range states {
			if e.Message != karpenter.BudgetEvent(s.reason) {
				continue
			}
			seen := lastSeen(e)
			says := "last said at " + utc(seen)
			if age := p.at.Sub(seen); age >= 0 {
				says += ", " + span(age) + " before"
			}
			if e.Count > 1 {
				says += fmt.Sprintf("; x%d is no rate and no number of nodes", e.Count)
			}
			out = append(out, report.Evidence{Source: "api:events/" + e.Namespace + "/" + e.Name, Field: "message", Value: e.Message,
				Means: says + "; the budgets came to 0 before any consumption, and some node was a candidate"})
		}
	}
	return out
}

// stopped is for how long of the week from the moment on the budgets are 0 for
// a reason; each is for how long of each day, where all days are alike.
func stopped(pool budget.Pool, reason karpenter.Reason, total int, at time.Time) (week time.Duration, each time.Duration, alike bool) {
	days := make([]time.Duration, 7)
	const day = 24 * time.Hour
	for _, s := range pool.Timeline(reason, total, at, at.Add(7*day)) {
		if s.Allowed > 0 {
			continue
		}
		week += s.To.Sub(s.From)
		for d := range days {
			from, to := at.Add(time.Duration(d)*day), at.Add(time.Duration(d+1)*day)
			from, to = later(from, s.From), earlier(to, s.To)
			if to.After(from) {
				days[d] += to.Sub(from)
			}
		}
	}
	for _, d := range days {
		if d != days[0] {
			return week, 0, false
		}
	}
	return week, days[0], true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// stoppedText is "8 of 24 hours", or a share of the week.
func stoppedText(pool budget.Pool, reason karpenter.Reason, total int, at time.Time) string {
	week, each, alike := stopped(pool, reason, total, at)
	if alike {
		return hours(each) + " of 24 hours"
	}
	return hours(week) + " of the 168 hours of a week"
}

// hours is a duration in hours, with up to two decimals.
func hours(d time.Duration) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", d.Hours()), "0"), ".")
}
