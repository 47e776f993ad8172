package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// staticNodePool: a pool of a fixed number of nodes is neither emptied nor
// consolidated; only spec.replicas shrinks it (Karpenter 1.14,
// pkg/controllers/static).
func staticNodePool(p *poolCase) []report.Finding {
	if !p.static() {
		return nil
	}
	s := disruption.StaticOf(p.pool, p.karpenter.Nodes)
	running := fmt.Sprintf(" with %s running", plural(s.Running, "node"))
	surplus := ""
	switch {
	case p.claimsErr != nil:
		running = ""
	case s.Surplus() > 0:
		surplus = fmt.Sprintf("; the surplus of %d goes at once and asks no budget", s.Surplus())
	}
	f := report.NewFinding(report.StaticNodePool, report.Proven, p.subject(),
		fmt.Sprintf("NodePool %s is static: spec.replicas is %d%s, and neither Emptiness nor consolidation ever removes a node of it%s.", p.pool.Name, s.Replicas, running, surplus),
		p.field("spec.replicas", fmt.Sprint(s.Replicas), "how many nodes Karpenter keeps; consolidationPolicy and consolidateAfter count for nothing beside it"))
	fewer := max(s.Replicas-1, 0)
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, fewer)
	r := report.Remedy{
		Summary: fmt.Sprintf("Lower spec.replicas, to %d for one node less.", fewer),
		Command: p.mergeCommand(patch), Patch: patch,
		Caution: "The surplus is deleted at once, whatever the budgets say; which nodes go is Karpenter's choice.",
	}
	if p.claimsErr == nil {
		f.Arithmetic = fmt.Sprintf("%d running - %d replicas: surplus %d; %d more await replacements", s.Running, s.Replicas, s.Surplus(), s.Pending)
		after := s
		after.Replicas = fewer
		r.Effect = fmt.Sprintf("a surplus of %d", after.Surplus())
	}
	f.Remedies = []report.Remedy{r}
	return []report.Finding{f}
}

// static: the pool has a fixed number of nodes, in a version that knows of such.
func (p *poolCase) static() bool { return p.pool.IsStatic() && p.version.rules.StaticPools }

// mergeCommand applies a merge patch to the pool.
func (p *poolCase) mergeCommand(patch string) string {
	return "kubectl patch nodepools.karpenter.sh " + shellWord(p.pool.Name) + " --type=merge -p " + shellWord(patch)
}

// ofPool lets a rule of pools speak in the report of a node.
func ofPool(find func(*poolCase) []report.Finding) func(*nodeCase) []report.Finding {
	return func(n *nodeCase) []report.Finding {
		if n.pool == nil || !n.node.Managed() {
			return nil
		}
		return find(n.pool)
	}
}
