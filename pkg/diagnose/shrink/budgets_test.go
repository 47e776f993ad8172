package shrink

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// window is a budget with a schedule; without one where that is "".
func window(nodes, schedule string, length time.Duration, reasons ...karpenter.Reason) karpenter.Budget {
	b := karpenter.Budget{Nodes: nodes, Reasons: reasons}
	if schedule != "" {
		b.Schedule, b.Duration = &schedule, &metav1.Duration{Duration: length}
	}
	return b
}

// budgeted is a pool "a" of some nodes with budgets.
func budgeted(nodes int, budgets ...karpenter.Budget) *world {
	w := newWorld().pool("a", func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = budgets })
	for i := range nodes {
		w.node("a", fmt.Sprintf("n%d", i))
	}
	return w
}

func TestBudgetRules(t *testing.T) {
	const (
		zeroNow   = "budget-zero-now@a proven"
		always    = "budget-zero-always@a proven"
		usedUp    = "budget-used-up@a proven"
		invalid   = "budget-invalid@a proven"
		never     = "budget-never-fires@a proven"
		inert     = "budget-inert@a proven"
		noReasons = "budget-without-reasons@a proven"
		replaced  = "budget-default-replaced@a proven"
		one       = "budget-one-bars-multi-node@a proven"
		local     = "budget-local-time@a proven"
		open      = "budgets-open@a proven"
		missing   = "evidence-missing@a proven"
	)
	notReady := func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	seoul, newYork := time.FixedZone("Asia/Seoul", 9*3600), zone(t, "America/New_York")
	for _, c := range []struct {
		name  string
		world *world
		zone  *time.Location
		at    time.Time
		want  []string
		text  []string
		lacks []string
	}{
		{name: "within a window", world: budgeted(7, window("1", "", 0), window("0", "0 8 * * *", 4*time.Hour), window("0", "0 1 * * *", 4*time.Hour)),
			want: []string{zeroNow, noReasons, one}, text: []string{"0 of 7 nodes for Empty, Drifted and Underutilized until 2026-07-14T12:00:00Z", "opens 2026-07-15T01:00:00Z",
				"Empty is stopped for 8 of 24 hours too", "Empty is stopped for 0 of 24 hours instead of 8 of 24 hours and allowed 1 at", `"2" gives 2, "10%" gives 1 and "20%" gives 2`}},
		{name: "the end does not belong to it", world: budgeted(7, window("2", "", 0), window("0", "0 8 * * *", 4*time.Hour)), at: now.Add(3 * time.Hour),
			want: []string{noReasons, open}, text: []string{"Empty 2, Drifted 2 and Underutilized 2", "Empty becomes 0 at 2026-07-15T08:00:00Z"}},
		{name: "one second before", world: budgeted(7, window("2", "", 0), window("0", "0 8 * * *", 4*time.Hour)), at: now.Add(3*time.Hour - time.Second), want: []string{zeroNow, noReasons}},
		{name: "a window for some reasons", world: budgeted(7, window("2", "", 0), window("0", "0 8 * * *", 4*time.Hour, karpenter.Underutilized)), want: []string{zeroNow},
			text: []string{"for Underutilized until"}, lacks: []string{"Empty"}},
		{name: "one window after the other", world: budgeted(7, window("2", "", 0), window("0", "0 8 * * *", 2*time.Hour, karpenter.Underutilized), window("0", "0 10 * * *", 4*time.Hour, karpenter.Underutilized)), want: []string{zeroNow},
			text: []string{`until 2026-07-14T14:00:00Z: budgets[1] (nodes "0" at "0 8 * * *" for 2h, reasons [Underutilized]) decides now, and at the end budgets[2] (nodes "0" at "0 10 * * *" for 4h`}},
		{name: "two windows at once", world: budgeted(7, window("2", "", 0), window("0", "0 8 * * *", 2*time.Hour, karpenter.Underutilized), window("0", "0 8 * * *", 4*time.Hour, karpenter.Underutilized)), want: []string{zeroNow},
			text: []string{"until 2026-07-14T12:00:00Z"}, lacks: []string{"at the end"}},
		{name: "weekend only", world: budgeted(7, window("2", "", 0), window("0", "0 0 * * SAT", 48*time.Hour)), want: []string{noReasons, open}, text: []string{"48 of the 168 hours of a week"}},
		{name: "always 0", world: budgeted(7, window("0", "", 0, karpenter.Drifted), window("20%", "", 0)), want: []string{always}, text: []string{"for Drifted: budgets[0]"}},
		{name: "a window that never ends", world: budgeted(7, window("20%", "", 0), window("0", "@daily", 24*time.Hour, karpenter.Underutilized)), want: []string{always}},
		{name: "a number that wraps to -1", world: budgeted(7, window("4294967295", "", 0)), want: []string{always}},
		{name: "used up", world: budgeted(3, window("2", "", 0)).node("a", "bad1", notReady).node("a", "bad2", notReady), want: []string{usedUp},
			text: []string{"allows 2 for Empty, Drifted and Underutilized, and 2 nodes take all of it: bad1 (NotReady) and bad2 (NotReady)", "max(0, 2 - 2) = 0"}},
		{name: "not quite", world: budgeted(3, window("2", "", 0)).node("a", "bad1", notReady), want: []string{open}, text: []string{"Empty 1,", "less 1 node consuming"}},
		{name: "a budget of no nodes", world: budgeted(0, window("10%", "", 0)), want: []string{open}},
		{name: "weekday 7", world: budgeted(3, window("50%", "", 0), window("1", "0 9 * * 7", time.Hour, karpenter.Drifted)), want: []string{invalid},
			text: []string{`"0 9 * * 7"`, "for every reason", "weekday as 0 to 6", "end of range (7) above maximum (6)"}},
		{name: "a zone in the schedule", world: budgeted(3, window("1", "TZ=Asia/Seoul 0 9 * * *", time.Hour)), want: []string{invalid}, text: []string{"Leave the time zone out"}},
		{name: "a number too long", world: budgeted(3, window("99999999999999999999", "", 0)), want: []string{invalid}, text: []string{"99999999999999999999"}},
		{name: "never fires", world: budgeted(3, window("50%", "", 0), window("0", "0 0 30 2 *", time.Hour, karpenter.Drifted)), want: []string{never, always}},
		{name: "no reason at all", world: func() *world {
			w := budgeted(3)
			w.Pools = nil // which would write no empty list
			w.files["cluster/nodepools.karpenter.sh.json"] = `{"items":[{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a"},"spec":{"disruption":{"consolidateAfter":"30s","budgets":[{"nodes":"50%"},{"nodes":"0","reasons":[]}]}}}]}`
			return w
		}(), want: []string{inert, open}},
		{name: "a window without length", world: budgeted(3, window("50%", "", 0), window("0", "@daily", 0)), want: []string{inert, open}},
		{name: "no limit at night", world: budgeted(20, window("20%", "0 6 * * *", 20*time.Hour, karpenter.Empty)), want: []string{replaced, open},
			text: []string{"no limit for Empty, Drifted and Underutilized outside", "Empty 2, Drifted 2 and Underutilized 2", "of 20 nodes: Empty 4, Drifted unlimited"}},
		{name: "windows that meet", world: budgeted(20, window("20%", "0 6 * * *", 20*time.Hour), window("30%", "0 2 * * *", 4*time.Hour)), want: []string{open}},
		{name: "no list is 10%", world: budgeted(20), want: []string{open}, text: []string{"of 20 nodes: Empty 2, Drifted 2 and Underutilized 2"}},
		{name: "an empty list", world: budgeted(3, []karpenter.Budget{}...), want: []string{replaced, open}, text: []string{"no limit for any reason at any time"}},
		{name: "1 of a pool that gives only empty nodes", world: budgeted(3, window("1", "", 0)).edit(func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.WhenEmpty }), want: []string{open}},
		{name: "1 of one node", world: budgeted(1, window("1", "", 0)), want: []string{open}},
		{name: "a zone that changes its clock", world: budgeted(7, window("20%", "", 0), window("1", "0 8 * * *", 4*time.Hour)), zone: newYork, want: []string{local, open},
			text: []string{"move by 1h on the clock of America/New_York", "08:00-12:00 UTC, 04:00-08:00 America/New_York"}},
		{name: "a zone that does not", world: budgeted(7, window("20%", "", 0), window("2", "0 8 * * *", 4*time.Hour)), zone: seoul, want: []string{open}},
		{name: "NodeClaims that nobody collected", world: func() *world { w := budgeted(7, window("20%", "", 0)); w.Claims = nil; return w }(), want: []string{missing}},
		{name: "0 whatever the nodes", world: func() *world { w := budgeted(7, window("0%", "", 0)); w.Nodes = nil; return w }(), want: []string{always}, text: []string{"an unknown number of nodes"}},
		{name: "a percentage of unknown nodes beside an open window", world: func() *world {
			w := budgeted(7, window("10%", "", 0), window("0", "0 2 * * *", 8*time.Hour))
			w.Nodes = nil
			return w
		}(), want: []string{zeroNow, noReasons},
			text: []string{"0 of an unknown number of nodes", "more than 0", "2026-07-14T10:00:00Z"}, lacks: []string{"never", "over 0 nodes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.at.IsZero() {
				c.at = now
			}
			gaps := &gap.Log{}
			answer, ok := Read(c.world.open(t), c.at, gaps, Options{Zone: c.zone}).Budgets("a")
			if !ok {
				t.Fatal("no answer")
			}
			slices.Sort(c.want)
			if got := spelled(answer.Findings); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			checkText(t, answer.Findings, c.text, c.lacks)
			if unknown := c.world.Claims == nil || c.world.Nodes == nil; unknown == (len(gaps.List()) == 0) || unknown == (len(answer.Timeline) > 0) || unknown == (answer.Budgets[0].Nodes != nil) {
				t.Errorf("gaps %v, timeline of %d segments, nodes %v", gaps.List(), len(answer.Timeline), answer.Budgets[0].Nodes)
			}
			for _, r := range budgetRules {
				noteData(t, answer.Findings, r.codes...)
			}
		})
	}
}

func checkText(t *testing.T, findings []report.Finding, text, lacks []string) {
	t.Helper()
	var all strings.Builder
	encoder := json.NewEncoder(&all)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(findings); err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(all.String(), `\"`, `"`)
	for _, s := range text {
		if !strings.Contains(said, s) {
			t.Errorf("lacks %q: %s", s, said)
		}
	}
	for _, s := range lacks {
		if strings.Contains(said, s) {
			t.Errorf("has %q: %s", s, said)
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("no time zones here: %v", err)
	}
	return z
}

// edit changes the pool that was added last.
func (w *world) edit(change func(*karpenter.NodePool)) *world {
	change(&w.Pools[len(w.Pools)-1])
	return w
}

// On a node only the budgets of the reasons count for which it could go.
func TestNodeBudgets(t *testing.T) {
	drifted := func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: karpenter.ConditionDrifted, Status: metav1.ConditionTrue})
	}
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
	zeroFor := func(reasons ...karpenter.Reason) *world {
		return budgeted(1, window("1", "", 0), window("0", "0 8 * * *", 4*time.Hour, reasons...))
	}
	for _, c := range []struct {
		name  string
		world *world
		want  string
	}{
		{"an empty node", zeroFor(karpenter.Empty).node("a", "x"), "for Empty until"},
		{"an empty node, another reason", zeroFor(karpenter.Underutilized).node("a", "x"), ""},
		{"a DaemonSet does not count", zeroFor(karpenter.Empty).node("a", "x").pod("x", "d", daemon), "for Empty until"},
		{"a node with pods", zeroFor(karpenter.Underutilized, karpenter.Empty).node("a", "x").pod("x", "p"), "for Underutilized until"},
		{"a node with pods, of a pool that gives up only empty ones", zeroFor(karpenter.Underutilized).edit(byPolicy(karpenter.WhenEmpty)).node("a", "x").pod("x", "p"), ""},
		{"the same, when no empty one may go", zeroFor(karpenter.Empty).edit(byPolicy(karpenter.WhenEmpty)).node("a", "x").pod("x", "p"), "for Empty until"},
		{"a drifted node", zeroFor(karpenter.Drifted).node("a", "x", drifted).pod("x", "p"), "for Drifted until"},
		{"a node that goes already", zeroFor(karpenter.Empty).node("a", "x", chosen), ""},
		{"a node of nobody", zeroFor().node("", "x"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found string
			for _, f := range c.world.read(t).Node("x") {
				if f.Code == report.BudgetZeroNow {
					found += f.Summary
				}
			}
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// A quote in a name or schedule does not end the shell's word.
func TestPatchCommandIsOneWord(t *testing.T) {
	w := budgeted(2, window("0", "0 8 * * *", time.Hour)).edit(func(p *karpenter.NodePool) { p.Name = "a'; rm -rf /; '" })
	answer, _ := w.read(t).Budgets("a'; rm -rf /; '")
	for _, f := range answer.Findings {
		for _, r := range f.Remedies {
			if r.Command != "" && !strings.Contains(r.Command, `'a'\''; rm -rf /; '\'''`) {
				t.Errorf("%s: %s", f.Code, r.Command)
			}
		}
	}
}

// What Karpenter said of the pool is quoted with what it means.
func TestBlockingEvents(t *testing.T) {
	w := budgeted(7, window("0", "0 8 * * *", 4*time.Hour)).event("NodePool", "a", "DisruptionBlocked", karpenter.BudgetEvent(karpenter.Empty), 53*time.Minute).
		event("NodePool", "a", "DisruptionBlocked", "something else", time.Minute).event("Node", "a", "DisruptionBlocked", karpenter.BudgetEvent(karpenter.Empty), time.Minute)
	w.Events[0].Count = 41
	answer, _ := w.read(t).Budgets("a")
	checkText(t, answer.Findings, []string{"53m before", "x41 is no rate"}, []string{"something else", "1m before"})
}
