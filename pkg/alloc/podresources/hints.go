package podresources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
)

// Machine is what hints about devices depend on beside the devices.
type Machine struct {
	NUMANodes []int // of the machine, ascending
	// HostingNodesOnly: masks are made of the nodes that have a device of the resource (kubelet 1.37), not of all nodes.
	HostingNodesOnly bool
}

// Hints are the device manager's hints for a pod that is admitted while the devices of the pods that holds reports are in use
// (devicemanager/topology_hints.go, kubelet 1.37), and these besides. Resources that no device is known of are left out.
func (r *Resources) Hints(pod *corev1.Pod, m Machine, holds func(namespace, name string) bool, besides ...Device) (node.DeviceHints, error) {
	used := map[deviceID]bool{}
	for _, p := range r.Pods {
		if !holds(p.Namespace, p.Name) {
			continue
		}
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				used[deviceID{d.Resource, d.ID}] = true
			}
		}
	}
	for _, d := range besides {
		used[deviceID{d.Resource, d.ID}] = true
	}
	var out node.DeviceHints
	add := func(c *corev1.Container) error {
		hints, err := r.hintsFor(c.Resources.Limits, m, used)
		if len(hints) > 0 {
			if out.Containers == nil {
				out.Containers = map[string][]hint.Resource{}
			}
			out.Containers[c.Name] = hints
		}
		return err
	}
	for i := range pod.Spec.InitContainers {
		if err := add(&pod.Spec.InitContainers[i]); err != nil {
			return out, err
		}
	}
	for i := range pod.Spec.Containers {
		if err := add(&pod.Spec.Containers[i]); err != nil {
			return out, err
		}
	}
	var err error
	out.Pod, err = r.hintsFor(resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true}), m, used)
	return out, err
}

type deviceID struct{ Resource, ID string }

func (r *Resources) hintsFor(limits corev1.ResourceList, m Machine, used map[deviceID]bool) ([]hint.Resource, error) {
	var out []hint.Resource
	for _, name := range r.resourceNames() {
		q, asked := limits[corev1.ResourceName(name)]
		if !asked || q.Value() <= 0 {
			continue
		}
		hints, err := r.hintsOf(name, q.Value(), m, used)
		if err != nil {
			return nil, err
		}
		out = append(out, hint.Resource{Name: name, Hints: hints})
	}
	return out, nil
}

func (r *Resources) resourceNames() []string {
	var names []string
	for _, d := range r.Devices {
		names = append(names, d.Resource)
	}
	return slices.Compact(names)
}

// hintsOf gives an empty list where there are too few devices: no set of nodes would do.
func (r *Resources) hintsOf(name string, request int64, m Machine, used map[deviceID]bool) ([]hint.Hint, error) {
	type place struct {
		mask hint.Mask
		free bool
	}
	var places []place
	var hosts hint.Mask
	free := int64(0)
	for _, d := range r.Devices {
		if d.Resource != name {
			continue
		}
		mask, _ := hint.MaskOf(d.Nodes...)
		p := place{mask, !used[deviceID{d.Resource, d.ID}]}
		hosts |= mask
		places = append(places, p)
		if p.free {
			free++
		}
	}
	if hosts == 0 {
		return []hint.Hint{{Preferred: true}}, nil
	}
	if free < request {
		return []hint.Hint{}, nil
	}
	ids := m.NUMANodes
	if m.HostingNodesOnly {
		ids = hosts.IDs()
	}
	masks, err := hint.Subsets(ids)
	if err != nil {
		return nil, err
	}
	least := len(ids)
	hints := []hint.Hint{}
	for _, mask := range masks {
		all, available := int64(0), int64(0)
		for _, p := range places {
			if p.mask&mask != 0 {
				all++
				if p.free {
					available++
				}
			}
		}
		if all >= request {
			least = min(least, mask.Count())
		}
		if available >= request {
			hints = append(hints, hint.Hint{Mask: mask, Aligned: true})
		}
	}
	for i := range hints {
		hints[i].Preferred = hints[i].Mask.Count() == least
	}
	return hints, nil
}
