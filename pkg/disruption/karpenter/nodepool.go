package karpenter

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool is a karpenter.sh/v1 NodePool. Raw is the whole object as it was read, fields unknown here included.
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodePoolSpec   `json:"spec"`
	Status NodePoolStatus `json:"status,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// NodePoolSpec is the specification of a NodePool.
type NodePoolSpec struct {
	Template NodeClaimTemplate `json:"template"`
	// Disruption is nil where the block is absent, which the API server never stores: it writes the defaults.
	Disruption *Disruption         `json:"disruption,omitempty"`
	Limits     corev1.ResourceList `json:"limits,omitempty"`
	Weight     *int32              `json:"weight,omitempty"`
	Replicas   *int64              `json:"replicas,omitempty"` // set: a static pool
}

// NodeClaimTemplate is what a pool makes its NodeClaims of.
type NodeClaimTemplate struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata,omitempty"`
	Spec NodeClaimSpec `json:"spec"`
}

// Disruption says what may be disrupted and how fast.
type Disruption struct {
	ConsolidateAfter    NillableDuration    `json:"consolidateAfter"`
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets nil or empty is no limit at all; an absent list becomes one of 10 % when the API server stores it.
	Budgets []Budget `json:"budgets,omitempty"`
}

// Budget bounds how many nodes of a pool may go at once.
type Budget struct {
	Reasons  []Reason         `json:"reasons,omitempty"` // nil: every reason; empty: none
	Nodes    string           `json:"nodes"`
	Schedule *string          `json:"schedule,omitempty"`
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// NodePoolStatus is the status of a NodePool.
type NodePoolStatus struct {
	Resources  corev1.ResourceList `json:"resources,omitempty"`
	Nodes      *int64              `json:"nodes,omitempty"`
	Conditions []metav1.Condition  `json:"conditions,omitempty"`
}

// Disruption returns the pool's disruption block, zero where there is none.
func (p *NodePool) Disruption() Disruption {
	if p.Spec.Disruption == nil {
		return Disruption{}
	}
	return *p.Spec.Disruption
}

// IsStatic reports whether the pool keeps a fixed number of nodes.
func (p *NodePool) IsStatic() bool { return p.Spec.Replicas != nil }
