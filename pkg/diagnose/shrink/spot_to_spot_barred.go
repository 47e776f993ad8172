package shrink

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	spotDisabled = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"
	spotFewer    = "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to consolidate, got "
)

// spotToSpotBarred: a spot node may be replaced by a cheaper spot node only with
// the gate SpotToSpotConsolidation, and alone only where 15 types are cheaper.
func spotToSpotBarred(n *nodeCase) []report.Finding {
	e, ok := n.lastVerdict()
	if !ok {
		return nil
	}
	summary, remedy := "", report.Remedy{}
	if got, few := strings.CutPrefix(e.Message, spotFewer); few && !strings.ContainsAny(got, " \n") {
		summary = fmt.Sprintf("Spot node %s has %s cheaper instance types to be replaced by, and Karpenter asks for 15 before it replaces one spot node by another.", n.node.Name(), got)
		remedy = report.Remedy{Summary: "Widen the NodePool's requirements to more instance types. Deletions, and several nodes turned into one, have no such minimum."}
	} else if e.Message == spotDisabled {
		summary = fmt.Sprintf("Spot node %s could only be replaced by a spot node, which the gate SpotToSpotConsolidation bars.", n.node.Name())
		remedy = report.Remedy{Summary: "Set the feature gate SpotToSpotConsolidation of Karpenter's controller.", Caution: "One spot node for another then also needs 15 cheaper instance types."}
	} else {
		return nil
	}
	f := report.NewFinding(report.SpotToSpotBarred, report.Likely, n.subject(), summary, n.verdictEvidence(e))
	f.Remedies = []report.Remedy{remedy}
	return []report.Finding{f}
}
