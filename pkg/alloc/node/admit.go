package node

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topologymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// Pod is a pod with what its device plugins would say.
type Pod struct {
	*corev1.Pod
	Devices DeviceHints
}

// DeviceHints are the hints of the device manager, which the replay cannot know by itself.
type DeviceHints struct {
	Containers map[string][]hint.Resource // container scope, by container name
	Pod        []hint.Resource            // pod scope
}

// Result is the answer to a pod.
type Result struct {
	Admit           bool
	Reason, Message string // as in the pod's status after it was refused
	// Hints has the merged hint of each container, in the order of alloc.PodRequests; shorter if the pod was refused.
	Hints []hint.Hint
}

// Admit makes a pod active and runs it through the topology manager; a pod that is active already is admitted again. A pod that is
// refused is no longer active, but what was allocated to it is still there (see Collect).
//
// The error is a *hint.Crash, or hint.ErrWouldHang: the node is of no use after it.
func (n *Node) Admit(p Pod, tr *trace.Trace) (Result, error) {
	a := n.activate(p)
	result, err := n.admit(a, tr)
	n.file.changed(&n.CPU.State)
	var fatal *hint.Crash
	switch {
	case errors.As(err, &fatal) || errors.Is(err, hint.ErrWouldHang):
		return Result{}, err
	case err == nil:
		result.Admit = true
		return result, nil
	}
	result.Reason, result.Message = "UnexpectedAdmissionError", fmt.Sprintf("Allocate failed due to %v, which is unexpected", err)
	var known interface{ Reason() string }
	if errors.As(err, &known) {
		result.Reason, result.Message = known.Reason(), err.Error()
	}
	n.deactivate(a.requests.UID)
	return result, nil
}

func (n *Node) activate(p Pod) *activePod {
	a := &activePod{pod: p.Pod, devices: p.Devices, requests: alloc.RequestsOf(p.Pod, n.config.Rules)}
	uid := a.requests.UID
	if n.active[uid] == nil {
		n.order = append(n.order, uid)
		n.staleCPU = n.staleCPU || n.CPU.State.Entries[uid] != nil
		n.staleMemory = n.staleMemory || n.Memory.State.Entries[uid] != nil
	}
	n.active[uid] = a
	return a
}

func (n *Node) deactivate(uid string) bool {
	if n.active[uid] == nil {
		return false
	}
	delete(n.active, uid)
	n.order = slices.DeleteFunc(n.order, func(u string) bool { return u == uid })
	n.staleCPU, n.staleMemory = true, true
	return true
}

// Remove makes a pod inactive, and reports whether it was active. What it holds stays until Collect or the next admission.
func (n *Node) Remove(uid string) bool { return n.deactivate(uid) }

// Pods returns the active pods in the order of their admission.
func (n *Node) Pods() []Pod {
	pods := make([]Pod, len(n.order))
	for i, uid := range n.order {
		pods[i] = Pod{n.active[uid].pod, n.active[uid].devices}
	}
	return pods
}

// Requests returns what an active pod asks for; nil if there is none of that UID.
func (n *Node) Requests(uid string) *alloc.PodRequests {
	if a := n.active[uid]; a != nil {
		return &a.requests
	}
	return nil
}

// Started tells that a container of an active pod starts, upon which the memory manager forgets the init containers before it.
func (n *Node) Started(uid, container string) error {
	if a := n.active[uid]; a != nil {
		return n.Memory.Started(&a.requests, container)
	}
	return nil
}

// Collect releases what pods hold that are no longer active.
func (n *Node) Collect() error {
	n.collectCPU()
	n.file.changed(&n.CPU.State)
	return n.collectMemory()
}

func (n *Node) isActive(uid, container string) bool {
	a := n.active[uid]
	return a != nil && slices.ContainsFunc(a.requests.Containers, func(c alloc.ContainerRequests) bool { return c.Name == container })
}

func (n *Node) collectCPU() {
	if n.staleCPU {
		n.CPU.RemoveStale(n.isActive)
		n.staleCPU = false
	}
}

func (n *Node) collectMemory() error {
	if !n.staleMemory {
		return nil
	}
	n.staleMemory = false
	return n.Memory.RemoveStale(n.isActive)
}

// affinityError is the refusal by the topology manager's policy.
type affinityError string

func (e affinityError) Error() string { return string(e) }

func (affinityError) Reason() string { return "TopologyAffinityError" }

const (
	errAffinity      = affinityError("Resources cannot be allocated with Topology locality")
	errPodScope      = affinityError("Pod Scope pod with pod-level resources failed admission under pod-scope topology manager")
	errContainerOnly = affinityError("Pod Scope pod with pod-level resources failed admission with a container-level topology manager")
)

func (n *Node) admit(a *activePod, tr *trace.Trace) (Result, error) {
	var result Result
	p := &a.requests
	var near hint.Hint
	pod := n.topology.Scope == topologymanager.PodScope
	if pod {
		best, admit, err := n.merge(a, nil, tr)
		switch {
		case err != nil:
			return result, err
		case !admit && p.PodLevel:
			return result, errPodScope
		case !admit:
			return result, errAffinity
		}
		near = best
	}
	if pod && p.PodLevel {
		for range p.Containers {
			result.Hints = append(result.Hints, near)
		}
		return result, n.allocatePod(p, near, tr)
	}
	if len(p.Containers) > 0 {
		result.Hints = make([]hint.Hint, 0, len(p.Containers))
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		if n.topology.Scope == topologymanager.ContainerScope {
			best, admit, err := n.merge(a, c, tr)
			switch {
			case err != nil:
				return result, err
			case !admit && p.PodLevel:
				return result, errContainerOnly
			case !admit:
				return result, errAffinity
			}
			near = best
		}
		result.Hints = append(result.Hints, near)
		if err := n.allocate(p, c, near, tr); err != nil {
			return result, err
		}
	}
	return result, nil
}

func (n *Node) allocate(p *alloc.PodRequests, c *alloc.ContainerRequests, near hint.Hint, tr *trace.Trace) error {
	n.collectCPU()
	err := n.CPU.Allocate(p, c, near, tr)
	if err == nil {
		if err = n.collectMemory(); err == nil {
			err = n.Memory.Allocate(p, c, near)
		}
	}
	if tr != nil {
		n.traceAllocation(p, c, err, tr)
	}
	return err
}

func (n *Node) allocatePod(p *alloc.PodRequests, near hint.Hint, tr *trace.Trace) error {
	n.collectCPU()
	err := n.CPU.AllocatePod(p, near, tr)
	if err == nil {
		if err = n.collectMemory(); err == nil {
			err = n.Memory.AllocatePod(p, near)
		}
	}
	if tr != nil {
		for i := range p.Containers {
			n.traceAllocation(p, &p.Containers[i], err, tr)
		}
	}
	return err
}

func (n *Node) traceAllocation(p *alloc.PodRequests, c *alloc.ContainerRequests, err error, tr *trace.Trace) {
	a := &trace.Allocate{Err: err}
	if set, own := n.CPU.Get(p.UID, c.Name); own {
		a.CPUs = set
	}
	for _, b := range n.Memory.Get(p.UID, c.Name) {
		a.Memory = append(a.Memory, trace.Memory{Nodes: b.Nodes, Type: string(b.Type), Size: b.Size})
	}
	tr.Add(trace.Step{Container: c.Name, Allocate: a})
}

// merge asks the providers where a container, or without one the whole pod, can be.
func (n *Node) merge(a *activePod, c *alloc.ContainerRequests, tr *trace.Trace) (hint.Hint, bool, error) {
	p := &a.requests
	n.lists = n.lists[:0]
	container := ""
	devices := a.devices.Pod
	if c != nil {
		container, devices = c.Name, a.devices.Containers[c.Name]
	}
	for _, r := range devices {
		n.lists = append(n.lists, r.Hints)
	}
	n.offered(tr, "device", container, 0, func(i int) string { return devices[i].Name })

	n.collectCPU()
	from := len(n.lists)
	var list []hint.Hint
	var some bool
	var err error
	if c != nil {
		list, some, err = n.CPU.Hints(p, c)
	} else {
		list, some, err = n.CPU.PodHints(p)
	}
	if err != nil {
		return hint.Hint{}, false, err
	}
	if some {
		n.lists = append(n.lists, list)
	}
	n.offered(tr, "cpu", container, from, func(int) string { return "cpu" })

	if err = n.collectMemory(); err != nil {
		return hint.Hint{}, false, err
	}
	from = len(n.lists)
	var memory memorymanager.Hints
	if c != nil {
		memory, err = n.Memory.Hints(p, c)
	} else {
		memory, err = n.Memory.PodHints(p)
	}
	if err != nil {
		return hint.Hint{}, false, err
	}
	if memory.Impossible || memory.Lists != nil || len(memory.All) > 0 {
		for i := range memory.Types {
			switch {
			case memory.Lists != nil:
				n.lists = append(n.lists, memory.Lists[i])
			default:
				n.lists = append(n.lists, memory.All)
			}
		}
	}
	n.offered(tr, "memory", container, from, func(i int) string { return string(memory.Types[i].Type) })

	best, admit, err := n.topology.Merge(n.lists)
	if tr != nil && err == nil {
		tr.Add(trace.Step{Container: container, Merge: &trace.Merge{Best: best, Admit: admit, Lost: lost(n.lists, best)}})
	}
	return best, admit, err
}

// offered completes the lists of a provider, which start at from: without one it has no preference.
func (n *Node) offered(tr *trace.Trace, provider, container string, from int, name func(int) string) {
	if tr != nil {
		h := &trace.Hints{Provider: provider}
		for i, list := range n.lists[from:] {
			h.Resources = append(h.Resources, hint.Resource{Name: name(i), Hints: slices.Clone(list)})
		}
		tr.Add(trace.Step{Container: container, Hints: h})
	}
	if len(n.lists) == from {
		n.lists = append(n.lists, topologymanager.NoPreference)
	}
}
