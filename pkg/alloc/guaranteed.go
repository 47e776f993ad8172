package alloc

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// NoExclusive is why a container has no CPUs of its own. The empty value: it has.
type NoExclusive string

const (
	// PolicyNone is for the caller: the CPU manager's policy is not static.
	PolicyNone NoExclusive = "PolicyNone"
	// NotGuaranteed: the pod is not of that QoS class; QOSOffenders tells why.
	NotGuaranteed NoExclusive = "NotGuaranteed"
	// NoRequest: the container requests no CPU, as can be in a Guaranteed pod only with pod-level resources.
	NoRequest NoExclusive = "NoRequest"
	// Fractional: the request is not a whole number of CPUs.
	Fractional NoExclusive = "Fractional"
	// Uncountable: the request is a whole number, but in thousandths beyond int64; the kubelet's check then gives no CPUs.
	Uncountable NoExclusive = "Uncountable"
	// PodLevelResources: the pod has pod-level resources, and PodLevelResourceManagers is off.
	PodLevelResources NoExclusive = "PodLevelResources"
	// ContainerNotGuaranteed: the pod has pod-level resources, and this container's own requests and limits of cpu and memory are not
	// all given and equal.
	ContainerNotGuaranteed NoExclusive = "ContainerNotGuaranteed"
	// Ephemeral containers never get CPUs of their own.
	Ephemeral NoExclusive = "Ephemeral"
	// NoSuchContainer: the pod has no container of that name.
	NoSuchContainer NoExclusive = "NoSuchContainer"
)

// GuaranteedCPUs returns the number of exclusive CPUs that the static policy gives to a container, or 0 and the first of the kubelet's
// conditions that fails (cpumanager/policy_static.go, guaranteedCPUs and Allocate). Init containers and sidecars follow the same rule.
//
// The request is the allocated one where the pod's status tells it, for that is what the kubelet goes by after an in-place resize; the
// spec then has the desired one.
func GuaranteedCPUs(pod *corev1.Pod, container string, r Rules) (n int64, why NoExclusive) {
	c := findContainer(pod, container)
	podLevel := podLevelResourcesSet(pod)
	request, requested := cpuRequest(pod, c, r)
	switch {
	case c == nil && isEphemeral(pod, container):
		return 0, Ephemeral
	case c == nil:
		return 0, NoSuchContainer
	case QOSClass(pod, r) != corev1.PodQOSGuaranteed:
		return 0, NotGuaranteed
	case r.PodLevelResourceManagers && podLevel && qosOf(&c.Resources) != corev1.PodQOSGuaranteed:
		return 0, ContainerNotGuaranteed
	case !requested || request.Sign() <= 0:
		return 0, NoRequest
	case !milliHeld(request) && !wrapsToWhole(request):
		return 0, Uncountable
	case milliHeld(request) && !IsWhole(request):
		return 0, Fractional
	case podLevel && !r.PodLevelResourceManagers && (r.PodLevelResources || r.PodLevelAlwaysShared):
		return 0, PodLevelResources
	}
	return request.Value(), ""
}

func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	for _, c := range resourceContainers(pod) {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func isEphemeral(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}

// cpuRequest returns the allocated cpu request, or that of the spec where none is known.
func cpuRequest(pod *corev1.Pod, c *corev1.Container, r Rules) (resource.Quantity, bool) {
	if c == nil {
		return resource.Quantity{}, false
	}
	if q, ok := allocated(pod, c, r)[corev1.ResourceCPU]; ok {
		return q, true
	}
	q, ok := c.Resources.Requests[corev1.ResourceCPU]
	return q, ok
}

// allocated returns what the pod's status tells as allocated to a container, which after an in-place resize is not what its spec says.
// A kubelet 1.34 looks at the status itself, except for init containers that are to end; later ones keep account of it for all.
func allocated(pod *corev1.Pod, c *corev1.Container, r Rules) corev1.ResourceList {
	if !r.InPlacePodVerticalScaling {
		return nil
	}
	lists := [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses}
	if r.Minor == 34 && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
		lists = lists[:1]
	}
	for _, statuses := range lists {
		for i := range statuses {
			if statuses[i].Name == c.Name {
				return statuses[i].AllocatedResources
			}
		}
	}
	return nil
}

// IsWhole reports whether q is a whole number that the kubelet can count in thousandths.
func IsWhole(q resource.Quantity) bool {
	return milliHeld(q) && q.Cmp(*resource.NewQuantity(q.Value(), resource.DecimalSI)) == 0 // Value rounds up
}

// milliHeld reports whether int64 holds q in thousandths.
func milliHeld(q resource.Quantity) bool {
	d := q.DeepCopy()
	if q.Sign() != 0 && d.AsDec().Scale() < -64 {
		return false // to compare so many zeros would take long
	}
	return q.Cmp(*resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)) <= 0 &&
		q.Cmp(*resource.NewMilliQuantity(math.MinInt64, resource.DecimalSI)) >= 0
}

// wrapsToWhole: where int64 does not hold q, the kubelet's check for a whole number can still pass by wrapping around.
func wrapsToWhole(q resource.Quantity) bool {
	return q.Value() > 0 && q.Value()*1000 == q.MilliValue()
}
