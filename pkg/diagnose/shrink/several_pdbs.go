package shrink

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// severalPDBs: the eviction API refuses a pod that more than one
// PodDisruptionBudget selects, whatever they allow, and so Karpenter takes it
// for one that cannot go (Karpenter 1.14, pkg/utils/pdb/pdb.go; 1.6 and before
// have no such rule).
func severalPDBs(n *nodeCase) []report.Finding {
	blockers := n.blocked(disruption.CheckSeveralPDBs)
	if len(blockers) == 0 {
		return nil
	}
	var texts []string
	var because []report.Evidence
	var remedies []report.Remedy
	told := map[string]bool{}
	for _, b := range blockers {
		var names []string
		for _, key := range b.PDBs {
			names = append(names, key.String())
			pdb := n.pdbNamed(key.Namespace, key.Name)
			if told[key.String()] || pdb == nil || len(told) >= mostPods {
				continue
			}
			told[key.String()] = true
			because = append(because, pdbEvidence(pdb)...)
		}
		texts = append(texts, fmt.Sprintf("pod %s by %s", b.Pod, some(names)))
		if len(remedies) < mostNamed {
			remedies = append(remedies, report.Remedy{
				Summary: fmt.Sprintf("Leave pod %s only one budget: narrow the selectors, or delete all but one of %s.", b.Pod, some(names)),
				Command: "kubectl -n " + shellWord(b.Pod.Namespace) + " get poddisruptionbudgets",
				Effect:  "the one that is left then decides by what it allows",
			})
		}
	}
	f := report.NewFinding(report.SeveralPDBs, report.Proven, n.subject(),
		fmt.Sprintf("%s is kept by pods that more than one PodDisruptionBudget selects, which the eviction API refuses whatever they allow: %s.", n.title(), some(texts)), because...)
	f.Because = append(f.Because, n.blockedEvent("multiple PDBs")...)
	f.Remedies = remedies
	return []report.Finding{f}
}

func (c *Cluster) pdbNamed(namespace, name string) *policyv1.PodDisruptionBudget {
	for i := range c.pdbs {
		if c.pdbs[i].Namespace == namespace && c.pdbs[i].Name == name {
			return &c.pdbs[i]
		}
	}
	return nil
}
