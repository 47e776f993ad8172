package cgroup

import (
	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// podQOS returns the pod's QoS class as the kubelet sees it: status.qosClass
// where set, else computed (pkg/apis/core/v1/helper/qos, GetPodQOS).
func podQOS(pod *corev1.Pod, minor int, podLevel bool) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	// From 1.37 an empty spec.resources no longer decides
	// (gate PodLevelResourcesFixKubeletQOSClass).
	if podLevel && pod.Spec.Resources != nil && (knownMinor(minor) < 37 || helper.IsPodLevelResourcesSet(pod)) {
		return requirementsQOS(pod.Spec.Resources)
	}
	var class corev1.PodQOSClass
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			own := requirementsQOS(&containers[i].Resources)
			if own == corev1.PodQOSBurstable || class != "" && class != own {
				return corev1.PodQOSBurstable
			}
			class = own
		}
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

func requirementsQOS(r *corev1.ResourceRequirements) corev1.PodQOSClass {
	cpu := resourceQOS(r, corev1.ResourceCPU)
	if cpu != resourceQOS(r, corev1.ResourceMemory) {
		return corev1.PodQOSBurstable
	}
	return cpu
}

func resourceQOS(r *corev1.ResourceRequirements, name corev1.ResourceName) corev1.PodQOSClass {
	request, limit := r.Requests[name], r.Limits[name]
	switch {
	case !request.Equal(limit):
		return corev1.PodQOSBurstable
	case request.IsZero():
		return corev1.PodQOSBestEffort
	}
	return corev1.PodQOSGuaranteed
}

const (
	annotationConfigSource = "kubernetes.io/config.source"
	annotationConfigMirror = "kubernetes.io/config.mirror"

	systemCriticalPriority = 2000000000
	systemNodeCritical     = "system-node-critical"
)

// isCritical says whether the kubelet takes the pod for a critical one: a
// static or mirror pod, or one of a system priority (kubelet types.IsCriticalPod).
func isCritical(pod *corev1.Pod) bool {
	if source, ok := pod.Annotations[annotationConfigSource]; ok && source != "api" {
		return true
	}
	if _, ok := pod.Annotations[annotationConfigMirror]; ok {
		return true
	}
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCriticalPriority
}
