package budget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// spec makes a budget; schedule and duration "" are absent.
func spec(nodes, schedule, duration string, reasons ...karpenter.Reason) karpenter.Budget {
	b := karpenter.Budget{Nodes: nodes, Reasons: reasons}
	if schedule != "" {
		b.Schedule = &schedule
	}
	if duration != "" {
		d, err := time.ParseDuration(duration)
		if err != nil {
			panic(err)
		}
		b.Duration = &metav1.Duration{Duration: d}
	}
	return b
}

func TestValue(t *testing.T) {
	tests := []struct {
		nodes string
		total int
		want  int
		err   string
	}{
		{"10%", 0, 0, ""},
		{"10%", 7, 1, ""},
		{"10%", 10, 1, ""},
		{"10%", 11, 2, ""},
		{"33%", 7, 3, ""},
		{"0%", 1000, 0, ""},
		{"100%", 7, 7, ""},
		{"5", 2, 5, ""},
		{"007", 1, 7, ""},
		{"2147483647", 1, Unlimited, ""},
		{"4294967295", 1, -1, ""},
		{"4294967296", 1, 0, ""},
		{"99999999999999999999", 1, 0, "invalid value for IntOrString: invalid type: string is not a percentage"},
		{"5.5%", 10, 0, `invalid value for IntOrString: invalid value "5.5%": strconv.Atoi: parsing "5.5": invalid syntax`},
		{"", 1, 0, "invalid value for IntOrString: invalid type: string is not a percentage"},
	}
	for _, tt := range tests {
		b := New(spec(tt.nodes, "", ""))
		got, err := b.Allowed(tt.total, time.Time{})
		if text := errorText(err); got != tt.want || text != tt.err {
			t.Errorf("%q of %d = %d, %q, want %d, %q", tt.nodes, tt.total, got, text, tt.want, tt.err)
		}
		if text := errorText(b.NodesError()); text != tt.err {
			t.Errorf("%q: NodesError %q, want %q", tt.nodes, text, tt.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestActive(t *testing.T) {
	tests := []struct {
		name, schedule, duration, now string
		want                          bool
	}{
		{"opens at the hit", "0 9 * * *", "1h", "2026-03-04T09:00:00Z", true},
		{"last instant", "0 9 * * *", "1h", "2026-03-04T09:59:59.999999999Z", true},
		{"end does not belong", "0 9 * * *", "1h", "2026-03-04T10:00:00Z", false},
		{"instant before the hit", "0 9 * * *", "1h", "2026-03-04T08:59:59.999999999Z", false},
		{"another zone's clock", "0 1 * * *", "4h", "2026-03-04T10:30:00+09:00", true},
		{"daylight saving day", "30 2 * * *", "1h", "2026-03-08T02:45:00-05:00", false},
		{"over midnight", "0 22 * * *", "8h", "2026-03-05T05:59:59Z", true},
		{"as long as the interval", "@hourly", "1h", "2026-03-05T05:17:00Z", true},
		{"longer than the interval", "0 9 * * MON", "168h", "2026-03-07T05:17:00Z", true},
		{"no length", "* * * * *", "0m", "2026-03-05T05:17:00Z", false},
		{"never fires", "0 0 30 2 *", "1m", "2026-03-05T05:17:00Z", true},
		{"never fires, no length", "0 0 31 4 *", "0m", "2026-03-05T05:17:00Z", true},
		{"leap day within five years", "0 0 29 2 *", "24h", "2026-03-05T05:17:00Z", false},
		{"step drops the star: day or weekday", "0 9 */2 * MON", "1h", "2026-03-03T09:00:00Z", true},
		{"step of one keeps it: day and weekday", "0 9 */1 * MON", "1h", "2026-03-03T09:00:00Z", false},
		{"question mark is a star", "0 9 ? * MON", "1h", "2026-03-03T09:00:00Z", false},
		{"duration alone is an error", "", "1h", "2026-03-03T09:00:00Z", false},
		{"schedule alone is never active", "* * * * *", "", "2026-03-03T09:00:30Z", false},
		{"always", "", "", "2026-03-03T09:00:30Z", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := New(spec("1", tt.schedule, tt.duration))
			now := at(t, tt.now)
			if got, _ := b.Active(now); got != tt.want {
				t.Errorf("active = %v, want %v", got, tt.want)
			}
			if windows := b.Windows(now, now.Add(1)); (len(windows) == 1) != tt.want {
				t.Errorf("windows at the instant: %v, want active %v", windows, tt.want)
			}
		})
	}
}

func TestScheduleErrors(t *testing.T) {
	const five = "invariant violated, invalid cron, expected exactly 5 fields, found "
	tests := map[string]string{
		"0 9 * * 7":                        "invariant violated, invalid cron, end of range (7) above maximum (6): 7 (cron=<nil>)",
		"60 0 * * *":                       "invariant violated, invalid cron, end of range (60) above maximum (59): 60 (cron=<nil>)",
		"0 9 * * FRI-MON":                  "invariant violated, invalid cron, beginning of range (5) beyond end of range (1): FRI-MON (cron=<nil>)",
		"*/0 * * * *":                      "invariant violated, invalid cron, step of range should be a positive number: */0 (cron=<nil>)",
		"TZ=Asia/Seoul 0 10 * * *":         five + "6: [TZ=Asia/Seoul 0 10 * * *] (cron=<nil>)",
		"CRON_TZ=Asia/Seoul 0 10 * * *":    five + "6: [CRON_TZ=Asia/Seoul 0 10 * * *] (cron=<nil>)",
		"0 0 9 * * *":                      five + "6: [0 0 9 * * *] (cron=<nil>)",
		"@dailyx":                          "invariant violated, invalid cron, unrecognized descriptor: @dailyx (cron=<nil>)",
		"@reboot":                          "invariant violated, invalid cron, unrecognized descriptor: @reboot (cron=<nil>)",
		"":                                 five + "0: [] (cron=<nil>)",
		"0 9 * * MON-":                     "invariant violated, invalid cron, failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax (cron=<nil>)",
		"99999999999999999999999 * * * *":  "invariant violated, invalid cron, failed to parse int from 99999999999999999999999: strconv.Atoi: parsing \"99999999999999999999999\": value out of range (cron=<nil>)",
		"*/9223372036854775807 * * * *":    "",
		"  0\t9  * * mon-fri ":             "",
		"@weekly":                          "",
		"0/9223372036854775807 0 29 2 SUN": "",
	}
	for schedule, want := range tests {
		b := New(spec("1", schedule, "1h"))
		if schedule == "" {
			b = New(karpenter.Budget{Nodes: "1", Schedule: &schedule})
		}
		if got := errorText(b.ScheduleError()); got != want {
			t.Errorf("%q: %q, want %q", schedule, got, want)
		}
	}
}

func TestMisconfigured(t *testing.T) {
	tests := []struct {
		name                           string
		budget                         karpenter.Budget
		neverFires, neverActive, inert bool
	}{
		{"sound", spec("1", "0 9 * * *", "1h"), false, false, false},
		{"30 February", spec("0", "0 0 30 2 *", "1h"), true, false, false},
		{"31 in short months", spec("0", "0 0 31 4,6,9,11 *", "1h"), true, false, false},
		{"31 in short months or Sunday", spec("0", "0 0 31 4,6,9,11 SUN", "1h"), false, false, false},
		{"leap day", spec("0", "0 0 29 2 *", "1h"), false, false, false},
		{"no length", spec("0", "0 9 * * *", "0h"), false, true, false},
		{"empty reasons", karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{}}, false, false, true},
	}
	for _, tt := range tests {
		b := New(tt.budget)
		if b.NeverFires() != tt.neverFires || b.NeverActive() != tt.neverActive || b.IsInert() != tt.inert {
			t.Errorf("%s: never fires %v, never active %v, inert %v", tt.name, b.NeverFires(), b.NeverActive(), b.IsInert())
		}
	}
}
