package shrink

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// suggest is the least edit that keeps the protected hours and lets Empty go
// on: the windows that stop everything name every reason but Empty. It is
// offered only where evaluating the edited budgets over a week shows that
// nothing else changes.
func (p *poolCase) suggest() (report.Remedy, bool) {
	windows := p.stopsEmpty()
	if len(windows) == 0 || p.hasInvalid() {
		return report.Remedy{}, false
	}
	var others []karpenter.Reason
	for _, r := range p.version.rules.Reasons() {
		if r != karpenter.Empty {
			others = append(others, r)
		}
	}
	slices.Sort(others)
	slices.Reverse(others) // Underutilized first, as it is what windows are made against
	edited := p.pool.Disruption()
	edited.Budgets = slices.Clone(edited.Budgets)
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	for _, i := range windows {
		edited.Budgets[i].Reasons = others
		path := fmt.Sprintf("/spec/disruption/budgets/%d", i)
		patch = append(patch, operation{"test", path + "/schedule", *edited.Budgets[i].Schedule}, operation{"add", path + "/reasons", others})
	}
	after := budget.NewPool(edited)
	total, end := max(1, p.total()), p.at.Add(7*24*time.Hour)
	if !p.nodesKnown() {
		total = manyNodes
	}
	for _, reason := range others {
		if !sameValues(p.budgets.Timeline(reason, total, p.at, end), after.Timeline(reason, total, p.at, end)) {
			return report.Remedy{}, false
		}
	}
	now := "not stopped"
	if p.nodesKnown() {
		now = "allowed " + amount(after.Allowed(karpenter.Empty, p.total(), p.at).Allowed)
	} else if after.Allowed(karpenter.Empty, total, p.at).Allowed <= 0 {
		now = "allowed 0"
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return report.Remedy{}, false
	}
	return report.Remedy{
		Summary: fmt.Sprintf("Let these windows limit %s only.", joinReasons(others)),
		Command: p.patchCommand(string(text)),
		Effect: fmt.Sprintf("evaluated at every edge of a week over %s: Empty is stopped for %s instead of %s and %s at %s; %s as before", p.nodeCount(),
			stoppedText(after, karpenter.Empty, total, p.at), stoppedText(p.budgets, karpenter.Empty, total, p.at), now, utc(p.at), joinReasons(others)),
	}, true
}

func joinReasons(reasons []karpenter.Reason) string {
	var out []string
	for _, r := range reasons {
		out = append(out, string(r))
	}
	return join(out)
}

// sameValues compares what two timelines allow, not what decides it.
func sameValues(a, b []budget.Segment) bool {
	at := func(list []budget.Segment, t time.Time) int {
		i, _ := slices.BinarySearchFunc(list, t, func(s budget.Segment, t time.Time) int {
			switch {
			case !s.To.After(t):
				return -1
			case s.From.After(t):
				return 1
			}
			return 0
		})
		if i == len(list) {
			return -1
		}
		return list[i].Allowed
	}
	for _, s := range slices.Concat(a, b) {
		if at(a, s.From) != at(b, s.From) {
			return false
		}
	}
	return true
}

// zeroRemedies are what helps while a window is open.
func (p *poolCase) zeroRemedies(states []reasonState) []report.Remedy {
	if slices.ContainsFunc(states, func(s reasonState) bool { return s.reason == karpenter.Empty }) {
		if s, ok := p.suggest(); ok {
			return []report.Remedy{s}
		}
	}
	return nil
}
