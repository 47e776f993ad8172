// Package trace records what the replay of the kubelet's managers decided, in the order in which it did.
package trace

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
)

// Trace is the record of one admission. A nil *Trace records nothing, and every method may be called on it.
type Trace struct{ Steps []Step }

// Step is one decision; exactly one of its pointers is set.
type Step struct {
	Container string // "": the whole pod
	Hints     *Hints
	Merge     *Merge
	Take      *Take
	Spread    *Spread
	Allocate  *Allocate
}

// Hints is what one provider (device, cpu, memory) offered. No resources: it has no preference.
type Hints struct {
	Provider  string
	Resources []hint.Resource
}

// Merge is the topology manager's choice among the hints, and its policy's verdict.
type Merge struct {
	Best  hint.Hint
	Admit bool
	// Lost are the offered hints on other nodes than the best, in the order of the offers; of very many the first.
	Lost []Lost
}

// Lost is an offered hint that was not chosen. List counts the resources of all providers before it in this merge, those without a
// preference among them.
type Lost struct {
	List int
	Hint hint.Hint
	Why  Loss
}

// Loss is why a hint was not chosen.
type Loss string

const (
	NoCommonNode  Loss = "another resource has no hint with one of its NUMA nodes"
	NotPreferred  Loss = "it is not preferred, and a choice that is exists"
	NotAgreed     Loss = "not every resource prefers exactly its NUMA nodes"
	Beaten        Loss = "preferred as well, but on more, higher numbered or more distant NUMA nodes"
	NonePreferred Loss = "no choice of all resources is preferred; then the size that is needed decides, and the narrower"
)

// Level is the unit in which CPUs were taken.
type Level string

const (
	NUMANode      Level = "NUMANode"
	Socket        Level = "Socket"
	UncoreCache   Level = "UncoreCache"
	PartialUncore Level = "PartialUncoreCache"
	Core          Level = "Core"
	SingleCPU     Level = "CPU"
)

// Take is a group of CPUs taken at once.
type Take struct {
	Level Level
	ID    int // of the group; for a single CPU its own
	CPUs  cpuset.Set
}

// Spread is the choice of distribute-cpus-across-numa: so many CPUs from each node, the rest from some of them.
type Spread struct {
	Nodes     []int
	PerNode   int
	Remainder []int
	Balance   float64 // standard deviation of what stays free
}

// Allocate is a result: CPUs or memory.
type Allocate struct {
	CPUs   cpuset.Set
	Memory []Memory
	Err    error
}

// Memory is a block of memory.
type Memory struct {
	Nodes hint.Mask
	Type  string
	Size  uint64 // bytes
}

// Add appends a step.
func (t *Trace) Add(s Step) {
	if t != nil {
		t.Steps = append(t.Steps, s)
	}
}
