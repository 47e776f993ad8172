package shrink

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caPodWithoutController: a pod that nobody is known to make again holds its
// node: it has no controller, its controller is gone, or it is of a kind that
// the autoscaler does not know (Cluster Autoscaler 1.36,
// simulator/drainability/rules/replicated and customcontroller).
func caPodWithoutController(a *caCase) []report.Finding {
	pods := a.heldBy(func(b autoscaler.Blocker) bool {
		return b.Reason == autoscaler.NotReplicated || b.Reason == autoscaler.ControllerNotFound
	})
	if len(pods) == 0 {
		return nil
	}
	confidence := report.Likely
	bare := 0
	for _, h := range pods {
		if metav1.GetControllerOf(h.pod) == nil {
			bare++
		}
		confidence = strongest(confidence, a.bound(h.blockers[0].Flag))
	}
	what := fmt.Sprintf("%s without a controller", plural(len(pods), "pod"))
	if bare < len(pods) {
		what = fmt.Sprintf("%s that nothing is known to make again (%d without a controller)", plural(len(pods), "pod"), bare)
	}
	return []report.Finding{a.podsFinding(report.CAPodWithoutController, confidence, fmt.Sprintf("%s is kept by %s: %s.", a.kept(), what, some(podNames(pods))), pods,
		func(h heldPod) report.Evidence {
			b := h.blockers[0]
			controller := metav1.GetControllerOf(h.pod)
			switch {
			case controller == nil:
				return podField(h.pod, "metadata.ownerReferences", "(no controller)", "nobody makes it again, so the Cluster Autoscaler never evicts it")
			case b.Reason == autoscaler.ControllerNotFound:
				return podField(h.pod, "metadata.ownerReferences", controller.Kind+" "+controller.Name, "is not there any more, so nobody makes the pod again")
			}
			return podField(h.pod, "metadata.ownerReferences", controller.Kind+" "+controller.Name, "a kind that the Cluster Autoscaler does not know, with --"+b.Flag)
		},
		func(h heldPod) []report.Remedy {
			caution := "It ends with the node"
			if metav1.GetControllerOf(h.pod) == nil {
				caution += ", and nobody makes it again"
			}
			return []report.Remedy{a.allowEviction(h, caution+".")}
		})}
}

// strongest is the surer of two confidences: one pod that holds for sure is enough.
func strongest(a, b report.Confidence) report.Confidence {
	if b.Rank() < a.Rank() {
		return b
	}
	return a
}
