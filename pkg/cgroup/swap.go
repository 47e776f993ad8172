package cgroup

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// addSwap adds memory.swap.max of a container, which the kubelet always sets
// where the kernel has the swap controller, that is where the file exists
// (configureContainerSwapResources, calcSwapForBurstablePods).
func (e *expectation) addSwap(pod *corev1.Pod, container *corev1.Container) {
	s := e.settings
	if s.Swap != LimitedSwap {
		e.add("memory.swap.max", Value{Text: "0", Rule: "swapBehavior NoSwap"})
		return
	}
	request := container.Resources.Requests.Memory()
	limit := container.Resources.Limits.Memory()
	why := ""
	switch {
	case isCritical(pod):
		why = "critical pod"
	case podQOS(pod, s.minor(), s.PodLevelResources) != corev1.PodQOSBurstable:
		why = "not Burstable"
	case request.IsZero() && limit.IsZero():
		why = "no memory request"
	case request.Cmp(*limit) == 0:
		why = "memory request equals limit"
	case s.CapacityMemory <= 0:
		return // not known, and not none
	case request.Value() > s.CapacityMemory:
		why = "memory request above the node's memory"
	}
	if why != "" {
		e.add("memory.swap.max", Value{Text: "0", Rule: "LimitedSwap gives none: " + why})
		return
	}
	bytes := int64(float64(request.Value()) / float64(s.CapacityMemory) * float64(max(s.SwapCapacity, 0)))
	v := e.bytesValue(bytes, fmt.Sprintf("%d / %d × %d", request.Value(), s.CapacityMemory, s.SwapCapacity))
	if v.Rule == ruleExact {
		v.Rule = "LimitedSwap by memory request"
	}
	e.add("memory.swap.max", v)
}
