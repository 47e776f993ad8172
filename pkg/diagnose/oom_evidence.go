package diagnose

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// groupEvents are the memory events of one cgroup: of its subtree
// (memory.events) and of itself (memory.events.local).
type groupEvents struct {
	group             cgroup.Group
	tree, local       cgroup.MemoryEvents
	treeErr, localErr error
}

func (n *nodeCase) groupEvents(g cgroup.Group) groupEvents {
	e := groupEvents{group: g}
	e.tree, e.treeErr = g.MemoryEvents()
	e.local, e.localErr = g.MemoryEventsLocal()
	n.gaps.Miss(n.filePath(g.File("memory.events")), e.treeErr, "whether and where the kernel killed for memory", "")
	return e
}

// counter reads one key; ok is false where file or key is missing.
func counter(e cgroup.MemoryEvents, err error, key string) (uint64, bool) {
	if err != nil {
		return 0, false
	}
	return e.Get(key)
}

func (e groupEvents) inTree(key string) (uint64, bool)  { return counter(e.tree, e.treeErr, key) }
func (e groupEvents) inLocal(key string) (uint64, bool) { return counter(e.local, e.localErr, key) }

// podKill is an OOM kill of the kernel log whose victim was in this pod.
type podKill struct {
	kernlog.Kill
	// container is the victim's, "" where the log's id is of an exit that the
	// API no longer shows and several containers could have been it.
	container string
	id        string // the runtime's container id in the victim's cgroup path
	limit     cgroup.PathInfo
}

// oomEvidence is everything that speaks of OOM kills in this pod.
type oomEvidence struct {
	slice  groupEvents
	known  bool // the slice's events were read
	scopes map[string]groupEvents
	nested []groupEvents // groups the application made inside its container
	above  []groupEvents // QoS slice, kubepods, and up
	kills  []podKill     // oldest first
	log    kernlog.Log
	logErr error
}

func (c *podCase) gatherOOM() oomEvidence {
	e := oomEvidence{scopes: map[string]groupEvents{}, logErr: errNoNode}
	if c.groupsErr == nil {
		e.slice = c.groupEvents(c.groups.Pod)
		e.known = e.slice.treeErr == nil
		for _, k := range c.containers() {
			if g, ok := c.containerGroup(k.Name); ok {
				e.scopes[k.Name] = c.groupEvents(g)
			}
		}
		for _, k := range c.groups.Containers {
			for _, g := range k.Nested {
				e.nested = append(e.nested, c.groupEvents(g))
			}
		}
		for _, g := range c.groups.Ancestors {
			if g.Path != "/" {
				e.above = append(e.above, c.groupEvents(g))
			}
		}
	}
	if c.name == "" {
		return e
	}
	if e.log, e.logErr = c.kernel(); e.logErr != nil {
		return e
	}
	for _, kill := range e.log.Kills {
		victim := cgroup.ParsePath(kill.TaskMemcg)
		if victim.PodUID == "" {
			victim = cgroup.ParsePath(kill.GroupKill)
		}
		if victim.PodUID != c.uid {
			continue
		}
		e.kills = append(e.kills, podKill{Kill: kill, id: victim.ContainerID, container: c.containerOfKill(victim.ContainerID, kill), limit: cgroup.ParsePath(kill.OOMMemcg)})
	}
	return e
}

// containerOfKill maps a runtime id to a container: by the ids the API shows,
// by the groups that stand, else by the victim's oom_score_adj if only one
// container has that value, else the only container there is.
func (c *podCase) containerOfKill(id string, kill kernlog.Kill) string {
	all := c.containers()
	for _, k := range all {
		if slices.Contains(k.ids(), id) {
			return k.Name
		}
	}
	if len(all) == 1 {
		return all[0].Name
	}
	if len(kill.Victims) == 0 || !kill.Victims[0].HasOOMScoreAdj || c.object == nil {
		return ""
	}
	capacity := c.object.Status.Capacity.Memory().Value()
	match := ""
	for _, k := range all {
		adj, _, err := cgroup.OOMScoreAdj(c.pod, k.Name, capacity, c.rules.Minor)
		if err != nil || adj != kill.Victims[0].OOMScoreAdj {
			continue
		}
		if match != "" {
			return ""
		}
		match = k.Name
	}
	return match
}

// limitBytes is the limit that was met, as the kernel printed it at the kill; 0
// if it did not.
func (k podKill) limitBytes() uint64 {
	if !k.HasLimit || k.LimitKB >= kernlog.UnlimitedKB {
		return 0
	}
	return k.LimitKB * 1024
}

// of are the kills of one container.
func (e oomEvidence) of(container string) []podKill {
	var out []podKill
	for _, k := range e.kills {
		if k.container == container {
			out = append(out, k)
		}
	}
	return out
}

// ofID says whether the log has a kill of this very container.
func (e oomEvidence) ofID(id string) bool {
	return id != "" && slices.ContainsFunc(e.kills, func(k podKill) bool { return k.id == id })
}

// killLag is how long after an OOM kill a container's end may be booked: clocks
// of log and runtime differ, and a thrashing node is slow.
const killLag = time.Minute

// before says whether the log's kills of this very container all happened well
// before its end, so that the end is not theirs: a child was killed, and the
// container lived on.
func (e oomEvidence) before(end *corev1.ContainerStateTerminated) (last podKill, ok bool) {
	id := cgroup.ContainerID(end.ContainerID)
	for _, k := range e.kills {
		if id == "" || k.id != id {
			continue
		}
		if !k.Time.HasWall || end.FinishedAt.IsZero() || end.FinishedAt.Sub(k.Time.Wall) < killLag {
			return podKill{}, false
		}
		if end.StartedAt.Sub(k.Time.Wall) > killLag {
			return podKill{}, false // killed before it was started: the clocks cannot be compared
		}
		last, ok = k, true
	}
	return last, ok && !bareKill(e.log, end)
}

// standingOOMs counts the OOMs that containers which still stand met.
func (e oomEvidence) standingOOMs() uint64 {
	var sum uint64
	for _, s := range e.scopes {
		n, _ := s.inTree("oom")
		sum += n
	}
	return sum
}

// killEvidence quotes one kill of the kernel log.
func killEvidence(k podKill, means string) report.Evidence {
	e := report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("line %d", k.Line), Means: means}
	limit := k.OOMMemcg
	switch {
	case limit != "":
	case k.Global:
		limit = "none (global)"
	default:
		limit = "not said"
	}
	e.Value = fmt.Sprintf("oom_memcg=%s task=%s pid=%d", limit, k.Task, k.PID)
	if k.Time.HasWall {
		e.At = metav1.NewTime(k.Time.Wall)
	}
	return e
}

// eventsEvidence quotes counters of a group's memory.events.
func (n *nodeCase) eventsEvidence(e groupEvents, local bool, who string, keys ...string) []report.Evidence {
	var out []report.Evidence
	file, get := "memory.events", e.inTree
	if local {
		file, get = "memory.events.local", e.inLocal
	}
	for _, key := range keys {
		v, ok := get(key)
		if !ok {
			continue
		}
		means := who + " and below"
		if local {
			means = who + " alone"
		}
		out = append(out, n.fileEvidence(e.group.File(file), key, fmt.Sprint(v), means))
	}
	return out
}
