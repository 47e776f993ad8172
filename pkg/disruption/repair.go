package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// RepairPolicy is a node condition that a provider repairs nodes for, after it has lasted for a time.
type RepairPolicy struct {
	Type       corev1.NodeConditionType
	Status     corev1.ConditionStatus
	Toleration time.Duration
}

// AWSRepairPolicies are those of the AWS provider (karpenter-provider-aws v1.14.0).
var AWSRepairPolicies = []RepairPolicy{
	{corev1.NodeReady, corev1.ConditionFalse, 30 * time.Minute},
	{corev1.NodeReady, corev1.ConditionUnknown, 30 * time.Minute},
	{"AcceleratedHardwareReady", corev1.ConditionFalse, 10 * time.Minute},
	{"StorageReady", corev1.ConditionFalse, 30 * time.Minute},
	{"NetworkingReady", corev1.ConditionFalse, 30 * time.Minute},
	{"KernelReady", corev1.ConditionFalse, 30 * time.Minute},
	{"ContainerRuntimeReady", corev1.ConditionFalse, 30 * time.Minute},
}

// Repair is a node that a policy finds unhealthy.
type Repair struct {
	Policy RepairPolicy
	Since  time.Time
	At     time.Time // when the node is replaced, unless too many are unhealthy
}

// RepairOf returns the repair that comes first for a node. It uses no budget, and its pods are not spared: the drain ends at once
// (pkg/controllers/node/health).
func RepairOf(node *corev1.Node, policies []RepairPolicy) (first Repair, ok bool) {
	for _, policy := range policies {
		for _, condition := range node.Status.Conditions {
			if condition.Type != policy.Type || condition.Status != policy.Status {
				continue
			}
			since := condition.LastTransitionTime.Time
			if next := (Repair{policy, since, since.Add(policy.Toleration)}); !ok || next.At.Before(first.At) {
				first, ok = next, true
			}
		}
	}
	return first, ok
}

// Breaker is why no node of a pool is repaired: more than a fifth of its nodes, rounded up, are unhealthy.
type Breaker struct {
	Nodes, Unhealthy, Allowed int
}

// Open reports whether repair is stopped.
func (b Breaker) Open() bool { return b.Unhealthy > b.Allowed }

// BreakerOf counts all nodes with the pool's label. A node is unhealthy from the first moment, before its policy's time has passed.
func BreakerOf(pool string, nodes []*Node, policies []RepairPolicy) Breaker {
	var b Breaker
	for _, n := range nodes {
		if n.Node == nil || n.Node.Labels[karpenter.NodePoolLabel] != pool {
			continue
		}
		b.Nodes++
		if _, unhealthy := RepairOf(n.Node, policies); unhealthy {
			b.Unhealthy++
		}
	}
	b.Allowed = (b.Nodes + 4) / 5
	return b
}
