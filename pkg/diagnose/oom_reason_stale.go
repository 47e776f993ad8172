package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomReasonStale speaks of a status that says OOMKilled although the container
// ended otherwise: the runtime keeps the reason of any OOM kill in the
// container's life, of a child or of an exec'd probe too.
func oomReasonStale(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.containers() {
		end := k.end()
		if end == nil || end.Reason != reasonOOMKilled || end.ExitCode == 137 {
			continue
		}
		f := newFinding(report.OOMReasonStale, report.Proven, c.subject(k.Name),
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
