package shrink

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// missingPriceLabels: consolidation leaves out a node whose price it cannot
// look up.
func missingPriceLabels(n *nodeCase) []report.Finding {
	if !n.weighs() || !n.node.Initialized() {
		return nil
	}
	var missing []string
	var because []report.Evidence
	for _, label := range []string{corev1.LabelInstanceTypeStable, karpenter.CapacityTypeLabel, corev1.LabelTopologyZone} {
		if _, ok := n.node.Labels()[label]; !ok {
			missing = append(missing, label)
			because = append(because, n.field("metadata.labels["+label+"]", "", "absent; part of the key of the node's price"))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []report.Finding{report.NewFinding(report.MissingPriceLabels, report.Proven, n.subject(),
		fmt.Sprintf("Node %s lacks %s, so consolidation leaves it out: its price cannot be looked up.", n.node.Name(), join(missing)), because...)}
}

// weighs: consolidation weighs the node's price. It does not for empty nodes,
// static pools, WhenEmpty and consolidateAfter Never.
func (n *nodeCase) weighs() bool {
	if n.pool == nil || !n.node.Managed() || n.node.Node == nil || n.podsErr != nil || n.empty() {
		return false
	}
	d := n.pool.pool.Disruption()
	return !n.pool.pool.IsStatic() && d.ConsolidateAfter.Set && d.ConsolidationPolicy != karpenter.WhenEmpty
}
