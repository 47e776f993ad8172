package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomGroupKill says that memory.oom.group made all processes of a container
// die together, and why oom_kill counts more than died.
func oomGroupKill(c *podCase) []report.Finding {
	e := c.oom()
	groups, ok := e.slice.inTree("oom_group_kill")
	if !ok || groups == 0 {
		return nil
	}
	kills, _ := e.slice.inTree("oom_kill")
	if kills < groups {
		return nil // no kernel counts so
	}
	ooms, _ := e.slice.inTree("oom")
	name := ""
	if v := c.oomVictims(e); len(v) == 1 {
		name = v[0].Name
	}
	f := report.NewFinding(report.OOMGroupKill, report.Proven, c.subject(name),
		fmt.Sprintf("memory.oom.group made whole containers die together: %s in %s, counted as %s.", plural(groups, "group kill"), plural(ooms, "OOM"), plural(kills, "kill")),
		c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom_group_kill", "oom_kill", "oom")...)
	f.Arithmetic = c.killArithmetic(e)
	for i := len(e.kills) - 1; i >= 0; i-- {
		if k := e.kills[i]; k.GroupKill != "" {
			f.Because = append(f.Because, killEvidence(k, fmt.Sprintf("the last one in the kernel log: %s died", processes(uint64(len(k.Victims))))))
			break
		}
	}
	f.Remedies = []report.Remedy{{
		Summary: "If one process may die alone, set singleProcessOOMKill: true in the kubelet's configuration (1.32 and later).",
		Caution: "For every container of the node; a half-dead container then keeps running.",
	}}
	return []report.Finding{f}
}
