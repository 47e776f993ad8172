package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

var topPodColumns = []column[report.TopPod]{
	{"throttled", func(r *report.TopPod) sortValue {
		t := r.CPU.Throttled
		if t == nil {
			return sortValue{order: isUnknown}
		}
		return sortShare(t.Share, t.Unlimited)
	}},
	{"wait", func(r *report.TopPod) sortValue { return sortWaiting(r.CPU.Waiting) }},
	{"cpu", func(r *report.TopPod) sortValue { return sortKey(r.CPU.Used) }},
	{"memory", func(r *report.TopPod) sortValue { return sortKey(r.Memory.Current) }},
	{"memory%", func(r *report.TopPod) sortValue {
		return sortShare(r.Memory.Share, r.Memory.Max != nil && r.Memory.Max.Unlimited)
	}},
	{"nonreclaimable", func(r *report.TopPod) sortValue {
		n := r.Memory.NonReclaimable
		if n == nil {
			return sortValue{order: isUnknown}
		}
		return sortShare(n.Share, n.Max != nil && n.Max.Unlimited)
	}},
	{"oom", func(r *report.TopPod) sortValue { return sortKey(r.OOMKills) }},
	{"cpus", func(r *report.TopPod) sortValue {
		if r.CPUs == nil {
			return sortValue{order: isUnknown}
		}
		set, _ := cpuset.Parse(r.CPUs.Exclusive)
		return sortValue{number: float64(set.Size())}
	}},
	{"name", nil},
}

func sortWaiting(w *report.TopWaiting) sortValue {
	if w == nil {
		return sortValue{order: isUnknown}
	}
	return sortKey(&w.Share)
}

// TopPodColumns are the columns that TopPods can sort by, the default first.
func TopPodColumns() []string { return columnNames(topPodColumns) }

// TopPods compares the pods that are on nodes, or their containers. An error of
// names that were not found (*NotFoundError, joined) comes with the rows of the
// others; any other error without a report.
func TopPods(s *snapshot.Snapshot, o TopOptions) (report.Top, error) {
	pods, err := s.Pods()
	if err != nil {
		return report.Top{}, fmt.Errorf("pods of the snapshot: %w", err)
	}
	if known := s.NodeNames(); o.Node != "" && !slices.Contains(known, o.Node) {
		return report.Top{}, &NotFoundError{What: "nodes", Name: o.Node, Known: known}
	}
	top := newTop(s)
	top.Pods = []report.TopPod{}
	wanted := newWantedNames(o.Names)
	var known []string
	nodes := map[string]*topNode{}
	var order []*nodeCase
	for i := range pods {
		pod := &pods[i]
		if o.Namespace != "" && pod.Namespace != o.Namespace || o.Node != "" && pod.Spec.NodeName != o.Node {
			continue
		}
		known = append(known, pod.Namespace+"/"+pod.Name)
		if !wanted.take(pod.Name) || pod.Spec.NodeName == "" && !wanted.named(pod.Name) {
			continue
		}
		n := nodes[pod.Spec.NodeName]
		if n == nil {
			n = newTopNode(s, pod.Spec.NodeName, o.Usage)
			nodes[n.name] = n
			order = append(order, n.nodeCase)
		}
		c := n.pod(pod)
		if c.ended() && c.groupsErr != nil && !wanted.named(pod.Name) {
			continue
		}
		if o.Containers {
			top.Pods = append(top.Pods, n.topContainers(c)...)
		} else {
			top.Pods = append(top.Pods, n.topPod(c))
		}
	}
	if top.SortBy, err = sortRows(top.Pods, topPodColumns, o.SortBy, byPodName); err != nil {
		return report.Top{}, err
	}
	top.Gaps = mergeGaps(order...)
	in := ""
	switch {
	case o.Namespace != "" && o.Node != "":
		in = fmt.Sprintf("namespace %q on node %q of the bundle", o.Namespace, o.Node)
	case o.Namespace != "":
		in = fmt.Sprintf("namespace %q of the bundle", o.Namespace)
	case o.Node != "":
		in = fmt.Sprintf("node %q of the bundle", o.Node)
	}
	return top, wanted.missing("pods", in, known)
}

func byPodName(a, b *report.TopPod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Container, b.Container))
}

// topNode is a node with what its pods share.
type topNode struct {
	*nodeCase
	above map[string][]*cpuLevel // by the path of the lowest
	// use stands in for cgroups that were not read.
	use kubeletUse
}

func newTopNode(s *snapshot.Snapshot, name string, known Usage) *topNode {
	n := &topNode{nodeCase: newNodeCase(s, name, s.Manifest().CapturedAt), above: map[string][]*cpuLevel{}}
	if n.treeErr != nil {
		n.use = n.readUse(known)
	}
	return n
}

// pod is the case of one of its pods. What is above the pods is read once.
func (n *topNode) pod(pod *corev1.Pod) *podCase {
	c := newPodCase(n.nodeCase, pod)
	c.shared = sync.OnceValue(func() []*cpuLevel {
		if c.groupsErr != nil {
			return nil
		}
		out := []*cpuLevel{c.cpuLevel(cgroup.Pod, c.pod.Name, c.groups.Pod, c.podWants)}
		if len(c.groups.Ancestors) == 0 {
			return out
		}
		parent := c.groups.Ancestors[0].Path
		if n.above[parent] == nil {
			n.above[parent] = c.sharedLevels()[1:]
		}
		return append(out, n.above[parent]...)
	})
	return c
}

func (c *podCase) topRow(container string) report.TopPod {
	r := report.TopPod{
		Namespace: c.pod.Namespace, Name: c.pod.Name, Container: container,
		Node: c.pod.Spec.NodeName, Phase: string(c.pod.Status.Phase), SampleSeconds: c.sampleSeconds(),
	}
	if c.groupsErr == nil {
		r.OOMKills = c.groupEvents(c.groups.Pod).killed()
	}
	return r
}

// topPod is the row of the pod: its cgroup, and of its containers what is worst.
func (n *topNode) topPod(c *podCase) report.TopPod {
	r := c.topRow("")
	r.CPUs = c.topCPUs(c.containers())
	if c.groupsErr != nil {
		n.use.fill(&r, c, "")
		return r
	}
	r.CPU = c.topCPU(c.shared()[0])
	r.CPU.Throttled = c.topThrottled()
	own := c.memoryGroup(c.groups.Pod, "", "", groupEvents{})
	groups := []memoryGroup{own}
	for _, k := range c.cpu() {
		groups = append(groups, c.memoryGroup(k.own().group, "", k.Name, groupEvents{}))
	}
	r.Memory = c.topMemory(own, groups)
	if n := r.Memory.NonReclaimable; n != nil && n.Level == string(cgroup.Pod) {
		if k, ok := c.repeatedBySlice(); ok {
			n.Level, n.Container = string(cgroup.Container), k
		}
	}
	return r
}

// topContainers are the rows of the containers that have not finished for good.
func (n *topNode) topContainers(c *podCase) []report.TopPod {
	pod := memoryGroup{}
	if c.groupsErr == nil {
		pod = c.memoryGroup(c.groups.Pod, "", "", groupEvents{})
	}
	var out []report.TopPod
	for _, k := range c.containers() {
		if k.finished() {
			continue
		}
		r := c.topRow(k.Name)
		r.CPUs = c.topCPUs([]container{k})
		if i := slices.IndexFunc(c.cpu(), func(stands containerCPU) bool { return stands.Name == k.Name }); i >= 0 {
			stands := c.cpu()[i]
			r.CPU = c.topCPU(stands.own())
			r.CPU.Throttled = c.throttledMost(stands)
			own := c.memoryGroup(stands.own().group, "", k.Name, groupEvents{})
			r.Memory = c.topMemory(own, []memoryGroup{own, pod})
		} else if c.groupsErr != nil {
			n.use.fill(&r, c, k.Name)
		}
		out = append(out, r)
	}
	return out
}

// topCPU is the use, the limit and the waiting of one cgroup.
func (c *podCase) topCPU(l *cpuLevel) report.TopCPU {
	var out report.TopCPU
	if l.rate.HasUsage { // after a change of the limit too
		out.Used = &l.rate.UsedCPUs
	}
	if l.maxErr == nil {
		out.Quota, out.Period = &report.Limit{Value: l.max.Quota, Unlimited: l.max.Max}, &l.max.Period
	}
	out.Waiting = c.waiting(
		func() (cgroup.Pressure, error) { return l.group.Pressure("cpu") },
		func() (uint64, bool) { g, ok := c.growthOf(l, pressureSome); return g.usec, ok },
		l.group.File("cpu.pressure"), "how long "+l.label()+" waits for CPU")
	return out
}

// topThrottled is that of the container that a quota cuts short most, or where no
// container's cgroup stands of the pod's.
func (c *podCase) topThrottled() *report.TopThrottled {
	stand := c.cpu()
	if len(stand) == 0 {
		return c.throttledMost(containerCPU{levels: c.shared()})
	}
	var worst *report.TopThrottled
	atLeast := false
	for _, k := range stand {
		t := c.throttledMost(k)
		if t == nil {
			atLeast = true
			continue
		}
		atLeast = atLeast || t.AtLeast
		if worst == nil || t.Share != nil && (worst.Share == nil || *t.Share > *worst.Share) {
			worst = t
		}
	}
	if worst == nil || worst.Unlimited && atLeast {
		return nil
	}
	worst.AtLeast = atLeast
	return worst
}

// throttledMost is the level on a container's way to the root whose quota cuts
// it short in the largest share of the periods. Nil where that is not known.
func (c *podCase) throttledMost(k containerCPU) *report.TopThrottled {
	out := report.TopThrottled{}
	for i, l := range k.levels {
		own := l.kind == cgroup.Container || l.kind == cgroup.Pod
		if _, known := l.heldByQuota(); !known {
			// The kubelet gives quotas to containers and pods, not above.
			out.AtLeast = out.AtLeast || own
			continue
		}
		if l.group.Path == "/" || l.maxErr == nil && l.max.Max {
			continue
		}
		t, sampled := l.best()
		ratio := t.Ratio
		if out.Share != nil && ratio <= *out.Share {
			continue
		}
		level, name := l.kind, k.Name
		repeats := i > 0 && c.oneConstraint(k.levels[0], l)
		if repeats {
			level = cgroup.Container
		} else if i > 0 && ratio > 0 {
			if held, _ := c.heldBack(k); held == no {
				ratio = 0
			}
		}
		if out.Share != nil && ratio <= *out.Share {
			continue
		}
		if level != cgroup.Container {
			name = ""
		}
		out = report.TopThrottled{Share: &ratio, AtLeast: out.AtLeast, Level: string(level), Container: name, Cgroup: l.group.Path, Over: report.OverLifetime}
		if sampled {
			out.Over = report.OverSample
		}
		if ratio == t.Ratio {
			out.Throttled, out.Periods = &t.Throttled, &t.Periods
		}
	}
	if out.Share == nil {
		if out.AtLeast {
			return nil
		}
		out.Unlimited = true
	}
	return &out
}

// topMemory is the use of own, and of the groups what is fullest of what reclaim
// cannot free.
func (c *podCase) topMemory(own memoryGroup, groups []memoryGroup) report.TopMemory {
	out := report.TopMemory{Current: known(own.current, own.currentErr), Max: limit(own.limit, own.limitErr)}
	if own.currentErr == nil && own.limited() {
		part := float64(own.current) / float64(own.limit.Bytes)
		out.Share = &part
	}
	for _, m := range groups {
		c.gaps.Miss(c.filePath(m.group.File("memory.stat")), m.statErr, "how much of the memory cannot be freed", "")
	}
	out.NonReclaimable = c.topNonReclaimable(own, groups)
	return out
}

func (c *podCase) topNonReclaimable(own memoryGroup, groups []memoryGroup) *report.TopNonReclaimable {
	out := report.TopNonReclaimable{}
	unsure := false
	for _, m := range groups {
		if m.limitErr == nil && m.limit.Max {
			continue
		}
		held, ok := m.stat.Held()
		if !m.limited() || m.statErr != nil || !ok {
			unsure = true
			continue
		}
		unsure = unsure || held.Floor
		part := float64(held.Bytes) / float64(m.limit.Bytes)
		if out.Share != nil && part <= *out.Share {
			continue
		}
		out = report.TopNonReclaimable{Share: &part, Bytes: &held.Bytes, Max: limit(m.limit, nil), Cgroup: m.group.Path,
			Level: string(cgroup.Container), Container: m.container}
		if m.isPod(c) {
			out.Level = string(cgroup.Pod)
		}
	}
	switch {
	case out.Share != nil:
		out.AtLeast = unsure
	case unsure:
		return nil
	default:
		held, ok := own.stat.Held()
		if own.statErr == nil && ok {
			out.Bytes, out.AtLeast = &held.Bytes, held.Floor
		}
		out.Max = &report.Limit{Unlimited: true}
	}
	return &out
}

// repeatedBySlice is the container whose own memory limit the pod's cgroup
// repeats.
func (c *podCase) repeatedBySlice() (string, bool) {
	for _, k := range c.containers() {
		if c.sliceRepeatsLimit(k) {
			return k.Name, true
		}
	}
	return "", false
}

// topCPUs are the CPUs that the checkpoint books for containers; the others
// share. Nil where it is not known whether they own any.
func (c *podCase) topCPUs(containers []container) *report.TopCPUSet {
	static, known := c.staticCPU()
	if _, readable := c.cpuCheckpoint(); !known || static && !readable || c.ended() {
		return nil
	}
	out := report.TopCPUSet{}
	var all cpuset.Set
	for _, k := range containers {
		if k.finished() {
			continue
		}
		if set, owns := c.ownedCPUs(c.uid, k.Name); owns && static {
			all = all.Union(set)
		} else {
			out.Shared = true
		}
	}
	out.Exclusive = all.String()
	return &out
}
