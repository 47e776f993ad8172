package kernlog

import (
	"math"
	"strconv"
	"strings"
)

// ScaledPeriod is the period and quota in microseconds that a note of kind
// PeriodScaled says the kernel has set by itself (6.1 and 6.12,
// sched_cfs_period_timer): "cfs_period_timer[cpu3]: period too short, scaling
// up (new cfs_period_us = 2000, cfs_quota_us = 1000)". The line names no cgroup.
func (n Note) ScaledPeriod() (periodUsec, quotaUsec uint64, ok bool) {
	if n.Kind != PeriodScaled {
		return 0, 0, false
	}
	periodUsec, okPeriod := numberAfter(n.Text, "new cfs_period_us = ")
	quotaUsec, okQuota := numberAfter(n.Text, "cfs_quota_us = ")
	if !okPeriod || !okQuota {
		return 0, 0, false
	}
	return periodUsec, quotaUsec, true
}

// numberAfter reads the decimal number that follows the first occurrence of key.
func numberAfter(text, key string) (uint64, bool) {
	_, rest, found := strings.Cut(text, key)
	if !found {
		return 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.ParseUint(rest[:end], 10, 64)
	return n, err == nil && n > 0 && n <= math.MaxInt64
}
