// Package node replays the resource managers of a whole node: CPU manager, memory manager and topology manager, wired as the kubelet
// wires them. Values in, values out: the state files are State values, and the order of admissions is the order of calls.
package node

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topologymanager"
)

// Config is what decides about a node.
type Config struct {
	Topology *topology.Topology
	Kubelet  kubeletconfig.Config
	// Reservation is the node's, of kubeReserved, systemReserved and for memory evictionHard. Where reservedSystemCPUs is set, that of
	// cpu is replaced by its size.
	Reservation corev1.ResourceList
	Rules       alloc.Rules
}

// State is the content of the state files. A nil pointer: there is no such file.
type State struct {
	CPU          *cpumanager.State
	CPUPolicy    string
	Memory       *memorymanager.State
	MemoryPolicy string
	// CPUErr and MemoryErr are why the files cannot be restored, as the kubelet says it (CorruptCPUFile, checkpoint.ErrCorrupt).
	CPUErr, MemoryErr error
	// CPUForm is the form that the CPU manager's file is in, as alloc.Rules.CPUCheckpoint; 0 is one that the kubelet reads.
	CPUForm int
}

// Stage is what the kubelet was doing when its start failed.
type Stage string

const (
	TopologyManager    Stage = "topology"
	CPUManager         Stage = "cpu"
	MemoryManager      Stage = "memory"
	CPUManagerStart    Stage = "cpuStart"
	MemoryManagerStart Stage = "memoryStart"
)

// StartError is why the kubelet does not start.
type StartError struct {
	Stage Stage
	// Possible are the errors of which the kubelet gives one, by the random order of a map. A nil among them: it can start as well.
	Possible []error
}

func (e *StartError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.err()) }

func (e *StartError) Unwrap() error { return e.err() }

func (e *StartError) err() error {
	for _, err := range e.Possible {
		if err != nil {
			return err
		}
	}
	return nil
}

// Node is a node's managers. It is not for concurrent use.
type Node struct {
	config   Config
	topology *topologymanager.Manager
	CPU      *cpumanager.Manager
	Memory   *memorymanager.Manager

	order  []string // UIDs of active pods in the order of their admission
	active map[string]*activePod
	// The managers' states may have entries of pods that are not active.
	staleCPU, staleMemory bool
	file                  cpuForm
	lists                 [][]hint.Hint
}

type activePod struct {
	pod      *corev1.Pod
	requests alloc.PodRequests
	devices  DeviceHints
}

// The state files' usual places, which the kubelet names.
const (
	cpuFile    = "/var/lib/kubelet/cpu_manager_state"
	memoryFile = "/var/lib/kubelet/memory_manager_state"
)

// Start starts the managers of a node on its state files, which are copied. The pods are active already but not admitted again: that is
// for the caller, one after the other. Beside a *StartError whose errors have a nil among them there is also a node.
func Start(c Config, s State, pods ...Pod) (*Node, error) { return start(c, s, true, pods) }

// Resume is Start for a kubelet that runs already: what a start would check of the state is passed over, but for its policies. That is
// how a state can be in use which the next start refuses.
func Resume(c Config, s State, pods ...Pod) (*Node, error) { return start(c, s, false, pods) }

func start(c Config, s State, check bool, pods []Pod) (*Node, error) {
	n := &Node{config: c, active: map[string]*activePod{}, staleCPU: true, staleMemory: true}
	var errs []error
	fail := func(stage Stage) (*Node, error) { return nil, &StartError{stage, errs} }

	k := &c.Kubelet
	if n.topology, errs = topologymanager.New(c.Topology.NUMANodes, topologymanager.Config{
		Policy: k.TopologyManagerPolicy, Scope: k.TopologyManagerScope, Options: k.TopologyManagerPolicyOptions,
	}, c.Rules); len(errs) > 0 {
		return fail(TopologyManager)
	}
	cpu := cpumanager.Config{
		Policy: k.CPUManagerPolicy, Options: k.CPUManagerPolicyOptions, ReservedCPUs: k.ReservedSystemCPUs, TopologyPolicy: k.TopologyManagerPolicy,
	}
	if q, ok := c.Reservation[corev1.ResourceCPU]; ok {
		cpu.HasReserved, cpu.ReservedMilli = true, q.MilliValue()
	}
	if size := k.ReservedSystemCPUs.Size(); size > 0 {
		cpu.HasReserved, cpu.ReservedMilli = true, int64(size)*1000
	}
	if n.CPU, errs = cpumanager.New(c.Topology, cpu, c.Rules); len(errs) > 0 {
		return fail(CPUManager)
	}
	if n.Memory, errs = memorymanager.New(c.Topology.NUMANodes, memorymanager.Config{
		Policy: k.MemoryManagerPolicy, ReservedMemory: k.ReservedMemory, Reservation: c.Reservation,
	}, c.Rules); len(errs) > 0 {
		return fail(MemoryManager)
	}
	for _, p := range pods {
		n.activate(p)
	}

	var cpuState cpumanager.State
	if s.CPU != nil {
		if s.CPUPolicy != k.CPUManagerPolicy {
			s.CPUErr = fmt.Errorf("configured policy %q differs from state checkpoint policy %q", k.CPUManagerPolicy, s.CPUPolicy)
		}
		cpuState = s.CPU.Clone()
		if !readable(s.CPUForm, c.Rules) {
			s.CPUErr = CorruptCPUFile(s.CPU, c.Rules)
		}
	}
	n.file = found(s, c.Rules)
	if s.CPUErr != nil {
		errs = []error{fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the CPU manager checkpoint file %q "+
			"before restarting Kubelet", s.CPUErr, cpuFile)}
		return fail(CPUManagerStart)
	}
	if errs = n.CPU.Start(cpuState); len(errs) > 0 && check {
		return fail(CPUManagerStart)
	}
	// The first pass of the loop that repairs cpusets comes at once.
	n.collectCPU()

	var memoryState memorymanager.State
	if s.Memory != nil {
		if s.MemoryPolicy != k.MemoryManagerPolicy {
			s.MemoryErr = fmt.Errorf("[memorymanager] configured policy %q differs from state checkpoint policy %q", k.MemoryManagerPolicy, s.MemoryPolicy)
		}
		memoryState = s.Memory.Clone()
	}
	if s.MemoryErr != nil {
		errs = []error{fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the memory manager checkpoint file %q "+
			"before restarting Kubelet", s.MemoryErr, memoryFile)}
		return fail(MemoryManagerStart)
	}
	if errs = n.Memory.Start(memoryState); len(errs) > 0 && check {
		for _, err := range errs {
			if err == nil {
				return n, &StartError{MemoryManagerStart, errs}
			}
		}
		return fail(MemoryManagerStart)
	}
	n.file.changed(&n.CPU.State)
	return n, nil
}

// State returns a copy of what the state files hold.
func (n *Node) State() State {
	cpu, memory := n.CPU.State.Clone(), n.Memory.State.Clone()
	return State{CPU: &cpu, CPUPolicy: n.config.Kubelet.CPUManagerPolicy, Memory: &memory, MemoryPolicy: n.config.Kubelet.MemoryManagerPolicy,
		CPUForm: n.file.form}
}

// Restart starts the kubelet again on the node's state files, with another configuration maybe. See Start.
func (n *Node) Restart(c Config) (*Node, error) { return Start(c, n.State(), n.Pods()...) }

// MayStart reports whether err, of Start, leaves a chance that the kubelet starts.
func MayStart(err error) bool {
	var start *StartError
	if !errors.As(err, &start) {
		return err == nil
	}
	for _, e := range start.Possible {
		if e == nil {
			return true
		}
	}
	return false
}
