package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// weightFormula is how a container's cpu.weight came from its request.
type weightFormula string

const (
	linear    weightFormula = "linear"
	quadratic weightFormula = "quadratic"
)

// cpuWeightFormulasDiffer speaks of containers of one pod whose weights were
// computed by different formulas: the runtime was replaced under a running
// pod (opencontainers/cgroups 0.0.3, runc 1.3.2, crun 1.23), and only those
// restarted since have the new one. Their shares are then not in the
// proportion of their requests.
func cpuWeightFormulasDiffer(c *podCase) []report.Finding {
	if c.groupsErr != nil {
		return nil
	}
	var because []report.Evidence
	seen := map[weightFormula]string{}
	for _, k := range c.containers() {
		g, ok := c.containerGroup(k.Name)
		if !ok {
			continue
		}
		weight, err := g.CPUWeight()
		if err != nil {
			continue
		}
		formula, shares, ok := c.formulaOf(k, weight)
		if !ok {
			continue
		}
		seen[formula] = k.Name
		because = append(because, c.fileEvidence(g.File("cpu.weight"), "", fmt.Sprint(weight),
			fmt.Sprintf("container %s: %d shares by the %s formula", k.Name, shares, formula)))
	}
	if len(seen) < 2 {
		return nil
	}
	f := report.NewFinding(report.CPUWeightFormulasDiffer, report.Proven, c.subject(""),
		fmt.Sprintf("Containers of this pod got their cpu.weight by different formulas (%s linear, %s quadratic): under contention their shares are not in the proportion of their requests.",
			seen[linear], seen[quadratic]), because...)
	f.Remedies = []report.Remedy{{
		Summary: "Delete the pod, so that one runtime makes all of its containers anew.",
		Effect:  "All weights then follow one formula.",
	}}
	return []report.Finding{f}
}

// formulaOf tells the formula where the two give different weights.
func (c *podCase) formulaOf(k container, weight uint64) (weightFormula, uint64, bool) {
	request, ok := cgroup.EffectiveCPURequest(c.pod, &k.Container)
	if !ok {
		return "", 0, false
	}
	shares := cgroup.MilliCPUToShares(request)
	old, current := cgroup.WeightLinear(shares), cgroup.WeightQuadratic(shares)
	switch {
	case old == current:
		return "", shares, false
	case weight == old:
		return linear, shares, true
	case weight == current:
		return quadratic, shares, true
	default:
		return "", shares, false
	}
}
