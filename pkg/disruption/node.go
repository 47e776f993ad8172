package disruption

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Node is a node, its NodeClaim, or both, as Karpenter's cluster state joins them (pkg/controllers/state/statenode.go).
type Node struct {
	Node      *corev1.Node         // nil: not registered yet
	NodeClaim *karpenter.NodeClaim // nil: not Karpenter's
	Pods      []*corev1.Pod        // bound to the node, by namespace and name

	// OwnPrice is what the node's own offering costs an hour, where something but a list of prices tells it.
	OwnPrice *float64

	// What Karpenter keeps in memory. From outside it shows only in part: see Marks and NominationWindow.
	Marked    bool // chosen by a command that is under way
	Nominated bool // the target of a pending pod
	Queued    bool // part of a command whose replacements are awaited
}

// Name is the name of the node, and before it is registered that of its NodeClaim.
func (n *Node) Name() string {
	switch {
	case n.Node == nil, n.NodeClaim != nil && !n.Registered():
		return n.NodeClaim.Name
	}
	return n.Node.Name
}

// Managed reports whether the node is Karpenter's.
func (n *Node) Managed() bool { return n.NodeClaim != nil }

// Registered reports whether Karpenter has tied the node to its NodeClaim. A node of others counts as registered.
func (n *Node) Registered() bool { return n.hasLabel(karpenter.RegisteredLabel) }

// Initialized reports whether Karpenter takes the node for ready to be used. A node of others counts as initialized.
func (n *Node) Initialized() bool { return n.hasLabel(karpenter.InitializedLabel) }

func (n *Node) hasLabel(key string) bool {
	return !n.Managed() || n.Node != nil && n.Node.Labels[key] == "true"
}

// Labels are those of the node once it is registered, before those of the NodeClaim.
func (n *Node) Labels() map[string]string { return n.meta().Labels }

// Annotations are taken from where Labels are.
func (n *Node) Annotations() map[string]string { return n.meta().Annotations }

func (n *Node) meta() *metav1.ObjectMeta {
	if n.Node == nil || n.Managed() && !n.Registered() {
		return &n.NodeClaim.ObjectMeta
	}
	return &n.Node.ObjectMeta
}

// NodePool is the name of the pool that the node belongs to; ok is false without the label.
func (n *Node) NodePool() (name string, ok bool) {
	name, ok = n.Labels()[karpenter.NodePoolLabel]
	return name, ok
}

// Deleting reports whether the node goes whatever else happens: its NodeClaim is deleted or its instance is, or it is deleted and has
// none.
func (n *Node) Deleting() bool {
	if n.NodeClaim != nil {
		return n.NodeClaim.DeletionTimestamp != nil || n.NodeClaim.IsTrue(karpenter.ConditionInstanceTerminating)
	}
	return n.Node.DeletionTimestamp != nil
}

// MarkedForDeletion reports whether the node is deleting or chosen to be.
func (n *Node) MarkedForDeletion() bool { return n.Marked || n.Deleting() }

// ReadyStatus is the status of the node's Ready condition, "" where there is none.
func (n *Node) ReadyStatus() corev1.ConditionStatus {
	if n.Node == nil {
		return ""
	}
	for _, condition := range n.Node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}
