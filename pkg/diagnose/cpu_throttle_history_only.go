package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuThrottleHistoryOnly speaks of containers whose counters show throttling
// in the past and none in the sample. Without a sample nothing is known of the
// present, and where a container of the pod is throttled now its neighbours'
// past is no answer: the rule is silent then.
func cpuThrottleHistoryOnly(c *podCase) []report.Finding {
	if c.throttledNow() {
		return nil
	}
	var out []report.Finding
	for _, k := range c.cpu() {
		own := k.own()
		if c.first == nil || own.rateErr != nil || !everThrottled(k) {
			continue
		}
		if state, _ := c.quiet(k); state != yes {
			continue
		}
		if _, start := c.startThrottled(k); start {
			continue // that is what it was
		}
		f := report.NewFinding(report.CPUThrottleHistoryOnly, report.Proven, c.subject(k.Name),
			fmt.Sprintf("Container %s was throttled in %d of %s (%s) since its cgroup was made, but in %d of %s of the sample of %s.",
				k.Name, own.life.Throttled, plural(own.life.Periods, "period"), percent(own.life.Ratio),
				own.rate.Throttled, plural(own.rate.Periods, "period"), usec(float64(c.wallUsec))))
		f.Because = c.throttleEvidence(own)
		f.Arithmetic = fmt.Sprintf("%d / %d = %s", own.life.Throttled, own.life.Periods, percent(own.life.Ratio))
		f.Remedies = []report.Remedy{{Summary: "Sample again while it is slow.", Effect: "Only a sample taken under load tells whether the limit holds it back."}}
		out = append(out, f)
	}
	return out
}
