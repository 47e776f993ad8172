package alloc

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Kind is how long a container runs, by which the managers share out its resources.
type Kind uint8

const (
	App     Kind = iota // runs with the pod
	Init                // runs before the containers after it, which may take over what it held
	Sidecar             // an init container that keeps running
)

// MemoryRequest is the request of memory of one type, in bytes.
type MemoryRequest struct {
	Type corev1.ResourceName // memory or hugepages-<size>
	Size uint64
}

// ContainerRequests is what the CPU and memory managers ask of a container.
type ContainerRequests struct {
	Name string
	Kind Kind
	// CPUs is the number of exclusive CPUs, 0 for the shared pool.
	CPUs int
	// Memory is ascending by type; empty where the memory manager pins nothing. MemoryErr is why it could not be told.
	Memory    []MemoryRequest
	MemoryErr error
	// OwnCPUs and OwnMemory: in a pod with pod-level resources, the container's own are isolated from those of the pod.
	OwnCPUs, OwnMemory bool
}

// PodRequests is what the CPU and memory managers ask of a pod.
type PodRequests struct {
	UID        string
	QOS        corev1.PodQOSClass
	Containers []ContainerRequests // init containers, then app containers
	// PodLevel: the pod has pod-level resources, and the managers heed them.
	PodLevel bool
	// Unmanaged: the pod has pod-level resources, and the managers pass it over.
	Unmanaged bool
	// CPUs and Memory are the totals for the pod scope.
	CPUs      int
	Memory    []MemoryRequest
	MemoryErr error
}

// ErrNotInt64 is the memory manager's word for a quantity that is no int64.
var ErrNotInt64 = errors.New("[memorymanager] failed to represent quantity as int64")

// RequestsOf returns what the managers ask of a pod (cpumanager/policy_static.go, guaranteedCPUs and podGuaranteedCPUs;
// memorymanager/policy_static.go, getContainerRequestedResources and getPodRequestedResources).
func RequestsOf(pod *corev1.Pod, r Rules) PodRequests {
	set := podLevelResourcesSet(pod)
	p := PodRequests{
		UID:      string(pod.UID),
		QOS:      QOSClass(pod, r),
		PodLevel: set && r.PodLevelResourceManagers,
	}
	p.Unmanaged = set && !r.PodLevelResourceManagers && (r.PodLevelResources || r.PodLevelAlwaysShared)
	p.Containers = make([]ContainerRequests, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for i := range pod.Spec.InitContainers {
		kind := Init
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			kind = Sidecar
		}
		p.add(pod, &pod.Spec.InitContainers[i], kind, r)
	}
	for i := range pod.Spec.Containers {
		p.add(pod, &pod.Spec.Containers[i], App, r)
	}
	if p.PodLevel {
		p.podLevelTotals(pod.Spec.Resources)
	} else {
		p.sumCPUs()
		p.sumMemory()
	}
	return p
}

func (p *PodRequests) add(pod *corev1.Pod, c *corev1.Container, kind Kind, r Rules) {
	cr := ContainerRequests{Name: c.Name, Kind: kind}
	own := true
	if p.PodLevel {
		own = qosOf(&c.Resources) == corev1.PodQOSGuaranteed
		cr.OwnMemory = own
		cr.OwnCPUs = own && IsWhole(c.Resources.Limits[corev1.ResourceCPU])
	}
	if p.QOS == corev1.PodQOSGuaranteed && !p.Unmanaged && own {
		if request, ok := cpuRequest(pod, c, r); ok && request.Sign() > 0 && IsWhole(request) {
			cr.CPUs = int(request.Value())
		}
		cr.Memory, cr.MemoryErr = memoryRequests(c.Resources.Requests, allocated(pod, c, r))
	}
	p.Containers = append(p.Containers, cr)
}

func isMemory(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// memoryRequests returns the requests of memory, those of the second list where they are in it too.
func memoryRequests(list, allocated corev1.ResourceList) ([]MemoryRequest, error) {
	var requests []MemoryRequest
	for name, q := range list {
		if !isMemory(name) {
			continue
		}
		if a, ok := allocated[name]; ok {
			q = a
		}
		size, ok := q.AsInt64()
		if !ok {
			return nil, ErrNotInt64
		}
		requests = append(requests, MemoryRequest{name, uint64(size)})
	}
	sortRequests(requests)
	return requests, nil
}

func sortRequests(requests []MemoryRequest) {
	slices.SortFunc(requests, func(a, b MemoryRequest) int { return strings.Compare(string(a.Type), string(b.Type)) })
}

func (p *PodRequests) podLevelTotals(rr *corev1.ResourceRequirements) {
	if p.QOS != corev1.PodQOSGuaranteed {
		return
	}
	if q, ok := rr.Requests[corev1.ResourceCPU]; ok && q.Sign() > 0 && IsWhole(q) {
		p.CPUs = int(q.Value())
	}
	p.Memory, p.MemoryErr = memoryRequests(rr.Requests, nil)
	p.Memory = slices.DeleteFunc(p.Memory, func(m MemoryRequest) bool { return int64(m.Size) <= 0 })
}

// sumCPUs takes the larger of what runs with the pod and of each init container with the sidecars before it.
func (p *PodRequests) sumCPUs() {
	var init, sidecars, apps int
	for i := range p.Containers {
		switch n := p.Containers[i].CPUs; p.Containers[i].Kind {
		case Init:
			init = max(init, sidecars+n)
		case Sidecar:
			sidecars += n
		case App:
			apps += n
		}
	}
	p.CPUs = max(init, apps+sidecars)
}

// sumMemory does the same for each type of memory, but only for those that an app container requests (kubelet ≤ 1.37).
func (p *PodRequests) sumMemory() {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.MemoryErr != nil {
			p.Memory, p.MemoryErr = nil, c.MemoryErr
			return
		}
		if c.Kind != App {
			continue
		}
		for _, m := range c.Memory {
			if p.memory(m.Type) == nil {
				p.Memory = append(p.Memory, MemoryRequest{Type: m.Type})
			}
		}
	}
	sortRequests(p.Memory)
	for i := range p.Memory {
		p.Memory[i].Size = p.totalOf(p.Memory[i].Type)
	}
}

func (p *PodRequests) totalOf(memory corev1.ResourceName) uint64 {
	var init, sidecars, apps uint64
	for i := range p.Containers {
		for _, m := range p.Containers[i].Memory {
			if m.Type != memory {
				continue
			}
			switch p.Containers[i].Kind {
			case Init:
				init = max(init, sidecars+m.Size)
			case Sidecar:
				sidecars += m.Size
			case App:
				apps += m.Size
			}
		}
	}
	return max(init, apps+sidecars)
}

func (p *PodRequests) memory(name corev1.ResourceName) *MemoryRequest {
	for i := range p.Memory {
		if p.Memory[i].Type == name {
			return &p.Memory[i]
		}
	}
	return nil
}
