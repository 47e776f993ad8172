package cgroup

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// Values of oom_score_adj that do not depend on requests.
const (
	OOMScoreAdjGuaranteed = -997 // Guaranteed and system-node-critical pods
	OOMScoreAdjBestEffort = 1000
	OOMScoreAdjSandbox    = -998 // the pause process, by containerd
	OOMScoreAdjKubelet    = -999 // the kubelet's own default; kube-proxy's too

	// Bounds of a Burstable container.
	minBurstableOOMScoreAdj = 3
	maxBurstableOOMScoreAdj = 999
)

// OOMScoreAdj computes the oom_score_adj that the kubelet has the container's
// processes started with, and the computation (kubelet 1.34–1.37,
// qos.GetContainerOOMScoreAdjust with the gate PodLevelResources on; the share
// of a DRA claim, alpha in 1.37, is not counted). memoryCapacity is the node's
// status.capacity.memory in bytes. A resize does not change the value of
// running processes. The error is for a container that the pod does not have
// and for a capacity that is not known.
func OOMScoreAdj(pod *corev1.Pod, container string, memoryCapacity int64, minor int) (adj int, arithmetic string, err error) {
	c, ok := FindContainer(pod, container)
	if !ok {
		return 0, "", fmt.Errorf("pod has no container %q", cut(container))
	}
	if isCritical(pod) && pod.Spec.PriorityClassName == systemNodeCritical {
		return OOMScoreAdjGuaranteed, systemNodeCritical + " = -997", nil
	}
	switch podQOS(pod, minor, true) {
	case corev1.PodQOSGuaranteed:
		return OOMScoreAdjGuaranteed, "Guaranteed = -997", nil
	case corev1.PodQOSBestEffort:
		return OOMScoreAdjBestEffort, "BestEffort = 1000", nil
	}
	if memoryCapacity <= 0 {
		return 0, "", errors.New("memory capacity of the node is not known")
	}

	own := c.Resources.Requests.Memory().Value()
	rest := unassignedPodRequest(pod)
	score, text := burstableOOMScore(own, rest, memoryCapacity)
	if least, ok := leastAppRequest(pod); ok && isSidecar(pod, c) {
		// A sidecar never dies before the app container with the smallest request.
		app, appText := burstableOOMScore(least, rest, memoryCapacity)
		if app < score {
			score, text = app, fmt.Sprintf("sidecar: smallest app request: %s, below its own %d", appText, score)
		}
	}
	switch {
	case score < minBurstableOOMScoreAdj:
		return minBurstableOOMScoreAdj, text + ", raised to 3", nil
	case score > maxBurstableOOMScoreAdj:
		return maxBurstableOOMScoreAdj, text + ", lowered to 999", nil
	}
	return int(score), text, nil
}

func burstableOOMScore(request, rest, capacity int64) (int64, string) {
	share := perMille(addSaturated(request, rest), capacity)
	score := 1000 - min(share, math.MaxInt32)
	amount := fmt.Sprint(request)
	if rest > 0 {
		amount = fmt.Sprintf("(%d + %d)", request, rest)
	}
	return score, fmt.Sprintf("1000 − 1000 × %s / %d = %d", amount, capacity, score)
}

// perMille returns 1000·part/whole without overflow; a negative part is none.
func perMille(part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(max(part, 0)), 1000)
	if hi >= uint64(whole) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return saturate(q)
}

// unassignedPodRequest is each container's part of the pod-level memory
// request that no container requests itself.
func unassignedPodRequest(pod *corev1.Pod) int64 {
	count := int64(len(pod.Spec.Containers) + len(pod.Spec.InitContainers))
	if !helper.IsPodLevelRequestsSet(pod) || count == 0 {
		return 0
	}
	aggregate := helper.AggregateContainerRequests(pod, helper.PodResourcesOptions{})
	rest := pod.Spec.Resources.Requests.Memory().Value() - aggregate.Memory().Value()
	return max(rest, 0) / count
}

func leastAppRequest(pod *corev1.Pod) (bytes int64, ok bool) {
	for i := range pod.Spec.Containers {
		request := pod.Spec.Containers[i].Resources.Requests.Memory().Value()
		if !ok || request < bytes {
			bytes, ok = request, true
		}
	}
	return bytes, ok
}

func isSidecar(pod *corev1.Pod, c *corev1.Container) bool {
	if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		return false
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == c.Name {
			return true
		}
	}
	return false
}
