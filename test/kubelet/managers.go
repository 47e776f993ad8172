package main

import (
	"context"
	"maps"
	"slices"

	cadvisor "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/noderes/kubectl-noderes/test/conformance"
	"github.com/noderes/kubectl-noderes/test/scenario"
)

type managers struct {
	topology topologymanager.Manager
	cpu      cpumanager.Manager
	memory   memorymanager.Manager
}

// What the managers need of the rest of the kubelet.
type (
	allReady  struct{}
	noStatus  struct{}
	noRuntime struct{}
)

func (allReady) AddSource(string) {}
func (allReady) AllReady() bool   { return true }

func (noStatus) GetPodStatus(types.UID) (corev1.PodStatus, bool) { return corev1.PodStatus{}, false }

func (noRuntime) UpdateContainerResources(context.Context, string, *cri.ContainerResources) error {
	return nil
}

func start(n *conformance.Node) (conformance.Managers, scenario.SetupResult, error) {
	failed := func(stage string, err error) (conformance.Managers, scenario.SetupResult, error) {
		return nil, scenario.SetupResult{Stage: stage, Error: err.Error()}, nil
	}
	log := klog.Background()
	info := &cadvisor.MachineInfo{}
	if err := n.MachineInfo(info); err != nil {
		return nil, scenario.SetupResult{}, err
	}
	k := &n.Kubelet
	var memory []config.MemoryReservation
	for _, r := range k.ReservedMemory {
		memory = append(memory, config.MemoryReservation{NumaNode: r.NUMANode, Limits: conformance.Quantities(r.Limits)})
	}

	m := &managers{}
	var err error
	if m.topology, err = topologymanager.NewManager(log, info.Topology, k.TopologyManagerPolicy, k.TopologyManagerScope,
		k.TopologyManagerPolicyOptions); err != nil {
		return failed("topology", err)
	}
	if m.cpu, err = cpumanager.NewManager(log, k.CPUManagerPolicy, k.CPUManagerPolicyOptions, conformance.Never, info, n.Reserved,
		n.Reservation, n.Folder, m.topology); err != nil {
		return failed("cpu", err)
	}
	if m.memory, err = memorymanager.NewManager(log, k.MemoryManagerPolicy, info, n.Reservation, memory, n.Folder, m.topology); err != nil {
		return failed("memory", err)
	}
	m.topology.AddHintProvider(log, devices{n})
	m.topology.AddHintProvider(log, m.cpu)
	m.topology.AddHintProvider(log, m.memory)

	ctx := klog.NewContext(context.Background(), log)
	if err := m.cpu.Start(ctx, n.ActivePods, allReady{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return failed("cpuStart", err)
	}
	n.Repaired()
	if err := m.memory.Start(ctx, n.ActivePods, allReady{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return failed("memoryStart", err)
	}
	return m, scenario.SetupResult{OK: true, AllCPUs: m.cpu.GetAllCPUs().String(), Allocatable: m.cpu.GetAllocatableCPUs().String()}, nil
}

func (m *managers) Admit(pod *corev1.Pod) conformance.Answer { return admit(m.topology, pod) }

func admit(topology topologymanager.Manager, pod *corev1.Pod) conformance.Answer {
	ctx := klog.NewContext(context.Background(), klog.Background())
	return conformance.Answer(topology.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation}))
}

func (m *managers) AddContainer(pod *corev1.Pod, c *corev1.Container, id string) {
	log := klog.Background()
	m.cpu.AddContainer(log, pod, c, id)
	m.memory.AddContainer(log, pod, c, id)
	m.topology.AddContainer(log, pod, c, id)
}

func (m *managers) Collect(nobody *corev1.Pod) {
	log := klog.Background()
	m.cpu.GetTopologyHints(log, nobody, &nobody.Spec.Containers[0], lifecycle.AddOperation)
	m.memory.GetTopologyHints(log, nobody, &nobody.Spec.Containers[0], lifecycle.AddOperation)
}

func (m *managers) Container(pod *corev1.Pod, c *corev1.Container) scenario.ContainerResult {
	uid, log := string(pod.UID), klog.Background()
	_, own := m.cpu.State().GetCPUSet(uid, c.Name)
	hint := m.topology.GetAffinity(log, uid, c.Name)
	merged := &scenario.Hint{Preferred: hint.Preferred}
	if hint.NUMANodeAffinity != nil {
		merged.NUMA = append([]int{}, hint.NUMANodeAffinity.GetBits()...)
	}
	return scenario.ContainerResult{
		Assigned:   own,
		CPUs:       m.cpu.GetCPUAffinity(uid, c.Name).String(),
		CPULevel:   string(m.cpu.GetResourceIsolationLevel(pod, c)),
		Memory:     conformance.Blocks(m.memory.GetMemory(log, uid, c.Name)),
		MemNodes:   slices.Sorted(maps.Keys(m.memory.GetMemoryNUMANodes(log, pod, c))),
		MemLevel:   string(m.memory.GetResourceIsolationLevel(pod, c)),
		MergedHint: merged,
	}
}

func (m *managers) State() *scenario.State {
	cpu, memory := m.cpu.State(), m.memory.State()
	s := conformance.CPUState(cpu.GetDefaultCPUSet(), cpu.GetCPUAssignments())
	for uid, pod := range cpu.GetPodCPUAssignments() {
		if s.PodAssignments == nil {
			s.PodAssignments = map[string]string{}
		}
		s.PodAssignments[uid] = pod.CPUSet.String()
	}
	conformance.SetMemory(s, memory.GetMachineState(), memory.GetMemoryAssignments())
	for uid, pod := range memory.GetPodMemoryAssignments() {
		if s.PodMemory == nil {
			s.PodMemory = map[string][]scenario.Block{}
		}
		s.PodMemory[uid] = conformance.Blocks(pod.MemoryBlocks)
	}
	return s
}
