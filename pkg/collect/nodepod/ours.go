package nodepod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What a node pod is known by.
const (
	ManagedBy = "app.kubernetes.io/managed-by"
	Component = "app.kubernetes.io/component"
	RunID     = "noderes.dev/run-id"
	Purpose   = "noderes.dev/purpose"

	NamePrefix = "noderes-"

	managedBy = "kubectl-noderes"
	component = "node-pod"
	purpose   = "reads files of its node for kubectl noderes, and may be deleted at any time"
)

// Selector finds node pods by their labels.
const Selector = ManagedBy + "=" + managedBy + "," + Component + "=" + component

// Ours says whether a pod was made as a node pod: by labels, name and annotation
// together, and without an owner. A label alone is anybody's to set.
func Ours(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Name, NamePrefix) && pod.Labels[ManagedBy] == managedBy && pod.Labels[Component] == component &&
		pod.Labels[RunID] != "" && strings.HasSuffix(pod.Name, "-"+pod.Labels[RunID]) &&
		pod.Annotations[Purpose] == purpose && len(pod.OwnerReferences) == 0
}
