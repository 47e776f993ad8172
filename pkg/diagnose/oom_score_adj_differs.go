package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomScoreAdjDiffers compares the oom_score_adj of a container's processes with
// what the kubelet had it started with (kubelet qos.GetContainerOOMScoreAdjust).
// A process may raise its own; lowering takes CAP_SYS_RESOURCE, and children
// inherit. A resize does not change the value of what runs, so that a pod whose
// spec was changed since proves nothing.
func oomScoreAdjDiffers(c *podCase) []report.Finding {
	if c.object == nil || c.pod.Generation > 1 || c.resizeSeen() || c.shareUnknown() {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if !k.running() {
			continue
		}
		want, arithmetic, err := c.oomScoreAdj(k.Name)
		if err != nil {
			continue
		}
		own := c.scoredProcesses(k)
		var other []cgroup.Process
		for _, p := range own {
			if p.OOMScoreAdj != want && c.scoreFits(p) != no {
				other = append(other, p)
			}
		}
		if len(other) > 0 {
			out = append(out, c.scoreDiffers(k, want, arithmetic, own, other))
		}
	}
	return out
}

// scoreFits says whether the kernel's own oom_score of a process bears out the
// oom_score_adj that was read: a second reading of the same thing.
func (n *nodeCase) scoreFits(p cgroup.Process) answer {
	text, ok := n.oomScore(p.PID)
	score, err := strconv.Atoi(text)
	mem, memErr := cgroup.ReadMeminfo(n.fsys)
	if !ok || err != nil || memErr != nil {
		return unknown
	}
	want := 0 // of a process that is never killed
	if task := p.OOMTask(); task.Killable() {
		want = int(cgroup.OOMScore(task.Badness(mem.TotalPages()), mem.TotalPages()))
	}
	const slack = 20 // memory moves between the readings
	if score > want+slack || score < want-slack {
		return no
	}
	return yes
}

// scoredProcesses are the processes of the container that runs, with their
// oom_score_adj.
func (c *podCase) scoredProcesses(k container) []cgroup.Process {
	all, err := c.processes()
	if err != nil || !k.running() {
		return nil
	}
	id := cgroup.ContainerID(k.status.ContainerID)
	var out []cgroup.Process
	for _, p := range all {
		if id == "" || !p.HasOOMScoreAdj || !p.HasMemory {
			continue
		}
		if info := cgroup.ParsePath(p.Cgroup); info.ContainerID == id && info.PodUID == c.uid && !info.Deleted {
			out = append(out, p)
		}
	}
	return out
}

// liveOOMScoreAdj are the values of a container's processes, each once.
func (c *podCase) liveOOMScoreAdj(k container) []int {
	var out []int
	for _, p := range c.scoredProcesses(k) {
		out = append(out, p.OOMScoreAdj)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *podCase) scoreDiffers(k container, want int, arithmetic string, own, other []cgroup.Process) report.Finding {
	const most = 5
	lower := slices.IndexFunc(other, func(p cgroup.Process) bool { return p.OOMScoreAdj < want })
	shown := other[max(lower, 0)]
	effect := "the kernel kills it before others that use as much"
	if lower >= 0 {
		effect = "the kernel spares it, and others die in its place"
	}
	f := report.NewFinding(report.OOMScoreAdjDiffers, report.Proven, c.subject(k.Name), fmt.Sprintf(
		"%d of %s of container %s have another oom_score_adj than the kubelet's %d: process %d (%s) has %d, so that when memory runs out %s.",
		len(other), processes(uint64(len(own))), k.Name, want, shown.PID, quoteName(shown.Name), shown.OOMScoreAdj, effect))
	for _, p := range other {
		if c.scoreFits(p) == unknown {
			f.Confidence = report.Likely
		}
	}
	for i, p := range other {
		if i == most {
			break
		}
		f.Because = append(f.Because, c.fileEvidence(p.Dir()+"/oom_score_adj", "", fmt.Sprint(p.OOMScoreAdj), "process "+quoteName(p.Name)))
		if i == 0 {
			f.Because = append(f.Because, c.fileEvidence(p.Dir()+"/cgroup", "0::", p.Cgroup, "it runs in this container"))
		}
	}
	capacity := c.object.Status.Capacity.Memory()
	f.Because = append(f.Because,
		c.podField(k.field("spec")+".resources.requests.memory", quantityOrNone(k.Resources.Requests, corev1.ResourceMemory), ""),
		c.apiEvidence("status.capacity.memory", capacity.String(), ""))
	f.Arithmetic = arithmetic
	f.Remedies = []report.Remedy{{
		Summary: "See who sets it: the program itself (it may raise its value, and with CAP_SYS_RESOURCE lower it), an init script, an NRI plugin, or the runtime (containerd's restrict_oom_score_adj raises values).",
		Effect:  "With the kubelet's value a container that stays below its request dies after those above theirs.",
	}}
	return f
}

// resizeSeen says whether anything tells of a resize of this pod.
func (c *podCase) resizeSeen() bool {
	for _, condition := range c.pod.Status.Conditions {
		if strings.HasPrefix(string(condition.Type), "PodResize") {
			return true
		}
	}
	return len(c.podEvents("ResizeStarted", "ResizeCompleted", "ResizeDeferred", "ResizeInfeasible", "ResizeError")) > 0
}

// shareUnknown says whether the kubelet's value has a part that is not computed
// here: pod-level requests with their gate off, or memory of DRA claims.
func (c *podCase) shareUnknown() bool {
	return c.pod.Spec.Resources != nil && !c.gate("PodLevelResources") ||
		len(c.pod.Spec.ResourceClaims) > 0 && c.gate("DRANodeAllocatableResources")
}
