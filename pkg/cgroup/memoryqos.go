package cgroup

import (
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// throttlingFactor is memoryThrottlingFactor in force; false means that
// memory.high is not computed. A number that the kubelet's validation refuses
// counts as none.
func (s Settings) throttlingFactor() (float64, bool) {
	if s.MemoryThrottlingFactor == nil {
		return 0.9, s.minor() < 37
	}
	f := *s.MemoryThrottlingFactor
	return f, f > 0 && f <= 1
}

// tiered says whether memory is protected by QoS class: memory.min for
// Guaranteed, memory.low for Burstable.
func (s Settings) tiered() bool { return s.TieredReservation && s.minor() >= 36 }

// addContainerMemoryQoS adds what MemoryQoS makes of a container
// (generateLinuxContainerResources). Only the container's own request and limit
// count, not the pod's.
func (e *expectation) addContainerMemoryQoS(pod *corev1.Pod, container *corev1.Container) {
	s := e.settings
	minor := s.minor()
	if !s.MemoryQoS {
		if minor >= 37 {
			e.add("memory.high", Value{Text: "max", Rule: "reset while MemoryQoS is off"})
		}
		return
	}
	request := container.Resources.Requests.Memory().Value()
	amount := "request " + container.Resources.Requests.Memory().String()
	switch {
	case minor < 36:
		if request > 0 {
			e.add("memory.min", e.protection(request, amount))
		}
	case request > 0 && s.tiered() && podQOS(pod, minor, s.PodLevelResources) == corev1.PodQOSGuaranteed:
		e.add("memory.min", e.protection(request, amount))
	case request > 0 && s.tiered():
		e.add("memory.low", e.protection(request, amount))
	default:
		none := Value{Text: "0", Rule: "memoryReservationPolicy None"}
		if s.tiered() {
			none.Rule = "no memory request"
		}
		e.add("memory.min", none)
		e.add("memory.low", none)
	}
	e.addContainerMemoryHigh(pod, container)
}

func (e *expectation) addContainerMemoryHigh(pod *corev1.Pod, container *corev1.Container) {
	s := e.settings
	factor, ok := s.throttlingFactor()
	if !ok {
		return
	}
	request := container.Resources.Requests.Memory().Value()
	limit := container.Resources.Limits.Memory().Value()
	if request == limit && (request != 0 || s.minor() < 37) {
		return
	}
	// The slice of a pod with a pod-level limit throttles for all its containers.
	if s.minor() >= 37 && limit == 0 && s.PodLevelResources && helper.IsPodLevelResourcesSet(pod) &&
		!pod.Spec.Resources.Limits.Memory().IsZero() {
		return
	}
	rule := "memoryThrottlingFactor of the limit"
	if limit == 0 {
		limit = s.ReservableMemory
		rule = "memoryThrottlingFactor of the node's reservable memory"
	}
	if limit <= 0 {
		return
	}
	e.addMemoryHigh(request, limit, factor, rule)
}

// addPodMemoryQoS adds what MemoryQoS makes of a pod's slice
// (cm.ResourceConfigForPod, and cm.ApplyPodLevelMemoryHigh from 1.37).
func (e *expectation) addPodMemoryQoS(pod *corev1.Pod) {
	s := e.settings
	if !s.MemoryQoS {
		return
	}
	requests := podRequests(pod, s.PodLevelResources)
	request := requests.Memory().Value()
	if amount := sumText(pod, corev1.ResourceMemory, false, s.PodLevelResources); request > 0 {
		switch {
		case s.minor() < 36:
			e.add("memory.min", e.protection(request, amount))
		case s.tiered() && podQOS(pod, s.minor(), s.PodLevelResources) == corev1.PodQOSGuaranteed:
			e.add("memory.min", e.protection(request, amount))
		case s.tiered():
			e.add("memory.low", e.protection(request, amount))
		}
	}
	factor, ok := s.throttlingFactor()
	if !ok || s.minor() < 37 || !s.PodLevelResources || !helper.IsPodLevelResourcesSet(pod) ||
		!everyContainerLimits(pod, corev1.ResourceMemory, true) {
		return
	}
	limits := podLimits(pod, true)
	limit := limits.Memory().Value()
	if limit <= 0 || request == limit {
		return
	}
	e.addMemoryHigh(request, limit, factor, "memoryThrottlingFactor of the pod's limit")
}

// addMemoryHigh adds memory.high = floor((request + (limit − request) ×
// factor) / page) × page, computed in float64 as the kubelet does. A result
// that is not above the request is not written.
func (e *expectation) addMemoryHigh(request, limit int64, factor float64, rule string) {
	page := e.settings.pageSize()
	bytes := math.Floor(float64(request) + (float64(limit)-float64(request))*factor)
	pages := bytes / float64(page)
	if !(pages >= 1) || pages >= float64(math.MaxInt64/page) {
		return
	}
	high := int64(pages) * page
	if high <= request {
		return
	}
	e.add("memory.high", Value{
		Text: strconv.FormatInt(high, 10),
		Rule: rule,
		Arithmetic: fmt.Sprintf("%d + (%d − %d) × %v = %.0f bytes; down to pages of %d bytes = %d",
			request, limit, request, factor, bytes, page, high),
	})
}

func (e *expectation) protection(bytes int64, amount string) Value {
	v := e.bytesValue(bytes, amount)
	if v.Rule == ruleExact {
		v.Rule = "memory request"
	}
	return v
}

// addNodeMemoryQoS adds what MemoryQoS makes of kubepods and of the Burstable
// slice (qosContainerManagerImpl.setMemoryQoS); guaranteed and burstable are
// the memory requests of the active pods of that class in bytes.
func addNodeMemoryQoS(kubepods, burstableSlice *expectation, guaranteed, burstable int64) {
	s := kubepods.settings
	all := addSaturated(guaranteed, burstable)
	allText := fmt.Sprintf("Guaranteed %d + Burstable %d", guaranteed, burstable)
	zero := Value{Text: "0", Rule: "no memory is reserved"}
	switch {
	case s.MemoryQoS && s.minor() < 36:
		if all > 0 {
			kubepods.add("memory.min", kubepods.protection(all, allText))
		}
		if burstable > 0 {
			burstableSlice.add("memory.min", burstableSlice.protection(burstable, ""))
		}
	case s.MemoryQoS && s.tiered():
		kubepods.add("memory.min", kubepods.protection(all, allText))
		if s.minor() >= 37 {
			kubepods.add("memory.low", kubepods.protection(burstable, ""))
		}
		burstableSlice.add("memory.low", burstableSlice.protection(burstable, ""))
	case s.minor() >= 37:
		kubepods.add("memory.min", zero)
		kubepods.add("memory.low", zero)
		burstableSlice.add("memory.low", zero)
	case s.MemoryQoS: // 1.36, policy None
		kubepods.add("memory.min", zero)
		burstableSlice.add("memory.low", zero)
	}
}

func addSaturated(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
