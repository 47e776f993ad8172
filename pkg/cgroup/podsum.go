package cgroup

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// podRequests and podLimits are the sums that the kubelet sizes a pod's slice
// by: app containers and sidecars against each init container's peak, plus
// overhead; pod-level resources win where set (cm.ResourceConfigForPod).
func podRequests(pod *corev1.Pod, podLevel bool) corev1.ResourceList {
	return helper.PodRequests(pod, helper.PodResourcesOptions{SkipPodLevelResources: !podLevel})
}

func podLimits(pod *corev1.Pod, podLevel bool) corev1.ResourceList {
	return helper.PodLimits(pod, helper.PodResourcesOptions{SkipPodLevelResources: !podLevel})
}

// everyContainerLimits says whether the pod's slice gets a limit of that
// resource: each container, init containers included, has one, or the pod
// itself does.
func everyContainerLimits(pod *corev1.Pod, name corev1.ResourceName, podLevel bool) bool {
	if podLevel && helper.IsPodLevelResourcesSet(pod) && !pod.Spec.Resources.Limits.Name(name, resource.DecimalSI).IsZero() {
		return true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Resources.Limits.Name(name, resource.DecimalSI).IsZero() {
				return false
			}
		}
	}
	return true
}

// maxTerms bounds the terms of a printed sum.
const maxTerms = 6

// sumText writes out how podRequests or podLimits (limits) comes to its amount
// of a resource: "max(400m, 100m + 300m)".
func sumText(pod *corev1.Pod, name corev1.ResourceName, limits, podLevel bool) string {
	pick := func(r *corev1.ResourceRequirements) resource.Quantity {
		if limits {
			return r.Limits[name]
		}
		return r.Requests[name]
	}
	overhead := pod.Spec.Overhead[name]

	if podLevel && helper.IsPodLevelResourcesSet(pod) {
		if q := pick(pod.Spec.Resources); !q.IsZero() {
			return "pod-level " + withOverhead(amountText(name, q), name, overhead)
		}
	}

	var running, sidecars, peak sum
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		q := pick(&c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running.add(name, q)
			sidecars.add(name, q)
			continue
		}
		initializing := sidecars.clone()
		initializing.add(name, q)
		if !q.IsZero() && initializing.total.Cmp(peak.total) > 0 {
			peak = initializing
		}
	}
	for i := range pod.Spec.Containers {
		running.add(name, pick(&pod.Spec.Containers[i].Resources))
	}

	text := running.String()
	switch {
	case running.count == 0:
		text = peak.String()
	case peak.count > 0 && peak.total.Cmp(running.total) >= 0:
		text = fmt.Sprintf("max(%s, %s)", peak, running)
	}
	return withOverhead(text, name, overhead)
}

type sum struct {
	total resource.Quantity
	count int
	terms []string // the first maxTerms of count
}

func (s *sum) add(name corev1.ResourceName, q resource.Quantity) {
	if q.IsZero() {
		return
	}
	s.total.Add(q)
	if s.count++; s.count <= maxTerms {
		s.terms = append(s.terms, amountText(name, q))
	}
}

func (s *sum) clone() sum {
	return sum{total: s.total.DeepCopy(), count: s.count, terms: slices.Clone(s.terms)}
}

func (s sum) String() string {
	if s.count > maxTerms {
		return fmt.Sprintf("sum of %d containers", s.count)
	}
	return strings.Join(s.terms, " + ")
}

func withOverhead(text string, name corev1.ResourceName, overhead resource.Quantity) string {
	switch {
	case overhead.IsZero():
		return text
	case text == "":
		return "overhead " + amountText(name, overhead)
	}
	return text + " + overhead " + amountText(name, overhead)
}

func amountText(name corev1.ResourceName, q resource.Quantity) string {
	if name == corev1.ResourceCPU {
		return fmt.Sprintf("%dm", q.MilliValue())
	}
	return q.String()
}
