package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const reasonOOMKilled = "OOMKilled"

// oomLimit is the limit that an OOM kill met.
type oomLimit int

const (
	limitUnknown oomLimit = iota
	limitContainer
	limitPod
	limitAllocatable // kubepods or a QoS slice
	limitNode        // none: the node's memory
	limitNUMA        // cpuset.mems or a memory policy
	limitNested      // a group inside the container
	limitAbovePods   // a cgroup above kubepods
)

// oomVerdict is why one container's processes were killed for memory.
type oomVerdict struct {
	container  container
	limit      oomLimit
	confidence report.Confidence
	// why is the rule that told the limit, in a few words.
	why     string
	because []report.Evidence
	kills   []podKill
}

// oomKilled tells container, pod, allocatable and node OOM apart, from the
// kernel log where it has the kill, else from the memory events of every
// level, else it says that the cause is unproven. OOMKilled in the status
// alone proves no limit: any rise of oom_kill sets it.
func oomKilled(c *podCase) []report.Finding {
	var out []report.Finding
	for _, v := range c.oomVerdicts() {
		if f, ok := c.oomFinding(v); ok {
			out = append(out, f)
		}
	}
	return out
}

// oomVerdicts gives one verdict for each container with a sign of an OOM kill.
func (c *podCase) oomVerdicts() []oomVerdict {
	e := c.oom()
	var out []oomVerdict
	for _, k := range c.oomVictims(e) {
		v := oomVerdict{container: k, kills: e.of(k.Name)}
		if !c.limitFromLog(e, &v) {
			c.limitFromCounters(e, &v)
			if len(v.because) > 0 && v.limit != limitUnknown {
				v.because[0].Means += ": " + v.why
			}
		}
		out = append(out, v)
	}
	// A kill in a container that the API no longer shows, which several could
	// have been: the pod is known, and the limit.
	if v := (oomVerdict{kills: e.of("")}); len(out) == 0 && len(v.kills) > 0 && c.limitFromLog(e, &v) {
		if v.limit == limitPod || v.limit > limitPod {
			v.confidence = report.Proven
		}
		out = append(out, v)
	}
	return out
}

// oomVictims are the containers with a sign of an OOM kill: in the kernel log,
// in their own cgroup, in their status; else, where the pod's cgroup counts
// kills that none of these explain, the container that ended by SIGKILL.
func (c *podCase) oomVictims(e oomEvidence) []container {
	var out []container
	for _, k := range c.containers() {
		if c.startFailed(k) {
			continue // its present trouble is container-start-oom
		}
		kills, _ := e.scopes[k.Name].inTree("oom_kill")
		ended := k.end()
		if len(e.of(k.Name)) > 0 || kills > c.nestedKills(e, k.Name) || ended != nil && ended.Reason == reasonOOMKilled {
			out = append(out, k)
		}
	}
	if len(out) > 0 {
		return out
	}
	if counted, ok := e.slice.inTree("oom_kill"); !ok || counted == 0 || counted <= c.nestedKills(e, "") {
		return nil
	}
	var killed []container
	for _, k := range c.containers() {
		end := k.end()
		if end == nil || end.ExitCode != 137 || c.startFailed(k) {
			continue
		}
		if cause, found := c.whoKilled(k, end); !found || !cause.sure {
			killed = append(killed, k)
		}
	}
	if len(killed) == 1 {
		return killed
	}
	if all := c.containers(); len(all) == 1 && !c.startFailed(all[0]) {
		return all
	}
	return nil
}

// nestedKills are the kills in groups that the application made: inside one
// container, or in all of them for "".
func (c *podCase) nestedKills(e oomEvidence, name string) uint64 {
	var sum uint64
	for _, n := range e.nested {
		if name != "" {
			if g, ok := c.containerGroup(name); !ok || !below(n.group.Path, g.Path) {
				continue
			}
		}
		if oom, _ := n.inLocal("oom"); oom > 0 {
			kills, _ := n.inLocal("oom_kill")
			sum += kills
		}
	}
	return sum
}

// limitFromLog takes the limit from the newest kill of the container that the
// kernel log has whole.
func (c *podCase) limitFromLog(e oomEvidence, v *oomVerdict) bool {
	for _, kill := range slices.Backward(v.kills) {
		limit, why := c.limitOfKill(kill, v.container)
		if limit == limitUnknown {
			continue
		}
		v.limit, v.why, v.confidence = limit, why, report.Proven
		if kill.container == "" {
			v.confidence = report.Likely
		}
		v.because = append(v.because, killEvidence(kill, why))
		return true
	}
	return false
}

func (c *podCase) limitOfKill(kill podKill, k container) (oomLimit, string) {
	switch kill.Constraint {
	case kernlog.ConstraintCpuset:
		return limitNUMA, "only NUMA " + nodesText(kill.MemsAllowed) + " allowed (cpuset.mems)"
	case kernlog.ConstraintMemoryPolicy:
		return limitNUMA, "only NUMA " + nodesText(kill.Nodemask) + " allowed (memory policy)"
	}
	if kill.OOMMemcg == "" {
		if kill.Global || kill.Constraint == kernlog.ConstraintNone {
			return limitNode, "the kernel names no cgroup: the whole node was out of memory"
		}
		return limitUnknown, ""
	}
	switch kill.limit.Level {
	case cgroup.Container:
		if kill.limit.Nested != "" && kill.limit.Nested != crunSubgroup {
			return limitNested, "the limit is that of a group inside the container"
		}
		return limitContainer, "the kernel names the container's cgroup"
	case cgroup.Pod:
		if c.sliceRepeatsLimitOf(k, kill.limitBytes()) {
			return limitContainer, "the kernel names the pod's cgroup, which has the same limit, holds this container alone and the sandbox besides, and so is full first"
		}
		return limitPod, "the kernel names the pod's cgroup"
	case cgroup.QOS, cgroup.Kubepods:
		return limitAllocatable, "the kernel names " + kill.OOMMemcg
	default:
		return limitAbovePods, "the kernel names " + kill.OOMMemcg + ", above all pods"
	}
}

// nodesText names NUMA nodes of the kernel's list.
func nodesText(list string) string {
	switch {
	case list == "" || list == "(null)":
		return "nodes that the log does not name were"
	case strings.ContainsAny(list, ",-"):
		return "nodes " + list + " were"
	}
	return "node " + list + " was"
}

// sliceRepeatsLimit says whether the pod's cgroup only repeats the container's
// own memory limit: the same value, and no other container beside it. An init
// container runs alone but for the sidecars started before it.
func (c *podCase) sliceRepeatsLimit(k container) bool {
	limit, _ := c.podMemoryLimit()
	return c.sliceRepeatsLimitOf(k, limit)
}

// sliceRepeatsLimitOf asks it of a limit that the pod's cgroup had at some
// moment, 0 for none or not known. In a pod of one container that names its
// limit the kubelet has nothing else to make the pod's limit of, whatever it
// was before a resize.
func (c *podCase) sliceRepeatsLimitOf(k container, limit uint64) bool {
	own := c.ownMemoryLimits(k)
	if len(own) == 0 {
		return false
	}
	for _, other := range c.containers() {
		switch {
		case other.Name == k.Name:
		case k.init && !k.sidecar && (!other.sidecar || other.index > k.index):
		case !k.init && other.init && !other.sidecar:
		default:
			return false
		}
	}
	alone := len(c.containers()) == 1 && c.pod.Spec.Resources == nil && len(c.pod.Spec.Overhead) == 0
	return limit > 0 && (alone || slices.Contains(own, limit))
}

// ownMemoryLimits are the limits that the container itself names, as its cgroup
// would hold them: the spec's, and the one the runtime reports while a resize
// is on its way.
func (c *podCase) ownMemoryLimits(k container) []uint64 {
	spec, ok := k.Resources.Limits[corev1.ResourceMemory]
	if !ok || spec.IsZero() {
		return nil
	}
	out := []uint64{pageFloor(uint64(spec.Value()))}
	if k.status != nil && k.status.Resources != nil {
		if actuated, ok := k.status.Resources.Limits[corev1.ResourceMemory]; ok && !actuated.IsZero() {
			out = append(out, pageFloor(uint64(actuated.Value())))
		}
	}
	return out
}

// podUnlimited says whether the pod's cgroup was read to have no limit.
func (c *podCase) podUnlimited() bool {
	l, err := c.groups.Pod.MemoryMax()
	return err == nil && l.Max
}

const pageSize = 4096

// crunSubgroup is the group that crun puts a container's processes in, below
// the scope that carries the limits.
const crunSubgroup = "container"

// pageFloor is what the kernel makes of a limit.
func pageFloor(b uint64) uint64 { return b &^ (pageSize - 1) }

// podMemoryLimit is the limit of the pod's cgroup: as read, else as the
// kubelet computes it.
func (c *podCase) podMemoryLimit() (uint64, bool) {
	if c.groupsErr == nil {
		if l, err := c.groups.Pod.MemoryMax(); err == nil {
			return l.Bytes, !l.Max
		}
	}
	for _, want := range cgroup.PodValues(c.pod, cgroup.Desired, c.settings(c.uid)) {
		if want.File != "memory.max" || len(want.Accept) == 0 {
			continue
		}
		limit, err := strconv.ParseUint(want.Accept[0].Text, 10, 64)
		return limit, err == nil
	}
	return 0, false
}

// limitFromCounters applies the table of memory.events.local: the level whose
// own oom counter moved is the level whose limit could not be met. The pod's
// slice outlives its containers and keeps their totals.
func (c *podCase) limitFromCounters(e oomEvidence, v *oomVerdict) {
	k := v.container
	scope := e.scopes[k.Name]
	ended := k.end()
	v.confidence = report.Proven
	note := func(ev ...report.Evidence) { v.because = append(v.because, ev...) }

	if oom, ok := scope.inLocal("oom"); ok && oom > 0 {
		v.limit, v.why = limitContainer, "the container's own oom counter moved"
		note(c.eventsEvidence(scope, true, "container "+k.Name, "oom", "oom_kill")...)
		return
	}
	if oom, ok := scope.inTree("oom"); ok && oom > 0 && scope.localErr != nil {
		// Without memory.events.local the count may be that of a group below.
		v.limit, v.why = limitContainer, "the container's oom counter moved, and it has no groups below that could have"
		if c.hasNested(k.Name) {
			v.confidence, v.why = report.Likely, "the container's oom counter moved, or that of a group below it"
		}
		note(c.eventsEvidence(scope, false, "container "+k.Name, "oom", "oom_kill")...)
		return
	}
	sliceOOM, hasLocal := e.slice.inLocal("oom")
	treeOOM, hasTree := e.slice.inTree("oom")
	treeKills, _ := e.slice.inTree("oom_kill")
	// OOMs of containers that stand are told by their own counters: this one's
	// has not moved.
	standing := e.standingOOMs()
	switch {
	case !hasTree && !hasLocal && ended != nil && len(c.systemOOMNear(ended.FinishedAt.Time)) > 0:
		v.limit, v.confidence, v.why = limitNode, report.Likely, "the kubelet saw an OOM of no cgroup's limit at that moment"
		for _, ev := range c.systemOOMNear(ended.FinishedAt.Time) {
			note(eventEvidence(ev, "an OOM of no cgroup's limit, within seconds of the exit"))
		}
	case !hasTree && !hasLocal:
		v.limit, v.confidence, v.why = limitUnknown, report.Proven, "no counter and no kernel log line of the kill was read"
	case hasLocal && sliceOOM > 0 && c.podUnlimited():
		v.limit, v.why = limitUnknown, "the pod's cgroup counts an oom at a limit that it has not now"
		note(c.eventsEvidence(e.slice, true, "the pod's cgroup", "oom")...)
		note(c.fileEvidence(e.slice.group.File("memory.max"), "", "max", "no limit"))
	case hasLocal && sliceOOM > 0:
		note(c.eventsEvidence(e.slice, true, "the pod's cgroup", "oom", "oom_kill")...)
		if c.sliceRepeatsLimit(k) {
			v.limit, v.why = limitContainer, "the oom is counted at the pod's cgroup, which has the same limit, holds this container alone and the sandbox besides, and so is full first"
			return
		}
		v.limit, v.why = limitPod, "the pod's own oom counter moved, the container's did not"
		if hasTree && treeOOM > sliceOOM {
			v.confidence = report.Likely // some OOMs were at limits of containers
		}
	case treeOOM > standing && hasTree:
		// The group that counted it is gone, or the slice's own counter was not read.
		note(c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill")...)
		limit, limited := c.podMemoryLimit()
		switch {
		case hasLocal:
			v.limit, v.why = limitContainer, "the oom was counted in a container's cgroup that is gone, not at the pod's"
		case c.sliceRepeatsLimit(k):
			v.limit, v.why = limitContainer, fmt.Sprintf("the oom was counted in the pod, whose only limit is the container's %s", bytes(limit))
		case !limited:
			v.limit, v.why = limitContainer, "the oom was counted in the pod, whose own cgroup has no limit"
		default:
			v.limit, v.confidence, v.why = limitContainer, report.Likely, "the oom was counted in the pod; memory.events.local of its cgroup would tell container and pod limit apart"
			c.gaps.Lack(c.filePath(e.slice.group.File("memory.events.local")), "NotCollected", "container and pod limit cannot be told apart", "the node pod")
			return
		}
		if c.otherVictims(e, k) {
			v.confidence = report.Likely
		}
	case treeKills > 0:
		note(c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill")...)
		c.limitAbove(e, v)
	default:
		v.limit, v.why = limitUnknown, "the pod's cgroup counts no kill: it was made after the one that the status tells of, or the reason is wrong"
		note(c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill")...)
	}
	if ended != nil {
		note(c.endEvidence(k, "the last exit"))
	}
}

// hasNested says whether the application made groups inside its container, as
// far as the tree could be read.
func (c *podCase) hasNested(name string) bool {
	for _, g := range c.groups.Containers {
		if g.Name == name {
			return len(g.Nested) > 0 || g.NestedErr != nil
		}
	}
	return false
}

// otherVictims says whether another container shows a sign of an OOM kill too,
// so that a counter of the pod may be about that one.
func (c *podCase) otherVictims(e oomEvidence, k container) bool {
	return slices.ContainsFunc(c.oomVictims(e), func(o container) bool { return o.Name != k.Name })
}

// limitAbove tells kubepods' limit from the node's memory: kills in the pod
// that no oom in the pod explains.
func (c *podCase) limitAbove(e oomEvidence, v *oomVerdict) {
	v.confidence = report.Likely
	for _, g := range e.above {
		if oom, ok := g.inLocal("oom"); ok && oom > 0 {
			v.limit, v.why = limitAllocatable, "kills in the pod, an oom at none of its levels, and the oom counter of "+g.group.Path+" moved"
			if level := cgroup.ParsePath(g.group.Path).Level; level != cgroup.QOS && level != cgroup.Kubepods {
				v.limit = limitAbovePods // the kubelet sets no limit there
			}
			v.because = append(v.because, c.eventsEvidence(g, true, g.group.Path, "oom")...)
			return
		}
	}
	v.limit, v.why = limitNode, "kills in the pod, and no oom at any cgroup level: the node's memory, or the NUMA nodes it was confined to"
	for _, ev := range c.systemOOM() {
		v.because = append(v.because, eventEvidence(ev, "the kubelet saw an OOM of no cgroup"))
	}
}

// systemOOM are the kubelet's events of OOMs that no cgroup limit explains.
func (c *podCase) systemOOM() []corev1.Event {
	return c.eventsOf(func(e *corev1.Event) bool { return e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == c.name }, "SystemOOM")
}

// systemOOMNear are those around a container's end.
func (c *podCase) systemOOMNear(at time.Time) []corev1.Event {
	const near = 15 * time.Second
	var out []corev1.Event
	for _, e := range c.systemOOM() {
		if lastSeen(e).Sub(at).Abs() <= near {
			out = append(out, e)
		}
	}
	return out
}

// startFailed says whether the container's last end is a start that the
// runtime could not finish.
func (c *podCase) startFailed(k container) bool {
	t := k.end()
	return t != nil && t.Reason == "StartError"
}
