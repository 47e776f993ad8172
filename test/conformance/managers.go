package conformance

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

// Kubelet is the code of one version.
type Kubelet struct {
	Version string // as in a scenario
	// Start makes the managers of a node and starts them, as container_manager_linux.go does.
	Start func(*Node) (Managers, scenario.SetupResult, error)
	// Unsaved starts the policies alone; nil for a version that is not timed.
	Unsaved func(*Node) (Unsaved, error)
	// SetGates sets feature gates until reset is called; see the function of that name.
	SetGates func(gates map[string]bool) (reset func(), err error)
	QOS      func(*corev1.Pod) corev1.PodQOSClass
}

// Managers are a kubelet's CPU manager, memory manager and topology manager. Each version of the kubelet has its own names and arguments
// for what they do.
type Managers interface {
	Admit(*corev1.Pod) Answer
	AddContainer(pod *corev1.Pod, container *corev1.Container, id string)
	// Collect lets both managers drop what pods hold that are gone: they do so before any hint.
	Collect(nobody *corev1.Pod)
	// Container tells what a container has. The levels are empty in a version that does not tell them.
	Container(pod *corev1.Pod, container *corev1.Container) scenario.ContainerResult
	State() *scenario.State
}

// Answer is the lifecycle.PodAdmitResult.
type Answer struct {
	Admit           bool
	Reason, Message string
}

// SetGates sets feature gates, of a featuregate.MutableVersionedFeatureGate, until the returned function is called.
func SetGates[F ~string](gate interface {
	SetFromMap(m map[string]bool) error
	ResetFeatureValueToDefault(name F) error
}, gates map[string]bool) (reset func(), err error) {
	reset = func() {
		for name := range gates {
			// What is not known could not be set either.
			_ = gate.ResetFeatureValueToDefault(F(name))
		}
	}
	return reset, gate.SetFromMap(gates)
}

// CPUState returns a state with the CPU manager's part.
func CPUState(shared cpuset.CPUSet, containers map[string]map[string]cpuset.CPUSet) *scenario.State {
	s := &scenario.State{Default: shared.String()}
	for uid, list := range containers {
		for name, set := range list {
			if s.Assignments == nil {
				s.Assignments = map[string]map[string]string{}
			}
			if s.Assignments[uid] == nil {
				s.Assignments[uid] = map[string]string{}
			}
			s.Assignments[uid][name] = set.String()
		}
	}
	return s
}

// block is the Block of the memory manager's state, by its JSON.
type block struct {
	NUMAAffinity []int  `json:"numaAffinity"`
	Type         string `json:"type"`
	Size         uint64 `json:"size"`
}

// Blocks returns a []state.Block of the memory manager, in the order of the types: its own is random.
func Blocks(from any) []scenario.Block {
	var blocks []block
	if err := transcribe(from, &blocks); err != nil {
		panic(err)
	}
	return sorted(blocks)
}

func sorted(blocks []block) []scenario.Block {
	var list []scenario.Block
	for _, b := range blocks {
		list = append(list, scenario.Block{NUMA: slices.Sorted(slices.Values(b.NUMAAffinity)), Type: b.Type, Size: b.Size})
	}
	slices.SortStableFunc(list, func(a, b scenario.Block) int { return cmp.Compare(a.Type, b.Type) })
	return list
}

// SetMemory sets the memory manager's part of a state to a NUMANodeMap and a ContainerMemoryAssignments of it.
func SetMemory(s *scenario.State, machine, containers any) {
	var assignments map[string]map[string][]block
	if err := transcribe(containers, &assignments); err != nil {
		panic(err)
	}
	for uid, containers := range assignments {
		for name, list := range containers {
			if s.Memory == nil {
				s.Memory = map[string]map[string][]scenario.Block{}
			}
			if s.Memory[uid] == nil {
				s.Memory[uid] = map[string][]scenario.Block{}
			}
			s.Memory[uid][name] = sorted(list)
		}
	}
	var nodes map[int]struct {
		NumberOfAssignments int
		MemoryMap           map[string]scenario.MemTable
		Cells               []int
	}
	if err := transcribe(machine, &nodes); err != nil {
		panic(err)
	}
	for id, n := range nodes {
		to := scenario.NodeState{ID: id, Assignments: n.NumberOfAssignments, Cells: slices.Sorted(slices.Values(n.Cells))}
		for name, t := range n.MemoryMap {
			t.Type = name
			to.Tables = append(to.Tables, t)
		}
		slices.SortFunc(to.Tables, func(a, b scenario.MemTable) int { return cmp.Compare(a.Type, b.Type) })
		s.Machine = append(s.Machine, to)
	}
	slices.SortFunc(s.Machine, func(a, b scenario.NodeState) int { return cmp.Compare(a.ID, b.ID) })
}
