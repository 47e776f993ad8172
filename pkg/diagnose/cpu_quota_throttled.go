package diagnose

import (
	"fmt"
	"math"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuQuotaThrottled speaks of a container's own cpu.max: cpu-quota-throttled
// where use reaches the quota, cpu-quota-burst-throttled where average use
// stays below it and periods are exhausted all the same.
//
// Where the pod's slice repeats the container's quota (a pod of one
// container), both are one limit with two meters whose periods are not
// aligned: the meter with the larger share speaks.
func cpuQuotaThrottled(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.cpu() {
		own := k.own()
		if !own.limited() || c.ownsCPUs(c.uid, k.Name) {
			continue
		}
		meters := []*cpuLevel{own}
		if pod := k.levels[1]; c.oneConstraint(own, pod) {
			meters = append(meters, pod)
		}
		speaks := own
		for _, m := range meters {
			a, _ := m.best()
			b, _ := speaks.best()
			if yes, _ := m.throttles(); yes && a.Ratio > b.Ratio {
				speaks = m
			}
		}
		if yes, _ := speaks.throttles(); !yes {
			continue
		}
		out = append(out, c.quotaFinding(k, speaks, meters))
	}
	return out
}

func (c *podCase) quotaFinding(k containerCPU, l *cpuLevel, meters []*cpuLevel) report.Finding {
	t, sampled := l.best()
	_, sure := l.throttles()
	quota, period := float64(l.max.Quota), float64(l.max.Period)
	limit := quota / period

	confidence := report.Likely
	if sure {
		confidence = report.Proven
	}
	window := "since the container's cgroup was made"
	if sampled {
		window = "within " + usec(float64(t.WallUsec))
	}
	throttled := fmt.Sprintf("throttled in %d of %s (%s) %s at %s by its own limit of %s (cpu.max %s)",
		t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), window, l.label(), cores(limit), l.max)

	sustained := t.UsedOfQuota >= reachesQuota || t.Ratio >= reachesQuota
	code, why := report.CPUQuotaThrottled, fmt.Sprintf("use reaches the limit (%s of the quota of those periods)", percent(t.UsedOfQuota))
	if !sustained {
		code = report.CPUQuotaBurstThrottled
		why = fmt.Sprintf("average use is below the limit (%s of the quota of those periods): bursts spend the quota of %s before the period of %s ends", percent(t.UsedOfQuota), usec(quota), usec(period))
	}
	f := newFinding(code, confidence, c.subject(k.Name), fmt.Sprintf("Container %s is %s; %s.", k.Name, throttled, why))
	for _, m := range meters {
		f.Because = append(f.Because, c.throttleEvidence(m)...)
	}
	f.Arithmetic = fmt.Sprintf("%d / %d = %s; %d µs used / (%d × %d µs) = %s of the quota", t.Throttled, t.Periods, percent(t.Ratio), t.UsageUsec, t.Periods, l.max.Quota, percent(t.UsedOfQuota))
	if t.Throttled > 0 {
		f.Arithmetic += fmt.Sprintf("; %d µs / %d = %s of run-queue time per throttled period", t.ThrottledUsec, t.Throttled, usec(t.MeanStallUsec))
	}
	c.explainThreads(k, l, t, &f)
	f.Remedies = quotaRemedies(k, limit, sustained)
	return f
}

// explainThreads says how T threads share one quota: it lasts quota/T, then
// all of them stand still until the period ends.
func (c *podCase) explainThreads(k containerCPU, l *cpuLevel, t cgroup.Throttle, f *report.Finding) {
	quota, period := float64(l.max.Quota), float64(l.max.Period)
	if n, err := k.own().group.PIDsCurrent(); err == nil {
		f.Because = append(f.Because, c.fileEvidence(k.own().group.File("pids.current"), "", fmt.Sprint(n), "processes and threads that share the quota"))
	}
	// More stall per throttled period than a period lasts: several CPUs'
	// run queues were throttled together. A tenth is left to skewed clocks.
	if t.RunQueueFactor > 1.1 {
		cpus := math.Ceil(t.RunQueueFactor)
		f.Arithmetic += fmt.Sprintf("; more than one period of %s, so at least %d CPUs were throttled together: %s each",
			usec(period), int(cpus), usec(t.MeanStallUsec/cpus))
	}
	if cpus := c.cpusOf(k); cpus > 1 {
		f.Arithmetic += fmt.Sprintf("; with all %d CPUs of its cpuset busy the quota of %s lasts %s and all stand still for the remaining %s",
			cpus, usec(quota), usec(quota/float64(cpus)), usec(max(0, period-quota/float64(cpus))))
	}
}

// cpusOf counts the CPUs a container may run on, 0 where that is not known.
func (c *podCase) cpusOf(k containerCPU) int {
	if set, err := k.own().group.CPUSetCPUsEffective(); err == nil {
		return set.Size()
	}
	if c.object != nil {
		return int(c.object.Status.Capacity.Cpu().Value())
	}
	return 0
}

func quotaRemedies(k containerCPU, limit float64, sustained bool) []report.Remedy {
	if sustained {
		return []report.Remedy{{
			Summary: fmt.Sprintf("Raise limits.cpu of container %s to at least %s, then measure again.", k.Name, cores(limit*1.5)),
			Effect:  "How much it would use is not known while it stands at the limit; one and a half times the limit is a first step, not an estimate.",
			Caution: "A limit unequal to the request makes a Guaranteed pod Burstable.",
		}, {
			Summary: fmt.Sprintf("Or run no more threads than the limit carries (%d).", max(1, int(limit+0.999))),
			Effect:  "Fewer threads spend the quota more evenly; the work done per second stays the same.",
		}}
	}
	return []report.Remedy{{
		Summary: fmt.Sprintf("Run no more than %d threads at once in container %s (GOMAXPROCS, -XX:ActiveProcessorCount, worker counts), or raise limits.cpu.", max(1, int(limit+0.999)), k.Name),
		Effect:  "Average use is below the limit; without parallel bursts it would fit.",
	}, {
		Summary: "Or drop the CPU limit and keep the request.",
		Effect:  "No quota, no throttling; under contention cpu.weight still gives the container its request.",
		Caution: "A Guaranteed pod becomes Burstable and loses exclusive CPUs.",
	}}
}
