package autoscaler

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations, taints and the name it gives as the source of its events.
const (
	ScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled" // on nodes
	SafeToEvict       = "cluster-autoscaler.kubernetes.io/safe-to-evict"       // on pods
	SafeLocalVolumes  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	DaemonSetPod      = "cluster-autoscaler.kubernetes.io/daemonset-pod"

	ToBeDeletedTaint       = "ToBeDeletedByClusterAutoscaler"       // NoSchedule: it is being removed
	DeletionCandidateTaint = "DeletionCandidateOfClusterAutoscaler" // PreferNoSchedule: it is unneeded

	EventSource = "cluster-autoscaler"
)

// ScaleDownDisabledOn reports whether the node is excepted. Only the exact value "true" counts.
func ScaleDownDisabledOn(node *corev1.Node) bool {
	return node.Annotations[ScaleDownDisabled] == "true"
}

// TaintOf finds a taint by its key. Its value is when it was set, in seconds since 1970; since is zero where it is no such number.
func TaintOf(node *corev1.Node, key string) (taint corev1.Taint, since time.Time, ok bool) {
	for _, t := range node.Spec.Taints {
		if t.Key != key {
			continue
		}
		// Beyond year 9999 no time can be written.
		if seconds, err := strconv.ParseInt(t.Value, 10, 64); err == nil && seconds > 0 && seconds < 253402300800 {
			since = time.Unix(seconds, 0).UTC()
		}
		return t, since, true
	}
	return corev1.Taint{}, time.Time{}, false
}

// Unready is why a node counts as not ready, "" where it does not (utils/kubernetes/ready.go). Without a Ready condition it is unready;
// so it is with its disk or its network in trouble.
func Unready(node *corev1.Node) string {
	found := false
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			found = true
			if c.Status == corev1.ConditionFalse || c.Status == corev1.ConditionUnknown {
				return "Ready is " + string(c.Status)
			}
		case corev1.NodeDiskPressure, corev1.NodeNetworkUnavailable:
			if c.Status == corev1.ConditionTrue {
				return string(c.Type) + " is True"
			}
		}
	}
	if !found {
		return "it has no condition Ready"
	}
	return ""
}

// IsController reports whether a pod of these labels and containers is the Cluster Autoscaler, and which container it is: by the
// name of the image or of the container, or by a label such as charts and manifests give it.
func IsController(labels map[string]string, containers []corev1.Container) (container int, ok bool) {
	for i := range containers {
		c := &containers[i]
		image := c.Image[strings.LastIndex(c.Image, "/")+1:]
		if strings.HasPrefix(image, "cluster-autoscaler") || c.Name == "cluster-autoscaler" {
			return i, true
		}
	}
	for _, key := range []string{"app", "k8s-app", "app.kubernetes.io/name"} {
		if strings.HasSuffix(labels[key], "cluster-autoscaler") && len(containers) > 0 {
			return 0, true
		}
	}
	return 0, false
}

// Minor is N of a version 1.N, as an image tag has it; ok is false where it is none.
func Minor(tag string) (minor int, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(tag, "v"), "1.")
	if !ok {
		return 0, false
	}
	digits := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = rest[:i]
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n <= math.MaxInt16
}
