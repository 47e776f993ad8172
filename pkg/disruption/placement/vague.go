package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// vagueLabels are those that a node without them may count as having. Karpenter adds up what the pods on a node that it simulates ask
// for: after one that asks for NotIn a value, which a node without the label satisfies, the node takes one that asks for the label too
// (pkg/controllers/provisioning/scheduling/existingnode.go:Add). Requirements of one label that exclude each other come to the same.
func vagueLabels(pods func(func(*corev1.Pod) bool)) map[string]bool {
	out := map[string]bool{}
	for pod := range pods {
		a := pod.Spec.Affinity
		if a == nil || a.NodeAffinity == nil {
			continue
		}
		add := func(t corev1.NodeSelectorTerm) {
			for i, e := range t.MatchExpressions {
				_, selected := pod.Spec.NodeSelector[e.Key]
				again := slices.ContainsFunc(t.MatchExpressions[:i], func(other corev1.NodeSelectorRequirement) bool { return other.Key == e.Key })
				if selected || again || e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpExists && e.Operator != corev1.NodeSelectorOpDoesNotExist {
					out[e.Key] = true
					if stable, ok := stableLabels[e.Key]; ok {
						out[stable] = true
					}
				}
			}
		}
		for _, t := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			add(t.Preference)
		}
		if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for _, t := range required.NodeSelectorTerms {
				add(t)
			}
		}
	}
	return out
}
