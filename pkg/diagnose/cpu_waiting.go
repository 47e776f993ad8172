package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// waitMeter is a counter of a group's waiting. None of them is the wait of one
// thread, and no two count the same:
//   - throttled_usec of cpu.stat sums the run queues of all CPUs, for the
//     group's own quota only;
//   - throttled_usec of cpu.stat.local sums them too, for its own quota and
//     those above, while something is queued (6.12 has it, 6.1 does not);
//   - PSI some is the time in which at least one thread waited, full the time in
//     which all did, for whatever keeps a CPU from them.
type waitMeter struct {
	file, field string
	read        func(cgroup.Group) (uint64, bool)
}

var (
	localThrottled = waitMeter{"cpu.stat.local", "throttled_usec", func(g cgroup.Group) (uint64, bool) {
		s, err := g.CPUStatLocal()
		if err != nil {
			return 0, false
		}
		return s.ThrottledUsec()
	}}
	pressureSome = waitMeter{"cpu.pressure", "some total", func(g cgroup.Group) (uint64, bool) {
		p, err := g.Pressure("cpu")
		if err != nil || p.Some == nil {
			return 0, false
		}
		return p.Some.Total, true
	}}
	pressureFull = waitMeter{"cpu.pressure", "full total", func(g cgroup.Group) (uint64, bool) {
		p, err := g.Pressure("cpu")
		if err != nil || p.Full == nil {
			return 0, false
		}
		return p.Full.Total, true
	}}
)

// growth is what a meter counted in the sample.
type growth struct {
	meter waitMeter
	level *cpuLevel
	usec  uint64
	total uint64
}

// growthOf reads a meter twice; false where one of the readings is missing or
// it went down.
func (n *nodeCase) growthOf(l *cpuLevel, m waitMeter) (growth, bool) {
	if n.first == nil {
		return growth{}, false
	}
	before, okA := m.read(cgroup.Group{FS: n.first.Files, Path: l.group.Path})
	after, okB := m.read(cgroup.Group{FS: n.last.Files, Path: l.group.Path})
	if !okA || !okB || after < before {
		return growth{}, false
	}
	return growth{meter: m, level: l, usec: after - before, total: after}, true
}

func (g growth) evidence(n interface {
	fileEvidence(path, field, value, means string) report.Evidence
}, means string) report.Evidence {
	return n.fileEvidence(g.level.group.File(g.meter.file), g.meter.field, fmt.Sprint(g.total), fmt.Sprintf("+%d µs in the sample: %s", g.usec, means))
}
