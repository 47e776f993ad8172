package diagnose

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// clearlyBelow is the use of the quota of the active periods below which a
// kernel that lets slices of quota expire is a cause of its own.
const clearlyBelow = 0.8

// kernelQuotaBug speaks of containers that are throttled although they use
// clearly less than their quota, on a kernel that lets the slices of quota
// expire which CPUs took and did not use (before de53fd7aedb1 in Linux 5.4).
// Bursts of several threads look the same, so it is never proven.
func kernelQuotaBug(c *podCase) []report.Finding {
	release, evidence := c.kernelRelease()
	state := cgroup.SliceExpiryOf(release)
	if state != cgroup.SliceExpiryPresent && state != cgroup.SliceExpiryPossible {
		return nil
	}
	var out []report.Finding
	for _, k := range c.cpu() {
		l, _ := c.quotaMeters(k)
		if l == nil {
			continue
		}
		t, sampled := l.best()
		if yes, _ := l.throttles(); !yes || !expiresSlices(t) {
			continue
		}
		confidence := report.Likely
		if state == cgroup.SliceExpiryPossible || !sampled {
			confidence = report.Possible
		}
		summary := fmt.Sprintf("Container %s is throttled in %d of %s (%s) although it uses %s of its quota; kernel %s is older than the fix of the CFS bandwidth controller, which lets unused slices of quota expire.",
			k.Name, t.Throttled, plural(t.Periods, "period"), percent(t.Ratio), percent(t.UsedOfQuota), release)
		if state == cgroup.SliceExpiryPossible {
			summary = strings.TrimSuffix(summary, ".") + ", unless the distribution has patched it."
		}
		f := report.NewFinding(report.KernelQuotaBug, confidence, c.subject(k.Name), summary)
		f.Because = append([]report.Evidence{evidence}, c.throttleEvidence(l)...)
		f.Arithmetic = fmt.Sprintf("%d / %d = %s; %d µs used / (%d × %d µs) = %s of the quota", t.Throttled, t.Periods, percent(t.Ratio), t.UsageUsec, t.Periods, l.max.Quota, percent(t.UsedOfQuota))
		f.Remedies = []report.Remedy{{
			Summary: "Boot a kernel with the fix: 5.4 or later, or 4.14.154, 4.19.84, 5.3.9 and later of these lines, or a distribution's kernel whose changelog names de53fd7aedb1.",
			Effect:  "Slices then keep until they are used. Bursts of parallel threads, which look alike, are throttled as before.",
		}, {
			Summary: "Until then raise limits.cpu of container " + k.Name + ", or drop it and keep the request.",
			Effect:  "More quota per period leaves more slices; without a quota nothing expires.",
			Caution: "A limit unequal to the request makes a Guaranteed pod Burstable.",
		}}
		out = append(out, f)
	}
	return out
}

// expiresSlices says whether a sample shows what expired slices would: periods
// cut short with the quota clearly not used.
func expiresSlices(t cgroup.Throttle) bool {
	return t.HasUsage && t.HasQuota && t.UsedOfQuota < clearlyBelow
}

// mayExpireSlices says whether the kernel's bug is a cause of the throttling
// beside others.
func (c *podCase) mayExpireSlices(t cgroup.Throttle) bool {
	release, _ := c.kernelRelease()
	state := cgroup.SliceExpiryOf(release)
	return expiresSlices(t) && (state == cgroup.SliceExpiryPresent || state == cgroup.SliceExpiryPossible)
}

// kernelRelease is the node's kernel as the API or else /proc/version names it.
func (n *nodeCase) kernelRelease() (string, report.Evidence) {
	if n.object != nil && n.object.Status.NodeInfo.KernelVersion != "" {
		release := n.object.Status.NodeInfo.KernelVersion
		return release, n.apiEvidence("status.nodeInfo.kernelVersion", release, "the kernel")
	}
	const file = "proc/version"
	data, err := fs.ReadFile(n.fsys, file)
	if err != nil {
		return "", report.Evidence{}
	}
	rest, ok := strings.CutPrefix(string(data), "Linux version ")
	release, _, found := strings.Cut(rest, " ")
	if !ok || !found || len(release) > 80 {
		return "", report.Evidence{}
	}
	return release, n.fileEvidence(file, "", release, "the kernel")
}
