package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Object is what objects of every kind of workload have of what is asked here.
type Object struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas *int32                `json:"replicas"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"spec"`
	Status struct {
		Replicas               *int32 `json:"replicas"`               // Deployment, StatefulSet, ReplicaSet
		CurrentNumberScheduled *int32 `json:"currentNumberScheduled"` // DaemonSet
		Active                 *int32 `json:"active"`                 // Job
		Succeeded              *int32 `json:"succeeded"`
		Failed                 *int32 `json:"failed"`
		Conditions             []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// Selects is the selector that all pods of the workload match; nil where it tells
// nothing.
func (o *Object) Selects() labels.Selector {
	if o.Spec.Selector == nil {
		return nil
	}
	s, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil || s.Empty() {
		return nil
	}
	return s
}

// Count is how many pods the controller counts; false where it says nothing. Pods
// that are being deleted, or that ended and were deleted, may be more or fewer
// than it says.
func (o *Object) Count() (pods int64, ok bool) {
	for _, n := range []*int32{o.Status.Replicas, o.Status.CurrentNumberScheduled, o.Status.Active, o.Status.Succeeded, o.Status.Failed} {
		if n != nil {
			pods, ok = pods+int64(*n), true
		}
	}
	return pods, ok
}

// maxMessage bounds what a condition says, in bytes.
const maxMessage = 300

// WhyNoPods is what the workload's object tells of why it has no pods: none are
// wanted, to create them was refused, by a quota say, or a Job is over. "" where
// it tells nothing.
func (o *Object) WhyNoPods() string {
	if o.Spec.Replicas != nil && *o.Spec.Replicas == 0 {
		return "its spec.replicas is 0"
	}
	for _, c := range o.Status.Conditions {
		if c.Status != "True" {
			continue
		}
		switch c.Type {
		case "ReplicaFailure", "Complete", "Failed", "Suspended":
			text := "its condition " + c.Type
			if c.Reason != "" {
				text += " (" + c.Reason + ")"
			}
			if c.Message != "" {
				text += ": " + c.Message[:min(len(c.Message), maxMessage)]
			}
			return text
		}
	}
	return ""
}
