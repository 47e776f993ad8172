package cadvisor

import (
	"testing"
)

func TestRead(t *testing.T) {
	groups, err := Read(`# HELP container_cpu_cfs_periods_total Number of elapsed enforcement period intervals.
container_cpu_cfs_periods_total{container="app",id="/kubepods.slice/a.scope",name="1"} 400 1796022413135
container_cpu_cfs_throttled_periods_total{container="app",id="/kubepods.slice/a.scope"} 100 1796022413135
container_cpu_cfs_throttled_seconds_total{container="app",id="/kubepods.slice/a.scope"} 1.5 1796022413135
container_cpu_usage_seconds_total{container="app",cpu="cpu00",id="/kubepods.slice/a.scope"} 99
container_cpu_usage_seconds_total{container="app",cpu="total",id="/kubepods.slice/a.scope"} 2.000001
container_spec_cpu_quota{id="/kubepods.slice/a.scope"} 5000
container_spec_cpu_period{id="/kubepods.slice/a.scope"} 100000
container_memory_rss{id="/kubepods.slice/b.scope"} 1
container_cpu_cfs_periods_total{id="/c"} 1e99
container_cpu_usage_seconds_total{id="/c"} NaN
container_spec_cpu_quota{id="/c"} -1
container_spec_cpu_quota{id="/x/../y"} 1
container_spec_cpu_quota{id=""} 1
container_cpu_cfs_periods_total{id="/broken
`)
	if err == nil || len(groups) != 2 {
		t.Errorf("%d groups, error %v", len(groups), err)
	}
	a := groups["/kubepods.slice/a.scope"]
	if c := a.Counters; c.Periods != 400 || c.Throttled != 100 || c.ThrottledUsec != 1_500_000 || c.UsageUsec != 2_000_001 || !c.HasUsage || !c.HasBandwidth || a.Quota != 5000 || a.Period != 100000 || a.Text[UsageSeconds] != "2.000001" {
		t.Errorf("%+v", a)
	}
	if c := groups["/c"]; c.Counters.Periods != 0 || c.Counters.HasUsage || c.Counters.HasBandwidth || c.Quota != 0 {
		t.Errorf("%+v", c)
	}
}
