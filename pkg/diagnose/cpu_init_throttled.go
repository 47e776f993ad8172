package diagnose

import (
	"fmt"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// startWindow is how long after its start a container counts as starting: a
// convention of this project.
const startWindow = 2 * time.Minute

// cpuInitThrottled speaks of throttling that belongs to the start of a pod:
// that of an init container, and that of a young container which has started
// and runs below its limit since. What the counters do not prove to lie at the
// start is left to cpu-throttle-history-only.
func cpuInitThrottled(c *podCase) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	out := c.goneInitThrottled()
	for _, k := range c.cpu() {
		own := k.own()
		if k.init && !k.sidecar {
			if l, _ := c.quotaMeters(k); l != nil {
				if yes, sure := l.throttles(); yes {
					out = append(out, c.runningInitThrottled(k, l, sure))
				}
			}
			continue
		}
		if age, ok := c.startThrottled(k); ok {
			f := report.NewFinding(report.CPUInitThrottled, report.Proven, c.subject(k.Name),
				fmt.Sprintf("Container %s was throttled only while it started: in %d of %s (%s) of its first %s, and in none of %s since.",
					k.Name, own.life.Throttled-own.rate.Throttled, plural(own.life.Periods-own.rate.Periods, "period"), percent(ratio(own.life.Throttled-own.rate.Throttled, own.life.Periods-own.rate.Periods)),
					age.Round(time.Second), plural(own.rate.Periods, "period")))
			f.Because = append(c.throttleEvidence(own),
				c.podField(k.field("status")+".state.running.startedAt", utc(k.status.State.Running.StartedAt.Time), "the start; the first sample was taken "+utc(c.first.Time)))
			f.Arithmetic = fmt.Sprintf("nr_throttled %d − 0 in the sample, nr_periods %d − %d in the sample", own.life.Throttled, own.life.Periods, own.rate.Periods)
			f.Remedies = startRemedies(k.Name)
			out = append(out, f)
		}
	}
	return out
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func startRemedies(container string) []report.Remedy {
	return []report.Remedy{{
		Summary: fmt.Sprintf("Nothing, if the start may take as long; else raise limits.cpu of container %s.", container),
		Effect:  "The start is shorter. An in-place resize can lower the limit again once it runs (Kubernetes 1.33 and later).",
	}}
}

// startThrottled says whether all throttling of a container's life lies in its
// first moments, and how long these were: it was younger than startWindow at the
// first sample, and none of the periods since was cut short.
func (c *podCase) startThrottled(k containerCPU) (time.Duration, bool) {
	own := k.own()
	if !k.running() || c.first == nil || !c.first.HasTime || own.rateErr != nil || !everThrottled(k) || c.throttledNow() {
		return 0, false
	}
	age := c.first.Time.Sub(k.status.State.Running.StartedAt.Time)
	if age < 0 || age > startWindow || own.rate.Throttled != 0 || own.rate.Periods < cgroup.LeastPeriods {
		return 0, false
	}
	state, _ := c.quiet(k)
	return age, state == yes
}

// runningInitThrottled speaks of an init container that runs now.
func (c *podCase) runningInitThrottled(k containerCPU, l *cpuLevel, sure bool) report.Finding {
	t, sampled := l.best()
	confidence, window := report.Likely, "since its cgroup was made"
	if sampled {
		window = "within " + usec(float64(t.WallUsec))
	}
	if sure {
		confidence = report.Proven
	}
	f := report.NewFinding(report.CPUInitThrottled, confidence, c.subject(k.Name),
		fmt.Sprintf("Init container %s is throttled in %d of %s (%s) %s: the pod starts later for its limit of %s, which ends with it.",
			k.Name, t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), window, cores(float64(l.max.Quota)/float64(l.max.Period))))
	f.Because = c.throttleEvidence(l)
	f.Arithmetic = fmt.Sprintf("%d / %d = %s", t.Throttled, t.Periods, percent(t.Ratio))
	f.Remedies = startRemedies(k.Name)
	return f
}

// goneInitThrottled reads the throttling of finished init containers off the
// pod's cgroup, which outlives theirs. A throttled period has spent the quota;
// what the groups that still stand have used in all their life cannot have spent
// it so often, so the rest was the init containers'.
func (c *podCase) goneInitThrottled() []report.Finding {
	pod := c.shared()[0]
	if !pod.limited() || pod.statErr != nil || pod.life.Periods == 0 || !pod.life.HasUsage {
		return nil
	}
	if yes, _ := pod.throttles(); yes && pod.rateErr == nil {
		return nil // throttled now: not only the start
	}
	var inits []container
	for _, k := range c.containers() {
		_, stands := c.containerGroup(k.Name)
		switch {
		case k.init && !k.sidecar && k.end() != nil && !stands:
			inits = append(inits, k)
		case k.init && !k.sidecar:
		case k.status != nil && k.status.RestartCount > 0:
			return nil // an earlier run of it may have spent the quota
		case k.status != nil && k.end() != nil && !stands:
			return nil
		}
	}
	if len(inits) == 0 || len(c.pod.Spec.EphemeralContainers) > 0 {
		return nil
	}
	// The sandbox and containers that the status does not name stand too.
	var standing uint64
	for _, k := range c.groups.Containers {
		used, ok := usedTotal(k.Group)
		if !ok {
			return nil
		}
		standing += used
	}
	for _, g := range c.groups.Unknown {
		used, ok := usedTotal(g)
		if !ok {
			return nil
		}
		standing += used
	}
	// Slices that lie unused are spent quota too.
	cpus := 1
	if set, err := c.groups.Pod.CPUSetCPUsEffective(); err == nil && !set.IsEmpty() {
		cpus = set.Size()
	} else if c.object != nil {
		cpus = max(1, int(min(c.object.Status.Capacity.Cpu().Value(), 4096)))
	}
	least := pod.max.Quota - min(pod.max.Quota, cgroup.StrandedUsec(cpus))
	if least == 0 {
		return nil
	}
	byStanding := standing/least + 1
	if pod.life.Throttled <= byStanding || pod.life.Throttled-byStanding < cgroup.LeastPeriods {
		return nil
	}
	atLeast := pod.life.Throttled - byStanding
	subject, who := c.subject(""), "init containers"
	if len(inits) == 1 {
		subject, who = c.subject(inits[0].Name), "init container "+inits[0].Name
	}
	f := report.NewFinding(report.CPUInitThrottled, report.Proven, subject,
		fmt.Sprintf("The pod's quota of %s throttled its %s in at least %s while the pod started; the cgroups that stand now cannot have used so much.",
			cores(float64(pod.max.Quota)/float64(pod.max.Period)), who, plural(atLeast, "period")))
	f.Because = c.throttleEvidence(pod)
	for _, k := range inits {
		f.Because = append(f.Because, c.endEvidence(k, "an init container that has ended; its cgroup and counters are gone"))
	}
	f.Arithmetic = fmt.Sprintf("%d periods throttled; %d µs used by the cgroups that stand / (%d µs − %d µs that %d CPUs may leave unused) < %d periods; %d − %d = %d",
		pod.life.Throttled, standing, pod.max.Quota, pod.max.Quota-least, cpus, byStanding, pod.life.Throttled, byStanding, atLeast)
	f.Remedies = startRemedies(inits[0].Name)
	return []report.Finding{f}
}

// usedTotal is all CPU time that a group has used.
func usedTotal(g cgroup.Group) (uint64, bool) {
	stat, err := g.CPUStat()
	if err != nil {
		return 0, false
	}
	return stat.UsageUsec()
}
