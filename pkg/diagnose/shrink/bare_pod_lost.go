package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// barePodLost: a pod that nothing makes again keeps no node of Karpenter's, as
// it keeps those of the Cluster Autoscaler; it goes with its node for good.
func barePodLost(n *nodeCase) []report.Finding {
	if !n.node.Managed() {
		return nil
	}
	var names []string
	var because []report.Evidence
	var remedies []report.Remedy
	for _, pod := range n.node.Pods {
		if len(pod.OwnerReferences) > 0 || !disruption.IsReschedulable(pod) {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		names = append(names, name)
		if len(because) < mostPods {
			because = append(because, podField(pod, "metadata.ownerReferences", "(none)", "nobody makes it again"))
		}
		if len(remedies) < mostNamed && !disruption.DoNotDisruptOf(pod, n.version.rules).Holds(n.at) {
			remedies = append(remedies, report.Remedy{Summary: "Run pod " + name + " under a controller, or keep its node for its sake.",
				Command: "kubectl -n " + shellWord(pod.Namespace) + " annotate pods " + shellWord(pod.Name) + " " + "karpenter.sh/do-not-disrupt=true",
				Effect:  "the pod then keeps " + n.title() + " from voluntary disruption; not from expiry, which ends it all the same where there is a termination grace period"})
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := report.NewFinding(report.BarePodLost, report.Proven, n.subject(),
		fmt.Sprintf("%s on %s without a controller would be lost with the node: %s; the lack of one keeps no node of Karpenter's.", plural(len(names), "pod"), n.title(), some(names)), because...)
	f.Remedies = remedies
	return []report.Finding{f}
}
