package karpenter

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim is a karpenter.sh/v1 NodeClaim. Raw is the whole object as it was read, fields unknown here included.
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeClaimSpec   `json:"spec"`
	Status NodeClaimStatus `json:"status,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// NodeClaimSpec is the specification of a NodeClaim, and of a pool's template.
type NodeClaimSpec struct {
	Requirements           []Requirement    `json:"requirements,omitempty"`
	Taints                 []corev1.Taint   `json:"taints,omitempty"`
	StartupTaints          []corev1.Taint   `json:"startupTaints,omitempty"`
	ExpireAfter            NillableDuration `json:"expireAfter,omitzero"`
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
}

// Requirement is a node selector term that may also ask for a number of different values.
type Requirement struct {
	corev1.NodeSelectorRequirement `json:",inline"`

	MinValues *int `json:"minValues,omitempty"`
}

// NodeClaimStatus is the status of a NodeClaim.
type NodeClaimStatus struct {
	ProviderID       string              `json:"providerID,omitempty"`
	NodeName         string              `json:"nodeName,omitempty"`
	ImageID          string              `json:"imageID,omitempty"`
	Capacity         corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable      corev1.ResourceList `json:"allocatable,omitempty"`
	LastPodEventTime metav1.Time         `json:"lastPodEventTime,omitempty"`
	Conditions       []metav1.Condition  `json:"conditions,omitempty"`
}

// Condition returns the condition of that type, nil where there is none.
func (c *NodeClaim) Condition(conditionType string) *metav1.Condition {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == conditionType {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether the condition of that type is there and True.
func (c *NodeClaim) IsTrue(conditionType string) bool {
	condition := c.Condition(conditionType)
	return condition != nil && condition.Status == metav1.ConditionTrue
}
