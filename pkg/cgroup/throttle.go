package cgroup

import (
	"errors"
	"fmt"
	"math"
)

// CPUCounters are the counters of one reading of cpu.stat.
type CPUCounters struct {
	// Periods and Throttled are nr_periods and nr_throttled. The kernel keeps
	// them in an int, prints them signed and lets them wrap.
	Periods, Throttled int64

	ThrottledUsec uint64 // throttled_usec
	UsageUsec     uint64 // usage_usec

	HasBandwidth bool // the file has nr_periods, nr_throttled and throttled_usec
	HasUsage     bool // the file has usage_usec
}

// Throttle is what two readings of one cpu.stat say about the time in between.
type Throttle struct {
	// HasBandwidth and HasUsage say which counters both readings have; what
	// needs the others is 0.
	HasBandwidth, HasUsage bool
	// HasQuota says that a quota was given.
	HasQuota bool

	Periods       uint64 // periods in which the group had something to run
	Throttled     uint64 // of these, the ones in which it ran out of quota
	ThrottledUsec uint64 // throttled time summed over the CPUs' run queues: not a thread's wait, and it may exceed WallUsec
	UsageUsec     uint64 // CPU time used
	WallUsec      uint64 // time between the readings

	// Ratio is Throttled/Periods, 0 to 1. It is undefined, and 0, where
	// Periods is 0: the group was idle or has no quota.
	Ratio float64
	// ActiveShare is the share of the wall time in which the group had
	// something to run, Periods × period / wall. Above 1.05 the readings are
	// skewed or the kernel has scaled the period.
	ActiveShare float64

	UsedCPUs    float64 // average CPUs used: usage / wall
	UsedOfQuota float64 // share of the quota of the active periods that was used

	// MeanStallUsec is ThrottledUsec/Throttled, 0 where Throttled is 0.
	MeanStallUsec float64
	// RunQueueFactor is MeanStallUsec in periods. Above 1, run queues of
	// several CPUs were throttled at once.
	RunQueueFactor float64
}

// How many periods a ratio has to rest on.
const (
	// LeastPeriods: with fewer, nothing can be concluded.
	LeastPeriods = 10
	// SurePeriods: with fewer, a conclusion is only likely.
	SurePeriods = 50
)

var (
	// ErrCounterReset means that a counter went down: the cgroup is another
	// one, its container having been restarted, or the samples are swapped.
	ErrCounterReset = errors.New("counters went down between the samples")

	// ErrInconsistent means that no kernel gives these counters.
	ErrInconsistent = errors.New("counters contradict each other")

	// ErrNoWallTime means that no time lies between the samples.
	ErrNoWallTime = errors.New("no time between the samples")
)

// Throttling computes what happened between the readings a and b, wallUsec
// microseconds apart by a monotonic clock. quotaUsec and periodUsec are those
// of cpu.max of the same cgroup, the same at both readings; a quota of 0 is
// none, and a period of 0 is not known then. The errors are [ErrCounterReset],
// [ErrInconsistent] and [ErrNoWallTime].
func Throttling(a, b CPUCounters, wallUsec, quotaUsec, periodUsec uint64) (Throttle, error) {
	// A difference of unsigned clocks that is this large was negative.
	if wallUsec == 0 || wallUsec > math.MaxInt64 {
		return Throttle{}, fmt.Errorf("%w: %d µs", ErrNoWallTime, int64(wallUsec))
	}
	if quotaUsec != 0 && periodUsec == 0 {
		return Throttle{}, fmt.Errorf("%w: quota %d µs without a period", ErrInconsistent, quotaUsec)
	}
	if a.HasBandwidth != b.HasBandwidth {
		return Throttle{}, fmt.Errorf("%w: nr_periods in one sample only", ErrInconsistent)
	}
	t := Throttle{
		HasBandwidth: a.HasBandwidth,
		HasUsage:     a.HasUsage && b.HasUsage,
		HasQuota:     quotaUsec != 0,
		WallUsec:     wallUsec,
	}
	if t.HasBandwidth {
		if err := t.addBandwidth(a, b); err != nil {
			return Throttle{}, err
		}
	}
	if t.HasUsage {
		if b.UsageUsec < a.UsageUsec {
			return Throttle{}, fmt.Errorf("%w: usage_usec %d, then %d", ErrCounterReset, a.UsageUsec, b.UsageUsec)
		}
		t.UsageUsec = b.UsageUsec - a.UsageUsec
		t.UsedCPUs = float64(t.UsageUsec) / float64(wallUsec)
	}
	t.ActiveShare = float64(t.Periods) * float64(periodUsec) / float64(wallUsec)
	if t.HasUsage && t.HasQuota && t.Periods > 0 {
		t.UsedOfQuota = float64(t.UsageUsec) / (float64(t.Periods) * float64(quotaUsec))
	}
	if periodUsec != 0 {
		t.RunQueueFactor = t.MeanStallUsec / float64(periodUsec)
	}
	return t, nil
}

func (t *Throttle) addBandwidth(a, b CPUCounters) error {
	var ok bool
	if t.Periods, ok = intDelta(a.Periods, b.Periods); !ok {
		return fmt.Errorf("%w: nr_periods %d, then %d", ErrCounterReset, a.Periods, b.Periods)
	}
	if t.Throttled, ok = intDelta(a.Throttled, b.Throttled); !ok {
		return fmt.Errorf("%w: nr_throttled %d, then %d", ErrCounterReset, a.Throttled, b.Throttled)
	}
	if b.ThrottledUsec < a.ThrottledUsec {
		return fmt.Errorf("%w: throttled_usec %d, then %d", ErrCounterReset, a.ThrottledUsec, b.ThrottledUsec)
	}
	if t.Throttled > t.Periods {
		return fmt.Errorf("%w: %d of %d periods throttled", ErrInconsistent, t.Throttled, t.Periods)
	}
	t.ThrottledUsec = b.ThrottledUsec - a.ThrottledUsec
	if t.Periods > 0 {
		t.Ratio = float64(t.Throttled) / float64(t.Periods)
	}
	if t.Throttled > 0 {
		t.MeanStallUsec = float64(t.ThrottledUsec) / float64(t.Throttled)
	}
	return nil
}

// intDelta is the growth of a counter that the kernel keeps in an int. More
// than half of its range is not growth: even at the shortest period, 1 ms, that
// would take 24 days.
func intDelta(a, b int64) (uint64, bool) {
	delta := uint32(b) - uint32(a)
	return uint64(delta), delta <= math.MaxInt32
}

// BurstStall returns how long in each period threads threads that never sleep
// run, and how long they then wait, when they share a quota on cpus CPUs:
// quota/min(threads, cpus), and the rest of the period. All times are in
// microseconds. Without threads, CPUs or quota there is no stall.
func BurstStall(quotaUsec, periodUsec uint64, threads, cpus int) (runUsec, stallUsec float64) {
	period := float64(periodUsec)
	parallel := min(threads, cpus)
	if parallel <= 0 || quotaUsec == 0 {
		return period, 0
	}
	runUsec = min(float64(quotaUsec)/float64(parallel), period)
	return runUsec, period - runUsec
}
