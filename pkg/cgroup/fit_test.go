package cgroup

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestQuotaFloorMilli(t *testing.T) {
	for period, want := range map[uint64]int64{0: 10, 100000: 10, 50000: 20, 5000: 200, 30000: 34, 1000: 1000, 1000000: 1, math.MaxInt64: 1} {
		if got := QuotaFloorMilli(period); got != want {
			t.Errorf("QuotaFloorMilli(%d) = %d, want %d", period, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.Uint64Range(1000, 1000000).Draw(t, "period")
		floor := QuotaFloorMilli(period)
		exact := func(m int64) uint64 { return uint64(m) * period / 1000 }
		if exact(floor) < minQuotaUsec || floor > 1 && exact(floor-1) >= minQuotaUsec {
			t.Fatalf("floor of %d: %dm = %d µs, %dm = %d µs", period, floor, exact(floor), floor-1, exact(floor-1))
		}
		if MilliCPUToQuota(1, period) != MilliCPUToQuota(floor-1, period) && floor > 1 {
			t.Fatalf("limits below the floor differ at %d", period)
		}
	})
}

// throttleOf is the sample of a group whose throttled periods stall for stall µs.
func throttleOf(periods, throttled, stall uint64) Throttle {
	return Throttle{HasBandwidth: true, HasUsage: true, HasQuota: true, Periods: periods, Throttled: throttled,
		ThrottledUsec: throttled * stall, MeanStallUsec: float64(stall), Ratio: float64(throttled) / float64(periods)}
}

func TestFitQuota(t *testing.T) {
	for name, c := range map[string]struct {
		t             Throttle
		quota, period uint64
		threads, cpus int
		want          Fit
		ok            bool
	}{
		// Two threads on 500m: each runs 25 ms, then both stand still for 75.
		"two threads": {throttleOf(100, 40, 150000), 50000, 100000, 0, 0, Fit{Wanted: 2, LimitCPUs: 2, Threads: 1}, true},
		"one thread":  {throttleOf(100, 40, 50000), 50000, 100000, 1, 4, Fit{Wanted: 1, LimitCPUs: 1, Threads: 1, ByThreads: true}, true},
		// A stall that is over before the period is.
		"part of a CPU":     {throttleOf(100, 40, 30000), 20000, 100000, 0, 0, Fit{Wanted: 0.5, LimitCPUs: 1, Threads: 1}, true},
		"a little over two": {throttleOf(100, 40, 154000), 50000, 100000, 0, 0, Fit{Wanted: 2.04, LimitCPUs: 2, Threads: 1}, true},
		"fewer threads than run queues stood still": {throttleOf(100, 40, 350000), 50000, 100000, 2, 8,
			Fit{Wanted: 4, LimitCPUs: 2, Threads: 1, ByThreads: true}, true},
		"fewer CPUs than threads": {throttleOf(100, 40, 650000), 150000, 100000, 20, 4,
			Fit{Wanted: 8, LimitCPUs: 4, Threads: 1, ByThreads: true}, true},
		"threads that could not have reached it": {throttleOf(100, 40, 200000), 200000, 100000, 2, 8, Fit{Wanted: 4, LimitCPUs: 4, Threads: 2}, true},
		"no throttled time, threads known":       {Throttle{Throttled: 5, Periods: 100}, 50000, 100000, 3, 8, Fit{LimitCPUs: 3, Threads: 1, ByThreads: true}, true},
		"no throttled time, nothing known":       {Throttle{Throttled: 5, Periods: 100}, 50000, 100000, 0, 0, Fit{}, false},
		"a hair above a whole limit":             {throttleOf(100, 40, 1000), 200000, 100000, 0, 0, Fit{Wanted: 2.01, LimitCPUs: 3, Threads: 2}, true},
		"nothing throttled":                      {Throttle{Periods: 100}, 50000, 100000, 3, 8, Fit{}, false},
		"no quota":                               {throttleOf(100, 40, 1000), 0, 100000, 3, 8, Fit{}, false},
		"absurd":                                 {Throttle{Throttled: 1, ThrottledUsec: math.MaxUint64, MeanStallUsec: math.MaxUint64}, 1000, 1000, 0, 0, Fit{}, false},
	} {
		got, ok := FitQuota(c.t, c.quota, c.period, c.threads, c.cpus)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" || ok != c.ok {
			t.Errorf("%s: %v\n%s", name, ok, diff)
		}
	}
}

// Whatever fits is above the present limit, and the threads that fit do not
// exceed it unless it is below one CPU.
func TestFitQuotaFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.Uint64Range(1000, 1000000).Draw(t, "period")
		quota := rapid.Uint64Range(1000, 64*period).Draw(t, "quota")
		sample := throttleOf(1000, rapid.Uint64Range(1, 1000).Draw(t, "throttled"), rapid.Uint64Range(0, 100*period).Draw(t, "stall"))
		f, ok := FitQuota(sample, quota, period, rapid.IntRange(0, 200).Draw(t, "threads"), rapid.IntRange(0, 200).Draw(t, "cpus"))
		if !ok {
			return
		}
		if limit := float64(quota) / float64(period); float64(f.LimitCPUs) <= limit || f.Threads > 1 && float64(f.Threads) > limit {
			t.Fatalf("%+v fits a limit of %v", f, limit)
		}
	})
}

func TestCountedCPUs(t *testing.T) {
	for _, c := range []struct {
		quota, period    uint64
		counted, fitting int
	}{
		{50000, 100000, 1, 1}, {100000, 100000, 1, 1}, {150000, 100000, 2, 1}, {200000, 100000, 2, 2}, {0, 0, 1, 1},
		{math.MaxInt64, 1, maxID, maxID},
	} {
		if got := CountedCPUs(c.quota, c.period); got != c.counted {
			t.Errorf("CountedCPUs(%d, %d) = %d, want %d", c.quota, c.period, got, c.counted)
		}
		if got := FittingThreads(c.quota, c.period); got != c.fitting {
			t.Errorf("FittingThreads(%d, %d) = %d, want %d", c.quota, c.period, got, c.fitting)
		}
	}
}

func TestStrandedUsec(t *testing.T) {
	for cpus, want := range map[int]uint64{-1: 0, 0: 0, 1: 1000, 64: 64000, math.MaxInt: maxID * 1000} {
		if got := StrandedUsec(cpus); got != want {
			t.Errorf("StrandedUsec(%d) = %d, want %d", cpus, got, want)
		}
	}
}
