package diagnose

import (
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/kubeletstats"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Usage is what the kubelets of nodes told of the use of cgroups, by node.
type Usage map[string]kubeletstats.Reading

// ReadUsage reads the kubelets' metrics of a snapshot. Together with what an
// earlier snapshot told, nil for none, its counters make rates. A node whose
// kubelet did not answer keeps what it told before, for the next time.
func ReadUsage(s *snapshot.Snapshot, earlier Usage) Usage {
	out := Usage{}
	names := s.NodeNames()
	pods, _ := s.Pods() // of nodes of which nothing could be read
	for i := range pods {
		names = append(names, pods[i].Spec.NodeName)
	}
	for _, name := range names {
		if _, done := out[name]; done || name == "" {
			continue
		}
		if told, ok := toldUsage(s, name); ok {
			out[name] = earlier[name].After(told)
		} else if old, ok := earlier[name]; ok {
			out[name] = old
		}
	}
	return out
}

func toldUsage(s *snapshot.Snapshot, node string) (map[kubeletstats.Cgroup]kubeletstats.Counters, bool) {
	data, err := s.Node(node).File("metrics-cadvisor.txt")
	if err != nil {
		return nil, false
	}
	told, _ := kubeletstats.Read(string(data)) // what can be read of it
	return told, true
}

// kubeletUse is what the kubelet of a node tells where its files were not read.
type kubeletUse struct {
	reading kubeletstats.Reading
	recent  map[kubeletstats.Cgroup]kubeletstats.Recent
}

// readUse reads it. Counters of another snapshot stand in for none: they would be
// shown as this one's.
func (n *nodeCase) readUse(known Usage) kubeletUse {
	var use kubeletUse
	if _, err := n.files.File("metrics-cadvisor.txt"); err == nil {
		if use.reading = known[n.name]; use.reading == nil {
			if told, ok := toldUsage(n.snap, n.name); ok {
				use.reading = kubeletstats.Reading(nil).After(told)
			}
		}
	} else if n.name != "" {
		n.gaps.Miss("nodes/"+n.name+"/metrics-cadvisor.txt", err, "CPU time, throttling and memory of the containers", "get nodes/proxy (kubelet /metrics/cadvisor)")
	}
	if data, err := n.files.File("stats-summary.json"); err == nil {
		use.recent, _ = kubeletstats.ReadRecent(data) // n.stats tells what is wrong with it
	}
	return use
}

// pair is the counters of one of the pod's cgroups, not those of an earlier pod of
// its name.
func (u kubeletUse) pair(c *podCase, container string) (kubeletstats.Pair, bool) {
	p, ok := u.reading[kubeletstats.Cgroup{Namespace: c.pod.Namespace, Pod: c.pod.Name, Container: container}]
	return p, ok && p.Last.IsOf(c.uid)
}

// fill sets what the kubelet tells of a pod's row or, with a name, a container's.
func (u kubeletUse) fill(r *report.TopPod, c *podCase, container string) {
	var names []string
	for _, k := range c.containers() {
		if !k.finished() && (container == "" || k.Name == container) {
			names = append(names, k.Name)
		}
	}
	own, ok := u.pair(c, container)
	if !ok {
		own = kubeletstats.Pair{}
	}
	if seconds, two := own.Seconds(); two {
		r.SampleSeconds = &seconds
	}
	recent := u.recent[kubeletstats.Cgroup{Namespace: c.pod.Namespace, Pod: c.pod.Name, Container: container}]
	r.CPU.Used, r.CPU.Over = used(own, recent)
	r.CPU.Waiting = waited(own, func(c kubeletstats.Counters) float64 { return c.CPUWaiting }, recent.CPU)
	r.CPU.Throttled = u.throttled(c, names)
	if !ok {
		return
	}
	last := own.Last
	if quota, limited := kubeletstats.Whole(last.Quota); kubeletstats.Known(last.Period) {
		r.CPU.Quota = &report.Limit{Value: quota, Unlimited: !limited}
		if period, ok := kubeletstats.Whole(last.Period); ok {
			r.CPU.Period = &period
		}
	}
	r.Memory = u.memory(c, own, container == "", append([]string{""}, names...))
	kills := uint64(0)
	for _, name := range append([]string{""}, names...) {
		if p, ok := u.pair(c, name); ok {
			n, _ := kubeletstats.Whole(p.Last.OOMKills)
			kills += n
		}
	}
	if kills > 0 {
		r.OOMKills, r.OOMKillsAtLeast = &kills, true
	}
}

// used is CPU time in a second: of the sample, else as the kubelet averages it.
func used(p kubeletstats.Pair, recent kubeletstats.Recent) (*float64, report.Window) {
	if rate, ok := p.Rate(func(c kubeletstats.Counters) float64 { return c.CPU }); ok {
		return &rate, ""
	}
	if recent.NanoCores == nil {
		return nil, ""
	}
	cpus := float64(*recent.NanoCores) / 1e9
	return &cpus, report.OverKubelet
}

// waited is the part of the time in which some task waited.
func waited(p kubeletstats.Pair, of func(kubeletstats.Counters) float64, avg10 *float64) *report.TopWaiting {
	if rate, ok := p.Rate(of); ok {
		return &report.TopWaiting{Share: min(rate, 1), Over: report.OverSample}
	}
	if avg10 == nil {
		return nil
	}
	return &report.TopWaiting{Share: min(*avg10/100, 1), Over: report.OverAvg10}
}

// throttled is the cgroup, of the containers and the pod, whose quota cuts it
// short most. The kubelet gives none above.
func (u kubeletUse) throttled(c *podCase, containers []string) *report.TopThrottled {
	out := report.TopThrottled{}
	told := 0
	for _, name := range append(containers, "") {
		p, ok := u.pair(c, name)
		if !ok || !kubeletstats.Known(p.Last.Period) {
			out.AtLeast = true
			continue
		}
		told++
		if !kubeletstats.Known(p.Last.Quota) {
			continue
		}
		periods, over, ok := throttledOf(p)
		if !ok {
			out.AtLeast = true
			continue
		}
		ratio := 0.0
		if periods.all > 0 {
			ratio = min(float64(periods.throttled)/float64(periods.all), 1)
		}
		if out.Share != nil && ratio <= *out.Share {
			continue
		}
		level, container := cgroup.Container, name
		if name == "" {
			if container = u.repeats(c, p); container == "" {
				level = cgroup.Pod
			}
		}
		out = report.TopThrottled{Share: &ratio, AtLeast: out.AtLeast, Throttled: &periods.throttled, Periods: &periods.all, Over: over,
			Level: string(level), Container: container, Cgroup: p.Last.ID}
	}
	if out.Share == nil {
		if out.AtLeast || told == 0 {
			return nil
		}
		out.Unlimited = true
	}
	return &out
}

// repeats is the only container of the pod, if the pod's quota is that
// container's.
func (u kubeletUse) repeats(c *podCase, pod kubeletstats.Pair) string {
	all := c.containers()
	if len(all) != 1 {
		return ""
	}
	p, ok := u.pair(c, all[0].Name)
	if !ok || p.Last.Quota != pod.Last.Quota || p.Last.Period != pod.Last.Period {
		return ""
	}
	return all[0].Name
}

type countedPeriods struct{ throttled, all uint64 }

// throttledOf counts the periods of the sample, else those since the cgroup was
// made.
func throttledOf(p kubeletstats.Pair) (countedPeriods, report.Window, bool) {
	all, okAll := p.Growth(func(c kubeletstats.Counters) float64 { return c.Periods })
	cut, okCut := p.Growth(func(c kubeletstats.Counters) float64 { return c.Throttled })
	over := report.OverSample
	if !okAll || !okCut {
		all, cut, over = p.Last.Periods, p.Last.Throttled, report.OverLifetime
	}
	periods, ok := kubeletstats.Whole(all)
	throttled, okThrottled := kubeletstats.Whole(cut)
	return countedPeriods{throttled, periods}, over, ok && okThrottled
}

// memory is the use of own, and of the cgroups the one whose anonymous memory is
// the largest share of its limit: at least that much cannot be freed. In the row
// of a pod its cgroup counts as the container's whose limit it repeats.
func (u kubeletUse) memory(c *podCase, own kubeletstats.Pair, ofPod bool, cgroups []string) report.TopMemory {
	out := report.TopMemory{}
	if current, ok := kubeletstats.Whole(own.Last.Memory); ok {
		out.Current = &current
	}
	out.Max = limitOf(own.Last)
	if out.Current != nil && out.Max != nil && out.Max.Value > 0 {
		part := float64(*out.Current) / float64(out.Max.Value)
		out.Share = &part
	}
	var most *report.TopNonReclaimable
	unsure := false
	for _, name := range cgroups {
		p, ok := u.pair(c, name)
		max := limitOf(p.Last)
		anon, okAnon := kubeletstats.Whole(p.Last.Anon)
		switch {
		case !ok || max == nil || !okAnon:
			unsure = true
			continue
		case max.Unlimited:
			continue
		}
		part := float64(anon) / float64(max.Value)
		if most != nil && part <= *most.Share {
			continue
		}
		most = &report.TopNonReclaimable{Share: &part, AtLeast: true, Bytes: &anon, Max: max, Cgroup: p.Last.ID, Level: string(cgroup.Container), Container: name}
		if name == "" {
			most.Level = string(cgroup.Pod)
			if only := u.repeatsLimit(c, max); ofPod && only != "" {
				most.Level, most.Container = string(cgroup.Container), only
			}
		}
	}
	anon, ok := kubeletstats.Whole(own.Last.Anon)
	switch {
	case most != nil:
		out.NonReclaimable = most
	case !unsure && ok:
		out.NonReclaimable = &report.TopNonReclaimable{AtLeast: true, Bytes: &anon, Max: &report.Limit{Unlimited: true}}
	}
	return out
}

// repeatsLimit is the only container of the pod, if the pod's memory limit is that
// container's.
func (u kubeletUse) repeatsLimit(c *podCase, pod *report.Limit) string {
	all := c.containers()
	if len(all) != 1 {
		return ""
	}
	if p, ok := u.pair(c, all[0].Name); ok {
		if own := limitOf(p.Last); own != nil && *own == *pod {
			return all[0].Name
		}
	}
	return ""
}

// limitOf is the memory limit in force; nil where it was not told.
func limitOf(c kubeletstats.Counters) *report.Limit {
	bytes, ok := kubeletstats.Whole(c.Limit)
	if !ok || c.ID == "" {
		return nil
	}
	return &report.Limit{Value: bytes, Unlimited: bytes == 0}
}

// fillNode sets what the kubelet tells of its node.
func (u kubeletUse) fillNode(r *report.TopNode, n *nodeCase) {
	own := u.reading[kubeletstats.Cgroup{}]
	recent := u.recent[kubeletstats.Cgroup{}]
	if seconds, two := own.Seconds(); two {
		r.SampleSeconds = &seconds
	}
	if cpus, over := used(own, recent); r.CPU.Used == nil && cpus != nil {
		r.CPU.Used, r.CPU.Over = cpus, over
		if r.CPU.Source = cadvisorSource; over != "" {
			r.CPU.Source = statsSource
		}
		if r.CPU.Online == nil && n.object != nil {
			if all := n.object.Status.Capacity.Cpu().Value(); all > 0 && all < 1<<20 {
				count := int(all)
				r.CPU.Online = &count
			}
		}
	}
	r.Pressure = report.TopPressure{
		CPU:    waited(own, func(c kubeletstats.Counters) float64 { return c.CPUWaiting }, recent.CPU),
		Memory: waited(own, func(c kubeletstats.Counters) float64 { return c.MemoryWaiting }, recent.Memory),
		IO:     waited(own, func(c kubeletstats.Counters) float64 { return c.IOWaiting }, recent.IO),
	}
}
