package autoscaler

import (
	"errors"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Utilization is what the pods of a node request, as a share of what can be requested there. Use plays no part
// (simulator/utilization/info.go).
type Utilization struct {
	// Resource is the one that counts: the greater of CPU and memory, on a GPU node the GPU alone.
	Resource corev1.ResourceName
	Ratio    float64
	// Threshold is the ratio from which on the node stays.
	Threshold     float64
	ThresholdFlag string
	Parts         []Part
	// GPULabel is the label by which the node counts as a GPU node, "" where it does not.
	GPULabel string
}

// Part is the share of one resource, in thousandths of its unit.
type Part struct {
	Resource    corev1.ResourceName
	Requested   int64
	Allocatable int64
	Excluded    int64 // requests of DaemonSet and mirror pods that were taken off both sides
	Pods        int
	Ratio       float64
}

// Stays reports whether the node is used too much to be removed.
func (u Utilization) Stays() bool { return u.Ratio >= u.Threshold }

// gpuLabels are those by which cloud providers tell a GPU node (cloudprovider: GPULabel).
var gpuLabels = []string{"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator", "accelerator"}

// gpuResource is the resource that counts on a GPU node.
const gpuResource corev1.ResourceName = "nvidia.com/gpu"

// ErrNoAllocatable: nothing can be computed for a node that says nothing of what it has.
var ErrNoAllocatable = errors.New("the node's allocatable CPU or memory is absent or 0")

// UtilizationOf sums the requests of the pods on a node. Pods that are finished do not count, nor those that should long be gone.
func UtilizationOf(node *corev1.Node, pods []*corev1.Pod, s Settings, now time.Time) (Utilization, error) {
	u := Utilization{Threshold: s.Utilization, ThresholdFlag: FlagUtilization}
	resources := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for _, label := range gpuLabels {
		if _, ok := node.Labels[label]; ok {
			u.GPULabel, u.Threshold, u.ThresholdFlag = label, s.GPUUtilization, FlagGPUUtilization
			u.Resource, resources = gpuResource, []corev1.ResourceName{gpuResource}
			break
		}
	}
	parts := make([]Part, len(resources))
	for i, name := range resources {
		q := node.Status.Allocatable[name]
		parts[i] = Part{Resource: name, Allocatable: q.MilliValue()}
		if parts[i].Allocatable <= 0 {
			if u.GPULabel != "" {
				return u, nil // a GPU that is not ready is used by nobody
			}
			return Utilization{}, ErrNoAllocatable
		}
	}
	for _, pod := range pods {
		if longTerminating(pod, now) || IsExpendable(pod, s) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		excluded := s.IgnoreDaemonSets && IsDaemonSet(pod) || s.IgnoreMirrorPods && IsMirror(pod)
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
		for i := range parts {
			q := requests[parts[i].Resource]
			amount := q.MilliValue()
			if amount <= 0 {
				continue
			}
			if excluded {
				parts[i].Excluded = add(parts[i].Excluded, amount)
				continue
			}
			parts[i].Requested = add(parts[i].Requested, amount)
			parts[i].Pods++
		}
	}
	for i := range parts {
		// All of it may be excluded; a ratio over nothing is then as great as can be.
		if left := parts[i].Allocatable - parts[i].Excluded; left > 0 {
			parts[i].Ratio = float64(parts[i].Requested) / float64(left)
		} else if parts[i].Requested > 0 {
			parts[i].Ratio = math.MaxFloat64
		}
	}
	u.Parts = parts
	top := slices.MaxFunc(parts, func(a, b Part) int {
		if a.Ratio > b.Ratio {
			return 1
		}
		return -1
	})
	u.Resource, u.Ratio = top.Resource, top.Ratio
	return u, nil
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
