package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	cadvisor "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

// managers are the kubelet's own, over state files in a folder.
type managers struct {
	folder   string
	machine  scenario.Topology
	config   scenario.Kubelet
	topology topologymanager.Manager
	cpu      cpumanager.Manager
	memory   memorymanager.Manager

	mu     sync.Mutex
	pods   []*corev1.Pod
	asked  chan struct{} // gets a token whenever the managers ask for the active pods
	specs  map[types.UID]*scenario.Pod
	starts int
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

func (m *managers) activePods() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case m.asked <- struct{}{}:
	default:
	}
	return slices.Clone(m.pods)
}

// devices answers with the hints of the scenario.
type devices struct{ m *managers }

func (d devices) hints(pod *corev1.Pod, container string) map[string][]topologymanager.TopologyHint {
	spec := d.m.specs[pod.UID]
	var answer map[string][]topologymanager.TopologyHint
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if container != "" && c.Name != container {
			continue
		}
		for name, list := range c.DeviceHints {
			if answer == nil {
				answer = map[string][]topologymanager.TopologyHint{}
			}
			answer[name] = []topologymanager.TopologyHint{}
			for _, h := range list {
				to := topologymanager.TopologyHint{Preferred: h.Preferred}
				if h.NUMA != nil {
					to.NUMANodeAffinity, _ = bitmask.NewBitMask(h.NUMA...)
				}
				answer[name] = append(answer[name], to)
			}
		}
	}
	return answer
}

func (d devices) GetTopologyHints(_ klog.Logger, p *corev1.Pod, c *corev1.Container, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return d.hints(p, c.Name)
}

func (d devices) GetPodTopologyHints(_ klog.Logger, p *corev1.Pod, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return d.hints(p, "")
}

func (devices) AllocatePod(klog.Logger, *corev1.Pod, lifecycle.Operation) error { return nil }

func (devices) Allocate(context.Context, *corev1.Pod, *corev1.Container, lifecycle.Operation) error {
	return nil
}

// machineInfo is the machine as cadvisor would tell it.
func machineInfo(t scenario.Topology) *cadvisor.MachineInfo {
	info := &cadvisor.MachineInfo{NumCores: t.NumCores, NumSockets: t.NumSockets}
	sockets := map[int]bool{}
	for _, n := range t.NUMA {
		node := cadvisor.Node{Id: n.ID, Memory: n.Memory, Distances: n.Distances}
		for _, p := range n.HugePages {
			node.HugePages = append(node.HugePages, cadvisor.HugePagesInfo{PageSize: p.PageSizeKiB, NumPages: p.Count})
		}
		for _, c := range t.CPUs {
			if c.NUMA != n.ID {
				continue
			}
			sockets[c.Socket] = true
			i := slices.IndexFunc(node.Cores, func(core cadvisor.Core) bool { return core.Id == c.Core && core.SocketID == c.Socket })
			if i < 0 {
				core := cadvisor.Core{Id: c.Core, SocketID: c.Socket}
				if c.Uncore != nil {
					core.UncoreCaches = []cadvisor.Cache{{Id: *c.Uncore, Level: 3, Type: "Unified"}}
				}
				i = len(node.Cores)
				node.Cores = append(node.Cores, core)
			}
			node.Cores[i].Threads = append(node.Cores[i].Threads, c.CPU)
		}
		info.Topology = append(info.Topology, node)
	}
	if info.NumCores == 0 {
		info.NumCores = len(t.CPUs)
	}
	if info.NumSockets == 0 {
		info.NumSockets = len(sockets)
	}
	return info
}

// setGates sets feature gates until the returned function is called.
func setGates(gates map[string]bool) (reset func(), err error) {
	mutable := utilfeature.DefaultMutableFeatureGate
	reset = func() {
		versioned := mutable.(featuregate.MutableVersionedFeatureGate)
		for name := range gates {
			if err := versioned.ResetFeatureValueToDefault(featuregate.Feature(name)); err != nil {
				panic(err)
			}
		}
	}
	return reset, mutable.SetFromMap(gates)
}

func quantities(m map[string]string) corev1.ResourceList {
	if m == nil {
		return nil
	}
	list := corev1.ResourceList{}
	for name, text := range m {
		list[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return list
}

// start makes the managers and starts them, as container_manager_linux.go does.
func (m *managers) start() (scenario.SetupResult, error) {
	failed := func(stage string, err error) (scenario.SetupResult, error) {
		return scenario.SetupResult{Stage: stage, Error: err.Error()}, nil
	}
	log := klog.Background()
	info := machineInfo(m.machine)
	reservation := quantities(m.config.NodeReservation)
	reserved, err := cpuset.Parse(m.config.ReservedSystemCPUs)
	if err != nil {
		return scenario.SetupResult{}, err
	}
	if reserved.Size() > 0 {
		reservation[corev1.ResourceCPU] = *resource.NewQuantity(int64(reserved.Size()), resource.DecimalSI)
	}
	var memory []config.MemoryReservation
	for _, r := range m.config.ReservedMemory {
		memory = append(memory, config.MemoryReservation{NumaNode: r.NUMANode, Limits: quantities(r.Limits)})
	}

	if m.topology, err = topologymanager.NewManager(log, info.Topology, m.config.TopologyManagerPolicy, m.config.TopologyManagerScope,
		m.config.TopologyManagerPolicyOptions); err != nil {
		return failed("topology", err)
	}
	if m.cpu, err = cpumanager.NewManager(log, m.config.CPUManagerPolicy, m.config.CPUManagerPolicyOptions, 1000*time.Hour, info, reserved,
		reservation, m.folder, m.topology); err != nil {
		return failed("cpu", err)
	}
	if m.memory, err = memorymanager.NewManager(log, m.config.MemoryManagerPolicy, info, reservation, memory, m.folder, m.topology); err != nil {
		return failed("memory", err)
	}
	m.topology.AddHintProvider(log, devices{m})
	m.topology.AddHintProvider(log, m.cpu)
	m.topology.AddHintProvider(log, m.memory)

	m.mu.Lock()
	m.asked = make(chan struct{}, 2)
	m.mu.Unlock()
	ctx := klog.NewContext(context.Background(), log)
	if err := m.cpu.Start(ctx, m.activePods, allReady{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return failed("cpuStart", err)
	}
	if m.config.CPUManagerPolicy == "static" {
		// One pass of the repair loop comes at once, and asks twice; the next is far away.
		<-m.asked
		<-m.asked
		time.Sleep(time.Millisecond)
	}
	if err := m.memory.Start(ctx, m.activePods, allReady{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return failed("memoryStart", err)
	}
	return scenario.SetupResult{OK: true, AllCPUs: m.cpu.GetAllCPUs().String(), Allocatable: m.cpu.GetAllocatableCPUs().String(), State: m.state()}, nil
}

func resources(r scenario.Resources) corev1.ResourceRequirements {
	rr := corev1.ResourceRequirements{Requests: quantities(r.Requests), Limits: quantities(r.Limits)}
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
	containers := func(from []scenario.Container) (list []corev1.Container) {
		for _, c := range from {
			to := corev1.Container{Name: c.Name, Resources: resources(c.Resources)}
			if c.RestartPolicy != "" {
				policy := corev1.ContainerRestartPolicy(c.RestartPolicy)
				to.RestartPolicy = &policy
			}
			list = append(list, to)
		}
		return list
	}
	pod.Spec.InitContainers, pod.Spec.Containers = containers(spec.InitContainers), containers(spec.Containers)
	return pod
}

func (m *managers) admit(pod *corev1.Pod) lifecycle.PodAdmitResult {
	ctx := klog.NewContext(context.Background(), klog.Background())
	return m.topology.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
}

// collect lets both managers drop what pods hold that are gone: they do so before any hint.
func (m *managers) collect() {
	pod := &corev1.Pod{}
	pod.UID = "nobody"
	pod.Spec.Containers = make([]corev1.Container, 1)
	m.cpu.GetTopologyHints(klog.Background(), pod, &pod.Spec.Containers[0], lifecycle.AddOperation)
	m.memory.GetTopologyHints(klog.Background(), pod, &pod.Spec.Containers[0], lifecycle.AddOperation)
}

func (m *managers) find(uid string) *corev1.Pod {
	for _, pod := range m.pods {
		if string(pod.UID) == uid {
			return pod
		}
	}
	return nil
}

func (m *managers) drop(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods = slices.DeleteFunc(m.pods, func(p *corev1.Pod) bool { return p.UID == uid })
}

func (m *managers) step(s *scenario.Step) (scenario.StepResult, error) {
	result := scenario.StepResult{Op: s.Op, UID: s.UID}
	switch s.Op {
	case "add":
		m.add(s.Pod, &result)
	case "remove", "start":
		pod := m.find(s.UID)
		if pod == nil {
			result.Message = "not active"
			break
		}
		if s.Op == "remove" {
			m.drop(pod.UID)
			m.collect()
			break
		}
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if list[i].Name == s.Container {
					m.starts++
					id := fmt.Sprintf("id-%d", m.starts)
					m.cpu.AddContainer(klog.Background(), pod, &list[i], id)
					m.memory.AddContainer(klog.Background(), pod, &list[i], id)
					m.topology.AddContainer(klog.Background(), pod, &list[i], id)
				}
			}
		}
	case "restart":
		setup, err := m.start()
		result.Restart = &setup
		if err != nil || !setup.OK {
			return result, err
		}
		for _, pod := range slices.Clone(m.pods) {
			answer := m.admit(pod)
			result.Readmit = append(result.Readmit, scenario.Readmit{UID: string(pod.UID), Admit: answer.Admit, Reason: answer.Reason, Message: answer.Message})
			if !answer.Admit {
				m.drop(pod.UID)
			}
		}
		m.collect()
	default:
		return result, fmt.Errorf("unknown op %q", s.Op)
	}
	result.State = m.state()
	return result, nil
}
