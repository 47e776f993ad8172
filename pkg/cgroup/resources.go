package cgroup

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// Resources says which of a pod's resources the expected values follow from.
// They differ while a resize is under way, and any of the three may be what
// the files hold then.
type Resources int

const (
	// Desired reads spec.containers[].resources and spec.resources.
	Desired Resources = iota

	// Allocated is what the kubelet has admitted. Requests are
	// status.containerStatuses[].allocatedResources (the same for init
	// containers). The API does not show admitted limits: they are those of the
	// spec unless the spec is ahead of the kubelet, that is while the condition
	// PodResizePending stands or status.observedGeneration is behind; then they
	// are those of status.containerStatuses[].resources.
	//
	// Pod-level requests are status.allocatedResources, pod-level limits those
	// of the spec or, as above, of status.resources, both less the overhead
	// that these fields include.
	//
	// A container whose status has neither field, as before its first start
	// and from a kubelet without the gate, counts with its spec; so do
	// pod-level resources without the fields of the status.
	Allocated

	// Actuated is what the kubelet last read back from the runtime: requests
	// and limits of status.containerStatuses[].resources, pod-level limits of
	// status.resources. Pod-level requests are the allocated ones even so: the
	// status has the CPU request computed back from cpu.weight, which does not
	// give the same weight again. What the status lacks is as in Allocated.
	Actuated
)

func (r Resources) String() string {
	switch r {
	case Desired:
		return "desired"
	case Allocated:
		return "allocated"
	case Actuated:
		return "actuated"
	}
	return "unknown"
}

// FindContainer returns the pod's container of that name: an app container, an
// init container or an ephemeral one.
func FindContainer(pod *corev1.Pod, name string) (*corev1.Container, bool) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], true
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i], true
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon), true
		}
	}
	return nil, false
}

// withResources returns the pod as if its spec named the resources of res, the
// form in which the kubelet itself keeps an allocated pod. The pod given is not
// changed.
func withResources(pod *corev1.Pod, res Resources) *corev1.Pod {
	if res != Allocated && res != Actuated {
		return pod
	}
	view := *pod
	specIsAhead := resizePending(pod)
	replace := func(containers []corev1.Container, statuses []corev1.ContainerStatus) []corev1.Container {
		byName := make(map[string]*corev1.ContainerStatus, len(statuses))
		for i := range statuses {
			byName[statuses[i].Name] = &statuses[i]
		}
		containers = slices.Clone(containers)
		for i := range containers {
			if status, ok := byName[containers[i].Name]; ok {
				containers[i].Resources = statusResources(containers[i].Resources, status, res, specIsAhead)
			}
		}
		return containers
	}
	view.Spec.Containers = replace(pod.Spec.Containers, pod.Status.ContainerStatuses)
	view.Spec.InitContainers = replace(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	if pod.Spec.Resources != nil {
		view.Spec.Resources = podLevelStatusResources(pod, res, specIsAhead)
	}
	return &view
}

func statusResources(spec corev1.ResourceRequirements, status *corev1.ContainerStatus, res Resources, specIsAhead bool) corev1.ResourceRequirements {
	if status.Resources == nil && status.AllocatedResources == nil {
		return spec
	}
	// The kubelet fills both fields at once, so that a missing
	// allocatedResources means that the container was admitted without requests.
	result := corev1.ResourceRequirements{Requests: status.AllocatedResources, Limits: spec.Limits, Claims: spec.Claims}
	if status.Resources == nil {
		return result
	}
	if res == Actuated {
		result.Requests = status.Resources.Requests
	}
	if res == Actuated || specIsAhead {
		result.Limits = status.Resources.Limits
	}
	return result
}

func podLevelStatusResources(pod *corev1.Pod, res Resources, specIsAhead bool) *corev1.ResourceRequirements {
	result := *pod.Spec.Resources
	result.Requests = overridden(result.Requests, pod.Status.AllocatedResources, pod.Spec.Overhead)
	if pod.Status.Resources != nil && (res == Actuated || specIsAhead) {
		result.Limits = overridden(result.Limits, pod.Status.Resources.Limits, pod.Spec.Overhead)
	}
	return &result
}

// overridden returns spec with the amounts of status, which include the
// overhead, for those of its keys that status has.
func overridden(spec, status, overhead corev1.ResourceList) corev1.ResourceList {
	result := maps.Clone(spec)
	for name := range spec {
		amount, ok := status[name]
		if !ok || !helper.IsSupportedPodLevelResource(name) {
			continue
		}
		amount = amount.DeepCopy()
		if extra, ok := overhead[name]; ok && amount.Cmp(extra) > 0 {
			amount.Sub(extra)
		}
		result[name] = amount
	}
	return result
}

// resizePending says whether the spec asks for what the kubelet has not
// admitted, or not yet seen.
func resizePending(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			return c.Status != corev1.ConditionFalse
		}
	}
	return pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation
}

// EffectiveCPURequest returns the request in millicores that a container's
// cpu.weight follows from: its own, else its CPU limit, else with pod-level
// resources the pod's limit (kubelet 1.34–1.37, calculateLinuxResources). A
// request of 0 counts as one. false means that there is none: 2 shares.
func EffectiveCPURequest(pod *corev1.Pod, container *corev1.Container) (milli int64, ok bool) {
	return cpuRequest(pod, container, true)
}

// EffectiveCPULimit returns the limit in millicores that a container's cpu.max
// follows from: its own, else with pod-level resources the pod's (kubelet
// 1.34–1.37, getCPULimit). false means no limit; a limit of 0 is none.
func EffectiveCPULimit(pod *corev1.Pod, container *corev1.Container) (milli int64, ok bool) {
	return cpuLimit(pod, container, true)
}

// EffectiveMemoryLimit returns the limit in bytes that a container's
// memory.max follows from: its own, else with pod-level resources the pod's
// (kubelet 1.34–1.37, getMemoryLimit). false means no limit; a limit of 0 is
// none. Memory that a DRA claim adds (alpha in 1.36 and 1.37) is not counted.
func EffectiveMemoryLimit(pod *corev1.Pod, container *corev1.Container) (bytes int64, ok bool) {
	return memoryLimit(pod, container, true)
}

func cpuRequest(pod *corev1.Pod, container *corev1.Container, podLevel bool) (int64, bool) {
	if own, ok := container.Resources.Requests[corev1.ResourceCPU]; ok {
		return own.MilliValue(), true
	}
	return cpuLimit(pod, container, podLevel)
}

func cpuLimit(pod *corev1.Pod, container *corev1.Container, podLevel bool) (int64, bool) {
	limit := container.Resources.Limits.Cpu()
	if limit.IsZero() && podLevel && helper.IsPodLevelResourcesSet(pod) {
		limit = pod.Spec.Resources.Limits.Cpu()
	}
	return limit.MilliValue(), !limit.IsZero()
}

func memoryLimit(pod *corev1.Pod, container *corev1.Container, podLevel bool) (int64, bool) {
	limit := container.Resources.Limits.Memory()
	if limit.IsZero() && podLevel && helper.IsPodLevelResourcesSet(pod) {
		limit = pod.Spec.Resources.Limits.Memory()
	}
	return limit.Value(), !limit.IsZero()
}
