package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuLimitBelowNodeCPUs says, where no counters say more, what a runtime that
// counts the node's CPUs would do to a smaller limit: N threads spend the
// quota in 1/N of its length and stand still for the rest of the period.
func cpuLimitBelowNodeCPUs(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.cpu() {
		own := k.own()
		if !own.limited() || own.statErr == nil || c.object == nil {
			continue
		}
		if pod := k.levels[1]; pod.statErr == nil && c.oneConstraint(own, pod) {
			continue // the pod's counters are those of the same limit
		}
		cpus := c.object.Status.Capacity.Cpu().Value()
		quota, period := float64(own.max.Quota), float64(own.max.Period)
		if set, err := own.group.CPUSetCPUsEffective(); err == nil && int64(set.Size()) < cpus {
			cpus = int64(set.Size())
		}
		if float64(cpus) <= quota/period {
			continue
		}
		run := quota / float64(cpus)
		f := report.NewFinding(report.CPULimitBelowNodeCPUs, report.Possible, c.subject(k.Name),
			fmt.Sprintf("Container %s may use %s of %d CPUs: a runtime that starts one thread per CPU runs for %s of each %s and stands still for %s.",
				k.Name, cores(quota/period), cpus, usec(run), usec(period), usec(period-run)),
			c.fileEvidence(own.group.File("cpu.max"), "", own.max.String(), "quota and period in µs"),
			c.apiEvidence("status.capacity.cpu", fmt.Sprint(c.object.Status.Capacity.Cpu().Value()), "what a runtime unaware of the limit counts"))
		f.Arithmetic = fmt.Sprintf("%d µs / %d threads = %s; %s − %s = %s", own.max.Quota, cpus, usec(run), usec(period), usec(run), usec(period-run))
		r := c.threadsOf(k)
		f.Because = append(f.Because, r.evidence...)
		f.Remedies = []report.Remedy{{
			Summary: fmt.Sprintf("See how many threads the runtime starts, and fit them to the limit: %s.", r.knob(cgroup.CountedCPUs(own.max.Quota, own.max.Period))),
			Effect:  "cpu.stat was not read: whether the container is throttled is not known.",
		}}
		out = append(out, f)
	}
	return out
}
