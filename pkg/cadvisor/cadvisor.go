// Package cadvisor reads what the kubelet's /metrics/cadvisor tells of the CPU of cgroups: the counters of cpu.stat and the quota, each
// read by the kubelet at some moment of the last seconds. It is pure: text in, values out.
package cadvisor

import (
	"math"
	"path"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/promtext"
)

// Names of the series that Read reads.
const (
	Periods          = "container_cpu_cfs_periods_total"
	ThrottledPeriods = "container_cpu_cfs_throttled_periods_total"
	ThrottledSeconds = "container_cpu_cfs_throttled_seconds_total"
	UsageSeconds     = "container_cpu_usage_seconds_total"
	Quota            = "container_spec_cpu_quota"
	Period           = "container_spec_cpu_period"
)

// Series are the names of all that Read reads.
var Series = []string{Periods, ThrottledPeriods, ThrottledSeconds, UsageSeconds, Quota, Period}

// Group is one cgroup as the kubelet sees it.
type Group struct {
	Path string // the cgroup's, from the root of the hierarchy
	// Counters are those of the time since the group was made. HasBandwidth is false unless all three of them are told.
	Counters cgroup.CPUCounters
	// Quota and Period are in µs; 0: no quota, or not told.
	Quota, Period uint64
	// Text has each series' value as written.
	Text map[string]string
}

// Read are the cgroups of which anything is told, by path. What can be read is returned beside the error of what cannot.
func Read(text string) (map[string]*Group, error) {
	samples, err := promtext.Read(text, Series...)
	groups := map[string]*Group{}
	for _, s := range samples {
		id := s.Labels["id"]
		if !path.IsAbs(id) || path.Clean(id) != id {
			continue
		}
		if cpu, told := s.Labels["cpu"]; told && cpu != "total" {
			continue
		}
		g := groups[id]
		if g == nil {
			g = &Group{Path: id, Text: map[string]string{}}
			groups[id] = g
		}
		g.Text[s.Name] = s.Text
		switch s.Name {
		case Periods:
			g.Counters.Periods = int64(whole(s.Value, math.MaxInt32))
		case ThrottledPeriods:
			g.Counters.Throttled = int64(whole(s.Value, math.MaxInt32))
		case ThrottledSeconds:
			g.Counters.ThrottledUsec = whole(s.Value*1e6, mostUsec)
		case UsageSeconds:
			g.Counters.UsageUsec = whole(s.Value*1e6, mostUsec)
			g.Counters.HasUsage = inRange(s.Value*1e6, mostUsec)
		case Quota:
			g.Quota = whole(s.Value, mostUsec)
		case Period:
			g.Period = whole(s.Value, mostUsec)
		}
	}
	for _, g := range groups {
		c := &g.Counters
		c.HasBandwidth = g.Text[Periods] != "" && g.Text[ThrottledPeriods] != "" && g.Text[ThrottledSeconds] != "" && c.Periods > 0
	}
	return groups, err
}

// mostUsec is some thirty thousand years of one CPU.
const mostUsec = 1e18

func inRange(v, most float64) bool { return v >= 0 && v <= most }

// whole is a value to the next whole number, 0 where it is none that can be.
func whole(v, most float64) uint64 {
	if !inRange(v, most) {
		return 0
	}
	return uint64(math.Round(v))
}
