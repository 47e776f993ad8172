package cgroup

import "math"

// Lifetime is what one reading of cpu.stat says about the time since the
// cgroup was made, which it does not tell: WallUsec, ActiveShare and UsedCPUs
// are 0. A counter that has wrapped below zero tells no lifetime; the errors
// are those of [Throttling].
func Lifetime(now CPUCounters, quotaUsec, periodUsec uint64) (Throttle, error) {
	born := CPUCounters{HasBandwidth: now.HasBandwidth, HasUsage: now.HasUsage}
	t, err := Throttling(born, now, math.MaxInt64, quotaUsec, periodUsec)
	t.WallUsec, t.ActiveShare, t.UsedCPUs = 0, 0, 0
	return t, err
}
