package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuQuotaOnExclusiveCPUs speaks of containers that own their CPUs and have a
// CFS quota all the same. Since Kubernetes 1.33 (gate
// DisableCPUQuotaWithExclusiveCPUs, locked on in 1.37) the kubelet sets none;
// a quota there is left from an older kubelet, from the gate being off, or not
// the kubelet's. Accounting at clock ticks then throttles a fully used CPU.
func cpuQuotaOnExclusiveCPUs(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.cpu() {
		own := k.own()
		if !own.limited() || !c.ownsCPUs(c.uid, k.Name) {
			continue
		}
		t, sampled := own.best()
		summary := fmt.Sprintf("Container %s owns its CPUs and still has a quota (cpu.max %s)", k.Name, own.max)
		switch {
		case t.Periods > 0 && sampled:
			summary += fmt.Sprintf("; it throttled %d of %s (%s) within %s", t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), usec(float64(t.WallUsec)))
		case t.Periods > 0:
			summary += fmt.Sprintf("; it throttled %d of %s (%s) since the container's cgroup was made", t.Throttled, plural(t.Periods, "period"), percent(t.Ratio))
		}
		f := report.NewFinding(report.CPUQuotaOnExclusiveCPUs, report.Proven, c.subject(k.Name), summary+".")
		f.Because = append(c.throttleEvidence(own), c.ownershipEvidence(k.Name)...)
		if state, err := c.cpuState(); err != nil {
			f.Confidence = report.Likely // a corrupt checkpoint says it
			f.Because = append(f.Because, c.fileEvidence(cpuStatePath, "entries["+c.uid+"]["+k.Name+"]", state.Entries[c.uid][k.Name].String(), "the CPU Manager's checkpoint, which its own checksum contradicts"))
		}
		if t.Throttled > 0 {
			f.Arithmetic = fmt.Sprintf("%d / %d = %s; %d µs / %d = %s of run-queue time per throttled period", t.Throttled, t.Periods, percent(t.Ratio), t.ThrottledUsec, t.Throttled, usec(t.MeanStallUsec))
		}
		switch {
		case c.rulesKnown && !c.rulesExact && c.versions().Kubelet != "":
			f.Because = append(f.Because, c.apiEvidence("status.nodeInfo.kubeletVersion", c.versions().Kubelet, "kubelets before 1.33 set the quota of exclusive CPUs"))
			f.Remedies = []report.Remedy{{Summary: "Upgrade the kubelet to 1.33 or later and delete the pod.", Effect: "Exclusive CPUs then get no quota, at container and pod level."}}
		default:
			f.Remedies = []report.Remedy{{
				Summary: "Delete the pod, so that the kubelet makes its cgroups anew.",
				Effect:  "From 1.33 on exclusive CPUs get no quota, unless the gate DisableCPUQuotaWithExclusiveCPUs is off (it can be up to 1.36).",
			}}
		}
		out = append(out, f)
	}
	return out
}
