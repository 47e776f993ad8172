package diagnose

import (
	"errors"
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuNotThrottled says that no quota holds a container back now, with the
// numbers that show it: no quota at any level that was read, or none that
// throttled in the sample.
//
// Where cgroups were not read the kubelet's own counters stand in.
func cpuNotThrottled(c *podCase) []report.Finding {
	out := c.quietByCounters()
	for _, k := range c.cpu() {
		if state, f := c.quiet(k); state == yes && !everThrottled(k) {
			out = append(out, f)
		}
	}
	return out
}

// everThrottled says whether the container's own counters, or those of a pod
// slice that repeats its limit, show throttling in its life.
func everThrottled(k containerCPU) bool {
	l := k.own()
	return l.life.Periods >= cgroup.LeastPeriods && l.life.Ratio >= throttledShare
}

// quiet says whether every level of the container is known not to throttle,
// and gives the finding that says so.
func (c *podCase) quiet(k containerCPU) (answer, report.Finding) {
	var because []report.Evidence
	said := "no quota on it or above it"
	known := false
	confidence := report.Proven
	for i, l := range k.levels {
		if i > 0 && l.maxErr != nil && l.statErr != nil {
			// An ancestor that was not read. The kubelet gives a pod a quota, what
			// is above it gets none; the root cannot have one.
			if l.kind == cgroup.Pod {
				confidence = report.Likely
			}
			continue
		}
		if l.maxErr != nil && (i == 0 || l.statErr != nil) {
			return unknown, report.Finding{}
		}
		if !l.limited() && l.maxErr == nil {
			if i == 0 {
				known = true
				because = append(because, c.fileEvidence(l.group.File("cpu.max"), "", l.max.String(), "no quota"))
			}
			continue
		}
		t, sampled := l.best()
		switch {
		case i > 0 && l.limited() && l.statErr != nil && isAbsent(l.statErr):
			confidence = report.Likely
			continue
		case l.statErr != nil || l.rateErr != nil && !sampled && t.Periods == 0 && !c.neverRan(l):
			return unknown, report.Finding{}
		case l.limited() && l.rateErr != nil && !errors.Is(l.rateErr, errNoSample):
			return unknown, report.Finding{} // two samples that make no rate: the last alone tells nothing of now
		case l.limited() && !hasPeriods(l) || sampled && tooFew(t):
			return unknown, report.Finding{}
		case sampled && t.Ratio >= throttledShare && t.Periods >= cgroup.LeastPeriods:
			if held, _ := c.heldBack(k); i > 0 && held == no {
				continue
			}
			return no, report.Finding{}
		case !sampled && t.Ratio >= throttledShare:
			return no, report.Finding{}
		}
		known = true
		if i <= 1 {
			because = append(because, c.throttleEvidence(l)...)
		}
		if i == 0 && sampled {
			said = fmt.Sprintf("%d of %s throttled within %s, limit %s", t.Throttled, plural(t.Periods, "period"), usec(float64(t.WallUsec)), l.max)
		} else if i == 0 {
			said = fmt.Sprintf("%d of %s throttled since the container's cgroup was made, limit %s", t.Throttled, plural(t.Periods, "period"), l.max)
		}
	}
	if !known {
		return unknown, report.Finding{}
	}
	if _, sampled := k.own().best(); k.own().limited() && !sampled {
		confidence = report.Likely
	}
	return yes, report.NewFinding(report.CPUNotThrottled, confidence, c.subject(k.Name),
		fmt.Sprintf("Container %s is not throttled: %s.", k.Name, said), because...)
}

// hasPeriods says whether cpu.stat counts periods: without the cpu controller,
// or cut off, it does not.
func hasPeriods(l *cpuLevel) bool {
	_, periods := l.stat.NrPeriods()
	_, throttled := l.stat.NrThrottled()
	return periods && throttled
}

// neverRan says whether the level's counters are all zero: no period ever began.
func (c *podCase) neverRan(l *cpuLevel) bool {
	p, ok := l.stat.NrPeriods()
	return ok && p == 0
}
