package cgroup

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestQuotaVectors(t *testing.T) {
	var v struct {
		Vectors []struct {
			MilliCPU     int64  `json:"milliCPU"`
			Period       uint64 `json:"period_us"`
			Quota        uint64 `json:"quota_us"`
			Exact        string `json:"cpu_max_exact"`
			Rounded      uint64 `json:"systemd_rounded_quota_us"`
			RoundedText  string `json:"cpu_max_systemd_rounded"`
			MilliExact   int64  `json:"kubelet_milli_from_quota"`
			MilliRounded int64  `json:"kubelet_milli_from_rounded_quota"`
		} `json:"vectors"`
	}
	readVectors(t, "vectors/quota.json", &v)
	if len(v.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	text := func(quota, period uint64) string {
		if quota == 0 {
			return fmt.Sprintf("max %d", period)
		}
		return fmt.Sprintf("%d %d", quota, period)
	}
	for _, c := range v.Vectors {
		quota := MilliCPUToQuota(c.MilliCPU, c.Period)
		rounded := SystemdRoundedQuota(quota, c.Period)
		if quota != c.Quota || text(quota, c.Period) != c.Exact {
			t.Errorf("MilliCPUToQuota(%d, %d) = %d, want %d", c.MilliCPU, c.Period, quota, c.Quota)
		}
		if rounded != c.Rounded || text(rounded, c.Period) != c.RoundedText {
			t.Errorf("SystemdRoundedQuota(%d, %d) = %d, want %d", quota, c.Period, rounded, c.Rounded)
		}
		if got := QuotaToMilliCPU(quota, c.Period); got != c.MilliExact {
			t.Errorf("QuotaToMilliCPU(%d, %d) = %d, want %d", quota, c.Period, got, c.MilliExact)
		}
		if got := QuotaToMilliCPU(rounded, c.Period); got != c.MilliRounded {
			t.Errorf("QuotaToMilliCPU(%d, %d) = %d, want %d", rounded, c.Period, got, c.MilliRounded)
		}
	}
}

func TestQuotaExtremes(t *testing.T) {
	for _, c := range []struct {
		milli  int64
		period uint64
		want   uint64
	}{
		{200, 0, 20000}, // no period given is the default one
		{200, 5000, 1000},
		{199, 5000, 1000}, // the floor at 5 ms is 200m
		{-1, 100000, 1000},
		{math.MaxInt64, 100000, math.MaxInt64},
		{math.MaxInt64, math.MaxUint64, math.MaxInt64},
		{math.MinInt64, 100000, 1000},
	} {
		if got := MilliCPUToQuota(c.milli, c.period); got != c.want {
			t.Errorf("MilliCPUToQuota(%d, %d) = %d, want %d", c.milli, c.period, got, c.want)
		}
	}
}

func TestQuotaProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		period := rapid.Uint64().Draw(t, "period")
		if a > b {
			a, b = b, a
		}
		qa, qb := MilliCPUToQuota(a, period), MilliCPUToQuota(b, period)
		if a != 0 && b != 0 && qa > qb {
			t.Fatalf("not monotone: %dm gives %d, %dm gives %d", a, qa, b, qb)
		}
		if qa > math.MaxInt64 || a != 0 && qa < 1000 {
			t.Fatalf("%dm gives %d", a, qa)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		quota := rapid.Uint64Range(0, 1e9).Draw(t, "quota")
		rounded := SystemdRoundedQuota(quota, 100000)
		if rounded < quota || rounded-quota >= 1000 || rounded%1000 != 0 {
			t.Fatalf("%d rounds to %d", quota, rounded)
		}
		if again := SystemdRoundedQuota(rounded, 100000); again != rounded {
			t.Fatalf("%d rounds to %d, that to %d", quota, rounded, again)
		}
	})
}

func FuzzQuota(f *testing.F) {
	f.Add(int64(125), uint64(100000))
	f.Add(int64(math.MaxInt64), uint64(1))
	f.Add(int64(-1), uint64(0))
	f.Fuzz(func(t *testing.T, milli int64, period uint64) {
		quota := MilliCPUToQuota(milli, period)
		if (quota == 0) != (milli == 0) {
			t.Errorf("%dm gives %d", milli, quota)
		}
		if rounded := SystemdRoundedQuota(quota, period); rounded < quota {
			t.Errorf("%d over %d rounds down to %d", quota, period, rounded)
		}
		if QuotaToMilliCPU(quota, period) < 0 {
			t.Errorf("%d over %d is negative", quota, period)
		}
	})
}
