package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

func (t Topology) build() (*topology.Topology, error) {
	var cpus []topology.CPU
	for _, c := range t.CPUs {
		cpu := topology.CPU{ID: c.CPU, Core: c.Core, Socket: c.Socket, NUMANode: c.NUMA}
		if c.Uncore != nil {
			cpu.UncoreCache, cpu.HasUncoreCache = *c.Uncore, true
		}
		cpus = append(cpus, cpu)
	}
	var nodes []topology.NUMANode
	for _, n := range t.NUMA {
		to := topology.NUMANode{ID: n.ID, MemTotal: n.Memory, HasMemTotal: true, Distances: n.Distances, HasDistances: n.Distances != nil}
		for _, p := range n.HugePages {
			to.HugePages = append(to.HugePages, topology.HugePages{SizeKiB: p.PageSizeKiB, Count: p.Count, HasCount: true})
		}
		nodes = append(nodes, to)
	}
	built, err := topology.New(cpus, nodes)
	if err != nil {
		return nil, err
	}
	built.NumCPUs = len(t.CPUs)
	if t.NumCores != 0 {
		built.NumCPUs = t.NumCores
	}
	if t.NumSockets != 0 {
		built.NumSockets = t.NumSockets
	}
	return built, nil
}

func quantities(m map[string]string) (corev1.ResourceList, error) {
	if m == nil {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		q, err := resource.ParseQuantity(m[name])
		if err != nil {
			return nil, fmt.Errorf("quantity %q of %q: %w", m[name], name, err)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

// build returns all but the topology.
func (k Kubelet) build(version string) (node.Config, error) {
	if version == "" {
		version = "1.37"
	}
	var c node.Config
	rules, exact, err := alloc.RulesFor(version)
	if err == nil && !exact {
		err = fmt.Errorf("version %q is not one of 1.34 to 1.37", version)
	}
	if err != nil {
		return c, err
	}
	c.Kubelet = kubeletconfig.Config{
		FeatureGates:                 k.FeatureGates,
		CPUManagerPolicy:             k.CPUManagerPolicy,
		CPUManagerPolicyOptions:      k.CPUManagerPolicyOptions,
		MemoryManagerPolicy:          k.MemoryManagerPolicy,
		TopologyManagerPolicy:        k.TopologyManagerPolicy,
		TopologyManagerScope:         k.TopologyManagerScope,
		TopologyManagerPolicyOptions: k.TopologyManagerPolicyOptions,
	}
	c.Rules = rules.With(c.Kubelet)
	if c.Reservation, err = quantities(k.NodeReservation); err != nil {
		return c, err
	}
	if c.Kubelet.ReservedSystemCPUs, err = cpuset.Parse(k.ReservedSystemCPUs); err != nil {
		return c, err
	}
	for _, r := range k.ReservedMemory {
		limits, err := quantities(r.Limits)
		if err != nil {
			return c, err
		}
		c.Kubelet.ReservedMemory = append(c.Kubelet.ReservedMemory, kubeletconfig.MemoryReservation{NUMANode: int(r.NUMANode), Limits: limits})
	}
	return c, nil
}

// NodeConfig is what the replay takes for the machine and the kubelet.
func (s *Scenario) NodeConfig() (node.Config, error) {
	c, err := s.Kubelet.build(s.Version)
	if err != nil {
		return c, err
	}
	c.Topology, err = s.Topology.build()
	return c, err
}

// NodePod is what the replay takes for the pod.
func (p *Pod) NodePod() (node.Pod, error) { return p.build() }

func (r Resources) build() (rr corev1.ResourceRequirements, err error) {
	if rr.Requests, err = quantities(r.Requests); err != nil {
		return rr, err
	}
	if rr.Limits, err = quantities(r.Limits); err != nil {
		return rr, err
	}
	for name, q := range rr.Limits {
		if _, ok := rr.Requests[name]; !ok {
			if rr.Requests == nil {
				rr.Requests = corev1.ResourceList{}
			}
			rr.Requests[name] = q.DeepCopy()
		}
	}
	return rr, nil
}

func (p *Pod) build() (node.Pod, error) {
	pod := &corev1.Pod{}
	pod.UID, pod.Name, pod.Namespace = types.UID(p.UID), p.UID, "default"
	if p.Resources != nil {
		rr, err := p.Resources.build()
		if err != nil {
			return node.Pod{}, err
		}
		pod.Spec.Resources = &rr
	}
	devices := node.DeviceHints{Containers: map[string][]hint.Resource{}}
	ofPod := map[string][]hint.Hint{}
	build := func(from []Container, statuses *[]corev1.ContainerStatus) ([]corev1.Container, error) {
		var list []corev1.Container
		for _, c := range from {
			rr, err := c.Resources.build()
			if err != nil {
				return nil, err
			}
			to := corev1.Container{Name: c.Name, Resources: rr}
			if c.RestartPolicy != "" {
				policy := corev1.ContainerRestartPolicy(c.RestartPolicy)
				to.RestartPolicy = &policy
			}
			list = append(list, to)
			if c.AllocatedResources != nil {
				allocated, err := quantities(c.AllocatedResources)
				if err != nil {
					return nil, err
				}
				*statuses = append(*statuses, corev1.ContainerStatus{Name: c.Name, AllocatedResources: allocated})
			}
			for _, name := range slices.Sorted(maps.Keys(c.DeviceHints)) {
				hints := deviceHints(c.DeviceHints[name])
				devices.Containers[c.Name] = append(devices.Containers[c.Name], hint.Resource{Name: name, Hints: hints})
				ofPod[name] = hints
			}
		}
		return list, nil
	}
	var err error
	if pod.Spec.InitContainers, err = build(p.InitContainers, &pod.Status.InitContainerStatuses); err != nil {
		return node.Pod{}, err
	}
	if pod.Spec.Containers, err = build(p.Containers, &pod.Status.ContainerStatuses); err != nil {
		return node.Pod{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(ofPod)) {
		devices.Pod = append(devices.Pod, hint.Resource{Name: name, Hints: ofPod[name]})
	}
	return node.Pod{Pod: pod, Devices: devices}, nil
}

func deviceHints(from []Hint) []hint.Hint {
	hints := []hint.Hint{}
	for _, h := range from {
		to := hint.Hint{Preferred: h.Preferred}
		if h.NUMA != nil {
			to.Mask, to.Aligned = hint.MaskOf(h.NUMA...)
		}
		hints = append(hints, to)
	}
	return hints
}

// build reads the state files. An error is the kubelet's.
func (s *SeedState) build(r alloc.Rules) (state node.State, err error) {
	if s == nil {
		return state, nil
	}
	if s.CPU != nil {
		c, err := checkpoint.ReadCPU(fileText(s.CPU))
		switch {
		case errors.Is(err, checkpoint.ErrCorrupt):
			cpu := cpumanager.StateOf(c)
			state.CPUErr = node.CorruptCPUFile(&cpu, r)
		case err != nil:
			return state, err
		default:
			cpu := cpumanager.StateOf(c)
			state.CPU, state.CPUPolicy, state.CPUForm = &cpu, c.PolicyName, c.Version
		}
	}
	if s.Memory != nil {
		c, err := checkpoint.ReadMemory(fileText(s.Memory))
		switch {
		case errors.Is(err, checkpoint.ErrCorrupt), r.Minor <= 35 && slices.ContainsFunc(c.Checksums, func(c checkpoint.Checksum) bool { return c.Absent0 }):
			// The memory manager could not do without a checksum before 1.36.
			state.MemoryErr = checkpoint.ErrCorrupt
		case err != nil:
			return state, err
		default:
			memory, err := memorymanager.StateOf(c)
			if err != nil {
				return state, err
			}
			state.Memory, state.MemoryPolicy = &memory, c.PolicyName
		}
	}
	return state, nil
}

func fileText(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	return raw
}
