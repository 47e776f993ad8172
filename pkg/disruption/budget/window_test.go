package budget

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWindowsAgreeWithActive holds the walk over days against the question at single instants, which is answered by the cron
// library as in Karpenter.
func TestWindowsAgreeWithActive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New(spec("1", schedules().Draw(t, "schedule"), durations().Draw(t, "duration")))
		from := time.Unix(rapid.Int64Range(1_600_000_000, 2_000_000_000).Draw(t, "from"), 0).UTC()
		to := from.Add(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "minutes")) * time.Minute)
		windows := b.Windows(from, to)
		for i, w := range windows {
			if !w.From.Before(w.To) || w.From.Before(from) || w.To.After(to) || i > 0 && !windows[i-1].To.Before(w.From) {
				t.Fatalf("window %d of %v is empty, outside the range or touches the one before", i, windows)
			}
			expect(t, b, w.From, true)
			expect(t, b, w.To.Add(-1), true)
			if w.From.After(from) {
				expect(t, b, w.From.Add(-1), false)
			}
			if w.To.Before(to) {
				expect(t, b, w.To, false)
			}
		}
		for range 20 {
			moment := from.Add(time.Duration(rapid.Int64Range(0, int64(to.Sub(from))-1).Draw(t, "moment")))
			inside := false
			for _, w := range windows {
				inside = inside || !moment.Before(w.From) && moment.Before(w.To)
			}
			expect(t, b, moment, inside)
		}
	})
}

func expect(t *rapid.T, b Budget, now time.Time, want bool) {
	t.Helper()
	if got, err := b.Active(now); got != want || err != nil {
		t.Fatalf("active at %v: %v, %v, but the windows say %v", now, got, err, want)
	}
}

func schedules() *rapid.Generator[string] {
	field := func(low, high int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			value := rapid.IntRange(low, high)
			a, b := value.Draw(t, "a"), value.Draw(t, "b")
			if a > b {
				a, b = b, a
			}
			return rapid.SampledFrom([]string{
				"*", "*", "?", fmt.Sprint(a), fmt.Sprintf("%d-%d", a, b), fmt.Sprintf("%d,%d", a, b),
				fmt.Sprintf("*/%d", 1+a), fmt.Sprintf("%d/%d", a, 1+b), fmt.Sprintf("%d-%d/3", a, b), fmt.Sprintf("*,%d", a),
			}).Draw(t, "form")
		})
	}
	fields := rapid.Custom(func(t *rapid.T) string {
		return field(0, 59).Draw(t, "minute") + " " + field(0, 23).Draw(t, "hour") + " " + field(1, 31).Draw(t, "day") + " " +
			field(1, 12).Draw(t, "month") + " " + field(0, 6).Draw(t, "weekday")
	})
	return rapid.OneOf(fields, fields, fields, rapid.SampledFrom([]string{
		"@hourly", "@daily", "@weekly", "@monthly", "@yearly", "0 0 30 2 *", "0 0 29 2 *", "@every 1h",
	}))
}

func durations() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			"0m", "1m", "24h", "168h", "8760h", "43800h",
			fmt.Sprintf("%dm", rapid.IntRange(1, 200).Draw(t, "minutes")), fmt.Sprintf("%dh", rapid.IntRange(1, 100).Draw(t, "hours")),
		}).Draw(t, "duration")
	})
}

func TestNextChangeAndCurrent(t *testing.T) {
	tests := []struct{ name, schedule, duration, now, next, from, to string }{
		{"open", "0 1 * * *", "4h", "2026-03-04T02:00:00Z", "2026-03-04T05:00:00Z", "2026-03-04T01:00:00Z", "2026-03-04T05:00:00Z"},
		{"closed", "0 1 * * *", "4h", "2026-03-04T05:00:00Z", "2026-03-05T01:00:00Z", "", ""},
		{"windows that touch", "0 1,3 * * *", "2h", "2026-03-04T02:00:00Z", "2026-03-04T05:00:00Z", "2026-03-04T01:00:00Z", "2026-03-04T05:00:00Z"},
		{"windows that overlap", "0 1,2 * * *", "2h", "2026-03-04T03:30:00Z", "2026-03-04T04:00:00Z", "2026-03-04T01:00:00Z", "2026-03-04T04:00:00Z"},
		{"week end", "0 0 * * SAT", "48h", "2026-03-04T00:00:00Z", "2026-03-07T00:00:00Z", "", ""},
		{"always open", "@daily", "24h", "2026-03-04T00:00:00Z", "", "-", "-"},
		{"never fires", "0 0 30 2 *", "1h", "2026-03-04T00:00:00Z", "", "-", "-"},
		{"never open", "@daily", "0h", "2026-03-04T00:00:00Z", "", "", ""},
		{"leap day", "0 0 29 2 *", "1h", "2026-03-04T00:00:00Z", "2028-02-29T00:00:00Z", "", ""},
		{"leap day over the century", "0 0 29 2 *", "1h", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z", "", ""},
		{"without schedule", "", "", "2026-03-04T00:00:00Z", "", "-", "-"},
	}
	format := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format(time.RFC3339)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := New(spec("1", tt.schedule, tt.duration))
			now := at(t, tt.now)
			next := ""
			if change, ok := b.NextChange(now); ok {
				next = format(change)
			}
			if next != tt.next {
				t.Errorf("next change %q, want %q", next, tt.next)
			}
			if tt.name == "leap day over the century" {
				return // barren years count as open at an instant
			}
			from, to := "", ""
			if w, ok := b.Current(now); ok {
				from, to = format(w.From), format(w.To)
			}
			if from != tt.from || to != tt.to {
				t.Errorf("open from %q to %q, want %q to %q", from, to, tt.from, tt.to)
			}
		})
	}
}
