package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Shares from which waiting without throttling is worth a finding
// (cgroup-and-oom, not throttled but slow); conventions of this project.
const (
	// waitingShare of the time, in which a thread waited for a CPU.
	waitingShare = 0.1
	// busyShare of the time, in which CPUs had something to run.
	busyShare = 0.9
	// idleShare of a node's CPU time, which a container that waits could use.
	idleShare = 0.2
	// runnableShare of the CPUs that a container may run on is the use from
	// which a sibling counts as one that wants them.
	runnableShare = 0.01
)

// contention is a container that waits for CPUs while no quota holds it back.
type contention struct {
	containerCPU
	waited   float64 // the share of the time in which a thread waited
	window   string  // the time that waited speaks of
	sampled  bool    // false: waited is the kernel's average, there are no two samples
	pressure []report.Evidence
	sure     bool // no level's quota can be what it waits for

	set       cpuset.CPUSet // the CPUs it may run on; empty where not known
	setKnown  bool
	used      float64 // CPUs
	usedKnown bool

	busy          float64 // the share of the time in which the CPUs of set were busy
	busyKnown     bool
	nodeIdle      float64 // the share of all CPUs' time that nothing used
	nodeIdleKnown bool
	others        cpuset.CPUSet // the node's CPUs that it may not run on
	before, after cgroup.CPUTimes
	times         []report.Evidence

	rungs []rung
}

// maxContended bounds the containers of a pod whose neighbours are looked at.
const maxContended = 64

// contentions are the pod's containers that wait for CPUs without being
// throttled.
func (c *podCase) contentions() []contention {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	var out []contention
	for _, k := range c.cpu() {
		if w, ok := c.waits(k); ok && len(out) < maxContended {
			out = append(out, w)
		}
	}
	return out
}

// waits says whether a container waits for CPUs, not for a quota.
func (c *podCase) waits(k containerCPU) (contention, bool) {
	w := contention{containerCPU: k, sure: true}
	unread := false
	for i, l := range k.levels {
		switch held, known := l.heldByQuota(); {
		case held, !known && (i == 0 || l.limited()):
			return w, false
		case !known && l.kind == cgroup.Pod:
			w.sure = false // the kubelet sets quotas on pods, not above them
			if c.givesPodQuota() {
				unread = true
			}
		}
	}
	// cpu.stat.local counts waiting for a quota at any level.
	if local, ok := c.growthOf(k.own(), localThrottled); ok {
		if share(local.usec, c.wallUsec) >= throttledShare {
			return w, false
		}
		w.sure = true
	}
	if unread && !w.sure {
		return w, false
	}
	if !c.readPressure(&w) {
		return w, false
	}
	if set, err := k.own().group.CPUSetCPUsEffective(); err == nil && !set.IsEmpty() {
		w.set, w.setKnown = set, true
	}
	if t, sampled := k.own().best(); sampled && t.HasUsage {
		w.used, w.usedKnown = t.UsedCPUs, true
	}
	c.readTimes(&w)
	w.rungs = c.climb(w)
	return w, true
}

// givesPodQuota says whether the pod's spec makes the kubelet give its cgroup a
// quota.
func (c *podCase) givesPodQuota() bool {
	for _, want := range c.podWants() {
		if want.File == "cpu.max" && slices.ContainsFunc(want.Accept, func(v cgroup.Value) bool { return !strings.HasPrefix(v.Text, "max ") }) {
			return true
		}
	}
	return false
}

// heldByQuota says whether the level has cut periods short. known is false
// where its counters do not tell.
func (l *cpuLevel) heldByQuota() (held, known bool) {
	t, sampled := l.best()
	switch {
	case l.maxErr == nil && l.max.Max:
		return false, true
	case l.statErr != nil || !hasPeriods(l):
		return false, false
	case !sampled && l.rateErr != nil && l.rateErr != errNoSample:
		return false, false
	case !sampled && t.Periods == 0:
		p, _ := l.stat.NrPeriods()
		return false, p == 0
	case t.Periods < cgroup.LeastPeriods:
		return false, t.Throttled == 0
	}
	return t.Ratio >= throttledShare, true
}

// readPressure reads how long the container's threads waited; false where they
// did not wait long or that is not known.
func (c *podCase) readPressure(w *contention) bool {
	l := w.own()
	file := l.group.File("cpu.pressure")
	now, err := l.group.Pressure("cpu")
	if err != nil || now.Some == nil {
		// An idle container waits for nothing.
		if l.rateErr == nil && l.rate.UsedCPUs >= runnableShare {
			costs := "whether " + l.label() + " waits for a CPU that others use"
			if errors.Is(err, fs.ErrNotExist) {
				c.gaps.Lack(c.filePath(file), "NotFound: the kernel keeps no pressure stall information", costs, "boot with psi=1")
			}
			c.gaps.Miss(c.filePath(file), err, costs, "boot with psi=1")
		}
		return false
	}
	if c.first == nil {
		// Averages of the kernel: the last minute, if it has gone on for a while.
		w.waited, w.window = min(now.Some.Avg60, now.Some.Avg300)/100, "the last minute"
		w.pressure = []report.Evidence{c.fileEvidence(file, "some avg60", fmt.Sprintf("%.2f", now.Some.Avg60), "percent of the last 60 s in which a thread waited for a CPU"),
			c.fileEvidence(file, "some avg300", fmt.Sprintf("%.2f", now.Some.Avg300), "percent of the last 300 s")}
		return w.waited >= waitingShare
	}
	some, ok := c.growthOf(l, pressureSome)
	if !ok {
		return false
	}
	w.sampled = true
	w.waited, w.window = share(some.usec, c.wallUsec), usec(float64(c.wallUsec))
	w.pressure = []report.Evidence{some.evidence(c, "time in which at least one thread waited for a CPU")}
	if full, ok := c.growthOf(l, pressureFull); ok {
		w.pressure = append(w.pressure, full.evidence(c, "time in which all threads that were not asleep waited"))
	}
	return w.waited >= waitingShare
}

// readTimes reads how busy the CPUs were.
func (c *podCase) readTimes(w *contention) {
	if c.first == nil {
		return
	}
	before, err := cgroup.ReadCPUTimes(c.first.Files)
	after, errAfter := cgroup.ReadCPUTimes(c.last.Files)
	if err = cmp.Or(err, errAfter); err != nil {
		c.gaps.Miss(c.filePath("proc/stat"), err, "whether the CPUs that "+w.own().label()+" waits for are busy", "the node pod")
		return
	}
	w.before, w.after = before, after
	all, ok := before.Usage(after, after.CPUs())
	if w.nodeIdleKnown = ok; ok {
		w.nodeIdle = 1 - all.BusyShare()
	}
	if !w.setKnown {
		return
	}
	if u, ok := before.Usage(after, w.set); ok {
		w.busy, w.busyKnown = u.BusyShare(), true
		w.times = append(w.times, c.timesEvidence(w.set, u, fmt.Sprintf("the CPUs the container may use were %s busy", percent(w.busy))))
	}
	if others := after.CPUs().Difference(w.set); !others.IsEmpty() {
		w.others = others
		if u, ok := before.Usage(after, others); ok {
			w.times = append(w.times, c.timesEvidence(others, u, fmt.Sprintf("the node's other CPUs: %s of %d idle", cores(u.IdleCPUs), others.Size())))
		}
	}
}

func (c *podCase) timesEvidence(set cpuset.CPUSet, u cgroup.CPUUsage, means string) report.Evidence {
	return c.fileEvidence("proc/stat", "cpu"+set.String(), fmt.Sprintf("+%d busy, +%d idle", u.Busy, u.Idle), "ticks in the sample: "+means)
}

// idleOf is how many of some CPUs were idle in the sample.
func (w *contention) idleOf(set cpuset.CPUSet) float64 {
	u, _ := w.before.Usage(w.after, set)
	return u.IdleCPUs
}

// due is the part of the CPU time that weights make sure of, and known says
// whether every weight on the way was read.
func (w *contention) due() (part float64, known bool) {
	part, known = 1, true
	for _, r := range w.rungs {
		part *= r.share
		known = known && r.weightErr == nil
	}
	return part, known && len(w.rungs) > 0
}

// complete says whether every sibling's use and weight is known.
func (w *contention) complete() bool {
	return !slices.ContainsFunc(w.rungs, func(r rung) bool { return r.unknown > 0 || r.weightErr != nil })
}

// outweighed says whether somewhere on the way a sibling that ran has more
// weight.
func (w *contention) outweighed() bool {
	return slices.ContainsFunc(w.rungs, func(r rung) bool {
		return r.weightErr == nil && slices.ContainsFunc(r.rivals, func(o rival) bool { return o.weight > r.weight })
	})
}

// fills says whether the container itself uses nearly all of the CPUs it may
// run on: what it lacks then is CPUs, whatever its neighbours do.
func (w *contention) fills() bool {
	return w.usedKnown && w.setKnown && w.used >= busyShare*float64(w.set.Size())
}

func share(usec, wallUsec uint64) float64 {
	if wallUsec == 0 {
		return 0
	}
	return float64(usec) / float64(wallUsec)
}
