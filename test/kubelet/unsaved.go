package main

import (
	"context"
	"slices"

	cadvisor "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/noderes/kubectl-noderes/test/conformance"
)

// unsaved are the managers' policies below the topology manager, without what the managers add: state files, and the collection of what
// pods hold that are gone.
type unsaved struct {
	topology topologymanager.Manager
	cpu      cpuPolicy
	memory   memoryPolicy
}

func startUnsaved(n *conformance.Node) (conformance.Unsaved, error) {
	log := klog.Background()
	info := &cadvisor.MachineInfo{}
	if err := n.MachineInfo(info); err != nil {
		return nil, err
	}
	k := &n.Kubelet
	u := &unsaved{cpu: cpuPolicy{state: cpustate.NewMemoryState(log)}, memory: memoryPolicy{state: memorystate.NewMemoryState(log)}}
	var err error
	if u.topology, err = topologymanager.NewManager(log, info.Topology, k.TopologyManagerPolicy, k.TopologyManagerScope, k.TopologyManagerPolicyOptions); err != nil {
		return nil, err
	}
	cpus, err := cputopology.Discover(log, info)
	if err != nil {
		return nil, err
	}
	reserved := n.Reservation[corev1.ResourceCPU]
	if u.cpu.Policy, err = cpumanager.NewStaticPolicy(log, cpus, int(reserved.Value()), n.Reserved, u.topology, k.CPUManagerPolicyOptions); err != nil {
		return nil, err
	}
	u.memory.Policy = memorymanager.NewPolicyNone(log)
	if k.MemoryManagerPolicy == "Static" {
		systemReserved := map[int]map[corev1.ResourceName]uint64{}
		for _, node := range info.Topology {
			systemReserved[node.Id] = map[corev1.ResourceName]uint64{}
		}
		for _, r := range k.ReservedMemory {
			for name, q := range conformance.Quantities(r.Limits) {
				systemReserved[int(r.NUMANode)][name] = uint64(q.Value())
			}
		}
		if u.memory.Policy, err = memorymanager.NewPolicyStatic(log, info, systemReserved, u.topology); err != nil {
			return nil, err
		}
	}
	if err := u.cpu.Start(log, u.cpu.state); err != nil {
		return nil, err
	}
	if err := u.memory.Start(log, u.memory.state); err != nil {
		return nil, err
	}
	u.topology.AddHintProvider(log, devices{n})
	u.topology.AddHintProvider(log, &u.cpu)
	u.topology.AddHintProvider(log, &u.memory)
	return u, nil
}

func (u *unsaved) Admit(pod *corev1.Pod) conformance.Answer { return admit(u.topology, pod) }

func (u *unsaved) Remove(pod *corev1.Pod) {
	log, uid := klog.Background(), string(pod.UID)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		_ = u.cpu.RemoveContainer(log, u.cpu.state, uid, c.Name)
		u.memory.RemoveContainer(log, u.memory.state, uid, c.Name)
	}
}

type cpuPolicy struct {
	cpumanager.Policy
	state cpustate.State
}

func (p *cpuPolicy) GetTopologyHints(log klog.Logger, pod *corev1.Pod, c *corev1.Container, op lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.Policy.GetTopologyHints(log, p.state, pod, c, op)
}

func (p *cpuPolicy) GetPodTopologyHints(log klog.Logger, pod *corev1.Pod, op lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.Policy.GetPodTopologyHints(log, p.state, pod, op)
}

func (p *cpuPolicy) AllocatePod(log klog.Logger, pod *corev1.Pod, op lifecycle.Operation) error {
	return p.Policy.AllocatePod(log, p.state, pod, op)
}

func (p *cpuPolicy) Allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, op lifecycle.Operation) error {
	return p.Policy.Allocate(klog.FromContext(ctx), p.state, pod, c, op)
}

type memoryPolicy struct {
	memorymanager.Policy
	state memorystate.State
}

func (p *memoryPolicy) GetTopologyHints(log klog.Logger, pod *corev1.Pod, c *corev1.Container, op lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.Policy.GetTopologyHints(log, p.state, pod, c, op)
}

func (p *memoryPolicy) GetPodTopologyHints(log klog.Logger, pod *corev1.Pod, op lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.Policy.GetPodTopologyHints(log, p.state, pod, op)
}

func (p *memoryPolicy) AllocatePod(log klog.Logger, pod *corev1.Pod, op lifecycle.Operation) error {
	return p.Policy.AllocatePod(log, p.state, pod, op)
}

func (p *memoryPolicy) Allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, op lifecycle.Operation) error {
	return p.Policy.Allocate(ctx, p.state, pod, c, op)
}
