package autoscaler

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is why a pod holds its node, in the autoscaler's words (utils/drain/drain.go:BlockingPodReason).
type Reason string

// Reasons, in the order of the rules that give them (simulator/drainability/rules/rules.go:Default).
const (
	ControllerNotFound Reason = "ControllerNotFound"
	OnCompletion       Reason = "OnCompletion" // it asked to be left to run to its end
	NotReplicated      Reason = "NotReplicated"
	UnmovableSystemPod Reason = "UnmovableKubeSystemPod"
	NotSafeToEvict     Reason = "NotSafeToEvictAnnotation"
	LocalStorage       Reason = "LocalStorageRequested"
	NotEnoughPDB       Reason = "NotEnoughPdb"
)

// Objects are those that some rules look up. Nil: not known, and the rule is left out.
type Objects struct {
	// PDBs are those that select the pod.
	PDBs func(*corev1.Pod) []*policyv1.PodDisruptionBudget
	// HasReplicaSet and HasDaemonSet tell whether the pod's controller is there.
	HasReplicaSet, HasDaemonSet func(namespace, name string) bool
}

// Blocker is a rule that keeps a pod on its node.
type Blocker struct {
	Reason Reason
	// Flag is the setting without which the rule does not apply, "" where it always does.
	Flag string
	// Volumes are the local volumes of LocalStorage, in the pod's order.
	Volumes []corev1.Volume
	PDB     *policyv1.PodDisruptionBudget // of NotEnoughPDB
	// Until is when UnmovableSystemPod passes by itself; zero where it does not.
	Until time.Time
	// Over: that moment has passed. The pod then goes with its node, and is still told, since older autoscalers wait on.
	Over bool
}

// Holds returns every rule that would keep the pod, in the autoscaler's order; it stops at the first. Nil: the pod does not hold its
// node (simulator/drainability/rules).
func Holds(pod *corev1.Pod, s Settings, o Objects, now time.Time) []Blocker {
	if IsMirror(pod) || longTerminating(pod, now) || IsExpendable(pod, s) {
		return nil
	}
	var out []Blocker
	controller := metav1.GetControllerOf(pod)
	daemon := IsDaemonSet(pod)
	if s.SkipCustomControllers && controller != nil && missing(controller, pod.Namespace, o) {
		out = append(out, Blocker{Reason: ControllerNotFound, Flag: FlagSkipCustomControllers})
	}
	if daemon || pod.Annotations[SafeToEvict] == "true" || isTerminal(pod) {
		return out
	}
	if pod.Annotations[SafeToEvict] == "on-completion" {
		out = append(out, Blocker{Reason: OnCompletion})
	}
	// That the controller is gone says the same of the pod, and more.
	if gone := len(out) > 0 && out[0].Reason == ControllerNotFound; !gone {
		switch {
		case controller == nil:
			out = append(out, Blocker{Reason: NotReplicated})
		case s.SkipCustomControllers && !slices.Contains(knownControllers, controller.Kind):
			out = append(out, Blocker{Reason: NotReplicated, Flag: FlagSkipCustomControllers})
		}
	}
	if s.SkipSystemPods && pod.Namespace == metav1.NamespaceSystem && o.PDBs != nil && len(o.PDBs(pod)) == 0 {
		b := Blocker{Reason: UnmovableSystemPod, Flag: FlagSkipSystemPods}
		if s.SystemPodTimeout > 0 && !pod.CreationTimestamp.IsZero() {
			b.Until = pod.CreationTimestamp.Add(s.SystemPodTimeout).UTC()
			b.Over = now.After(b.Until)
		}
		out = append(out, b)
	}
	if pod.Annotations[SafeToEvict] == "false" {
		out = append(out, Blocker{Reason: NotSafeToEvict})
	}
	if s.SkipLocalStorage {
		if volumes := localVolumes(pod); len(volumes) > 0 {
			out = append(out, Blocker{Reason: LocalStorage, Flag: FlagSkipLocalStorage, Volumes: volumes})
		}
	}
	if o.PDBs != nil {
		for _, pdb := range o.PDBs(pod) {
			if pdb.Status.DisruptionsAllowed < 1 {
				out = append(out, Blocker{Reason: NotEnoughPDB, PDB: pdb})
				break
			}
		}
	}
	return out
}

// knownControllers are the kinds that are taken to make a pod again, beside DaemonSet.
var knownControllers = []string{"ReplicationController", "Job", "ReplicaSet", "StatefulSet"}

func missing(controller *metav1.OwnerReference, namespace string, o Objects) bool {
	if !strings.HasPrefix(controller.APIVersion, "apps/") {
		return false
	}
	switch {
	case controller.Kind == "ReplicaSet" && o.HasReplicaSet != nil:
		return !o.HasReplicaSet(namespace, controller.Name)
	case controller.Kind == "DaemonSet" && o.HasDaemonSet != nil:
		return !o.HasDaemonSet(namespace, controller.Name)
	}
	return false
}

// IsMirror reports whether the pod mirrors one that the kubelet runs by itself.
func IsMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// IsDaemonSet reports whether the pod goes with its node because every node has one (utils/pod/pod.go).
func IsDaemonSet(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(pod)
	return controller != nil && controller.Kind == "DaemonSet" || pod.Annotations[DaemonSetPod] == "true"
}

// IsExpendable reports whether the pod's priority is so low that it does not count.
func IsExpendable(pod *corev1.Pod, s Settings) bool {
	return pod.Spec.Priority != nil && int64(*pod.Spec.Priority) < s.ExpendablePriority
}

// isTerminal reports whether no container of the pod runs again.
func isTerminal(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodFailed:
		return true
	case corev1.PodSucceeded:
		return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	}
	return false
}

// longTerminating reports whether the pod should have been gone for half a minute, grace period included. It then counts as gone.
func longTerminating(pod *corev1.Pod, now time.Time) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = min(max(*pod.Spec.TerminationGracePeriodSeconds, 0), 1<<32)
	}
	return pod.DeletionTimestamp.Add(time.Duration(grace)*time.Second + 30*time.Second).Before(now)
}

// localVolumes are hostPath volumes and emptyDirs on disk that the pod's annotation does not except by name. Names in the annotation
// stand between commas, and a blank is part of the name.
func localVolumes(pod *corev1.Pod) []corev1.Volume {
	except := strings.Split(pod.Annotations[SafeLocalVolumes], ",")
	var out []corev1.Volume
	for _, v := range pod.Spec.Volumes {
		local := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		if local && !slices.Contains(except, v.Name) {
			out = append(out, v)
		}
	}
	return out
}
