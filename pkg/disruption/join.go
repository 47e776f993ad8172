package disruption

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Join puts nodes and NodeClaims together by providerID, and the pods to their nodes, in order of name. unlaunched are NodeClaims
// without a providerID: while there is one, Karpenter takes its cluster state for unsynced and disrupts nothing.
func Join(nodes []corev1.Node, claims []karpenter.NodeClaim, pods []corev1.Pod) (joined []*Node, unlaunched []*karpenter.NodeClaim) {
	byProvider := map[string]*Node{}
	for i := range claims {
		claim := &claims[i]
		if claim.Status.ProviderID == "" {
			unlaunched = append(unlaunched, claim)
			continue
		}
		byProvider[claim.Status.ProviderID] = &Node{NodeClaim: claim}
	}
	bound := map[string][]*corev1.Pod{}
	for i := range pods {
		if name := pods[i].Spec.NodeName; name != "" {
			bound[name] = append(bound[name], &pods[i])
		}
	}
	for i := range nodes {
		node := &nodes[i]
		id := node.Spec.ProviderID
		if isAwaited(node) {
			continue
		}
		if id == "" {
			id = node.Name
		}
		state := byProvider[id]
		if state == nil {
			state = &Node{}
			byProvider[id] = state
		}
		state.Node = node
		state.Pods = bound[node.Name]
		slices.SortFunc(state.Pods, byName)
	}
	for _, state := range byProvider {
		state.Marked, state.Queued = Marks(state)
		joined = append(joined, state)
	}
	slices.SortFunc(joined, func(a, b *Node) int { return cmp.Compare(a.Name(), b.Name()) })
	return joined, unlaunched
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// isAwaited reports whether Karpenter leaves a node of its own out until more is known of it: its providerID, or before it is
// initialized its instance type (pkg/controllers/state/cluster.go:UpdateNode).
func isAwaited(node *corev1.Node) bool {
	if node.Labels[karpenter.NodePoolLabel] == "" {
		return false
	}
	return node.Spec.ProviderID == "" ||
		node.Labels[corev1.LabelInstanceTypeStable] == "" && node.Labels[karpenter.InitializedLabel] == ""
}

// Marks tells what of a running command shows on the objects: the condition DisruptionReason on the NodeClaim, or the disrupted taint
// on the node. Both are set just before Karpenter marks the node in memory, and taken away when the command fails.
func Marks(n *Node) (marked, queued bool) {
	if n.NodeClaim == nil {
		return false, false
	}
	queued = n.NodeClaim.IsTrue(karpenter.ConditionDisruptionReason)
	return queued || n.Node != nil && hasDisruptedTaint(n.Node), queued
}

func hasDisruptedTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == karpenter.DisruptedTaint && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// NominationWindow is how long a node stays nominated after the last pending pod was planned onto it, by the controller's setting
// BATCH_MAX_DURATION (10 s by default).
func NominationWindow(batchMaxDuration time.Duration) time.Duration {
	return max(2*batchMaxDuration, 10*time.Second)
}
