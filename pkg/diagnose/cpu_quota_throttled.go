package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
//
// Where cgroups were not read the kubelet's own counters stand in.
func cpuQuotaThrottled(c *podCase) []report.Finding {
	out := c.throttledByCounters()
	for _, k := range c.cpu() {
		speaks, meters := c.quotaMeters(k)
		if speaks == nil {
			continue
		}
		if yes, _ := speaks.throttles(); yes {
			out = append(out, c.quotaFinding(k, speaks, meters))
		}
	}
	return out
}

// quotaMeters are the levels that measure a container's own limit, and the one
// that shows the most throttling. Nil for a container without a quota, or with
// one left on exclusive CPUs, which has a code of its own.
func (c *podCase) quotaMeters(k containerCPU) (speaks *cpuLevel, meters []*cpuLevel) {
	own := k.own()
	if !own.limited() || c.ownsCPUs(c.uid, k.Name) {
		return nil, nil
	}
	meters = []*cpuLevel{own}
	if pod := k.levels[1]; c.oneConstraint(own, pod) {
		meters = append(meters, pod)
	}
	speaks = own
	for _, m := range meters {
		if yes, _ := m.throttles(); yes && ratioOf(m) > ratioOf(speaks) {
			speaks = m
		}
	}
	return speaks, meters
}

func (c *podCase) quotaFinding(k containerCPU, l *cpuLevel, meters []*cpuLevel) report.Finding {
	t, sampled := l.best()
	_, sure := l.throttles()
	quota, period := float64(l.max.Quota), float64(l.max.Period)
	limit := quota / period

	confidence := report.Likely
	if sure && !c.mayExpireSlices(t) {
		confidence = report.Proven
	}
	window := "since the container's cgroup was made"
	if sampled {
		window = "within " + usec(float64(t.WallUsec))
	}
	file := "cpu.max " + l.max.String()
	if l.assumed {
		file += " by the spec; the file was not read"
	}
	throttled := fmt.Sprintf("throttled in %d of %s (%s) %s at %s by its own limit of %s (%s)",
		t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), window, l.label(), cores(limit), file)

	atQuota := t.UsedOfQuota >= reachesQuota
	code, why := report.CPUQuotaThrottled, fmt.Sprintf("use reaches the limit (%s of the quota of those periods)", percent(t.UsedOfQuota))
	switch {
	case atQuota:
	case !t.HasUsage && t.Ratio >= reachesQuota:
		why = "nearly every period is cut short; how much of the quota was used was not read"
	case !t.HasUsage:
		code, why = report.CPUQuotaBurstThrottled, "not every period is cut short: at times its threads spend the quota before the period ends; how much of it was used was not read"
	case t.Ratio >= reachesQuota:
		why = fmt.Sprintf("nearly every period is cut short, with %s of the quota of those periods used", percent(t.UsedOfQuota))
	default:
		code = report.CPUQuotaBurstThrottled
		why = fmt.Sprintf("average use is below the limit (%s of the quota of those periods): bursts spend the quota of %s before the period of %s ends", percent(t.UsedOfQuota), usec(quota), usec(period))
	}
	f := report.NewFinding(code, confidence, c.subject(k.Name), fmt.Sprintf("Container %s is %s; %s.", k.Name, throttled, why))
	for _, m := range meters {
		f.Because = append(f.Because, c.throttleEvidence(m)...)
	}
	if l.assumed {
		f.Because = append(f.Because, c.podField(k.field("spec")+".resources.limits.cpu", quantityOrNone(k.Resources.Limits, corev1.ResourceCPU), "stands in for cpu.max"))
	}
	f.Arithmetic = fmt.Sprintf("%d / %d = %s; %d µs used / (%d × %d µs) = %s of the quota", t.Throttled, t.Periods, percent(t.Ratio), t.UsageUsec, t.Periods, l.max.Quota, percent(t.UsedOfQuota))
	if !t.HasUsage {
		f.Arithmetic = fmt.Sprintf("%d / %d = %s", t.Throttled, t.Periods, percent(t.Ratio))
	}
	if t.Throttled > 0 {
		f.Arithmetic += fmt.Sprintf("; %d µs / %d = %s of run-queue time per throttled period", t.ThrottledUsec, t.Throttled, usec(t.MeanStallUsec))
	}
	r := c.threadsOf(k)
	c.explainThreads(k, l, t, r, &f)
	c.explainMeters(meters, &f)
	for _, above := range k.levels[1:] {
		if yes, _ := above.throttles(); yes && !slices.Contains(meters, above) {
			t, _ := above.best()
			f.Because = append(f.Because, c.throttleEvidence(above)...)
			f.Arithmetic += fmt.Sprintf("; above it %s throttles as well, in %d of %d periods (%s) at %s", above.label(), t.Throttled, t.Periods, percent(t.Ratio), above.max)
		}
	}
	c.explainUnused(k, l, t, &f)
	c.explainScaled(l, &f)
	c.boundWait(k, t, &f)
	f.Because = append(f.Because, r.evidence...)
	f.Remedies = c.quotaRemedies(k, l, t, r)
	return f
}

// explainThreads says how T threads share one quota: it lasts quota/T, then
// all of them stand still until the period ends.
func (c *podCase) explainThreads(k containerCPU, l *cpuLevel, t cgroup.Throttle, r runtimeThreads, f *report.Finding) {
	quota, period := float64(l.max.Quota), float64(l.max.Period)
	// More stall per throttled period than a period lasts: several CPUs'
	// run queues were throttled together. A tenth is left to skewed clocks.
	if t.RunQueueFactor > 1.1 {
		cpus := math.Ceil(t.RunQueueFactor)
		f.Arithmetic += fmt.Sprintf("; more than one period of %s, so at least %d CPUs were throttled together: %s each",
			usec(period), int(cpus), usec(t.MeanStallUsec/cpus))
	}
	cpus := c.cpusOf(k)
	if cpus > 1 {
		f.Arithmetic += fmt.Sprintf("; with all %d CPUs that it may run on busy the quota of %s lasts %s and all stand still for the remaining %s",
			cpus, usec(quota), usec(quota/float64(cpus)), usec(max(0, period-quota/float64(cpus))))
	}
	if n := r.parallel(); n > 1 && (cpus == 0 || n < cpus) {
		run, stall := cgroup.BurstStall(l.max.Quota, l.max.Period, n, n)
		f.Arithmetic += fmt.Sprintf("; with its %d threads running at once it lasts %s, and they stand still for %s at most", n, usec(run), usec(stall))
	}
}

// explainMeters says what two throttling controllers in series mean: the pod's
// and the container's periods begin at different instants, so each refill of
// the one finds the other still dry, and each books only its own part of the
// wait.
func (c *podCase) explainMeters(meters []*cpuLevel, f *report.Finding) {
	var parts []string
	for _, m := range meters {
		t, _ := m.best()
		if yes, _ := m.throttles(); yes {
			parts = append(parts, fmt.Sprintf("%s %d of %d periods, %s each", m.label(), t.Throttled, t.Periods, usec(t.MeanStallUsec)))
		}
	}
	if len(parts) > 1 {
		f.Arithmetic += "; two controllers in series with the same quota and unaligned periods, each counting only its own throttling: " + strings.Join(parts, ", ")
	}
}

// explainUnused says why periods can be cut short while quota is left: unused
// slices that CPUs keep, and burst.
func (c *podCase) explainUnused(k containerCPU, l *cpuLevel, t cgroup.Throttle, f *report.Finding) {
	cpus := c.cpusOf(k)
	stranded := cgroup.StrandedUsec(cpus)
	if t.HasUsage && t.Periods > 0 && t.UsedOfQuota < reachesQuota && stranded > 0 {
		left := float64(l.max.Quota) * (1 - t.UsedOfQuota)
		if left <= float64(stranded) && stranded*2 >= l.max.Quota {
			f.Arithmetic += fmt.Sprintf("; %s of the quota were left per period: each CPU that goes idle may keep 1 ms of it, up to %s on %d CPUs, so that a small quota is never used up", usec(left), usec(float64(stranded)), cpus)
		}
	}
	burst, err := l.group.CPUMaxBurst()
	if err != nil || burst == 0 {
		return
	}
	f.Because = append(f.Because, c.fileEvidence(l.group.File("cpu.max.burst"), "", fmt.Sprint(burst), "µs of unused quota that later periods may use on top; the kubelet never sets it"))
	if n, ok := l.stat.NrBursts(); ok {
		f.Because = append(f.Because, c.fileEvidence(l.group.File("cpu.stat"), "nr_bursts", fmt.Sprint(n), "periods that used it, since the cgroup was made"))
	}
}

// explainScaled says that the kernel itself has changed a level's period and
// quota, if its log has a line with these values. The line names no cgroup.
func (c *podCase) explainScaled(l *cpuLevel, f *report.Finding) {
	if e, ok := c.scaledPeriod(l.max); ok {
		f.Because = append(f.Because, e)
	}
}

// scaledPeriod is the kernel's word that it has doubled a period and quota to
// these values, because its timer could not keep up with the period.
func (n *nodeCase) scaledPeriod(max cgroup.CPUMax) (report.Evidence, bool) {
	if max.Max || max.Period == cgroup.DefaultPeriodUsec {
		return report.Evidence{}, false
	}
	log, err := n.kernel()
	if err != nil {
		return report.Evidence{}, false
	}
	for i := len(log.Notes) - 1; i >= 0; i-- {
		note := log.Notes[i]
		if period, quota, ok := note.ScaledPeriod(); ok && period == max.Period && quota == max.Quota {
			e := report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("line %d", note.Line), Value: cutText(note.Text),
				Means: "the kernel has doubled the period and the quota itself, so that cpu.max is no longer the kubelet's; the limit in CPUs stays"}
			if note.Time.HasWall {
				e.At = metav1.NewTime(note.Time.Wall)
			}
			return e, true
		}
	}
	return report.Evidence{}, false
}

// boundWait says between what the wait of a thread lies, and what each counter
// of waiting counts.
func (c *podCase) boundWait(k containerCPU, t cgroup.Throttle, f *report.Finding) {
	own := k.own()
	if local, ok := c.growthOf(own, localThrottled); ok {
		means := "run-queue time with something to run under its own quota or one above, summed over CPUs"
		if ownRate, sampled := own.best(); sampled && local.usec > ownRate.ThrottledUsec {
			means += fmt.Sprintf("; %d µs more than its own cpu.stat counts, which is the part of a level above", local.usec-ownRate.ThrottledUsec)
		}
		f.Because = append(f.Because, local.evidence(c.nodeCase, means))
	}
	some, okSome := c.growthOf(own, pressureSome)
	full, okFull := c.growthOf(own, pressureFull)
	if okSome {
		f.Because = append(f.Because, some.evidence(c.nodeCase, "time in which at least one thread waited for a CPU, for a quota or for other threads: no thread waited longer"))
	}
	if okFull {
		f.Because = append(f.Because, full.evidence(c.nodeCase, "time in which all threads that were not asleep waited"))
	}
	switch {
	case okSome && okFull && full.usec <= some.usec:
		f.Arithmetic += fmt.Sprintf("; of %s all of its running threads stood still for %s (PSI full), at least one for %s (PSI some): a thread's wait is no longer than that", usec(float64(c.wallUsec)), usec(float64(full.usec)), usec(float64(some.usec)))
	case t.Throttled > 0 && own.limited():
		if cpus := c.cpusOf(k); cpus > 0 {
			_, stall := cgroup.BurstStall(own.max.Quota, own.max.Period, cpus, cpus)
			f.Arithmetic += fmt.Sprintf("; without PSI a thread's wait is only bounded: at most %s in each throttled period", usec(stall))
		}
	}
}

// cpusOf counts the CPUs a container may run on, 0 where that is not known.
func (c *podCase) cpusOf(k containerCPU) int {
	if set, err := k.own().group.CPUSetCPUsEffective(); err == nil && !set.IsEmpty() {
		return set.Size()
	}
	if c.object != nil {
		return int(min(max(c.object.Status.Capacity.Cpu().Value(), 0), 1<<16))
	}
	return 0
}
