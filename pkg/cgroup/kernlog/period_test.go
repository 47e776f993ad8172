package kernlog

import "testing"

func TestScaledPeriod(t *testing.T) {
	const line = "[ 12.5] cfs_period_timer[cpu3]: period too short, scaling up (new cfs_period_us = 2000, cfs_quota_us = 1000)\n"
	log := Parse([]byte(line), Boot{})
	if len(log.Notes) != 1 {
		t.Fatalf("%d notes", len(log.Notes))
	}
	if period, quota, ok := log.Notes[0].ScaledPeriod(); period != 2000 || quota != 1000 || !ok {
		t.Errorf("%d, %d, %v", period, quota, ok)
	}
	for _, n := range []Note{
		{Kind: MemoryFailure, Text: line},
		{Kind: PeriodScaled},
		{Kind: PeriodScaled, Text: "scaling up (new cfs_period_us = 2000"},
		{Kind: PeriodScaled, Text: "scaling up (new cfs_period_us = , cfs_quota_us = 1000)"},
		{Kind: PeriodScaled, Text: "scaling up (new cfs_period_us = -5, cfs_quota_us = 1000)"},
		{Kind: PeriodScaled, Text: "scaling up (new cfs_period_us = 0, cfs_quota_us = 0)"},
		{Kind: PeriodScaled, Text: "scaling up (new cfs_period_us = 99999999999999999999, cfs_quota_us = 1)"},
	} {
		if period, quota, ok := n.ScaledPeriod(); ok {
			t.Errorf("%+v: %d, %d", n, period, quota)
		}
	}
}

func FuzzScaledPeriod(f *testing.F) {
	f.Add("scaling up (new cfs_period_us = 2000, cfs_quota_us = 1000)")
	f.Add("new cfs_period_us = cfs_quota_us = 1")
	f.Fuzz(func(t *testing.T, text string) {
		period, quota, ok := Note{Kind: PeriodScaled, Text: text}.ScaledPeriod()
		if ok != (period > 0 && quota > 0) {
			t.Fatalf("%q: %d, %d, %v", text, period, quota, ok)
		}
	})
}
