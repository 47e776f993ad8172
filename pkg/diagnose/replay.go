package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
)

// managers is what a replay of the node's CPU, memory and topology manager
// starts from.
type managers struct {
	config node.Config
	// recorded is the content of the checkpoints.
	recorded node.State
	// pods are the active ones as the kubelet sees them, in the order of their
	// creation, which is that of admission after a restart. Equal times, of one
	// second's resolution, have no order.
	pods []node.Pod
	// running: a kubelet answers for the node, which a state that the next start
	// refuses does not stop.
	running bool
	// effort is what may be run beside the question itself. Nil: as much as wanted.
	effort *effort
}

// readManagers gathers it. The error says what a replay lacks; it is not the
// kubelet's.
func (n *nodeCase) readManagers() (managers, error) {
	m := managers{effort: &effort{}}
	var err error
	if m.config, err = n.managerConfig(); err != nil {
		return m, err
	}
	if m.recorded, err = n.recordedState(); err != nil {
		return m, err
	}
	if _, up, known := n.ready(); known {
		m.running = up
	}
	for i := range n.pods {
		if active(&n.pods[i]) {
			m.pods = append(m.pods, kubeletPod(&n.pods[i]))
		}
	}
	slices.SortStableFunc(m.pods, func(a, b node.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return m, nil
}

// managerConfig is what decides about the managers, without their state.
func (n *nodeCase) managerConfig() (node.Config, error) {
	if n.name == "" {
		return node.Config{}, errNoNode
	}
	if n.configErr != nil {
		return node.Config{}, fmt.Errorf("the kubelet's configuration: %w", n.configErr)
	}
	topo, err := n.topo()
	if err != nil {
		return node.Config{}, fmt.Errorf("the machine's topology: %w", err)
	}
	if err := n.distancesDoubt(topo); err != nil {
		return node.Config{}, fmt.Errorf("the machine's topology: %w", err)
	}
	reserved, err := n.config.Reservation(n.capacity())
	if err != nil {
		return node.Config{}, fmt.Errorf("the kubelet's reservation: %w", err)
	}
	c := node.Config{Topology: n.withRecordedMemory(topo), Kubelet: n.config, Reservation: corev1.ResourceList{}, Rules: n.rules}
	for name, r := range reserved {
		c.Reservation[name] = r.Quantity
	}
	return c, nil
}

// recordedState is the content of the checkpoints; a manager whose policy is
// none needs no file.
func (n *nodeCase) recordedState() (node.State, error) {
	var s node.State
	cpu, err := n.cpuState()
	switch {
	case err == nil:
		state := cpumanager.StateOf(cpu)
		s.CPU, s.CPUPolicy = &state, cpu.PolicyName
	case n.config.CPUManagerPolicy == "static" || !isAbsent(err):
		return s, fmt.Errorf("/%s: %w", cpuStatePath, err)
	}
	memory, err := n.memState()
	switch {
	case err == nil:
		state, err := memorymanager.StateOf(memory)
		if err != nil {
			return s, fmt.Errorf("/%s: %w", memoryStatePath, err)
		}
		s.Memory, s.MemoryPolicy = &state, memory.PolicyName
	case n.config.MemoryManagerPolicy == "Static" || !isAbsent(err):
		return s, fmt.Errorf("/%s: %w", memoryStatePath, err)
	}
	return s, nil
}

// capacity is the node's; without a node object what its files tell.
func (n *nodeCase) capacity() corev1.ResourceList {
	if n.object != nil && len(n.object.Status.Capacity) > 0 {
		return n.object.Status.Capacity
	}
	list := corev1.ResourceList{}
	if topo, err := n.topo(); err == nil {
		list[corev1.ResourceCPU] = *resource.NewQuantity(int64(topo.NumCPUs), resource.DecimalSI)
		if topo.HasMemTotal {
			list[corev1.ResourceMemory] = *resource.NewQuantity(int64(min(topo.MemTotal, 1<<62)), resource.BinarySI)
		}
	}
	return list
}

// kubeletPod is a pod as the kubelet's managers see it: by the kubelet's UID,
// and with what is allocated to it where a resize asks for something else
// (allocation_manager.go).
func kubeletPod(pod *corev1.Pod) node.Pod {
	p := pod.DeepCopy()
	p.UID = types.UID(cgroup.PodUID(pod))
	for _, list := range []struct {
		specs    []corev1.Container
		statuses []corev1.ContainerStatus
	}{{p.Spec.InitContainers, p.Status.InitContainerStatuses}, {p.Spec.Containers, p.Status.ContainerStatuses}} {
		for i := range list.specs {
			for j := range list.statuses {
				if list.statuses[j].Name == list.specs[i].Name {
					asAllocated(&list.specs[i].Resources, list.statuses[j].AllocatedResources)
				}
			}
		}
	}
	return node.Pod{Pod: p}
}

// asAllocated puts the allocated requests in the place of the desired ones;
// a limit that equals its request goes along.
func asAllocated(r *corev1.ResourceRequirements, allocated corev1.ResourceList) {
	for name, q := range allocated {
		desired, ok := r.Requests[name]
		if !ok || desired.Cmp(q) == 0 {
			continue
		}
		if limit, ok := r.Limits[name]; ok && limit.Cmp(desired) == 0 {
			r.Limits[name] = q
		}
		r.Requests[name] = q
	}
}
