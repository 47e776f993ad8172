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
		f := newFinding(report.CPUParentThrottled, confidence, c.subject(k.Name),
			fmt.Sprintf("Container %s is held back by %s, which was throttled in %d of %s (%s) %s; its own quota does not throttle it.",
				k.Name, worst.label(), t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), window))
		f.Because = append(c.throttleEvidence(worst), c.throttleEvidence(own)...)
		f.Because = append(f.Because, because...)
		f.Arithmetic = fmt.Sprintf("%d / %d = %s", t.Throttled, t.Periods, percent(t.Ratio))
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
// quota kept waiting: cpu.stat.local counts that (Linux 6.5 and later), PSI
// counts waiting of any cause.
func (c *podCase) heldBack(k containerCPU) (answer, []report.Evidence) {
	if c.first == nil {
		return unknown, nil
	}
	g := k.own().group
	before, after := cgroup.Group{FS: c.first.Files, Path: g.Path}, cgroup.Group{FS: c.last.Files, Path: g.Path}
	share := func(usec uint64) float64 { return float64(usec) / float64(c.wallUsec) }
	if a, err := before.CPUStatLocal(); err == nil {
		if b, err := after.CPUStatLocal(); err == nil {
			va, okA := a.ThrottledUsec()
			vb, okB := b.ThrottledUsec()
			if okA && okB && vb >= va {
				e := c.fileEvidence(g.File("cpu.stat.local"), "throttled_usec", fmt.Sprint(vb), fmt.Sprintf("+%d in the sample: its runnable threads waited for a quota, its own or one above", vb-va))
				if share(vb-va) >= throttledShare {
					return yes, []report.Evidence{e}
				}
				return no, nil
			}
		}
	}
	a, errA := before.Pressure("cpu")
	b, errB := after.Pressure("cpu")
	if errA == nil && errB == nil && a.Some != nil && b.Some != nil && b.Some.Total >= a.Some.Total {
		waited := b.Some.Total - a.Some.Total
		e := c.fileEvidence(g.File("cpu.pressure"), "some total", fmt.Sprint(b.Some.Total), fmt.Sprintf("+%d µs in the sample: its threads waited for CPU", waited))
		if share(waited) >= throttledShare {
			return unknown, []report.Evidence{e}
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
	r := report.Remedy{
		Summary: "Raise the pod's CPU limit (spec.resources.limits.cpu, or the sum of the containers' limits), or give the busy container a limit of its own.",
		Effect:  "All containers of the pod share this one quota: who spends it first makes the others wait.",
	}
	for _, k := range c.cpu() {
		if t, sampled := k.own().best(); sampled {
			r.Effect += fmt.Sprintf(" %s used %s.", k.Name, cores(t.UsedCPUs))
		}
	}
	return []report.Remedy{r}
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
