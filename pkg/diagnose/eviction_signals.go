package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const statsSource = "kubelet:/stats/summary"

// evictionSignal is one signal of the kubelet's eviction manager as it stands.
type evictionSignal struct {
	name                string
	available, capacity int64
	evidence            []report.Evidence
	arithmetic          string // "" where the kubelet itself gives the figure
}

// Signals of memory, which the kubelet ranks pods for in the same way.
const (
	signalMemory      = "memory.available"
	signalAllocatable = "allocatableMemory.available"
	signalPIDs        = "pid.available"
)

// evictionSignals measures what can be measured, in the kubelet's order, memory
// first: as the kubelet's summary has it, and memory from the node's files too.
func (n *nodeCase) evictionSignals() []evictionSignal {
	var out []evictionSignal
	stats, err := n.stats()
	if err == nil {
		for _, o := range stats.Observations() {
			e := report.Evidence{Source: statsSource, Field: o.Field, Value: fmt.Sprint(o.Available), Means: o.Signal + " as the kubelet measures it"}
			if !o.Time.IsZero() {
				e.At.Time = o.Time
			}
			out = append(out, evictionSignal{name: o.Signal, available: o.Available, capacity: o.Capacity, evidence: []report.Evidence{e}})
		}
	}
	for _, s := range []func() (evictionSignal, bool){n.memorySignal, n.allocatableSignal} {
		if s, ok := s(); ok {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b evictionSignal) int { return signalRank(a.name) - signalRank(b.name) })
	return out
}

func signalRank(name string) int {
	order := []string{signalMemory, signalAllocatable}
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// memorySignal computes memory.available from the root's memory.stat.
func (n *nodeCase) memorySignal() (evictionSignal, bool) {
	mem, err := cgroup.ReadMeminfo(n.fsys)
	if err != nil || n.mode != cgroup.V2 {
		return evictionSignal{}, false
	}
	root := cgroup.Group{FS: n.fsys, Path: "/"}
	stat, err := root.MemoryStat()
	if err != nil {
		return evictionSignal{}, false
	}
	anon, okAnon := stat.Anon()
	file, okFile := stat.File()
	inactive, okInactive := stat.InactiveFile()
	if !okAnon || !okFile || !okInactive {
		return evictionSignal{}, false
	}
	total := mem["MemTotal"]
	s := evictionSignal{name: signalMemory, available: eviction.MemoryAvailable(total, anon, file, inactive), capacity: int64(total)}
	s.evidence = []report.Evidence{n.fileEvidence("proc/meminfo", "MemTotal", fmt.Sprintf("%d kB", total/1024), "all memory")}
	for _, kv := range []struct {
		key   string
		value uint64
	}{{"anon", anon}, {"file", file}, {"inactive_file", inactive}} {
		s.evidence = append(s.evidence, n.fileEvidence(root.File("memory.stat"), kv.key, fmt.Sprint(kv.value), "of the whole node"))
	}
	s.arithmetic = fmt.Sprintf("memory.available = %d − (anon %d + file %d − inactive_file %d) = %d (kernel memory and huge pages are not counted)",
		total, anon, file, inactive, s.available)
	return s, true
}

// allocatableSignal computes allocatableMemory.available: what the limit of all
// pods leaves of their working set.
func (n *nodeCase) allocatableSignal() (evictionSignal, bool) {
	g, ok := n.kubepods()
	if !ok {
		return evictionSignal{}, false
	}
	limit, err := g.MemoryMax()
	current, errCurrent := g.MemoryCurrent()
	stat, errStat := g.MemoryStat()
	if err != nil || errCurrent != nil || errStat != nil || limit.Max {
		return evictionSignal{}, false
	}
	working, ok := cgroup.WorkingSet(current, stat)
	if !ok || limit.Bytes > 1<<62 {
		return evictionSignal{}, false
	}
	inactive, _ := stat.InactiveFile()
	s := evictionSignal{name: signalAllocatable, available: int64(limit.Bytes - min(limit.Bytes, working)), capacity: int64(limit.Bytes)}
	s.evidence = []report.Evidence{
		n.fileEvidence(g.File("memory.max"), "", limit.String(), "the limit of all pods"),
		n.fileEvidence(g.File("memory.current"), "", fmt.Sprint(current), "all pods"),
		n.fileEvidence(g.File("memory.stat"), "inactive_file", fmt.Sprint(inactive), "does not count"),
	}
	s.arithmetic = fmt.Sprintf("allocatableMemory.available = %d − (%d − %d) = %d", limit.Bytes, current, inactive, s.available)
	return s, true
}

// pressure is a signal held against one of its thresholds.
type pressure struct {
	evictionSignal
	threshold kubeletconfig.EvictionThreshold
	at        int64 // the threshold's amount
}

// margin is what is left until the threshold, negative below it.
func (p pressure) margin() int64 { return p.available - p.at }

// near: at the threshold or, our convention, less above it than a twentieth of
// all memory, or than a fiftieth of what fills slower.
func (p pressure) near() bool {
	if signalRank(p.name) < signalRank("") {
		return p.margin() < p.capacity/20
	}
	return p.margin() < p.capacity/50
}

func (p pressure) met() bool { return p.margin() < 0 }

// amount writes an amount of the signal's resource.
func (p evictionSignal) amount(v int64) string {
	switch {
	case p.name == signalPIDs:
		return fmt.Sprintf("%d processes", v)
	case p.inodes():
		return fmt.Sprintf("%d inodes", v)
	case v < 0:
		return "−" + bytes(uint64(-v))
	default:
		return bytes(uint64(v))
	}
}

func (p evictionSignal) inodes() bool {
	return p.name == "nodefs.inodesFree" || p.name == "imagefs.inodesFree" || p.name == "containerfs.inodesFree"
}

// text says where the signal stands.
func (p pressure) text() string {
	kind := "hard"
	if p.threshold.Soft {
		kind = "soft"
	}
	side, gap := "above", p.margin()
	if p.met() {
		side, gap = "below", -gap
	}
	return fmt.Sprintf("%s is %s, %s %s the %s threshold of %s", p.name, p.amount(p.available), p.amount(gap), side, kind, p.threshold.Quantity(p.capacity))
}

// pressures are all thresholds in force against all signals that are known, the
// one that the kubelet would act on in front: thresholds met, memory first, then
// the least margin.
func (n *nodeCase) pressures() []pressure {
	if n.configErr != nil {
		return nil
	}
	thresholds, err := n.config.EvictionThresholds()
	if err != nil {
		n.gaps.Lack("nodes/"+n.name+"/configz.json", err.Error(), "thresholds of eviction", "")
	}
	var out []pressure
	for _, s := range n.evictionSignals() {
		for _, t := range thresholds {
			// The kubelet overrides containerfs with the file system that it is on.
			if t.Signal == s.name {
				out = append(out, pressure{evictionSignal: s, threshold: t, at: t.Of(s.capacity)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b pressure) int {
		switch {
		case a.met() != b.met():
			return boolRank(b.met()) - boolRank(a.met())
		case signalRank(a.name) != signalRank(b.name):
			return signalRank(a.name) - signalRank(b.name)
		}
		return 0
	})
	return out
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// evictionQueue is the order in which the kubelet would evict for a signal.
type evictionQueue struct {
	order []eviction.Candidate
	// evidence of each pod's use, by UID.
	evidence map[string]report.Evidence
	// measured: the kubelet's own summary was there; else the cgroups stand in.
	measured bool
	// unknown are pods whose use could not be read at all.
	unknown []string
}

// next is the pod that goes: the first that is not critical.
func (q evictionQueue) next() (eviction.Candidate, int, bool) {
	for i, c := range q.order {
		if !eviction.Critical(c.Pod) {
			return c, i, true
		}
	}
	return eviction.Candidate{}, 0, false
}

// evictionQueue ranks the node's pods for a signal; ok is false where their use
// is not known.
func (n *nodeCase) evictionQueue(s evictionSignal) (evictionQueue, bool) {
	q := evictionQueue{evidence: map[string]report.Evidence{}}
	stats, err := n.stats()
	q.measured = err == nil
	memory := s.name == signalMemory || s.name == signalAllocatable
	if !q.measured && !memory {
		return q, false
	}
	dedicated, _ := stats.DedicatedImageFs()
	var all []eviction.Candidate
	for i := range n.pods {
		pod := &n.pods[i]
		if !active(pod) {
			continue
		}
		c := eviction.Candidate{Pod: pod, Request: n.evictionRequest(pod, s)}
		if q.measured {
			p, known := stats.Pod(cgroup.PodUID(pod))
			c.Known = known
			if known {
				c.Usage = p.Usage(s.name, eviction.LocalVolumes(pod), dedicated)
				q.evidence[cgroup.PodUID(pod)] = report.Evidence{Source: statsSource, Field: "pods[" + pod.Namespace + "/" + pod.Name + "]", Value: fmt.Sprint(c.Usage)}
			}
		} else if !n.weighByCgroup(&c, &q) {
			q.unknown = append(q.unknown, pod.Namespace+"/"+pod.Name)
			continue
		}
		all = append(all, c)
	}
	q.order = eviction.Rank(all, s.name == signalPIDs)
	return q, len(q.order) > 0
}

func (n *nodeCase) evictionRequest(pod *corev1.Pod, s evictionSignal) int64 {
	switch {
	case s.name == signalMemory || s.name == signalAllocatable:
		return eviction.Request(pod, corev1.ResourceMemory, n.gate("PodLevelResources"))
	case s.inodes() || s.name == signalPIDs:
		return 0
	default:
		return eviction.Request(pod, corev1.ResourceEphemeralStorage, n.gate("PodLevelResources"))
	}
}

// weighByCgroup takes a pod's working set from its cgroup. A pod of which no
// container runs, by the API or the cgroups, has no statistics: recorded nodes
// leave such pods out of the summary. It is false where nothing can be said.
func (n *nodeCase) weighByCgroup(c *eviction.Candidate, q *evictionQueue) bool {
	if n.treeErr != nil || n.mode != cgroup.V2 {
		return false
	}
	groups, err := n.tree.Pod(c.Pod)
	runs := slices.ContainsFunc((&podCase{pod: c.Pod}).containers(), container.running)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !runs:
		return true // known not to be there
	case err != nil:
		return false
	case len(groups.Containers) == 0 && !runs:
		return true
	}
	current, err := groups.Pod.MemoryCurrent()
	stat, errStat := groups.Pod.MemoryStat()
	if err != nil || errStat != nil {
		return false
	}
	working, ok := cgroup.WorkingSet(current, stat)
	if !ok || working > 1<<62 {
		return false
	}
	inactive, _ := stat.InactiveFile()
	c.Known, c.Usage = true, int64(working)
	q.evidence[cgroup.PodUID(c.Pod)] = n.fileEvidence(groups.Pod.File("memory.current"), "less memory.stat inactive_file", fmt.Sprintf("%d − %d = %d", current, inactive, working), "")
	return true
}
