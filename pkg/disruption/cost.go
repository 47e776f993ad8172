package disruption

import (
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// nodeCost is what taking a node away costs before any pod is counted.
const nodeCost = 1.0

// EvictionCost is what moving the pod costs: 1, more or less by its deletion cost and its priority, within ±10
// (pkg/utils/disruption/disruption.go).
func EvictionCost(pod *corev1.Pod, rules karpenter.Rules) float64 {
	cost := 1.0
	text, ok := pod.Annotations[corev1.PodDeletionCost]
	if rules.DisruptionCostAnnotation {
		if own, has := pod.Annotations[karpenter.DisruptionCostAnnotation]; has {
			text, ok = own, true
		}
	}
	if deletion, err := strconv.ParseFloat(text, 64); ok && err == nil {
		cost += deletion / (1 << 27)
	}
	if pod.Spec.Priority != nil {
		cost += float64(*pod.Spec.Priority) / (1 << 25)
	}
	return min(max(cost, -10), 10)
}

// RescheduleDisruptionCost is 1 and the positive eviction costs of the pods that have to go somewhere.
func RescheduleDisruptionCost(pods []*corev1.Pod, rules karpenter.Rules) float64 {
	cost := nodeCost
	for _, pod := range pods {
		if IsReschedulable(pod) {
			cost += max(0, EvictionCost(pod, rules))
		}
	}
	return cost
}

// IsEmpty reports whether there is nothing among a node's pods that would have to be moved when it goes.
func IsEmpty(pods []*corev1.Pod, rules karpenter.Rules) bool {
	if rules.EmptyByCost {
		return RescheduleDisruptionCost(pods, rules) <= nodeCost
	}
	return !slices.ContainsFunc(pods, IsReschedulable)
}

// DisruptionCost is the sum of the eviction costs of all pods, times what is left of the node's life. 1.13 and before sort by it.
func DisruptionCost(n *Node, now time.Time, rules karpenter.Rules) float64 {
	cost := 0.0
	for _, pod := range n.Pods {
		cost += EvictionCost(pod, rules)
	}
	return cost * lifetimeRemaining(n.NodeClaim, now)
}

// lifetimeRemaining is the share of expireAfter that is left, 1 where the node does not expire.
func lifetimeRemaining(claim *karpenter.NodeClaim, now time.Time) float64 {
	expire := claim.Spec.ExpireAfter
	if !expire.Set {
		return 1
	}
	total := expire.Duration.Seconds()
	left := (total - now.Sub(claim.CreationTimestamp.Time).Seconds()) / total
	if math.IsNaN(left) {
		return left // a life of no length that ends now; Karpenter's clamp lets it through
	}
	return min(max(left, 0), 1)
}

// stateCost is the cost of a node that is not a candidate, as Karpenter's cluster state keeps it: of all pods but a DaemonSet's and
// those that have ended. Until the node's next update after its NodeClaim's, the state may hold 1 instead.
func stateCost(n *Node, rules karpenter.Rules) float64 {
	cost := nodeCost
	if n.Node == nil {
		return cost
	}
	for _, pod := range n.Pods {
		if isTerminal(pod) || IsDaemonSetPod(pod) {
			continue
		}
		if eviction := EvictionCost(pod, rules); eviction > 0 {
			cost += eviction
		}
	}
	return cost
}

// Price is the hourly price of the node's own offering. ok is false where it is not known, for which Karpenter takes 0.
func (c *Cluster) Price(n *Node) (price float64, ok bool) {
	if price, ok = c.priceOf(n.Labels()); !ok && n.OwnPrice != nil {
		return *n.OwnPrice, true
	}
	return price, ok
}

func (c *Cluster) priceOf(labels map[string]string) (price float64, ok bool) {
	instanceType := labels[corev1.LabelInstanceTypeStable]
	for _, types := range []InstanceTypes{c.Types, c.Prices} {
		for _, zone := range []string{labels[corev1.LabelTopologyZone], "*"} {
			if price, ok = types[instanceType][Offering{zone, labels[karpenter.CapacityTypeLabel]}]; ok && !math.IsNaN(price) {
				return price, true
			}
		}
	}
	return 0, false
}
