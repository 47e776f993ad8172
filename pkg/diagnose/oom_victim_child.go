package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomVictimChild speaks of containers that live on after an OOM kill in them:
// memory.oom.group is off (kubelet before 1.28, or singleProcessOOMKill), so
// one process died alone. The container's status may show nothing at all: the
// cgroup of the running container is what tells.
func oomVictimChild(c *podCase) []report.Finding {
	e := c.oom()
	var out []report.Finding
	for _, k := range c.containers() {
		scope, stands := e.scopes[k.Name]
		kills, ok := scope.inTree("oom_kill")
		if !stands || !ok || !k.running() {
			continue
		}
		if kills -= min(kills, c.nestedKills(e, k.Name)); kills == 0 {
			continue
		}
		if groups, known := scope.inTree("oom_group_kill"); known && groups > 0 {
			continue // the whole container died: this cgroup is not of a survivor
		}
		f := report.NewFinding(report.OOMVictimChild, report.Proven, c.subject(k.Name),
			fmt.Sprintf("%s OOM-killed in container %s while the container itself lives on since %s (%s): nothing in its status shows it.",
				was(kills), k.Name, utc(k.status.State.Running.StartedAt.Time), plural(int64(k.status.RestartCount), "restart")))
		f.Because = append(c.eventsEvidence(scope, false, "the running container's cgroup", "oom_kill", "oom_group_kill"),
			c.podField(k.field("status")+".state.running.startedAt", utc(k.status.State.Running.StartedAt.Time), "the cgroup is that of the container that runs now"))
		if group, err := scope.group.MemoryOOMGroup(); err == nil && !group {
			f.Because = append(f.Because, c.fileEvidence(scope.group.File("memory.oom.group"), "", "0", "one process dies alone"))
		}
		if c.configErr == nil && c.singleProcessOOMKill() {
			f.Because = append(f.Because, c.configEvidence("singleProcessOOMKill", "true", "the kubelet leaves memory.oom.group at 0"))
		}
		f.Remedies = []report.Remedy{{
			Summary: "Have the main process notice that a child died of signal 9, or let the kubelet set memory.oom.group (singleProcessOOMKill: false).",
			Effect:  "With memory.oom.group the whole container dies and restarts, and the status says OOMKilled.",
		}}
		out = append(out, f)
	}
	return out
}

func was(n uint64) string {
	if n == 1 {
		return "1 process was"
	}
	return fmt.Sprintf("%d processes were", n)
}
