package cgroup

import "math"

// Sizes of the CFS bandwidth controller, in microseconds (kernel/sched/fair.c).
const (
	// keptSliceUsec is what a run queue that goes idle keeps of the slice of
	// quota it took (min_cfs_rq_runtime); nobody else can use it in that period.
	keptSliceUsec = 1000
	// stallTolerance is left to clocks: a fraction of a CPU that is not rounded
	// up to one more.
	stallTolerance = 0.05
)

// Fit is what would end the throttling of a group that on average uses less
// than its quota.
type Fit struct {
	// Wanted is how many CPUs ran or stood still in a mean throttled period:
	// (quota + MeanStallUsec) / period. What stood still would have run at most
	// for that time, so it is an upper bound of what that period lacked.
	Wanted float64
	// LimitCPUs is the limit in whole CPUs that exhausts no period as long as
	// no more than so many CPUs have something to run at once: Wanted rounded
	// up, and never more than the threads or CPUs there are.
	LimitCPUs int
	// ByThreads says that LimitCPUs is the number of threads or CPUs: nothing is
	// assumed of how they run.
	ByThreads bool
	// Threads is how many threads can run all the time without ever reaching
	// the present limit, at least 1.
	Threads int
}

// FitQuota computes what fits a group that was throttled as t says, from its
// quota and period in microseconds, the threads in it and the CPUs they may run
// on (0: not known). false means that the data do not tell: nothing was
// throttled, the kernel counted no throttled time and neither threads nor CPUs
// are known, or they contradict each other.
//
// It says nothing of a group that stands at its quota, whose demand is unknown.
func FitQuota(t Throttle, quotaUsec, periodUsec uint64, threads, cpus int) (Fit, bool) {
	if t.Throttled == 0 || quotaUsec == 0 || periodUsec == 0 {
		return Fit{}, false
	}
	quota, period := float64(quotaUsec), float64(periodUsec)
	f := Fit{Threads: FittingThreads(quotaUsec, periodUsec)}
	bound := math.Inf(1)
	for _, n := range []int{threads, cpus} {
		// Threads that together cannot reach the limit were not what reached it:
		// that number was read at another moment.
		if n > 0 && float64(n) > quota/period {
			bound = min(bound, float64(n))
		}
	}
	wanted := math.Inf(1)
	if t.ThrottledUsec > 0 {
		f.Wanted = (quota + t.MeanStallUsec) / period
		wanted = math.Ceil(f.Wanted - stallTolerance)
	}
	limit := min(wanted, bound)
	// A limit that is not above the present one would change nothing.
	limit = max(limit, math.Floor(quota/period)+1)
	if math.IsInf(limit, 1) || limit > maxID {
		return Fit{}, false
	}
	f.LimitCPUs, f.ByThreads = int(limit), bound <= wanted
	return f, true
}

// FittingThreads is how many threads can run all the time without reaching a
// quota: the limit in whole CPUs, at least 1 (one thread can exhaust a limit
// below one CPU by itself).
func FittingThreads(quotaUsec, periodUsec uint64) int {
	return int(min(max(quotaUsec/orDefaultPeriod(periodUsec), 1), maxID))
}

// CountedCPUs is how many CPUs a runtime that follows the limit counts, Java's
// availableProcessors and automaxprocs among them: the limit rounded up to whole
// CPUs. (Go counts the same but never fewer than 2: go1.26, runtime/cgroup_linux.go.)
func CountedCPUs(quotaUsec, periodUsec uint64) int {
	period := orDefaultPeriod(periodUsec)
	n := quotaUsec / period
	if quotaUsec%period != 0 {
		n++
	}
	return int(min(max(n, 1), maxID))
}

// StrandedUsec is how much of a period's quota can lie unused at most: each CPU
// that goes idle keeps 1 ms of the slice it took. It shows with small quotas on
// many CPUs, which are throttled although they use less.
func StrandedUsec(cpus int) uint64 {
	return uint64(min(max(cpus, 0), maxID)) * keptSliceUsec
}
