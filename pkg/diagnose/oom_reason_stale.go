package diagnose

import (
	"fmt"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomReasonStale speaks of a status that says OOMKilled although the container
// ended otherwise: the runtime keeps the reason of any OOM kill in the
// container's life, of a child or of an exec'd probe too.
func oomReasonStale(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.containers() {
		end := k.end()
		if end == nil || end.Reason != reasonOOMKilled || k.init && !k.sidecar && end.ExitCode == 0 {
			continue // an init container counts as failed by the kill, whatever its code
		}
		if end.ExitCode == 137 {
			if f, ok := c.staleByTime(k); ok {
				out = append(out, f)
			}
			continue
		}
		f := report.NewFinding(report.OOMReasonStale, report.Proven, c.subject(k.Name),
			fmt.Sprintf("Container %s is reported as OOMKilled, but it ended with exit code %d at %s, not by SIGKILL (137): the reason is of an earlier kill in it, of a child or a probe.",
				k.Name, end.ExitCode, utc(end.FinishedAt.Time)),
			c.endEvidence(k, "reason and exit code do not belong together"))
		f.Remedies = []report.Remedy{{
			Summary: fmt.Sprintf("Look for why the main process ended with code %d (its log), and separately for what was OOM-killed before.", end.ExitCode),
		}}
		out = append(out, f)
	}
	return out
}

// staleByTime speaks of an end by SIGKILL long after the kernel log's last OOM
// kill in that container.
func (c *podCase) staleByTime(k container) (report.Finding, bool) {
	end := k.end()
	last, stale := c.oom().before(end)
	if !stale {
		return report.Finding{}, false
	}
	f := report.NewFinding(report.OOMReasonStale, report.Likely, c.subject(k.Name),
		fmt.Sprintf("Container %s is reported as OOMKilled, but it ended at %s, %s after the last OOM kill in it that the kernel log has: the reason is of that kill, the end has another cause.",
			k.Name, utc(end.FinishedAt.Time), end.FinishedAt.Sub(last.Time.Wall).Round(time.Second)),
		c.endEvidence(k, "the runtime keeps the reason of any OOM kill in the container's life"), killEvidence(last, "the last OOM kill in this container"))
	f.Arithmetic = fmt.Sprintf("%s − %s = %s", utc(end.FinishedAt.Time), utc(last.Time.Wall), end.FinishedAt.Sub(last.Time.Wall).Round(time.Second))
	f.Remedies = []report.Remedy{{Summary: "Look for who ended it then: probes, a stop, an eviction; and separately for what was OOM-killed before."}}
	return f, true
}
