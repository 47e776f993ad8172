package cgroup

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// NodeResources is what the sizes of kubepods follow from besides the memory
// in [Settings].
type NodeResources struct {
	CPUCapacity int64 // millicores; 0 if not known
	CPUReserved int64 // kubeReserved + systemReserved (or reservedSystemCPUs), millicores

	PIDCapacity int64 // the most processes the machine can have; 0 if not known
	PIDReserved int64 // kubeReserved + systemReserved

	// EnforcePods says that enforceNodeAllocatable contains pods, the default.
	EnforcePods bool
}

// NodeSlices are the files of kubepods and of the two QoS slices below it.
// Guaranteed pods have no slice of their own.
type NodeSlices struct {
	Kubepods, Burstable, BestEffort []FileValues
}

// NodeValues returns what the kubelet has written into kubepods and its QoS
// slices (kubelet 1.34–1.37: enforceNodeAllocatableCgroups and
// qosContainerManagerImpl.UpdateCgroups, which repeats every minute, so that the
// weight of the Burstable slice may lag by that much). active are the node's
// pods; those that have ended do not count. What follows from a capacity that
// is not known is not named, nor are the limits of qosReserved (alpha, off).
//
// kubepods never has a quota, and its memory.max is the capacity less what is
// reserved: eviction thresholds lower status.allocatable only.
func NodeValues(node NodeResources, active []*corev1.Pod, res Resources, s Settings) NodeSlices {
	kubepods := &expectation{settings: s}
	burstable := &expectation{settings: s}
	bestEffort := &expectation{settings: s}

	if node.CPUCapacity > 0 {
		milli, text := node.CPUCapacity, ""
		if node.EnforcePods && node.CPUReserved > 0 {
			milli = max(node.CPUCapacity-node.CPUReserved, 0)
			text = fmt.Sprintf("%dm − %dm reserved", node.CPUCapacity, node.CPUReserved)
		}
		kubepods.addSliceWeight(milli, text)
	}
	if !node.EnforcePods && s.CapacityMemory > 0 {
		kubepods.add("memory.max", kubepods.bytesValue(s.CapacityMemory, "capacity"))
	}
	if node.EnforcePods && s.ReservableMemory > 0 {
		text := "capacity less reserved"
		if s.CapacityMemory > 0 {
			text = fmt.Sprintf("%d − %d reserved", s.CapacityMemory, s.CapacityMemory-s.ReservableMemory)
		}
		kubepods.add("memory.max", kubepods.bytesValue(s.ReservableMemory, text))
	}
	if node.PIDCapacity > 0 {
		pids := node.PIDCapacity
		if node.EnforcePods {
			pids = max(pids-max(node.PIDReserved, 0), 0)
		}
		kubepods.add("pids.max", Value{Text: strconv.FormatInt(pids, 10), Rule: "pid capacity less reserved"})
	}

	requested := sumActive(active, res, s)
	text := fmt.Sprintf("requests of %d Burstable pods", requested.burstablePods)
	burstable.addSliceWeight(requested.burstableCPU, text)
	bestEffort.add("cpu.weight", Value{Text: "1", Rule: "always 2 shares", Arithmetic: linearArithmetic(minShares)})
	addNodeMemoryQoS(kubepods, burstable, requested.guaranteedMemory, requested.burstableMemory)

	return NodeSlices{Kubepods: kubepods.files, Burstable: burstable.files, BestEffort: bestEffort.files}
}

type activeRequests struct {
	burstablePods                     int
	burstableCPU                      int64 // millicores
	guaranteedMemory, burstableMemory int64 // bytes
}

func sumActive(active []*corev1.Pod, res Resources, s Settings) activeRequests {
	var total activeRequests
	for _, pod := range active {
		if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		pod = withResources(pod, res)
		requests := podRequests(pod, s.PodLevelResources)
		memory := requests.Memory().Value()
		switch podQOS(pod, s.minor(), s.PodLevelResources) {
		case corev1.PodQOSGuaranteed:
			total.guaranteedMemory = addSaturated(total.guaranteedMemory, memory)
		case corev1.PodQOSBurstable:
			total.burstablePods++
			total.burstableCPU = addSaturated(total.burstableCPU, requests.Cpu().MilliValue())
			total.burstableMemory = addSaturated(total.burstableMemory, memory)
		}
	}
	return total
}
