package shrink

import (
	"fmt"
	"regexp"

	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

var several = regexp.MustCompile(`^Can't remove without creating (\d{1,9}) candidates$`)

// needsSeveralReplacements: Karpenter looked at the node and found that its pods
// would need two or more new nodes; it replaces no node by several (Karpenter
// 1.14, pkg/controllers/disruption/consolidation.go:computeConsolidation). How
// many there would be depends on the provider's types, so only its event tells.
func needsSeveralReplacements(n *nodeCase) []report.Finding {
	e, ok := n.lastVerdict()
	if !ok {
		return nil
	}
	said := several.FindStringSubmatch(e.Message)
	answer := n.elsewhere()
	if said == nil || answer.Outcome == placement.ProbablyRemovable {
		return nil
	}
	f := report.NewFinding(report.NeedsSeveralReplacements, report.Likely, n.subject(),
		fmt.Sprintf("At %s Karpenter found that the pods of node %s would need %s new nodes, and one node is never replaced by several.", utc(lastSeen(e)), n.node.Name(), said[1]),
		n.verdictEvidence(e))
	for i, pod := range answer.Stuck() {
		if i == mostStuck {
			break
		}
		because, sum := n.stuckEvidence(pod)
		f.Because = append(f.Because, because...)
		if f.Arithmetic != "" {
			f.Arithmetic += "; "
		}
		f.Arithmetic += sum
	}
	f.Remedies = []report.Remedy{{Summary: "Allow instance types that hold all of its pods in the NodePool's requirements, or make room for some of them on other nodes.",
		Caution: "Karpenter takes a single larger type only if it costs less than the node does."}}
	return []report.Finding{f}
}
