package cgroup

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func cpuCounters(periods, throttled int64, throttledUsec, usageUsec uint64) CPUCounters {
	return CPUCounters{
		Periods: periods, Throttled: throttled, ThrottledUsec: throttledUsec, UsageUsec: usageUsec,
		HasBandwidth: true, HasUsage: true,
	}
}

func TestThrottling(t *testing.T) {
	got, err := Throttling(cpuCounters(1000, 100, 5e6, 1e6), cpuCounters(7000, 3100, 185e6, 121e6), 600e6, 20000, 100000)
	if err != nil {
		t.Fatal(err)
	}
	want := Throttle{
		HasBandwidth: true, HasUsage: true, HasQuota: true,
		Periods: 6000, Throttled: 3000, ThrottledUsec: 180e6, UsageUsec: 120e6, WallUsec: 600e6,
		Ratio: 0.5, ActiveShare: 1, UsedCPUs: 0.2, UsedOfQuota: 1,
		MeanStallUsec: 60000, RunQueueFactor: 0.6,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestThrottlingPartial(t *testing.T) {
	for name, c := range map[string]struct {
		a, b          CPUCounters
		quota, period uint64
		want          Throttle
	}{
		"idle": {
			cpuCounters(5, 1, 10, 100), cpuCounters(5, 1, 10, 100), 20000, 100000,
			Throttle{HasBandwidth: true, HasUsage: true, HasQuota: true, WallUsec: 1e6},
		},
		"no quota": {
			cpuCounters(0, 0, 0, 0), cpuCounters(0, 0, 0, 5e5), 0, 100000,
			Throttle{HasBandwidth: true, HasUsage: true, WallUsec: 1e6, UsageUsec: 5e5, UsedCPUs: 0.5},
		},
		"controller off": {
			CPUCounters{UsageUsec: 1, HasUsage: true}, CPUCounters{UsageUsec: 250001, HasUsage: true}, 0, 0,
			Throttle{HasUsage: true, WallUsec: 1e6, UsageUsec: 250000, UsedCPUs: 0.25},
		},
		"no usage": {
			CPUCounters{HasBandwidth: true}, CPUCounters{HasBandwidth: true, Periods: 10, Throttled: 2, ThrottledUsec: 4000}, 20000, 100000,
			Throttle{HasBandwidth: true, HasQuota: true, WallUsec: 1e6, Periods: 10, Throttled: 2, ThrottledUsec: 4000,
				Ratio: 0.2, ActiveShare: 1, MeanStallUsec: 2000, RunQueueFactor: 0.02},
		},
		"counters of an int wrap": {
			cpuCounters(math.MaxInt32-3, math.MaxInt32, 0, 0), cpuCounters(math.MinInt32+6, math.MinInt32+4, 5000, 0), 20000, 100000,
			Throttle{HasBandwidth: true, HasUsage: true, HasQuota: true, WallUsec: 1e6, Periods: 10, Throttled: 5, ThrottledUsec: 5000,
				Ratio: 0.5, ActiveShare: 1, MeanStallUsec: 1000, RunQueueFactor: 0.01},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Throttling(c.a, c.b, 1e6, c.quota, c.period)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThrottlingErrors(t *testing.T) {
	start, end := cpuCounters(10, 5, 1000, 2000), cpuCounters(20, 8, 3000, 4000)
	backwards := int64(-1000)
	for name, c := range map[string]struct {
		a, b                CPUCounters
		wall, quota, period uint64
		want                error
	}{
		"samples swapped":         {end, start, 1e6, 20000, 100000, ErrCounterReset},
		"clock went back":         {start, end, uint64(backwards), 20000, 100000, ErrNoWallTime},
		"same instant":            {start, end, 0, 20000, 100000, ErrNoWallTime},
		"restarted":               {start, cpuCounters(1, 0, 0, 100), 1e6, 20000, 100000, ErrCounterReset},
		"throttled went down":     {start, cpuCounters(20, 4, 3000, 4000), 1e6, 20000, 100000, ErrCounterReset},
		"time went down":          {start, cpuCounters(20, 8, 999, 4000), 1e6, 20000, 100000, ErrCounterReset},
		"usage went down":         {start, cpuCounters(20, 8, 3000, 1999), 1e6, 20000, 100000, ErrCounterReset},
		"more throttled than ran": {start, cpuCounters(12, 8, 3000, 4000), 1e6, 20000, 100000, ErrInconsistent},
		"one without controller":  {start, CPUCounters{UsageUsec: 4000, HasUsage: true}, 1e6, 20000, 100000, ErrInconsistent},
		"quota without period":    {start, end, 1e6, 20000, 0, ErrInconsistent},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Throttling(c.a, c.b, c.wall, c.quota, c.period)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if got != (Throttle{}) {
				t.Errorf("figures in spite of the error: %+v", got)
			}
		})
	}
}

// The runs of a busy loop on booted kernels: mean stall of the container's own
// quota in milliseconds, by case and kernel.
func TestThrottlingRecordedRuns(t *testing.T) {
	var v struct {
		Runs []struct {
			Kernel  string   `json:"kernel"`
			Case    string   `json:"case"`
			Samples []string `json:"samples"`
		} `json:"throttle_runs"`
	}
	readVectors(t, "vectors/kernel-samples.json", &v)
	if len(v.Runs) != 16 {
		t.Fatalf("%d runs, want 16", len(v.Runs))
	}
	want := map[string]float64{
		"a S1 single thread, container quota 5ms only":              94.3,
		"a S2 single thread, container+pod quota 5ms, offset 0":     84.6,
		"a S2 single thread, container+pod quota 5ms, offset 40000": 85.5,
		"a S2 single thread, container+pod quota 5ms, offset 60000": 68.4,
		"a S2 single thread, container+pod quota 5ms, offset 80000": 75.3,
		"a S3 single thread, pod quota 20ms only":                   0,
		"a S4 4 shell loops, quota 50ms on 2 cpus":                  146,
		"b S1 single thread, container quota 5ms only":              101.6,
	}
	matched := 0
	for _, run := range v.Runs {
		samples := map[string]CPUCounters{}
		for _, line := range run.Samples {
			name, c := parseRunSample(t, line)
			samples[name] = c
		}
		for _, level := range []string{"ctr", "pod"} {
			got, err := Throttling(samples["b "+level], samples["a "+level], 10e6, 5000, 100000)
			if err != nil {
				t.Errorf("%s %s: %v", run.Case, level, err)
				continue
			}
			key := run.Kernel + " " + run.Case
			if ms, ok := want[key]; ok && level == "ctr" {
				matched++
				if math.Abs(got.MeanStallUsec/1000-ms) > 0.06 && math.Abs(got.MeanStallUsec/1000-ms) > ms/200 {
					t.Errorf("%s: %.1f ms per throttled period, want %.1f", key, got.MeanStallUsec/1000, ms)
				}
				if strings.Contains(key, "S4") && got.RunQueueFactor <= 1 {
					t.Errorf("%s: run queues of one CPU only: %.2f", key, got.RunQueueFactor)
				}
			}
		}
	}
	if matched != len(want) {
		t.Errorf("%d of %d runs found", matched, len(want))
	}
}

// parseRunSample reads "[b ctr] usage_usec 1 nr_periods 2 ...  local ...".
func parseRunSample(t *testing.T, line string) (string, CPUCounters) {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	own, _, _ := strings.Cut(rest, "  local ")
	fields := strings.Fields(own)
	values := map[string]uint64{}
	for i := 0; i+1 < len(fields); i += 2 {
		n, err := strconv.ParseUint(fields[i+1], 10, 63)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		values[fields[i]] = n
	}
	if len(values) != 4 {
		t.Fatalf("%q: %d counters", line, len(values))
	}
	return name, cpuCounters(int64(values["nr_periods"]), int64(values["nr_throttled"]), values["throttled_usec"], values["usage_usec"])
}

func TestBurstStall(t *testing.T) {
	for _, c := range []struct {
		quota, period uint64
		threads, cpus int
		run, stall    float64
	}{
		{100000, 100000, 4, 8, 25000, 75000},
		{50000, 100000, 2, 8, 25000, 75000},
		{50000, 100000, 20, 2, 25000, 75000},
		{5000, 100000, 1, 8, 5000, 95000},
		{400000, 100000, 2, 8, 100000, 0},
		{0, 100000, 4, 8, 100000, 0},
		{5000, 100000, 0, 8, 100000, 0},
		{5000, 100000, 4, -1, 100000, 0},
	} {
		if run, stall := BurstStall(c.quota, c.period, c.threads, c.cpus); run != c.run || stall != c.stall {
			t.Errorf("BurstStall(%d, %d, %d, %d) = %v, %v, want %v, %v", c.quota, c.period, c.threads, c.cpus, run, stall, c.run, c.stall)
		}
	}
}

func TestThrottlingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := cpuCounters(
			int64(rapid.Int32().Draw(t, "periods")), int64(rapid.Int32().Draw(t, "throttled")),
			rapid.Uint64Range(0, 1<<62).Draw(t, "stall"), rapid.Uint64Range(0, 1<<62).Draw(t, "usage"))
		periods := rapid.Uint32Range(0, math.MaxInt32).Draw(t, "dP")
		throttled := rapid.Uint32Range(0, periods).Draw(t, "dT")
		stall, usage := rapid.Uint64Range(0, 1<<40).Draw(t, "dU"), rapid.Uint64Range(0, 1<<40).Draw(t, "dC")
		b := cpuCounters(
			int64(int32(uint32(a.Periods)+periods)), int64(int32(uint32(a.Throttled)+throttled)),
			a.ThrottledUsec+stall, a.UsageUsec+usage)
		got, err := Throttling(a, b, rapid.Uint64Range(1, 1<<40).Draw(t, "wall"), 20000, 100000)
		if err != nil {
			t.Fatal(err)
		}
		if got.Periods != uint64(periods) || got.Throttled != uint64(throttled) || got.ThrottledUsec != stall || got.UsageUsec != usage {
			t.Fatalf("deltas %+v", got)
		}
		if got.Ratio < 0 || got.Ratio > 1 {
			t.Fatalf("ratio %v", got.Ratio)
		}
	})
}

func FuzzThrottling(f *testing.F) {
	f.Add(int64(0), int64(0), uint64(0), uint64(0), int64(6000), int64(3000), uint64(180e6), uint64(1), uint64(600e6), uint64(20000), uint64(100000))
	f.Add(int64(math.MaxInt32), int64(0), uint64(0), uint64(0), int64(math.MinInt32), int64(0), uint64(0), uint64(1), uint64(1), uint64(0), uint64(0))
	f.Add(int64(math.MinInt64), int64(math.MaxInt64), uint64(math.MaxUint64), uint64(0), int64(1), int64(1), uint64(0), uint64(0), uint64(math.MaxUint64), uint64(1), uint64(0))
	f.Fuzz(func(t *testing.T, p0, t0 int64, s0, u0 uint64, p1, t1 int64, s1, u1, wall, quota, period uint64) {
		got, err := Throttling(cpuCounters(p0, t0, s0, u0), cpuCounters(p1, t1, s1, u1), wall, quota, period)
		if err != nil {
			if got != (Throttle{}) {
				t.Errorf("figures in spite of %v", err)
			}
			return
		}
		if got.Throttled > got.Periods || got.Ratio < 0 || got.Ratio > 1 {
			t.Errorf("%d of %d throttled, ratio %v", got.Throttled, got.Periods, got.Ratio)
		}
		for _, x := range []float64{got.Ratio, got.ActiveShare, got.UsedCPUs, got.UsedOfQuota, got.MeanStallUsec, got.RunQueueFactor} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				t.Errorf("%+v", got)
			}
		}
	})
}
