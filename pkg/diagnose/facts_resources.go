package diagnose

import (
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// resources lays out limits, counters and use, level by level: the containers,
// then the pod and what is above it.
func (c *podCase) resources() *report.Resources {
	out := &report.Resources{QOSClass: string(c.pod.Status.QOSClass)}
	if c.first != nil {
		seconds := float64(c.wallUsec/1000) / 1000
		out.SampleSeconds = &seconds
	}
	if c.groupsErr != nil {
		return out
	}
	e := c.oom()
	for _, k := range c.cpu() {
		level := c.resourceLevel(k.own(), e.scopes[k.Name])
		if adj, arithmetic, err := c.oomScoreAdj(k.Name); err == nil {
			level.OOMScoreAdj, level.OOMScoreAdjRule = &adj, arithmetic
		}
		level.OOMScoreAdjLive = c.liveOOMScoreAdj(k.container)
		out.Containers = append(out.Containers, level)
	}
	for i, l := range c.shared() {
		events := e.slice
		if i > 0 {
			if l.group.Path == "/" {
				continue
			}
			events = groupEvents{}
			if i-1 < len(e.above) {
				events = e.above[i-1]
			}
		}
		out.Containers = append(out.Containers, c.resourceLevel(l, events))
	}
	return out
}

// oomScoreAdj is what the kubelet gives the container's processes.
func (c *podCase) oomScoreAdj(name string) (int, string, error) {
	if c.object == nil {
		return 0, "", errNoNode
	}
	return cgroup.OOMScoreAdj(c.pod, name, c.object.Status.Capacity.Memory().Value(), c.rules.Minor)
}

func (c *podCase) resourceLevel(l *cpuLevel, events groupEvents) report.ResourceLevel {
	return report.ResourceLevel{
		Name:   l.name,
		Level:  string(l.kind),
		Cgroup: l.group.Path,
		CPU:    c.cpuFacts(l),
		Memory: memoryFacts(l.group, events),
	}
}

func (c *podCase) cpuFacts(l *cpuLevel) *report.CPUFacts {
	f := report.CPUFacts{}
	if l.maxErr == nil {
		f.Quota = &report.Limit{Value: l.max.Quota, Unlimited: l.max.Max}
		f.Period = &l.max.Period
	}
	f.Weight = known(l.group.CPUWeight())
	if t, _ := l.best(); l.statErr == nil && t.HasBandwidth {
		throttled, periods := int64(t.Throttled), int64(t.Periods)
		f.Throttled, f.Periods = &throttled, &periods
	}
	if t, _ := l.best(); l.statErr == nil && t.HasUsage {
		f.Usage = &t.UsageUsec
	}
	f.Waiting = c.waited(l)
	if f == (report.CPUFacts{}) {
		return nil
	}
	return &f
}

// waited is the time some thread of the group waited for CPU (PSI some), in
// the sample or, without one, since the group was made.
func (c *podCase) waited(l *cpuLevel) *uint64 {
	now, err := l.group.Pressure("cpu")
	if err != nil || now.Some == nil {
		return nil
	}
	if c.first == nil {
		return &now.Some.Total
	}
	before, errA := cgroup.Group{FS: c.first.Files, Path: l.group.Path}.Pressure("cpu")
	after, errB := cgroup.Group{FS: c.last.Files, Path: l.group.Path}.Pressure("cpu")
	if errA != nil || errB != nil || before.Some == nil || after.Some == nil || after.Some.Total < before.Some.Total {
		return nil
	}
	waited := after.Some.Total - before.Some.Total
	return &waited
}

func memoryFacts(g cgroup.Group, events groupEvents) *report.MemoryFacts {
	f := report.MemoryFacts{
		Max: limit(g.MemoryMax()), High: limit(g.MemoryHigh()), Low: limit(g.MemoryLow()), Min: limit(g.MemoryMin()),
		Current: known(g.MemoryCurrent()), Peak: known(g.MemoryPeak()),
	}
	if stat, err := g.MemoryStat(); err == nil {
		f.Anon, f.File, f.Shmem = present(stat.Anon()), present(stat.File()), present(stat.Shmem())
		if v, _, ok := stat.Kernel(); ok {
			f.Kernel = &v
		}
		if f.Current != nil {
			f.WorkingSet = present(cgroup.WorkingSet(*f.Current, stat))
		}
	}
	get := events.inLocal
	if events.group.FS != nil && events.localErr != nil {
		get = events.inTree
	}
	if events.group.FS != nil {
		f.OOM, f.OOMKill, f.OOMGroupKill = present(get("oom")), present(get("oom_kill")), present(get("oom_group_kill"))
	}
	if f == (report.MemoryFacts{}) {
		return nil
	}
	return &f
}

func limit(l cgroup.Limit, err error) *report.Limit {
	if err != nil {
		return nil
	}
	return &report.Limit{Value: l.Bytes, Unlimited: l.Max}
}

func known(v uint64, err error) *uint64 {
	if err != nil {
		return nil
	}
	return &v
}

func present(v uint64, ok bool) *uint64 {
	if !ok {
		return nil
	}
	return &v
}
