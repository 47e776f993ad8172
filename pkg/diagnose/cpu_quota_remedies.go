package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// quotaRemedies says what would end a container's throttling. Where use stands
// at the quota, how much it would use is not known, and the limit named is a
// first step; where average use stays below, limit and threads are computed
// (cgroup.FitQuota), with what is assumed of them.
func (c *podCase) quotaRemedies(k containerCPU, l *cpuLevel, t cgroup.Throttle, r runtimeThreads) []report.Remedy {
	limit := float64(l.max.Quota) / float64(l.max.Period)
	if t.UsedOfQuota >= reachesQuota || !t.HasUsage {
		out := []report.Remedy{{
			Summary: fmt.Sprintf("Raise limits.cpu of container %s to at least %s, then measure again.", k.Name, cores(limit*1.5)),
			Effect:  "How much it would use is not known while it stands at the limit; one and a half times the limit is a first step, not an estimate.",
			Caution: "A limit unequal to the request makes a Guaranteed pod Burstable.",
		}}
		return append(out, c.threadRemedies(k, l, r, "Fewer threads spend the quota more evenly; the work done per second stays the same.")...)
	}
	out := c.fitRemedies("limits.cpu of container "+k.Name, l, t, r.parallel(), c.cpusOf(k))
	effect := fmt.Sprintf("Average use of %s is below the limit; without parallel bursts it fits.", cores(l.averageUse(t)))
	if n := float64(cgroup.FittingThreads(l.max.Quota, l.max.Period)); n < l.averageUse(t) {
		effect = fmt.Sprintf("So many threads cannot reach the limit, but neither do the %s that it uses on average: more of them are throttled at times.", cores(l.averageUse(t)))
	} else if limit < 1 {
		effect = fmt.Sprintf("Average use of %s is below the limit. One thread by itself still exhausts a limit below one CPU when it runs for more than %s of a period.", cores(l.averageUse(t)), usec(float64(l.max.Quota)))
	}
	out = append(out, c.threadRemedies(k, l, r, effect)...)
	return append(out, report.Remedy{
		Summary: "Or drop the CPU limit and keep the request.",
		Effect:  "No quota, no throttling; under contention cpu.weight still gives the container its request.",
		Caution: "A Guaranteed pod becomes Burstable and loses exclusive CPUs.",
	})
}

// fitRemedies is the limit under which less than 1 % of the periods would be
// cut short, where the sample tells one.
func (c *podCase) fitRemedies(what string, l *cpuLevel, t cgroup.Throttle, threads, cpus int) []report.Remedy {
	fit, ok := cgroup.FitQuota(t, l.max.Quota, l.max.Period, threads, cpus)
	if !ok {
		return []report.Remedy{{
			Summary: "Raise " + what + ", then measure again.",
			Effect:  "How far is not computed: neither the throttled time nor the number of threads was read.",
		}}
	}
	r := report.Remedy{
		Summary: fmt.Sprintf("Raise %s to %s.", what, cores(float64(fit.LimitCPUs))),
		Caution: "A limit unequal to the request makes a Guaranteed pod Burstable.",
	}
	assumed := fmt.Sprintf("no more than %d CPUs' worth of threads want to run at once", fit.LimitCPUs)
	if fit.LimitCPUs == 1 {
		assumed = "one thread at a time wants to run"
	}
	r.Effect = fmt.Sprintf("Would leave under 1 %% of the periods throttled, as long as %s", assumed)
	switch {
	case fit.ByThreads:
		r.Effect += ": there are no more threads or CPUs."
	default:
		r.Effect += fmt.Sprintf(", as in a mean throttled period of this reading: (%d µs that ran + %s that stood still) / %d µs = %s.",
			l.max.Quota, usec(t.MeanStallUsec), l.max.Period, cores(fit.Wanted))
	}
	if t.Periods < 100 {
		r.Effect += fmt.Sprintf(" It rests on %s, of which one is more than 1 %%.", plural(t.Periods, "period"))
	}
	if _, sampled := l.best(); !sampled {
		r.Effect += " It rests on the averages of the cgroup's whole life, in which busy and quiet times are mixed."
	}
	return []report.Remedy{r}
}

// averageUse is what the level used while it had something to run, in CPUs.
func (l *cpuLevel) averageUse(t cgroup.Throttle) float64 {
	return t.UsedOfQuota * float64(l.max.Quota) / float64(l.max.Period)
}

// threadRemedies names the number of threads that fits the limit, and the knob
// of the runtime that sets it. A container of no more threads needs none.
func (c *podCase) threadRemedies(k containerCPU, l *cpuLevel, r runtimeThreads, effect string) []report.Remedy {
	fits, counted := cgroup.FittingThreads(l.max.Quota, l.max.Period), cgroup.CountedCPUs(l.max.Quota, l.max.Period)
	if n := r.parallel(); n > 0 && n <= fits {
		return nil
	}
	summary := fmt.Sprintf("Or run no more than %s at once in container %s: %s.", plural(int64(fits), "thread"), k.Name, r.knob(counted))
	if counted != fits {
		effect += fmt.Sprintf(" Runtimes that follow the limit round it up to %d, which reach it when all run.", counted)
	}
	return []report.Remedy{{Summary: summary, Effect: effect}}
}
