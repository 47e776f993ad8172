package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuLimitBelowFloor says that a CPU limit is smaller than the least quota, 1 ms
// in each period, which the kubelet writes instead (cm.MilliCPUToQuota): below
// 10m at the usual period of 100 ms, below 200m at 5 ms.
func cpuLimitBelowFloor(c *podCase) []report.Finding {
	if c.ended() || c.configErr == nil && !c.config.CPUCFSQuota {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		q, ok := k.Resources.Limits[corev1.ResourceCPU]
		if !ok || k.finished() {
			continue
		}
		g, stands := c.containerGroup(k.Name)
		what, field := "Container "+k.Name, k.field("spec")+".resources.limits.cpu"
		if f, ok := c.belowFloor(c.subject(k.Name), what, field, q.MilliValue(), q.String(), g, stands); ok {
			out = append(out, f)
		}
	}
	if r := c.pod.Spec.Resources; r != nil && c.groupsErr == nil {
		if q, ok := r.Limits[corev1.ResourceCPU]; ok {
			if f, ok := c.belowFloor(c.subject(""), "The pod", "spec.resources.limits.cpu", q.MilliValue(), q.String(), c.groups.Pod, true); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

// quotaOf says whether a limit gives this quota, exact or rounded up by systemd.
func quotaOf(max cgroup.CPUMax, milli int64) bool {
	quota := cgroup.MilliCPUToQuota(milli, max.Period)
	return max.Quota == quota || max.Quota == cgroup.SystemdRoundedQuota(quota, max.Period)
}

func (c *podCase) belowFloor(subject report.Subject, what, field string, milli int64, limit string, g cgroup.Group, stands bool) (report.Finding, bool) {
	s := c.settings(c.uid)
	period, source := s.CFSPeriodUsec, []report.Evidence(nil)
	if period == 0 {
		period = cgroup.DefaultPeriodUsec
	}
	quota, confidence := uint64(0), report.Likely
	if stands {
		max, err := g.CPUMax()
		switch {
		case err == nil && (max.Max || !quotaOf(max, milli)):
			return report.Finding{}, false // no quota, or one that another limit gave
		case err == nil:
			period, quota, confidence = max.Period, max.Quota, report.Proven
			source = []report.Evidence{c.fileEvidence(g.File("cpu.max"), "", max.String(), "quota and period in µs")}
		}
	}
	if source == nil && c.configErr == nil {
		source = []report.Evidence{c.configEvidence("cpuCFSQuotaPeriod", c.config.CPUCFSQuotaPeriod.String(), "the period")}
	}
	floor := cgroup.QuotaFloorMilli(period)
	if milli <= 0 || milli >= floor {
		return report.Finding{}, false
	}
	least := cgroup.MilliCPUToQuota(milli, period)
	if quota == 0 {
		quota = least
	}
	acts := cgroup.QuotaToMilliCPU(quota, period)
	f := report.NewFinding(report.CPULimitBelowFloor, confidence, subject,
		fmt.Sprintf("%s has a CPU limit of %s, which acts as %dm: a quota is at least %s in each period of %s.", what, limit, acts, usec(float64(least)), usec(float64(period))))
	f.Because = append([]report.Evidence{c.podField(field, limit, "the limit")}, source...)
	f.Arithmetic = fmt.Sprintf("%dm × %d µs / 1000 = %d µs, at least %d µs; %d µs / %d µs = %s", milli, period, milli*int64(period)/1000, least, quota, period, cores(float64(quota)/float64(period)))
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Write the limit that is in force, %dm, or a higher one.", acts),
		Effect:  "Nothing changes but that spec and kernel say the same; sums of limits are then right too.",
	}}
	return f, true
}
