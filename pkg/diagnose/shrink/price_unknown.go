package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const statePrices = "State prices: a file of lines instance_type,zone,capacity_type,usd_per_hour."

// priceUnknown: what the node costs is told by nothing, so neither its savings
// nor its place in the order can be computed.
func priceUnknown(n *nodeCase) []report.Finding {
	if !n.weighs() {
		return nil
	}
	if _, known := n.karpenter.Price(n.node); known {
		return nil
	}
	if _, judged := n.lastVerdict(); judged {
		return nil // Karpenter, which knows the prices, has said what came of them
	}
	what := "what its removal would save, its place in Karpenter's order and whether another type is cheaper"
	if n.pool.pool.Disruption().ConsolidationPolicy == karpenter.Balanced {
		what += ", and so the Balanced score that decides"
	}
	n.gaps.Miss(metricsFile, n.metricsErr, "prices of nodes and instance types", "get pods/proxy of Karpenter's controller, or --prices FILE")
	f := report.NewFinding(report.PriceUnknown, report.Proven, n.subject(),
		fmt.Sprintf("The price of node %s is not known; %s cannot be computed.", n.node.Name(), what),
		n.field("metadata.labels", n.node.Labels()["node.kubernetes.io/instance-type"]+" "+n.node.Labels()["topology.kubernetes.io/zone"]+" "+n.node.Labels()[karpenter.CapacityTypeLabel],
			"instance type, zone and capacity type: no price of them in Karpenter's metrics, the node's labels or --prices"))
	f.Remedies = []report.Remedy{{Summary: statePrices, Command: "kubectl noderes explain node " + shellWord(n.node.Name()) + " --prices prices.csv"}}
	return []report.Finding{f}
}
