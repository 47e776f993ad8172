package diagnose

import (
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

var topNodeColumns = []column[report.TopNode]{
	{"cpu", func(r *report.TopNode) sortValue { return sortKey(r.CPU.Used) }},
	{"psi-cpu", func(r *report.TopNode) sortValue { return sortWaiting(r.Pressure.CPU) }},
	{"psi-memory", func(r *report.TopNode) sortValue { return sortWaiting(r.Pressure.Memory) }},
	{"psi-io", func(r *report.TopNode) sortValue { return sortWaiting(r.Pressure.IO) }},
	{"memory", func(r *report.TopNode) sortValue { return sortKey(r.Memory.WorkingSet) }},
	{"oom", func(r *report.TopNode) sortValue { return sortKey(r.OOMKills) }},
	{"pods", func(r *report.TopNode) sortValue { return sortKey(r.Pods) }},
	{"cpus", func(r *report.TopNode) sortValue {
		if r.Exclusive == nil {
			return sortValue{order: isUnknown}
		}
		set, _ := cpuset.Parse(*r.Exclusive)
		return sortValue{number: float64(set.Size())}
	}},
	{"name", nil},
}

// TopNodeColumns are the columns that TopNodes can sort by, the default first.
func TopNodeColumns() []string { return columnNames(topNodeColumns) }

// TopNodes compares nodes. Of the options Names, Usage and SortBy count. Errors are
// those of TopPods.
func TopNodes(s *snapshot.Snapshot, o TopOptions) (report.Top, error) {
	top := newTop(s)
	top.Nodes = []report.TopNode{}
	wanted := newWantedNames(o.Names)
	known := s.NodeNames()
	var cases []*nodeCase
	for _, name := range known {
		if wanted.take(name) {
			n := newTopNode(s, name, o.Usage)
			cases = append(cases, n.nodeCase)
			top.Nodes = append(top.Nodes, n.row())
		}
	}
	var err error
	byName := func(a, b *report.TopNode) int { return strings.Compare(a.Name, b.Name) }
	if top.SortBy, err = sortRows(top.Nodes, topNodeColumns, o.SortBy, byName); err != nil {
		return report.Top{}, err
	}
	top.Gaps = mergeGaps(cases...)
	return top, wanted.missing("nodes", "", known)
}

func (n *topNode) row() report.TopNode {
	r := report.TopNode{Name: n.name, SampleSeconds: n.sampleSeconds(), CPU: n.topNodeCPU(), Memory: n.topNodeMemory()}
	if n.treeErr != nil {
		n.use.fillNode(&r, n.nodeCase)
	}
	for i, waiting := range []**report.TopWaiting{&r.Pressure.CPU, &r.Pressure.Memory, &r.Pressure.IO} {
		if *waiting == nil {
			*waiting = n.nodePressure([]string{"cpu", "memory", "io"}[i])
		}
	}
	if g, ok := n.kubepods(); ok {
		r.OOMKills = n.groupEvents(g).killed()
	}
	if _, err := n.snap.Pods(); err == nil {
		running := 0
		for i := range n.pods {
			if active(&n.pods[i]) {
				running++
			}
		}
		r.Pods = &running
	}
	r.Exclusive, r.Shared = n.topCPUSets()
	return r
}

// topNodeCPU takes the CPU time of the root's cpu.stat, as that of the pods is
// read, else of /proc/stat. Time stolen by the hypervisor is not used.
func (n *nodeCase) topNodeCPU() report.TopNodeCPU {
	var out report.TopNodeCPU
	if online, ok := n.onlineCPUs(); ok && !online.IsEmpty() {
		count := online.Size()
		out.Online = &count
	}
	if n.first == nil {
		return out
	}
	root := cgroup.Group{FS: n.fsys, Path: "/"}
	usec, ok := n.grown(root, workedUsec)
	out.Source = n.source(root.File("cpu.stat"))
	if !ok {
		const file = "proc/stat"
		before, errA := cgroup.ReadCPUTimes(n.first.Files)
		after, errB := cgroup.ReadCPUTimes(n.last.Files)
		u, known := before.Usage(after, after.CPUs())
		if errA != nil || errB != nil || !known || u.Busy > math.MaxUint64/usecPerTick {
			n.gaps.Miss(n.filePath(file), errB, "how much CPU the node uses", "the node pod")
			out.Source = ""
			return out
		}
		usec, out.Source = u.Busy*usecPerTick, n.source(file)
	}
	used := share(usec, n.wallUsec)
	out.Used = &used
	return out
}

// usecPerTick is a tick of /proc/stat: USER_HZ is 100 wherever Kubernetes runs.
const usecPerTick = 10_000

// workedUsec is time in user mode and in the kernel. usage_usec of the root has
// counted stolen time too.
func workedUsec(g cgroup.Group) (uint64, bool) {
	s, err := g.CPUStat()
	if err != nil {
		return 0, false
	}
	user, okUser := s.UserUsec()
	system, okSystem := s.SystemUsec()
	return user + system, okUser && okSystem && user+system >= user
}

// nodePressure is that of all tasks of the node: the root group's file, as that
// of the pods is read, or /proc/pressure, which the kernel fills from the same
// counters.
func (n *nodeCase) nodePressure(resource string) *report.TopWaiting {
	sources := []func(fs.FS) (cgroup.Pressure, error){
		func(fsys fs.FS) (cgroup.Pressure, error) { return cgroup.Group{FS: fsys, Path: "/"}.Pressure(resource) },
		func(fsys fs.FS) (cgroup.Pressure, error) { return cgroup.ReadPressure(fsys, resource) },
	}
	read := sources[1]
	if _, err := sources[0](n.fsys); err == nil {
		read = sources[0]
	}
	return n.waiting(
		func() (cgroup.Pressure, error) { return read(n.fsys) },
		func() (uint64, bool) {
			if n.first == nil {
				return 0, false
			}
			before, errA := read(n.first.Files)
			after, errB := read(n.last.Files)
			if errA != nil || errB != nil || before.Some == nil || after.Some == nil || after.Some.Total < before.Some.Total {
				return 0, false
			}
			return after.Some.Total - before.Some.Total, true
		},
		"proc/pressure/"+resource, "how long tasks of the node wait for "+resource)
}

// topNodeMemory is the kubelet's signal memory.available: as it measures it, else
// computed from the node's files.
func (n *nodeCase) topNodeMemory() report.TopNodeMemory {
	signals := n.evictionSignals()
	i := slices.IndexFunc(signals, func(s evictionSignal) bool { return s.name == signalMemory })
	if i < 0 || signals[i].available < 0 || signals[i].capacity < signals[i].available {
		const costs = "memory.available, which eviction goes by"
		_, err := cgroup.ReadMeminfo(n.fsys)
		n.gaps.Miss(n.filePath("proc/meminfo"), err, costs, "the node pod")
		root := cgroup.Group{FS: n.fsys, Path: "/"}
		_, err = root.MemoryStat()
		n.gaps.Miss(n.filePath(root.File("memory.stat")), err, costs, "the node pod")
		return report.TopNodeMemory{}
	}
	s := signals[i]
	available, working := uint64(s.available), uint64(s.capacity-s.available)
	return report.TopNodeMemory{WorkingSet: &working, Available: &available, Source: s.source()}
}

// source is where the signal's first figure was read.
func (s evictionSignal) source() string {
	if len(s.evidence) == 0 {
		return ""
	}
	return s.evidence[0].Source
}

// topCPUSets are the CPUs that containers own and those that the others share.
func (n *nodeCase) topCPUSets() (exclusive, shared *string) {
	static, known := n.staticCPU()
	switch state, ok := n.cpuCheckpoint(); {
	case !known:
		return nil, nil
	case !static:
		none := ""
		if online, ok := n.onlineCPUs(); ok {
			shared = text(online)
		}
		return &none, shared
	case !ok:
		return nil, nil
	default:
		var all cpuset.Set
		for _, containers := range state.Entries {
			for _, set := range containers {
				all = all.Union(set)
			}
		}
		return text(all), text(state.Default)
	}
}
