package conformance

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

// Quantities panics on what is not a quantity.
func Quantities(m map[string]string) corev1.ResourceList {
	if m == nil {
		return nil
	}
	list := corev1.ResourceList{}
	for name, text := range m {
		list[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return list
}

func resources(r scenario.Resources) corev1.ResourceRequirements {
	rr := corev1.ResourceRequirements{Requests: Quantities(r.Requests), Limits: Quantities(r.Limits)}
	for name, q := range rr.Limits {
		if rr.Requests == nil {
			rr.Requests = corev1.ResourceList{}
		}
		if _, ok := rr.Requests[name]; !ok {
			rr.Requests[name] = q
		}
	}
	return rr
}

func newPod(spec *scenario.Pod) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID, pod.Name, pod.Namespace = types.UID(spec.UID), spec.UID, "default"
	if spec.Resources != nil {
		rr := resources(*spec.Resources)
		pod.Spec.Resources = &rr
	}
	containers := func(from []scenario.Container, statuses *[]corev1.ContainerStatus) (list []corev1.Container) {
		for _, c := range from {
			to := corev1.Container{Name: c.Name, Resources: resources(c.Resources)}
			if c.RestartPolicy != "" {
				policy := corev1.ContainerRestartPolicy(c.RestartPolicy)
				to.RestartPolicy = &policy
			}
			list = append(list, to)
			if c.AllocatedResources != nil {
				*statuses = append(*statuses, corev1.ContainerStatus{Name: c.Name, AllocatedResources: Quantities(c.AllocatedResources)})
			}
		}
		return list
	}
	pod.Spec.InitContainers = containers(spec.InitContainers, &pod.Status.InitContainerStatuses)
	pod.Spec.Containers = containers(spec.Containers, &pod.Status.ContainerStatuses)
	return pod
}
