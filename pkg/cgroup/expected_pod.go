package cgroup

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// PodValues returns what the kubelet has written into the pod's slice
// (kubelet 1.34–1.37: cm.ResourceConfigForPod, podContainerManagerImpl.EnsureExists
// and, after a resize, doPodResizeAction). A file that it does not write is not
// named; see [DefaultText] for what such a file holds. Amounts of DRA claims
// (alpha in 1.36 and 1.37) are not counted.
//
// A slice keeps what an older kubelet wrote: it is written once, and again
// only by a resize.
func PodValues(pod *corev1.Pod, res Resources, s Settings) []FileValues {
	pod = withResources(pod, res)
	e := &expectation{settings: s}
	class := podQOS(pod, s.minor(), s.PodLevelResources)

	if class == corev1.PodQOSBestEffort {
		e.add("cpu.weight", Value{Text: "1", Rule: "BestEffort: 2 shares", Arithmetic: linearArithmetic(minShares)})
	} else {
		requests := podRequests(pod, s.PodLevelResources)
		e.addSliceWeight(requests.Cpu().MilliValue(), sumText(pod, corev1.ResourceCPU, false, s.PodLevelResources))
		e.addPodQuota(pod, class)
		e.addPodMemoryMax(pod, class)
	}
	e.addPodMemoryQoS(pod)
	e.addHugepages(podRequests(pod, s.PodLevelResources))
	if s.PodPidsLimit > 0 {
		e.add("pids.max", Value{Text: strconv.FormatInt(s.PodPidsLimit, 10), Rule: "podPidsLimit"})
	}
	return e.files
}

func (e *expectation) addPodQuota(pod *corev1.Pod, class corev1.PodQOSClass) {
	s := e.settings
	if class != corev1.PodQOSGuaranteed && !everyContainerLimits(pod, corev1.ResourceCPU, s.PodLevelResources) {
		return
	}
	limits := podLimits(pod, s.PodLevelResources)
	milli := limits.Cpu().MilliValue()
	switch {
	case !s.CFSQuota:
		e.add("cpu.max", e.unlimitedCPU("no quota: cpuCFSQuota is false"))
	case s.podWithoutQuota(pod):
		e.add("cpu.max", e.unlimitedCPU("no quota: a container holds exclusive CPUs"))
	case milli == 0:
		e.add("cpu.max", e.unlimitedCPU("no CPU limit"))
	default:
		rounds := s.minor() >= 35
		e.add("cpu.max", e.quotaValues(milli, sumText(pod, corev1.ResourceCPU, true, s.PodLevelResources), &rounds)...)
	}
}

// podWithoutQuota says whether the slice's quota is lifted because a container
// holds exclusive CPUs (cm.PodHasExclusiveCPUs). The other rule of the gate
// PodLevelResourceManagers, off by default, is not known here.
func (s Settings) podWithoutQuota(pod *corev1.Pod) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if s.withoutQuota(containers[i].Name) {
				return true
			}
		}
	}
	return false
}

func (e *expectation) addPodMemoryMax(pod *corev1.Pod, class corev1.PodQOSClass) {
	podLevel := e.settings.PodLevelResources
	if class != corev1.PodQOSGuaranteed && !everyContainerLimits(pod, corev1.ResourceMemory, podLevel) {
		return
	}
	limits := podLimits(pod, podLevel)
	if bytes := limits.Memory().Value(); bytes > 0 {
		e.add("memory.max", e.bytesValue(bytes, sumText(pod, corev1.ResourceMemory, true, podLevel)))
	}
}
