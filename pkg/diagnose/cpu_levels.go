package diagnose

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Thresholds of throttling (cgroup-and-oom, two-sample arithmetic).
const (
	// throttledShare of the periods is where throttling begins to be worth a
	// finding: a convention of this project, not of the kernel.
	throttledShare = 0.01
	// reachesQuota is the use of the quota from which the limit itself, not a
	// burst, is what holds a container back.
	reachesQuota = 0.95
)

// mostActive is how much longer than the sample its periods may add up to: files
// of one sample are read one after the other.
const mostActive = 1.5

// cpuLevel is the CPU controller of one cgroup on a container's way to the
// root: its quota, and what its counters say between the two samples, or since
// the group was made where there is one reading only.
type cpuLevel struct {
	kind  cgroup.Level
	name  string // the container's or the pod's name, else the group's path
	group cgroup.Group

	max    cgroup.CPUMax
	maxErr error
	// assumed: cpu.max was not read, and max is what the spec makes it.
	assumed bool
	stat    cgroup.CPUStat // the latest reading
	// statErr says why there is none.
	statErr error

	rate cgroup.Throttle
	// rateErr says why there is no rate: errNoSample, cgroup.ErrCounterReset, …
	rateErr error

	life cgroup.Throttle // since the group was made; Periods 0 if unknown
}

var errNoSample = errors.New("no second sample")

// limited says whether the level has a quota.
func (l *cpuLevel) limited() bool { return (l.maxErr == nil || l.assumed) && !l.max.Max }

// throttles says whether the level throttles, by the sample where there is
// one. sure is false where the reading is a life's total or the sample short.
func (l *cpuLevel) throttles() (yes, sure bool) {
	t, sampled := l.best()
	if t.Periods < cgroup.LeastPeriods {
		return false, false
	}
	return t.Ratio >= throttledShare, sampled && t.Periods >= cgroup.SurePeriods && !l.assumed
}

// best is the sample's rate, or the life's where there is no second sample.
func (l *cpuLevel) best() (t cgroup.Throttle, sampled bool) {
	if l.rateErr == nil {
		return l.rate, true
	}
	if errors.Is(l.rateErr, errNoSample) {
		return l.life, false
	}
	return cgroup.Throttle{}, false
}

// containerCPU is one container's levels, its own first.
type containerCPU struct {
	container
	levels []*cpuLevel
}

func (k *containerCPU) own() *cpuLevel { return k.levels[0] }

// cpuLevel reads one group's CPU controller. wants are what its files should
// hold, nil where nothing is written: counters without cpu.max are measured
// against that.
func (n *nodeCase) cpuLevel(kind cgroup.Level, name string, g cgroup.Group, wants func() []cgroup.FileValues) *cpuLevel {
	l := &cpuLevel{kind: kind, name: name, group: g}
	if l.max, l.maxErr = g.CPUMax(); l.maxErr != nil && g.Path != "/" {
		n.gaps.Miss(n.filePath(g.File("cpu.max")), l.maxErr, "the CPU limit in force at "+string(kind)+" "+name, "")
		if wants != nil {
			l.max, l.assumed = assumedMax(wants())
		}
	}
	if l.stat, l.statErr = g.CPUStat(); l.statErr != nil {
		if g.Path == "/" {
			l.rateErr = l.statErr
			return l
		}
		n.gaps.Miss(n.filePath(g.File("cpu.stat")), l.statErr, "whether "+string(kind)+" "+name+" is throttled", "")
		l.rateErr = l.statErr
		return l
	}
	quota, period := uint64(0), uint64(0)
	if l.limited() {
		quota, period = l.max.Quota, l.max.Period
	}
	latest := counters(l.stat)
	if life, err := cgroup.Lifetime(latest, quota, period); err == nil {
		l.life = life
	}
	l.rateErr = errNoSample
	if n.first == nil {
		return l
	}
	before, err := cgroup.Group{FS: n.first.Files, Path: g.Path}.CPUStat()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !isAbsent(err) {
			n.gaps.Miss(n.filePath(g.File("cpu.stat")), err, "the first of two samples of "+string(kind)+" "+name, "")
		}
		return l
	}
	after, err := cgroup.Group{FS: n.last.Files, Path: g.Path}.CPUStat()
	if err != nil {
		return l
	}
	l.rate, l.rateErr = cgroup.Throttling(counters(before), counters(after), n.wallUsec, quota, period)
	switch {
	case l.rateErr != nil:
	case l.maxChanged(n):
		l.rateErr = errMaxChanged
	case l.rate.ActiveShare > mostActive && l.rate.Periods >= cgroup.LeastPeriods:
		l.rateErr = fmt.Errorf("%s of %s do not fit into %s", plural(l.rate.Periods, "period"), usec(float64(l.max.Period)), usec(float64(n.wallUsec)))
	}
	switch {
	case l.rateErr != nil:
		n.gaps.Lack(n.filePath(g.File("cpu.stat")), l.rateErr.Error(), "how often "+l.label()+" was throttled between the samples", "two new samples")
	case l.limited() && tooFew(l.rate):
		n.gaps.Lack(n.filePath(g.File("cpu.stat")), fmt.Sprintf("%s in the sample, too few to tell", plural(l.rate.Periods, "period")),
			"whether "+l.label()+" is throttled", "a longer sample")
	}
	return l
}

// assumedMax is the quota that cpu.max should hold.
func assumedMax(wants []cgroup.FileValues) (cgroup.CPUMax, bool) {
	for _, w := range wants {
		if w.File != "cpu.max" || len(w.Accept) == 0 {
			continue
		}
		var m cgroup.CPUMax
		if n, err := fmt.Sscanf(w.Accept[0].Text, "%d %d", &m.Quota, &m.Period); err == nil && n == 2 && m.Quota > 0 && m.Period > 0 {
			return m, true
		}
	}
	return cgroup.CPUMax{}, false
}

// tooFew says that periods were cut short, but so few passed that nothing can
// be concluded.
func tooFew(t cgroup.Throttle) bool {
	return t.Periods < cgroup.LeastPeriods && t.Throttled > 0
}

var errMaxChanged = errors.New("cpu.max changed between the samples")

// maxChanged says whether the limit moved between the samples, where both hold it.
func (l *cpuLevel) maxChanged(n *nodeCase) bool {
	before, errA := cgroup.Group{FS: n.first.Files, Path: l.group.Path}.CPUMax()
	after, errB := cgroup.Group{FS: n.last.Files, Path: l.group.Path}.CPUMax()
	return errA == nil && errB == nil && before != after
}

func counters(s cgroup.CPUStat) cgroup.CPUCounters {
	var c cgroup.CPUCounters
	var p, t bool
	c.Periods, p = s.NrPeriods()
	c.Throttled, t = s.NrThrottled()
	c.HasBandwidth = p && t
	c.ThrottledUsec, _ = s.ThrottledUsec()
	c.UsageUsec, c.HasUsage = s.UsageUsec()
	return c
}

// sharedLevels reads the pod's level and those above it.
func (c *podCase) sharedLevels() []*cpuLevel {
	if c.groupsErr != nil {
		return nil
	}
	out := []*cpuLevel{c.cpuLevel(cgroup.Pod, c.pod.Name, c.groups.Pod, c.podWants)}
	for _, g := range c.groups.Ancestors {
		out = append(out, c.cpuLevel(cgroup.ParsePath(g.Path).Level, g.Path, g, nil))
	}
	return out
}

// analyseCPU reads the levels of every container whose cgroup stands.
func (c *podCase) analyseCPU() []containerCPU {
	var out []containerCPU
	for _, k := range c.containers() {
		g, ok := c.containerGroup(k.Name)
		if !ok {
			continue
		}
		levels := append([]*cpuLevel{c.cpuLevel(cgroup.Container, k.Name, g, func() []cgroup.FileValues { return c.containerWants(k.Name) })}, c.shared()...)
		out = append(out, containerCPU{container: k, levels: levels})
	}
	return out
}

// throttledNow says whether any level of the pod's containers throttles.
func (c *podCase) throttledNow() bool {
	for _, k := range c.cpu() {
		for _, l := range k.levels {
			if yes, _ := l.throttles(); yes {
				return true
			}
		}
	}
	return false
}

// oneConstraint says whether the pod's slice only repeats the container's own
// quota: the same value, and no other container of the pod that could use it.
// The two then are one limit with two meters.
func (c *podCase) oneConstraint(own, pod *cpuLevel) bool {
	if pod.kind != cgroup.Pod || !own.limited() || !pod.limited() || own.max != pod.max {
		return false
	}
	running := 0
	for _, k := range c.containers() {
		if _, stands := c.containerGroup(k.Name); stands {
			running++
		}
	}
	return running == 1
}

// label names a level for a reader.
func (l *cpuLevel) label() string {
	switch l.kind {
	case cgroup.Container:
		return "container " + l.name
	case cgroup.Pod:
		return "the pod's cgroup"
	default:
		return "cgroup " + l.name
	}
}

// throttleEvidence shows the quota and the counters of a level.
func (n *nodeCase) throttleEvidence(l *cpuLevel) []report.Evidence {
	var out []report.Evidence
	if l.maxErr == nil {
		means := "no quota"
		if l.limited() {
			means = fmt.Sprintf("%s: %s in each %s", l.label(), usec(float64(l.max.Quota)), usec(float64(l.max.Period)))
		}
		out = append(out, n.fileEvidence(l.group.File("cpu.max"), "", l.max.String(), means))
	}
	t, sampled := l.best()
	if l.statErr != nil {
		return out
	}
	field := func(key string, delta uint64, total string, what string) report.Evidence {
		means := what + " since the cgroup was made"
		if sampled {
			means = fmt.Sprintf("+%d in the sample: %s", delta, what)
		}
		return n.fileEvidence(l.group.File("cpu.stat"), key, total, means)
	}
	if v, ok := l.stat.NrThrottled(); ok {
		out = append(out, field("nr_throttled", t.Throttled, fmt.Sprint(v), "periods cut short"))
	}
	if v, ok := l.stat.NrPeriods(); ok {
		out = append(out, field("nr_periods", t.Periods, fmt.Sprint(v), "periods with something to run"))
	}
	if v, ok := l.stat.ThrottledUsec(); ok {
		out = append(out, field("throttled_usec", t.ThrottledUsec, fmt.Sprint(v), "µs throttled, summed over CPUs; not the wait of one thread"))
	}
	if v, ok := l.stat.UsageUsec(); ok {
		out = append(out, field("usage_usec", t.UsageUsec, fmt.Sprint(v), "µs of CPU used"))
	}
	return out
}
