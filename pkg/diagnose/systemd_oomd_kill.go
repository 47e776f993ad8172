package diagnose

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomdKill is a cgroup of this pod that systemd-oomd killed.
type oomdKill struct {
	kernlog.UserKill
	file      string // kernel.log or kubelet.log
	container string // "" for the pod as a whole, or where the id is of an exit that is gone
}

// oomdSlack is how far the line and the container's end may lie apart: the
// runtime notices the end of the last process.
const oomdSlack = 10 * time.Second

// systemdOOMDKill speaks of containers that systemd-oomd killed, for pressure or
// swap: a SIGKILL from outside the kernel, which oom_kill does not count, so that
// the status says Error, exit code 137. Lines of the node's log that name a
// cgroup of this pod tell it; those of other pods, or of another machine, do not.
func systemdOOMDKill(c *podCase) []report.Finding {
	last := map[string]oomdKill{}
	count := map[string]int{}
	for _, k := range c.oomdKills() {
		count[k.container]++
		if old, ok := last[k.container]; !ok || k.Cause != "" || old.Cause == "" {
			last[k.container] = k
		}
	}
	var out []report.Finding
	for _, name := range append([]string{""}, containerNames(c.pod)...) {
		if k, ok := last[name]; ok {
			out = append(out, c.oomdFinding(k))
		}
	}
	return out
}

// oomdKills are the lines that name a cgroup of this pod, oldest first.
func (c *podCase) oomdKills() []oomdKill {
	if c.name == "" {
		return nil
	}
	var out []oomdKill
	for _, file := range []string{"kernel.log", "kubelet.log"} {
		data, err := c.files.File(file)
		if err != nil {
			continue
		}
		for _, k := range kernlog.UserKills(data, c.boot()) {
			info := cgroup.ParsePath(k.Cgroup)
			id := info.ContainerID
			if id == "" {
				id, _, _ = cgroup.ParseContainerDir(path.Base(k.Cgroup)) // systemd names the unit alone
			}
			name, known := c.containerOfID(id)
			if info.PodUID != c.uid && !known {
				continue
			}
			out = append(out, oomdKill{UserKill: k, file: file, container: name})
		}
	}
	slices.SortStableFunc(out, func(a, b oomdKill) int { return a.Time.Wall.Compare(b.Time.Wall) })
	return out
}

// containerOfID is the container that has, or in its last run had, the runtime's
// id.
func (c *podCase) containerOfID(id string) (string, bool) {
	for _, k := range c.containers() {
		if id != "" && slices.Contains(k.ids(), id) {
			return k.Name, true
		}
	}
	return "", false
}

func (c *podCase) oomdFinding(kill oomdKill) report.Finding {
	what := "A cgroup of the pod"
	if kill.container != "" {
		what = "Container " + kill.container
	}
	at := ""
	if kill.Time.HasWall {
		at = " at " + utc(kill.Time.Wall)
	}
	cause := kill.Cause
	if cause == "" {
		cause = "memory pressure or swap use, which of them its own line would tell"
	}
	f := report.NewFinding(report.SystemdOOMDKill, report.Likely, c.subject(kill.container),
		fmt.Sprintf("%s was killed by systemd-oomd%s because of %s. It acts from outside the kernel: no memory limit of the pod was met, and oom_kill does not count it.", what, at, cause))
	line := report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("line %d", kill.Line), Value: cutText(kill.Text), Means: "systemd's own account"}
	if kill.file == "kubelet.log" {
		line.Source = "kubelet:log"
	}
	if kill.Time.HasWall {
		line.At = metav1.NewTime(kill.Time.Wall)
	}
	f.Because = append(f.Because, line)
	e := c.oom()
	kills, counted := e.slice.inTree("oom_kill")
	f.Because = append(f.Because, c.eventsEvidence(e.slice, false, "the kernel's own OOM kills: the pod's cgroup", "oom_kill")...)
	for _, k := range c.containers() {
		if end := k.end(); end != nil && k.Name == kill.container {
			f.Because = append(f.Because, c.endEvidence(k, "SIGKILL gives exit code 137"))
			if c.oomdEnded(end, kill) && counted && kills == 0 {
				f.Confidence = report.Proven
			}
		}
	}
	f.Remedies = []report.Remedy{{
		Summary: "Keep systemd-oomd from the pods' cgroups: no ManagedOOMSwap or ManagedOOMMemoryPressure on kubepods.slice and above, or mask systemd-oomd on nodes.",
		Effect:  "The kubelet's eviction and the kernel's limits then decide, and both leave their reason in the pod's status.",
		Caution: "The pressure that it acted on stays: see what thrashes, and raise the limit or the node's memory.",
	}}
	return f
}

// oomdEnded says whether an exit is the one of the kill.
func (c *podCase) oomdEnded(end *corev1.ContainerStateTerminated, kill oomdKill) bool {
	return end.ExitCode == 137 && (strings.Contains(kill.Cgroup, cgroup.ContainerID(end.ContainerID)) ||
		kill.Time.HasWall && absolute(end.FinishedAt.Sub(kill.Time.Wall)) <= oomdSlack)
}

// killedByOOMD says whether an exit was systemd-oomd's doing.
func (c *podCase) killedByOOMD(k container, end *corev1.ContainerStateTerminated) bool {
	return slices.ContainsFunc(c.oomdKills(), func(kill oomdKill) bool {
		return (kill.container == k.Name || kill.container == "") && c.oomdEnded(end, kill)
	})
}
