package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// The predicates of pkg/utils/pod/scheduling.go.

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isTerminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func isActive(pod *corev1.Pod) bool { return !isTerminal(pod) && !isTerminating(pod) }

func ownedBy(pod *corev1.Pod, apiVersion, kind string) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.APIVersion == apiVersion && owner.Kind == kind {
			return true
		}
	}
	return false
}

// IsDaemonSetPod reports whether a DaemonSet made the pod.
func IsDaemonSetPod(pod *corev1.Pod) bool { return ownedBy(pod, "apps/v1", "DaemonSet") }

// IsStaticPod reports whether the pod is a mirror of one that the kubelet runs by itself.
func IsStaticPod(pod *corev1.Pod) bool { return ownedBy(pod, "v1", "Node") }

// IsReschedulable reports whether the pod has to go somewhere when its node goes. A terminating pod of a StatefulSet does: its
// successor is made only when it is gone.
func IsReschedulable(pod *corev1.Pod) bool {
	return (isActive(pod) || isTerminating(pod) && ownedBy(pod, "apps/v1", "StatefulSet")) && !IsDaemonSetPod(pod) && !IsStaticPod(pod)
}

// isEvictable reports whether Karpenter would evict the pod, so that disruption budgets of pods matter for it.
func isEvictable(pod *corev1.Pod, now time.Time, rules karpenter.Rules) bool {
	return isActive(pod) && !toleratesDisrupted(pod) && !IsStaticPod(pod) && !DoNotDisruptOf(pod, rules).Holds(now)
}

// isDrainable reports whether a drain waits for the pod, unless it has been terminating for more than a minute.
func isDrainable(pod *corev1.Pod, now time.Time) bool {
	stuck := isTerminating(pod) && now.Sub(pod.DeletionTimestamp.Time) > time.Minute
	return !toleratesDisrupted(pod) && !stuck && !IsStaticPod(pod)
}

// toleratesDisrupted reports whether the pod tolerates karpenter.sh/disrupted:NoSchedule, which has no value.
func toleratesDisrupted(pod *corev1.Pod) bool {
	for _, t := range pod.Spec.Tolerations {
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule || t.Key != "" && t.Key != karpenter.DisruptedTaint {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case "", corev1.TolerationOpEqual:
			if t.Key != "" && t.Value == "" {
				return true
			}
		}
	}
	return false
}
