// Package podresources reads what the kubelet's PodResources API (v1) says of devices, and makes of it the hints that the kubelet's
// device manager would give. The API shows healthy devices only, and no pod's device before the pod was admitted.
package podresources

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Resources is the answer to List and to GetAllocatableResources.
type Resources struct {
	// Devices are the allocatable ones, ascending by resource and id.
	Devices []Device
	// Pods are those that the API lists, in its order.
	Pods []Pod
	// HasAllocatable false: only List was recorded, and the devices are those in use.
	HasAllocatable bool
	// CPUs are the allocatable ones.
	CPUs []int64
}

// Device is one device of a plugin. Nodes are its NUMA nodes, ascending; without any its place is not known.
type Device struct {
	Resource, ID string
	Nodes        []int
}

// Pod is a pod with what its containers hold. Normal init containers are not among them.
type Pod struct {
	Namespace, Name string
	Containers      []Container
}

// Container is what one container holds. CPUs are the exclusive ones.
type Container struct {
	Name    string
	CPUs    []int64
	Devices []Device
}

type file struct {
	List *struct {
		Pods []struct {
			Name       string `json:"name"`
			Namespace  string `json:"namespace"`
			Containers []struct {
				Name    string    `json:"name"`
				CPUs    []number  `json:"cpu_ids"`
				Devices []devices `json:"devices"`
			} `json:"containers"`
		} `json:"pod_resources"`
	} `json:"list"`
	Allocatable *struct {
		CPUs    []number  `json:"cpu_ids"`
		Devices []devices `json:"devices"`
	} `json:"allocatable"`
}

type devices struct {
	Resource string   `json:"resource_name"`
	IDs      []string `json:"device_ids"`
	Topology *struct {
		Nodes []struct {
			ID number `json:"ID"`
		} `json:"nodes"`
	} `json:"topology"`
}

// number is an int64, which the JSON form of protobuf writes as a text.
type number int64

func (n *number) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("not an integer: %.20s", data)
	}
	*n = number(v)
	return nil
}

// Read reads {"list": ListPodResourcesResponse, "allocatable": AllocatableResourcesResponse}; either may be absent.
func Read(data []byte) (*Resources, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("podresources: %w", err)
	}
	r := &Resources{HasAllocatable: f.Allocatable != nil}
	if f.List == nil && f.Allocatable == nil {
		return nil, fmt.Errorf("podresources: neither list nor allocatable")
	}
	if f.List != nil {
		for _, p := range f.List.Pods {
			pod := Pod{Namespace: p.Namespace, Name: p.Name}
			for _, c := range p.Containers {
				held, err := flatten(c.Devices)
				if err != nil {
					return nil, err
				}
				pod.Containers = append(pod.Containers, Container{Name: c.Name, CPUs: ints(c.CPUs), Devices: held})
				if !r.HasAllocatable {
					r.Devices = append(r.Devices, held...)
				}
			}
			r.Pods = append(r.Pods, pod)
		}
	}
	if f.Allocatable != nil {
		var err error
		if r.Devices, err = flatten(f.Allocatable.Devices); err != nil {
			return nil, err
		}
		r.CPUs = ints(f.Allocatable.CPUs)
	}
	slices.SortFunc(r.Devices, compare)
	return r, nil
}

func ints(from []number) []int64 {
	var out []int64
	for _, n := range from {
		out = append(out, int64(n))
	}
	return out
}

// flatten gives one Device per id. A device on several NUMA nodes may be listed once for each.
func flatten(list []devices) ([]Device, error) {
	var out []Device
	for _, d := range list {
		var nodes []int
		if d.Topology != nil {
			for _, n := range d.Topology.Nodes {
				if n.ID < 0 || n.ID > 63 {
					return nil, fmt.Errorf("podresources: device of %s on NUMA node %d", d.Resource, n.ID)
				}
				nodes = append(nodes, int(n.ID))
			}
		}
		for _, id := range d.IDs {
			out = append(out, Device{Resource: d.Resource, ID: id, Nodes: slices.Clone(nodes)})
		}
	}
	slices.SortStableFunc(out, compare)
	merged := out[:0]
	for _, d := range out {
		if last := len(merged) - 1; last >= 0 && compare(merged[last], d) == 0 {
			merged[last].Nodes = append(merged[last].Nodes, d.Nodes...)
			continue
		}
		merged = append(merged, d)
	}
	for i := range merged {
		slices.Sort(merged[i].Nodes)
		merged[i].Nodes = slices.Compact(merged[i].Nodes)
	}
	return merged, nil
}

func compare(a, b Device) int {
	if c := strings.Compare(a.Resource, b.Resource); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// Find returns what a container holds.
func (r *Resources) Find(namespace, pod, container string) (Container, bool) {
	for _, p := range r.Pods {
		if p.Namespace != namespace || p.Name != pod {
			continue
		}
		for _, c := range p.Containers {
			if c.Name == container {
				return c, true
			}
		}
	}
	return Container{}, false
}
