package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeOOM speaks on the node's report of memory that ran out above the pods: of
// the node as a whole, or at the limit of all pods or a QoS class. A kill of the
// kernel log counts only if it is this node's: its victim's pod is known here, or
// the kubelet's event names the process. A log of another machine has neither.
func nodeOOM(n *nodeCase) []report.Finding {
	if n.name == "" {
		return nil
	}
	global, limited := n.killsAbovePods()
	out := n.globalOOM(global)
	return append(out, n.allocatableOOM(limited)...)
}

// nodeKill is a kill of the kernel log that is this node's.
type nodeKill struct {
	kernlog.Kill
	victim owner
	event  *corev1.Event // SystemOOM of this very process
}

// killsAbovePods are the kills that no pod's limit explains.
func (n *nodeCase) killsAbovePods() (global, limited []nodeKill) {
	log, err := n.kernel()
	if err != nil {
		return nil, nil
	}
	events := n.eventsOf(n.mine, "SystemOOM")
	stands := map[string]bool{}
	above, foreign := 0, 0
	for _, k := range log.Kills {
		level := cgroup.ParsePath(k.OOMMemcg).Level
		isGlobal := k.OOMMemcg == "" && (k.Global || k.Constraint == kernlog.ConstraintNone)
		confined := k.Constraint == kernlog.ConstraintCpuset || k.Constraint == kernlog.ConstraintMemoryPolicy
		if confined || !isGlobal && level != cgroup.Kubepods && level != cgroup.QOS {
			continue
		}
		above++
		path := k.TaskMemcg
		if cgroup.ParsePath(path).PodUID == "" && k.GroupKill != "" {
			path = k.GroupKill
		}
		kill := nodeKill{Kill: k, victim: n.ownerOf(path), event: eventOfPID(events, k.PID)}
		uid := kill.victim.uid
		if _, looked := stands[uid]; !looked {
			stands[uid] = kill.victim.pod != nil || n.hasPodGroup(uid)
		}
		switch {
		case !stands[uid] && kill.event == nil:
			foreign++
		case isGlobal:
			global = append(global, kill)
		default:
			limited = append(limited, kill)
		}
	}
	if foreign > 0 && foreign == above {
		n.gaps.Lack("nodes/"+n.name+"/kernel.log", fmt.Sprintf("%s above the pods' limits, and none names a pod of this node", plural(foreign, "OOM kill")),
			"the log is of pods that are gone or of another machine; nothing of it is said of this node", "the kernel log of this node, with the pods of that time")
	}
	return global, limited
}

var eventPID = regexp.MustCompile(`pid: ([0-9]{1,10})`)

// eventOfPID is the kubelet's event about a process.
func eventOfPID(events []corev1.Event, pid int64) *corev1.Event {
	for i := range events {
		if m := eventPID.FindStringSubmatch(events[i].Message); m != nil && pid > 0 && m[1] == strconv.FormatInt(pid, 10) {
			return &events[i]
		}
	}
	return nil
}

// hasPodGroup says whether a pod's cgroup stands on this node though the API no
// longer shows the pod.
func (n *nodeCase) hasPodGroup(uid string) bool {
	if uid == "" || n.treeErr != nil || n.mode != cgroup.V2 {
		return false
	}
	_, err := n.tree.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}})
	return err == nil
}

func (n *nodeCase) globalOOM(kills []nodeKill) []report.Finding {
	const rows = 4
	events := n.eventsOf(n.mine, "SystemOOM")
	if len(kills) == 0 && len(events) == 0 {
		return nil
	}
	f := report.NewFinding(report.NodeOOM, report.Proven, n.subject(), "")
	if len(kills) == 0 {
		last := events[len(events)-1]
		f.Confidence = report.Likely
		f.Summary = fmt.Sprintf("The kubelet saw an OOM that no cgroup's limit explains, last at %s: the node ran out of memory, or the NUMA nodes that a process was confined to; the kernel log would tell.", utc(lastSeen(last)))
		for _, e := range events[max(0, len(events)-rows):] {
			f.Because = append(f.Because, eventEvidence(e, "the victim by name and process"))
		}
		n.gaps.Lack("nodes/"+n.name+"/kernel.log", "no report of this OOM in it", "node and NUMA node cannot be told apart, and the victim not explained", "the node pod with --privileged")
		f.Remedies = nodeOOMRemedies()
		return []report.Finding{f}
	}
	last := kills[len(kills)-1]
	when := ""
	if last.Time.HasWall {
		when = ", last at " + utc(last.Time.Wall)
	}
	f.Summary = fmt.Sprintf("The node as a whole ran out of memory (%s in the kernel log%s): the last victim was process %d (%s) of %s", plural(len(kills), "OOM"), when, last.PID, quoteName(last.Task), last.victim.name())
	for _, k := range kills[max(0, len(kills)-rows):] {
		f.Because = append(f.Because, killEvidence(podKill{Kill: k.Kill}, "no cgroup's limit; the victim was of "+k.victim.name()))
	}
	f.Because = append(f.Because, n.victimOf(&f, kills)...)
	for _, e := range events[max(0, len(events)-rows):] {
		f.Because = append(f.Because, eventEvidence(e, "the kubelet tells of OOMs that no cgroup's limit explains"))
	}
	f.Summary += "."
	f.Remedies = nodeOOMRemedies()
	return []report.Finding{f}
}

// victimOf explains the newest victim that can be explained.
func (n *nodeCase) victimOf(f *report.Finding, kills []nodeKill) []report.Evidence {
	for _, k := range slices.Backward(kills) {
		t, ok := n.victimTable(k.Kill)
		if !ok {
			continue
		}
		why := t.why()
		if why == "" {
			return nil
		}
		f.Summary += "; " + why
		f.Arithmetic = joinText(f.Arithmetic, t.points())
		return t.evidence(k.Kill)
	}
	return nil
}

func nodeOOMRemedies() []report.Remedy {
	return []report.Remedy{{
		Summary: "Reserve more for the system (systemReserved, kubeReserved) or evict earlier (evictionHard memory.available), and set requests near to use.",
		Effect:  "The kubelet looks every 10 s and does not count kernel memory: what grows faster, or in the kernel, ends in an OOM instead of an eviction.",
	}}
}

// allocatableOOM speaks of the limit of all pods, or of a QoS class, by its own
// counter or by the kernel log.
func (n *nodeCase) allocatableOOM(kills []nodeKill) []report.Finding {
	g, ok := n.kubepods()
	if !ok {
		return nil
	}
	groups := []cgroup.Group{g}
	children, _ := g.Children()
	for _, name := range children {
		if below := g.Child(name); cgroup.ParsePath(below.Path).Level == cgroup.QOS {
			groups = append(groups, below)
		}
	}
	var out []report.Finding
	for _, g := range groups {
		events := groupEvents{group: g}
		events.local, events.localErr = g.MemoryEventsLocal()
		oom, counted := events.inLocal("oom")
		var mine []nodeKill
		for _, k := range kills {
			if sameGroup(k.OOMMemcg, g.Path) {
				mine = append(mine, k)
			}
		}
		if (!counted || oom == 0) && len(mine) == 0 {
			continue
		}
		limit := "of unknown size"
		var evidence []report.Evidence
		if l, err := g.MemoryMax(); err == nil {
			limit = "of " + l.String()
			if !l.Max {
				limit = "of " + bothBytes(l.Bytes)
			}
			evidence = append(evidence, n.fileEvidence(g.File("memory.max"), "", l.String(), "the limit that was met"))
		}
		f := report.NewFinding(report.NodeAllocatableOOM, report.Proven, n.subject(), fmt.Sprintf(
			"All pods below %s together met its limit %s, and the kernel killed among them; the node itself still had memory", g.Path, limit))
		f.Because = append(n.eventsEvidence(events, true, g.Path, "oom"), evidence...)
		for _, k := range mine[max(0, len(mine)-4):] {
			f.Because = append(f.Because, killEvidence(podKill{Kill: k.Kill}, "the victim was of "+k.victim.name()))
		}
		if g.Path == n.tree.Kubepods {
			f.Arithmetic = n.allocatableArithmetic()
		}
		f.Because = append(f.Because, n.victimOf(&f, mine)...)
		f.Summary += "."
		f.Remedies = []report.Remedy{{
			Summary: "Lower what pods may use above their requests, evict earlier, or reserve less for the system if it does not need it.",
			Effect:  "The limit is capacity less kube- and system-reserved; the hard eviction threshold counts for it as well (allocatableMemory.available).",
		}}
		out = append(out, f)
	}
	return out
}

// sameGroup compares a path of the kernel log, which a node inside a container
// prefixes, with one of the tree.
func sameGroup(logged, path string) bool {
	a, b := cgroup.ParsePath(logged), cgroup.ParsePath(path)
	return a.Level == b.Level && a.QOS == b.QOS && a.PodUID == b.PodUID && a.Nested == b.Nested && a.Level != cgroup.Other
}

// allocatableArithmetic is how the limit of all pods comes about.
func (n *nodeCase) allocatableArithmetic() string {
	if n.object == nil || n.configErr != nil {
		return ""
	}
	reserved, err := n.config.Reservation(n.object.Status.Capacity)
	if err != nil {
		return ""
	}
	capacity := n.object.Status.Capacity.Memory()
	text := capacity.String()
	for _, term := range reserved[corev1.ResourceMemory].Terms {
		if term.Field == "systemReserved" || term.Field == "kubeReserved" {
			text += " − " + term.String()
		}
	}
	return fmt.Sprintf("%s = %d", text, n.reservableMemory())
}
