package disruption

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// DriftReason is why a node is drifted; providers add their own.
type DriftReason string

// Reasons of drift that Karpenter itself finds, in the order in which it looks for them.
const (
	NodePoolDrifted           DriftReason = "NodePoolDrifted"
	RequirementsDrifted       DriftReason = "RequirementsDrifted"
	InstanceTypeNotFoundDrift DriftReason = "InstanceTypeNotFound"
)

// instanceTypeAge is how old a NodeClaim is before its instance type is looked for.
const instanceTypeAge = time.Hour

// DriftOf looks for drift as Karpenter does (pkg/controllers/nodeclaim/disruption/drift.go), "" where it finds none. Providers may
// still find some: the condition Drifted says so.
func (c *Cluster) DriftOf(pool *karpenter.NodePool, claim *karpenter.NodeClaim, now time.Time) DriftReason {
	switch {
	case !claim.IsTrue(karpenter.ConditionLaunched):
		return ""
	case hashDiffers(pool.Annotations, claim.Annotations):
		return NodePoolDrifted
	case len(Unsatisfied(claim.Labels, pool.Spec.Template.Spec.Requirements)) > 0:
		return RequirementsDrifted
	case c.Types != nil && now.Sub(claim.CreationTimestamp.Time) > instanceTypeAge && !c.offers(claim.Labels):
		return InstanceTypeNotFoundDrift
	}
	return ""
}

// hashDiffers compares the hash of the template with that of the time the claim was made, where both are of one version.
func hashDiffers(pool, claim map[string]string) bool {
	for _, key := range []string{karpenter.NodePoolHashAnnotation, karpenter.NodePoolHashVersionAnnotation} {
		_, inPool := pool[key]
		_, inClaim := claim[key]
		if !inPool || !inClaim {
			return false
		}
	}
	return pool[karpenter.NodePoolHashVersionAnnotation] == claim[karpenter.NodePoolHashVersionAnnotation] &&
		pool[karpenter.NodePoolHashAnnotation] != claim[karpenter.NodePoolHashAnnotation]
}

// offers reports whether the provider has an offering for the labels; one that is missing does not bind, and a reserved node may have
// become an on-demand one.
func (c *Cluster) offers(labels map[string]string) bool {
	zone, zoned := labels[corev1.LabelTopologyZone]
	capacity, typed := labels[karpenter.CapacityTypeLabel]
	for offering := range c.Types[labels[instanceTypeLabel]] {
		capacityFits := !typed || offering.CapacityType == capacity || capacity == "reserved" && offering.CapacityType == "on-demand"
		if capacityFits && (!zoned || offering.Zone == zone) {
			return true
		}
	}
	return false
}

// driftedSince is when the candidate's condition Drifted became what it is.
func driftedSince(c *Candidate) time.Time {
	if condition := c.Node.NodeClaim.Condition(karpenter.ConditionDrifted); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}
