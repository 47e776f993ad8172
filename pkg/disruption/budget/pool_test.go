package budget

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func pool(budgets ...karpenter.Budget) Pool {
	return NewPool(karpenter.Disruption{Budgets: budgets})
}

func TestAllowed(t *testing.T) {
	const drifted, empty, underutilized = karpenter.Drifted, karpenter.Empty, karpenter.Underutilized
	inert := karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{}}
	tests := []struct {
		name                          string
		pool                          Pool
		now                           string
		empty, drifted, underutilized int
		decidedBy                     []int // for Empty
	}{
		{"none", pool(), "", Unlimited, Unlimited, Unlimited, nil},
		{"least of two", pool(spec("10%", "", ""), spec("20%", "", "")), "", 1, 1, 1, []int{0}},
		{"equal ones decide together", pool(spec("2", "", ""), spec("1", "", ""), spec("10%", "", "")), "", 1, 1, 1, []int{1, 2}},
		{"closed in the window", pool(spec("1", "", ""), spec("0", "0 1 * * *", "4h")), "2026-03-04T01:30:00Z", 0, 0, 0, []int{1}},
		{"open at its end", pool(spec("1", "", ""), spec("0", "0 1 * * *", "4h")), "2026-03-04T05:00:00Z", 1, 1, 1, []int{0}},
		{"reasons", pool(spec("10%", "", ""), spec("0", "0 1 * * *", "4h", underutilized, drifted)), "2026-03-04T02:00:00Z", 1, 0, 0, []int{0}},
		{"outside the only window", pool(spec("0", "0 22 * * *", "8h")), "2026-03-04T12:00:00Z", Unlimited, Unlimited, Unlimited, nil},
		{"error closes every reason", pool(spec("50%", "", ""), spec("1", "60 0 * * *", "1h", drifted)), "", 0, 0, 0, []int{1}},
		{"bad value closes while active", pool(spec("50%", "", ""), spec("x", "0 1 * * *", "1h", drifted)), "2026-03-04T01:00:00Z", 0, 0, 0, []int{1}},
		{"bad value tells nothing else", pool(spec("50%", "", ""), spec("x", "0 1 * * *", "1h", drifted)), "2026-03-04T03:00:00Z", 4, 4, 4, []int{0}},
		{"empty reasons limit nothing", pool(inert, spec("3", "", "", empty)), "", 3, Unlimited, Unlimited, []int{1}},
		{"negative by overflow", pool(spec("4294967295", "", "")), "", -1, -1, -1, []int{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)
			if tt.now != "" {
				now = at(t, tt.now)
			}
			a := tt.pool.Allowed(empty, 7, now)
			d, u := tt.pool.Allowed(drifted, 7, now), tt.pool.Allowed(underutilized, 7, now)
			if a.Allowed != tt.empty || d.Allowed != tt.drifted || u.Allowed != tt.underutilized {
				t.Errorf("Empty %d, Drifted %d, Underutilized %d; want %d, %d, %d", a.Allowed, d.Allowed, u.Allowed, tt.empty, tt.drifted, tt.underutilized)
			}
			if !slices.Equal(a.DecidedBy, tt.decidedBy) {
				t.Errorf("decided by %v, want %v", a.DecidedBy, tt.decidedBy)
			}
		})
	}
}

func TestErrorsOfSeveralBudgets(t *testing.T) {
	a := pool(spec("1", "60 0 * * *", "1h"), spec("x", "", ""), spec("1", "", "")).Allowed(karpenter.Empty, 3, time.Time{})
	want := "invariant violated, invalid cron, end of range (60) above maximum (59): 60 (cron=<nil>); invalid value for IntOrString: invalid type: string is not a percentage"
	if errorText(a.Err) != want || a.Least != 0 || !slices.Equal(a.DecidedBy, []int{0, 1}) {
		t.Errorf("%+v", a)
	}
}

func TestRemaining(t *testing.T) {
	for _, tt := range []struct{ allowed, consuming, want int }{{3, 2, 1}, {1, 2, 0}, {-1, 0, 0}, {Unlimited, 1, Unlimited - 1}} {
		if got := (Allowance{Allowed: tt.allowed}).Remaining(tt.consuming); got != tt.want {
			t.Errorf("%d - %d = %d, want %d", tt.allowed, tt.consuming, got, tt.want)
		}
	}
}

// TestSeoul is a pool whose office hours were written in Seoul's time, turned to UTC by hand.
func TestSeoul(t *testing.T) {
	p := pool(spec("1", "", ""), spec("0", "0 1 * * *", "4h"), spec("0", "0 8 * * *", "4h"))
	from := at(t, "2026-03-04T00:00:00+09:00")
	var got []string
	for _, s := range p.Timeline(karpenter.Empty, 7, from, from.Add(24*time.Hour)) {
		got = append(got, s.From.Format("15:04")+"-"+s.To.Format("15:04")+"="+string(rune('0'+s.Allowed)))
	}
	want := "15:00-01:00=1 01:00-05:00=0 05:00-08:00=1 08:00-12:00=0 12:00-15:00=1"
	if strings.Join(got, " ") != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNextChangeIsBounded looks for a change that never comes, in windows that relieve each other every minute.
func TestNextChangeIsBounded(t *testing.T) {
	budgets := []karpenter.Budget{spec("0", "0 0 29 2 *", "1m")}
	for range 24 {
		budgets = append(budgets, spec("1", "*/2 * * * *", "1m"), spec("1", "1-59/2 * * * *", "1m"))
	}
	start := time.Now()
	change, ok := pool(budgets...).NextChange(karpenter.Empty, 7, at(t, "2026-03-04T00:00:00Z"))
	if ok {
		t.Errorf("changes at %v", change)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if change, ok = pool(budgets[:2]...).NextChange(karpenter.Empty, 7, at(t, "2026-03-04T00:00:00Z")); !ok || !change.Equal(at(t, "2026-03-04T00:01:00Z")) {
		t.Errorf("changes at %v, %v", change, ok)
	}
	if change, ok = pool(budgets[0]).NextChange(karpenter.Empty, 7, at(t, "2026-03-04T00:00:00Z")); !ok || !change.Equal(at(t, "2028-02-29T00:00:00Z")) {
		t.Errorf("changes at %v, %v", change, ok)
	}
}

func TestTimelineAndNextChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Custom(func(t *rapid.T) karpenter.Budget {
			b := spec(rapid.SampledFrom([]string{"0", "1", "2", "10%", "100%", "x"}).Draw(t, "nodes"), "", "")
			if rapid.Bool().Draw(t, "scheduled") {
				b = spec(b.Nodes, schedules().Draw(t, "schedule"), durations().Draw(t, "duration"))
			}
			if rapid.Bool().Draw(t, "other reason") {
				b.Reasons = []karpenter.Reason{karpenter.Drifted}
			}
			return b
		})
		p := pool(rapid.SliceOfN(budget, 0, 4).Draw(t, "budgets")...)
		from := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "from"), 0).UTC()
		to := from.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "minutes")) * time.Minute)
		segments := p.Timeline(karpenter.Empty, 7, from, to)
		start := from
		for _, s := range segments {
			if !s.From.Equal(start) || !s.From.Before(s.To) {
				t.Fatalf("gap or empty segment: %v", segments)
			}
			for _, moment := range []time.Time{s.From, s.To.Add(-1)} {
				if a := p.Allowed(karpenter.Empty, 7, moment); a.Allowed != s.Allowed || !slices.Equal(a.DecidedBy, s.DecidedBy) {
					t.Fatalf("at %v allowed %v by %v, segment says %v by %v", moment, a.Allowed, a.DecidedBy, s.Allowed, s.DecidedBy)
				}
			}
			start = s.To
		}
		if !start.Equal(to) {
			t.Fatalf("ends at %v, not %v", start, to)
		}
		want := to
		for _, s := range segments {
			if s.Allowed != segments[0].Allowed {
				want = s.From
				break
			}
		}
		change, ok := p.NextChange(karpenter.Empty, 7, from)
		if want.Before(to) && (!ok || !change.Equal(want)) || ok && change.Before(want) {
			t.Fatalf("next change %v %v, the timeline changes at %v", change, ok, want)
		}
	})
}
