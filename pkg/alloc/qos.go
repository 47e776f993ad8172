package alloc

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// qosResources are the resources that decide about the QoS class.
var qosResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// QOSClass returns the class that the kubelet goes by: status.qosClass where set, else recomputed from the spec (kubelet 1.37,
// apis/core/v1/helper/qos). An in-place resize cannot change the class, so the desired resources of the spec are as good as the
// allocated ones.
func QOSClass(pod *corev1.Pod, r Rules) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	if r.qosOfPodLevel(pod) {
		return qosOf(pod.Spec.Resources)
	}
	var class corev1.PodQOSClass
	for _, c := range resourceContainers(pod) {
		of := qosOf(&c.Resources)
		if of == corev1.PodQOSBurstable || class != "" && class != of {
			return corev1.PodQOSBurstable
		}
		class = of
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

// qosOfPodLevel reports whether the class comes from spec.resources alone. Before the fix an empty spec.resources was enough.
func (r Rules) qosOfPodLevel(pod *corev1.Pod) bool {
	if r.PodLevelResourcesFixKubeletQOSClass {
		return r.PodLevelResources && podLevelResourcesSet(pod)
	}
	return r.PodLevelResources && pod.Spec.Resources != nil
}

func qosOf(rr *corev1.ResourceRequirements) corev1.PodQOSClass {
	var class corev1.PodQOSClass
	for _, name := range qosResources {
		request, limit := rr.Requests[name], rr.Limits[name]
		var of corev1.PodQOSClass
		switch {
		case request.Cmp(limit) != 0:
			return corev1.PodQOSBurstable
		case request.IsZero():
			of = corev1.PodQOSBestEffort
		default:
			of = corev1.PodQOSGuaranteed
		}
		if class != "" && class != of {
			return corev1.PodQOSBurstable
		}
		class = of
	}
	return class
}

// Offence is how a resource keeps a pod from being Guaranteed.
type Offence string

const (
	NoLimit              Offence = "NoLimit"              // no limit, or a limit of 0
	NoRequestBesideLimit Offence = "NoRequestBesideLimit" // possible only where the API did not fill in requests from limits
	RequestNotLimit      Offence = "RequestNotLimit"
)

// Offender is a resource of a container, or of the pod itself, that keeps the pod from being Guaranteed.
type Offender struct {
	Container      string // "": the pod-level resources of the pod
	Init           bool   // an init container, sidecars among them
	Resource       corev1.ResourceName
	Request, Limit *resource.Quantity // nil: not given
	Offence        Offence
}

// QOSOffenders returns what keeps the pod from being Guaranteed, init containers first, in the order of the spec, cpu before memory.
// Nothing for a pod whose spec is that of a Guaranteed one. Where the class comes from pod-level resources, only these can offend.
func QOSOffenders(pod *corev1.Pod, r Rules) []Offender {
	if r.qosOfPodLevel(pod) {
		return offenders("", false, pod.Spec.Resources)
	}
	var list []Offender
	for i := range pod.Spec.InitContainers {
		list = append(list, offenders(pod.Spec.InitContainers[i].Name, true, &pod.Spec.InitContainers[i].Resources)...)
	}
	for i := range pod.Spec.Containers {
		list = append(list, offenders(pod.Spec.Containers[i].Name, false, &pod.Spec.Containers[i].Resources)...)
	}
	return list
}

func offenders(container string, init bool, rr *corev1.ResourceRequirements) []Offender {
	var list []Offender
	for _, name := range qosResources {
		o := Offender{Container: container, Init: init, Resource: name, Request: given(rr.Requests, name), Limit: given(rr.Limits, name)}
		switch {
		case o.Limit == nil || o.Limit.IsZero():
			o.Offence = NoLimit
		case o.Request == nil:
			o.Offence = NoRequestBesideLimit
		case o.Request.Cmp(*o.Limit) != 0:
			o.Offence = RequestNotLimit
		default:
			continue
		}
		list = append(list, o)
	}
	return list
}

func given(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	q, ok := list[name]
	if !ok {
		return nil
	}
	return &q
}

// resourceContainers returns the containers that can have resources: ephemeral ones cannot.
func resourceContainers(pod *corev1.Pod) []*corev1.Container {
	list := make([]*corev1.Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		list = append(list, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		list = append(list, &pod.Spec.Containers[i])
	}
	return list
}

// podLevelResourcesSet reports whether spec.resources names a resource that pods can have (component-helpers IsPodLevelResourcesSet).
func podLevelResourcesSet(pod *corev1.Pod) bool {
	if pod.Spec.Resources == nil {
		return false
	}
	for _, list := range []corev1.ResourceList{pod.Spec.Resources.Requests, pod.Spec.Resources.Limits} {
		for name := range list {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				return true
			}
		}
	}
	return false
}
