// Package topology reads a machine's processors, caches and memory nodes from sysfs or from lscpu, and shows them twice: as the
// kubelet's resource managers see them ([Topology]) and, beside it, as the kernel names them ([Kernel]).
//
// The kubelet's view follows cadvisor's machine information and cpumanager/topology.Discover of kubelet 1.37. It is taken once at
// kubelet start and never again; what is read here is the state of now. CPUs that came or went in between are not visible in it.
package topology

import (
	"cmp"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// Source says where a topology was read.
type Source string

const (
	Sysfs Source = "sysfs" // sys/devices/system/{cpu,node}
	Lscpu Source = "lscpu" // the table of lscpu -p: core, socket and cache ids are lscpu's own numbers, not the kernel's
)

// Topology is the kubelet's view of a machine. Only CPUs that the kubelet can use are in it: online ones with a known core.
type Topology struct {
	Source Source

	CPUs         []CPU      // ascending by ID
	NUMANodes    []NUMANode // ascending by ID; those without CPUs too
	Cores        []Group    // ascending by ID, as the following
	Sockets      []Group
	UncoreCaches []Group

	// The kubelet's counts. NumCPUs and NumSockets come from other files than the rest and need not agree with the lists above:
	// NumSockets is what proc/cpuinfo names, and without NUMA node folders NumCPUs counts offline CPUs too.
	NumCPUs         int
	NumCores        int
	NumSockets      int
	NumNUMANodes    int // with CPUs
	NumUncoreCaches int

	MemTotal    uint64 // bytes, proc/meminfo
	HasMemTotal bool

	Kernel Kernel
	Notes  []Note
}

// CPU is one logical CPU as the kubelet sees it.
type CPU struct {
	ID       int
	Core     int // the lowest usable CPU id of the core, not the kernel's core_id
	Socket   int // physical_package_id
	NUMANode int
	// UncoreCache is the id of a last level cache that only some cores of a node share. HasUncoreCache false: the core has none,
	// and the kubelet puts the socket's id here, which on a mixed machine can be the id of another core's cache.
	UncoreCache    int
	HasUncoreCache bool
}

// Group is the CPUs that share a core, a socket or an uncore cache id.
type Group struct {
	ID   int
	CPUs cpuset.Set
}

// NUMANode is a memory node with the CPUs that belong to it, if any.
type NUMANode struct {
	ID          int
	CPUs        cpuset.Set
	MemTotal    uint64 // bytes; the kubelet takes 0 where the node's meminfo is absent
	HasMemTotal bool
	HugePages   []HugePages // in the order of the folder names
	// Distances is the kernel's row: one value for each online node in the order of ids, not indexed by id.
	Distances    []uint64
	HasDistances bool
}

// HugePages is the pool of one page size on a node.
type HugePages struct {
	SizeKiB  uint64
	Count    uint64 // pages
	HasCount bool   // nr_hugepages was there
}

// Kernel is what the kernel itself says, with its own ids, where it was read.
type Kernel struct {
	Online, Offline, Isolated, NohzFull List
	CPUs                                []KernelCPU // ascending by ID; offline CPUs too
	Caches                              []Cache     // each cache once; ascending by level, type and lowest CPU
}

// List is a CPU list of the kernel. Known false: the file was absent or could not be held in a set (see Notes).
type List struct {
	CPUs  cpuset.Set
	Known bool
}

// KernelCPU is a CPU with the kernel's ids, which are unique only within a package.
type KernelCPU struct {
	ID        int
	CoreID    int // core_id
	PackageID int // physical_package_id
	HasIDs    bool
	Siblings  cpuset.Set // core_cpus_list or thread_siblings_list; empty if neither was read
}

// Cache is one cache of the machine.
type Cache struct {
	Level   int
	Type    string // Data, Instruction or Unified
	SizeKiB uint64 // 0: not told
	ID      int
	HasID   bool
	Shared  cpuset.Set // shared_cpu_list
}

// Note is something about the input that did not stop the reading.
type Note struct {
	Path string // file or folder, or "lscpu"
	Text string
}

// AllCPUs returns every CPU of the kubelet's view.
func (t *Topology) AllCPUs() cpuset.Set {
	var all cpuset.Set
	for _, c := range t.CPUs {
		all.Add(c.ID)
	}
	return all
}

// CPU returns the CPU with that id.
func (t *Topology) CPU(id int) (CPU, bool) {
	i, ok := slices.BinarySearchFunc(t.CPUs, id, func(c CPU, id int) int { return cmp.Compare(c.ID, id) })
	if !ok {
		return CPU{}, false
	}
	return t.CPUs[i], true
}

// NUMANode returns the node with that id.
func (t *Topology) NUMANode(id int) (NUMANode, bool) {
	i, ok := slices.BinarySearchFunc(t.NUMANodes, id, func(n NUMANode, id int) int { return cmp.Compare(n.ID, id) })
	if !ok {
		return NUMANode{}, false
	}
	return t.NUMANodes[i], true
}

// WholeCores returns all CPUs of all cores that have a CPU in set.
func (t *Topology) WholeCores(set cpuset.Set) cpuset.Set {
	var whole cpuset.Set
	for _, core := range t.Cores {
		if !core.CPUs.Intersection(set).IsEmpty() {
			whole = whole.Union(core.CPUs)
		}
	}
	return whole
}

// CPUsPerCore is the kubelet's average (kubelet ≤ 1.37), 0 without cores: on an uneven machine no core need have that many.
func (t *Topology) CPUsPerCore() int { return average(t.NumCPUs, t.NumCores) }

// CPUsPerSocket is the kubelet's average, 0 without sockets.
func (t *Topology) CPUsPerSocket() int { return average(t.NumCPUs, t.NumSockets) }

// CPUsPerUncoreCache is the kubelet's average, 0 without uncore cache ids.
func (t *Topology) CPUsPerUncoreCache() int { return average(t.NumCPUs, t.NumUncoreCaches) }

func average(n, of int) int {
	if of == 0 {
		return 0
	}
	return n / of
}

func (t *Topology) note(path, text string) { t.Notes = append(t.Notes, Note{path, text}) }
