package main

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

func (m *managers) add(spec *scenario.Pod, result *scenario.StepResult) {
	pod := newPod(spec)
	result.UID, result.QOS = spec.UID, string(qos.GetPodQOS(pod))
	m.mu.Lock()
	m.specs[pod.UID] = spec
	m.pods = append(m.pods, pod)
	m.mu.Unlock()
	answer := m.admit(pod)
	result.Admit, result.Reason, result.Message = &answer.Admit, answer.Reason, answer.Message
	if !answer.Admit {
		result.AtReject = m.state()
		m.drop(pod.UID)
		m.collect()
		return
	}
	for i := range pod.Spec.InitContainers {
		result.Containers = append(result.Containers, m.container(pod, &pod.Spec.InitContainers[i], true))
	}
	for i := range pod.Spec.Containers {
		result.Containers = append(result.Containers, m.container(pod, &pod.Spec.Containers[i], false))
	}
	result.PodCPUs = m.cpu.GetPodCPUs(spec.UID).String()
	result.PodMemory = blocks(m.memory.GetPodMemory(spec.UID))
}

func (m *managers) container(pod *corev1.Pod, c *corev1.Container, init bool) scenario.ContainerResult {
	uid := string(pod.UID)
	log := klog.Background()
	_, own := m.cpu.State().GetCPUSet(uid, c.Name)
	result := scenario.ContainerResult{
		Name: c.Name, Init: init, Assigned: own,
		CPUs:       m.cpu.GetCPUAffinity(uid, c.Name).String(),
		CPULevel:   string(m.cpu.GetResourceIsolationLevel(pod, c)),
		Memory:     blocks(m.memory.GetMemory(log, uid, c.Name)),
		MemLevel:   string(m.memory.GetResourceIsolationLevel(pod, c)),
		MergedHint: &scenario.Hint{},
	}
	for id := range m.memory.GetMemoryNUMANodes(log, pod, c) {
		result.MemNodes = append(result.MemNodes, id)
	}
	slices.Sort(result.MemNodes)
	hint := m.topology.GetAffinity(log, uid, c.Name)
	result.MergedHint.Preferred = hint.Preferred
	if hint.NUMANodeAffinity != nil {
		result.MergedHint.NUMA = append([]int{}, hint.NUMANodeAffinity.GetBits()...)
	}
	return result
}

func blocks(from []state.Block) []scenario.Block {
	var list []scenario.Block
	for _, b := range from {
		list = append(list, scenario.Block{NUMA: slices.Sorted(slices.Values(b.NUMAAffinity)), Type: string(b.Type), Size: b.Size})
	}
	slices.SortStableFunc(list, func(a, b scenario.Block) int { return cmp.Compare(a.Type, b.Type) })
	return list
}

// state tells what the managers' state files hold; the order in them is random.
func (m *managers) state() *scenario.State {
	s := &scenario.State{Default: m.cpu.State().GetDefaultCPUSet().String()}
	for uid, containers := range m.cpu.State().GetCPUAssignments() {
		for name, set := range containers {
			if s.Assignments == nil {
				s.Assignments = map[string]map[string]string{}
			}
			if s.Assignments[uid] == nil {
				s.Assignments[uid] = map[string]string{}
			}
			s.Assignments[uid][name] = set.String()
		}
	}
	for uid, pod := range m.cpu.State().GetPodCPUAssignments() {
		if s.PodAssignments == nil {
			s.PodAssignments = map[string]string{}
		}
		s.PodAssignments[uid] = pod.CPUSet.String()
	}
	for uid, containers := range m.memory.State().GetMemoryAssignments() {
		for name, list := range containers {
			if s.Memory == nil {
				s.Memory = map[string]map[string][]scenario.Block{}
			}
			if s.Memory[uid] == nil {
				s.Memory[uid] = map[string][]scenario.Block{}
			}
			s.Memory[uid][name] = blocks(list)
		}
	}
	for uid, pod := range m.memory.State().GetPodMemoryAssignments() {
		if s.PodMemory == nil {
			s.PodMemory = map[string][]scenario.Block{}
		}
		s.PodMemory[uid] = blocks(pod.MemoryBlocks)
	}
	for id, n := range m.memory.State().GetMachineState() {
		to := scenario.NodeState{ID: id, Assignments: n.NumberOfAssignments, Cells: slices.Sorted(slices.Values(n.Cells))}
		for name, t := range n.MemoryMap {
			to.Tables = append(to.Tables, scenario.MemTable{
				Type: string(name), Total: t.TotalMemSize, SystemReserved: t.SystemReserved, Allocatable: t.Allocatable, Reserved: t.Reserved, Free: t.Free,
			})
		}
		slices.SortFunc(to.Tables, func(a, b scenario.MemTable) int { return cmp.Compare(a.Type, b.Type) })
		s.Machine = append(s.Machine, to)
	}
	slices.SortFunc(s.Machine, func(a, b scenario.NodeState) int { return cmp.Compare(a.ID, b.ID) })
	return s
}
