// Package kubeletstats reads what a kubelet's API tells of the use of cgroups: the
// counters of /metrics/cadvisor, of which two readings make rates, and the
// kubelet's own averages of /stats/summary. It is pure: text in, values out.
package kubeletstats

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/promtext"
)

// Cgroup names one: a container's, without Container the pod's, without a Pod the
// node's root.
type Cgroup struct {
	Namespace, Pod, Container string
}

// Counters are those of a cgroup at one moment. What was not told is NaN.
type Counters struct {
	// ID is its path: of another container by the same name another.
	ID string
	// At is when cAdvisor read them, every 10 to 15 seconds.
	At time.Time
	// CPU is time used, the others time in which some task waited (PSI some), in
	// seconds.
	CPU, CPUWaiting, MemoryWaiting, IOWaiting float64
	// Periods and Throttled are counted only where there is a quota. Quota and
	// Period are microseconds; without a quota Quota is NaN.
	Periods, Throttled, Quota, Period float64
	// Memory, Anon and Limit are bytes; a Limit of 0 is none.
	Memory, Anon, Limit float64
	// OOMKills are processes, by the kernel log: none are counted that were killed
	// before the kubelet started.
	OOMKills float64
}

// field is where a series belongs.
var fields = map[string]func(*Counters) *float64{
	"container_cpu_usage_seconds_total":               func(c *Counters) *float64 { return &c.CPU },
	"container_pressure_cpu_waiting_seconds_total":    func(c *Counters) *float64 { return &c.CPUWaiting },
	"container_pressure_memory_waiting_seconds_total": func(c *Counters) *float64 { return &c.MemoryWaiting },
	"container_pressure_io_waiting_seconds_total":     func(c *Counters) *float64 { return &c.IOWaiting },
	"container_cpu_cfs_periods_total":                 func(c *Counters) *float64 { return &c.Periods },
	"container_cpu_cfs_throttled_periods_total":       func(c *Counters) *float64 { return &c.Throttled },
	"container_spec_cpu_quota":                        func(c *Counters) *float64 { return &c.Quota },
	"container_spec_cpu_period":                       func(c *Counters) *float64 { return &c.Period },
	"container_memory_usage_bytes":                    func(c *Counters) *float64 { return &c.Memory },
	"container_memory_rss":                            func(c *Counters) *float64 { return &c.Anon },
	"container_spec_memory_limit_bytes":               func(c *Counters) *float64 { return &c.Limit },
	"container_oom_events_total":                      func(c *Counters) *float64 { return &c.OOMKills },
}

// Series are the names of all that Read reads.
func Series() []string { return slices.Sorted(maps.Keys(fields)) }

func unknown() Counters {
	n := math.NaN()
	return Counters{CPU: n, CPUWaiting: n, MemoryWaiting: n, IOWaiting: n, Periods: n, Throttled: n, Quota: n, Period: n, Memory: n, Anon: n, Limit: n, OOMKills: n}
}

// Read reads the answer of /metrics/cadvisor. What can be read is returned beside
// the error of what cannot.
func Read(text string) (map[Cgroup]Counters, error) {
	samples, err := promtext.Read(text, Series()...)
	// A container that was restarted may be told twice, the old cgroup and the new.
	type place struct {
		Cgroup
		id string
	}
	all := map[place]*Counters{}
	for _, s := range samples {
		at, ok := cgroupOf(s.Labels)
		if !ok {
			continue
		}
		key := place{at, s.Labels["id"]}
		c := all[key]
		if c == nil {
			n := unknown()
			c = &n
			c.ID = key.id
			all[key] = c
		}
		if s.Value >= 0 && !math.IsInf(s.Value, 0) {
			*fields[s.Name](c) = s.Value
		}
		if s.At.After(c.At) {
			c.At = s.At
		}
	}
	out := map[Cgroup]Counters{}
	for key, c := range all {
		if old, ok := out[key.Cgroup]; !ok || c.At.After(old.At) || c.At.Equal(old.At) && c.ID < old.ID {
			out[key.Cgroup] = *c
		}
	}
	return out, err
}

// cgroupOf is whose a series is. A pod's sandbox has no container's name, as the
// pod's own cgroup has none, but a name of its own.
func cgroupOf(labels map[string]string) (Cgroup, bool) {
	c := Cgroup{labels["namespace"], labels["pod"], labels["container"]}
	switch {
	case labels["id"] == "/":
		return Cgroup{}, c == Cgroup{}
	case c.Pod == "" || c.Namespace == "":
		return Cgroup{}, false
	case c.Container == "" && labels["name"] != "":
		return Cgroup{}, false
	case labels["cpu"] != "" && labels["cpu"] != "total":
		return Cgroup{}, false
	}
	return c, c.Container != "POD"
}

// IsOf says whether the path is of the pod with that UID.
func (c Counters) IsOf(uid string) bool {
	return uid != "" && (strings.Contains(c.ID, "pod"+uid) || strings.Contains(c.ID, "pod"+strings.ReplaceAll(uid, "-", "_")))
}

// Pair is a cgroup's last counters and those before, nil without.
type Pair struct {
	Last   Counters
	Before *Counters
}

// Reading is one node's.
type Reading map[Cgroup]Pair

// After puts new counters behind those of a reading. Where cAdvisor has read
// nothing new the old pair stays. Of cgroups that are gone nothing is kept.
func (r Reading) After(last map[Cgroup]Counters) Reading {
	out := make(Reading, len(last))
	for cgroup, now := range last {
		pair := Pair{Last: now}
		if old, ok := r[cgroup]; ok && old.Last.ID == now.ID {
			switch {
			case now.At.After(old.Last.At) && !old.Last.At.IsZero():
				before := old.Last
				pair.Before = &before
			case now.At.Equal(old.Last.At):
				pair.Before = old.Before
			}
		}
		out[cgroup] = pair
	}
	return out
}

// Seconds is the time between the two; false without two.
func (p Pair) Seconds() (float64, bool) {
	if p.Before == nil {
		return 0, false
	}
	return p.Last.At.Sub(p.Before.At).Seconds(), true
}

// Growth is how much a counter grew; false where it is not known twice, or was set
// back.
func (p Pair) Growth(of func(Counters) float64) (float64, bool) {
	if p.Before == nil {
		return 0, false
	}
	grown := of(p.Last) - of(*p.Before)
	return grown, grown >= 0 // not for NaN
}

// Rate is a counter's growth in a second.
func (p Pair) Rate(of func(Counters) float64) (float64, bool) {
	grown, ok := p.Growth(of)
	seconds, two := p.Seconds()
	if !ok || !two || seconds <= 0 {
		return 0, false
	}
	return grown / seconds, true
}

// Known says whether a value was told.
func Known(v float64) bool { return !math.IsNaN(v) }

// Whole is a value as a count; false where it is not known or too large for one.
func Whole(v float64) (uint64, bool) {
	if !Known(v) || v < 0 || v >= math.MaxInt64 {
		return 0, false
	}
	return uint64(v), true
}
