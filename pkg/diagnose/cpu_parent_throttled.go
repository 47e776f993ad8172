package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuParentThrottled speaks of containers that a cgroup above throttles while
// their own quota does not: a pod-level limit, a pod's sum used up by a
// neighbour, or a quota that someone set higher up. A container that wants no
// CPU is not held back by it.
func cpuParentThrottled(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.cpu() {
		own := k.own()
		if yes, _ := own.throttles(); yes {
			continue
		}
		var worst *cpuLevel
		for _, l := range k.levels[1:] {
			if yes, _ := l.throttles(); !yes || c.oneConstraint(own, l) {
				continue
			}
			if worst == nil || ratioOf(l) > ratioOf(worst) {
				worst = l
			}
		}
		if worst == nil {
			continue
		}
		held, because := c.heldBack(k)
		if held == no {
			continue
		}
		t, sampled := worst.best()
		confidence := report.Likely
		if _, sure := worst.throttles(); sure && held == yes {
			confidence = report.Proven
		}
		window := "since it was made"
		if sampled {
			window = "within " + usec(float64(t.WallUsec))
		}
		f := report.NewFinding(report.CPUParentThrottled, confidence, c.subject(k.Name),
			fmt.Sprintf("Container %s is held back by %s, which was throttled in %d of %s (%s) %s; its own quota does not throttle it.",
				k.Name, worst.label(), t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), window))
		f.Because = append(c.throttleEvidence(worst), c.throttleEvidence(own)...)
		f.Because = append(f.Because, because...)
		f.Arithmetic = fmt.Sprintf("%d / %d = %s", t.Throttled, t.Periods, percent(t.Ratio))
		if t.HasUsage && t.Periods > 0 {
			f.Arithmetic += fmt.Sprintf("; %d µs used / (%d × %d µs) = %s of the quota", t.UsageUsec, t.Periods, worst.max.Quota, percent(t.UsedOfQuota))
		}
		if t.Throttled > 0 {
			f.Arithmetic += fmt.Sprintf("; %d µs / %d = %s of run-queue time per throttled period", t.ThrottledUsec, t.Throttled, usec(t.MeanStallUsec))
		}
		if worst.kind == cgroup.Pod {
			f.Because = append(f.Because, c.sharersEvidence(k)...)
		}
		c.explainScaled(worst, &f)
		f.Remedies = c.parentRemedies(worst)
		out = append(out, f)
	}
	return out
}

func ratioOf(l *cpuLevel) float64 { t, _ := l.best(); return t.Ratio }

// answer is yes, no, or not known.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// heldBack says whether the container had something to run that an ancestor's
// quota kept waiting: cpu.stat.local counts that (6.12 has it, 6.1 does not), PSI
// counts waiting of any cause.
func (c *podCase) heldBack(k containerCPU) (answer, []report.Evidence) {
	if local, ok := c.growthOf(k.own(), localThrottled); ok {
		if share(local.usec, c.wallUsec) >= throttledShare {
			return yes, []report.Evidence{local.evidence(c.nodeCase, "run-queue time with something to run under a quota, its own or one above, summed over CPUs")}
		}
		return no, nil
	}
	if some, ok := c.growthOf(k.own(), pressureSome); ok {
		if share(some.usec, c.wallUsec) >= throttledShare {
			return unknown, []report.Evidence{some.evidence(c.nodeCase, "time in which at least one of its threads waited for a CPU, for whatever cause")}
		}
		return no, nil
	}
	if t, sampled := k.own().best(); sampled && t.UsageUsec == 0 {
		return no, nil
	}
	return unknown, nil
}

func (c *podCase) parentRemedies(l *cpuLevel) []report.Remedy {
	if l.kind != cgroup.Pod {
		return []report.Remedy{{
			Summary: "Find who set a CPU quota on " + l.name + ": the kubelet sets none above a pod.",
			Command: "systemctl show -p CPUQuotaPerSecUSec -p DropInPaths " + unitOf(l.group.Path),
		}}
	}
	const limits = "the pod's CPU limit (spec.resources.limits.cpu, or the sum of the containers' limits)"
	t, _ := l.best()
	var out []report.Remedy
	if t.HasUsage && t.UsedOfQuota < reachesQuota {
		threads := 0
		if n, err := l.group.PIDsCurrent(); err == nil && n < 1<<22 {
			threads = int(n)
		}
		out = c.fitRemedies(limits, l, t, threads, c.podCPUs())
	} else {
		limit := float64(l.max.Quota) / float64(l.max.Period)
		out = []report.Remedy{{
			Summary: fmt.Sprintf("Raise %s to at least %s, then measure again.", limits, cores(limit*1.5)),
			Effect:  "How much the pod would use is not known while it stands at its limit; one and a half times the limit is a first step, not an estimate.",
		}}
	}
	r := report.Remedy{
		Summary: "Or give the busy container a limit of its own.",
		Effect:  "All containers of the pod share this one quota: who spends it first makes the others wait.",
	}
	for _, k := range c.cpu() {
		if t, sampled := k.own().best(); sampled {
			r.Effect += fmt.Sprintf(" %s used %s.", k.Name, cores(t.UsedCPUs))
		}
	}
	return append(out, r)
}

// podCPUs counts the CPUs that some container of the pod may run on, 0 where
// that is not known.
func (c *podCase) podCPUs() int {
	most := 0
	for _, k := range c.cpu() {
		n := c.cpusOf(k)
		if n == 0 {
			return 0
		}
		most = max(most, n)
	}
	return most
}

// sharersEvidence says what the pod's other containers used of its quota.
func (c *podCase) sharersEvidence(k containerCPU) []report.Evidence {
	var out []report.Evidence
	for _, o := range c.cpu() {
		t, sampled := o.own().best()
		total, ok := o.own().stat.UsageUsec()
		if o.Name == k.Name || !sampled || !t.HasUsage || !ok {
			continue
		}
		out = append(out, c.fileEvidence(o.own().group.File("cpu.stat"), "usage_usec", fmt.Sprint(total),
			fmt.Sprintf("+%d µs in the sample: container %s used %s of the same quota", t.UsageUsec, o.Name, cores(t.UsedCPUs))))
	}
	return out
}

// unitOf is the systemd unit of a cgroup path.
func unitOf(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}
