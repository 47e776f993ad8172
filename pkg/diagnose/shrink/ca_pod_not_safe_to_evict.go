package shrink

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caPodNotSafeToEvict: a pod says of itself that it must not be evicted, or only
// once it has run to its end (Cluster Autoscaler 1.36,
// simulator/drainability/rules/notsafetoevict).
func caPodNotSafeToEvict(a *caCase) []report.Finding {
	pods := a.heldBy(func(b autoscaler.Blocker) bool {
		return b.Reason == autoscaler.NotSafeToEvict || b.Reason == autoscaler.OnCompletion
	})
	if len(pods) == 0 {
		return nil
	}
	return []report.Finding{a.podsFinding(report.CAPodNotSafeToEvict, report.Proven,
		fmt.Sprintf("%s is kept by %s with the annotation %s: %s.", a.kept(), plural(len(pods), "pod"), autoscaler.SafeToEvict, some(podNames(pods))), pods,
		func(h heldPod) report.Evidence {
			means := "holds its node until the annotation is taken off or the pod is gone"
			if h.blockers[0].Reason == autoscaler.OnCompletion {
				means = "holds its node until it has run to its end"
			}
			return podField(h.pod, "metadata.annotations["+autoscaler.SafeToEvict+"]", h.pod.Annotations[autoscaler.SafeToEvict], means)
		},
		func(h heldPod) []report.Remedy {
			return []report.Remedy{{Summary: fmt.Sprintf("Take the annotation off pod %s/%s once it may be moved.", h.pod.Namespace, h.pod.Name),
				Command: annotate(h.pod, autoscaler.SafeToEvict, ""),
				Effect:  a.after(h.pod, func(p *corev1.Pod) { delete(p.Annotations, autoscaler.SafeToEvict) }),
				Caution: "What makes the pod gives the annotation to its successor, unless it is taken out of the template too."}}
		})}
}
