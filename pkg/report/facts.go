package report

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Placement is who holds which CPUs and memory on a node. CPU sets are in the
// kernel's list form, sizes in bytes.
type Placement struct {
	Policy         string               `json:"policy,omitempty"`
	Scope          string               `json:"scope,omitempty"`
	Options        map[string]string    `json:"options,omitempty"`
	TopologyPolicy string               `json:"topologyPolicy,omitempty"`
	MemoryPolicy   string               `json:"memoryPolicy,omitempty"`
	CPUs           *PlacementCPUs       `json:"cpus,omitempty"`
	NUMANodes      []NUMANode           `json:"numaNodes,omitempty"`
	Containers     []PlacementContainer `json:"containers,omitempty"`
	// Layout is the machine with who may use each CPU, by socket, NUMA node and
	// last level cache.
	Layout []PlacementGroup `json:"layout,omitempty"`
}

// PlacementGroup is the cores that share socket, NUMA node and last level cache.
// Cache lists all CPUs of that cache; empty where none is known.
type PlacementGroup struct {
	Socket   int             `json:"socket"`
	NUMANode int             `json:"numaNode"`
	Cache    string          `json:"cache,omitempty"`
	CPUs     string          `json:"cpus"`
	Cores    []PlacementCore `json:"cores"`
}

// PlacementCore is a core's threads.
type PlacementCore []PlacementCPU

// PlacementCPU is one thread. Owner is "namespace/pod/container" where Use is
// exclusive.
type PlacementCPU struct {
	ID    int    `json:"id"`
	Use   CPUUse `json:"use"`
	Owner string `json:"owner,omitempty"`
}

// CPUUse says who may run on a CPU.
type CPUUse string

// Uses of a CPU. Free: in the shared pool, and not kept from exclusive use.
// Unknown: the checkpoint does not tell.
const (
	CPUExclusive CPUUse = "exclusive"
	CPUReserved  CPUUse = "reserved"
	CPUFree      CPUUse = "free"
	CPUUnknown   CPUUse = "unknown"
)

// PlacementCPUs are the CPU sets of a node. A nil set is not known.
type PlacementCPUs struct {
	All      *string `json:"all,omitempty"`
	Online   *string `json:"online,omitempty"`
	Reserved *string `json:"reserved,omitempty"`
	Shared   *string `json:"shared,omitempty"`
	Free     *string `json:"free,omitempty"`
	Isolated *string `json:"isolated,omitempty"`
}

// NUMANode is one NUMA node of a machine.
type NUMANode struct {
	ID        int          `json:"id"`
	CPUs      string       `json:"cpus"`
	FreeCPUs  *string      `json:"freeCPUs,omitempty"`
	Memory    []NUMAMemory `json:"memory,omitempty"`
	Distances []uint64     `json:"distances,omitempty"`
}

// NUMAMemory is one kind of memory of a NUMA node, in bytes.
type NUMAMemory struct {
	Type     string `json:"type"`
	Total    uint64 `json:"total"`
	Reserved uint64 `json:"reserved"`
	Free     uint64 `json:"free"`
}

// PlacementContainer is one container's place. CPUs is the checkpoint's set
// (the shared pool where it holds none), Live the cgroup's.
type PlacementContainer struct {
	Namespace string        `json:"namespace"`
	Pod       string        `json:"pod"`
	Container string        `json:"container"`
	UID       string        `json:"uid,omitempty"`
	Init      bool          `json:"init,omitempty"`
	CPUs      *string       `json:"cpus,omitempty"`
	Exclusive bool          `json:"exclusive"`
	NUMANodes []int         `json:"numaNodes,omitempty"`
	Memory    []MemoryBlock `json:"memory,omitempty"`
	Live      *string       `json:"live,omitempty"`
	Source    string        `json:"source,omitempty"`
}

// MemoryBlock is memory that the Memory Manager booked for a container on a
// group of NUMA nodes, in bytes.
type MemoryBlock struct {
	Type      string `json:"type"`
	NUMANodes []int  `json:"numaNodes"`
	Size      uint64 `json:"size"`
}

// Resources are the limits, counters and use of a pod's cgroups.
type Resources struct {
	QOSClass string `json:"qosClass,omitempty"`
	// SampleSeconds is the time between the two samples that throttled,
	// periods, usage and waiting are differences of. Absent: there was no
	// second sample, and they are the counters since the cgroup was made.
	SampleSeconds *float64        `json:"sampleSeconds,omitempty"`
	Containers    []ResourceLevel `json:"containers"`
}

// ResourceLevel is one cgroup on the way from a container to the root. Name is
// the container's at level "container", else the pod's or the group's.
type ResourceLevel struct {
	Name   string       `json:"name"`
	Level  string       `json:"level"`
	Cgroup string       `json:"cgroup,omitempty"`
	CPU    *CPUFacts    `json:"cpu,omitempty"`
	Memory *MemoryFacts `json:"memory,omitempty"`
	// OOMScoreAdj is what the kubelet gives a container's processes, OOMScoreAdjRule
	// how it comes about, and OOMScoreAdjLive the values that the processes have,
	// each once, ascending.
	OOMScoreAdj     *int   `json:"oomScoreAdj,omitempty"`
	OOMScoreAdjRule string `json:"oomScoreAdjRule,omitempty"`
	OOMScoreAdjLive []int  `json:"oomScoreAdjLive,omitempty"`
}

// CPUFacts are in microseconds but for Throttled and Periods, which count
// periods. Waiting is PSI "some".
type CPUFacts struct {
	Quota     *Limit  `json:"quota,omitempty"`
	Period    *uint64 `json:"period,omitempty"`
	Weight    *uint64 `json:"weight,omitempty"`
	Throttled *int64  `json:"throttled,omitempty"`
	Periods   *int64  `json:"periods,omitempty"`
	Usage     *uint64 `json:"usage,omitempty"`
	Waiting   *uint64 `json:"waiting,omitempty"`
}

// MemoryFacts are in bytes; OOM, OOMKill and OOMGroupKill count events of this
// group alone (memory.events.local), or of its subtree where that file is absent.
type MemoryFacts struct {
	Max          *Limit  `json:"max,omitempty"`
	High         *Limit  `json:"high,omitempty"`
	Low          *Limit  `json:"low,omitempty"`
	Min          *Limit  `json:"min,omitempty"`
	Current      *uint64 `json:"current,omitempty"`
	Peak         *uint64 `json:"peak,omitempty"`
	WorkingSet   *uint64 `json:"workingSet,omitempty"`
	Anon         *uint64 `json:"anon,omitempty"`
	File         *uint64 `json:"file,omitempty"`
	Shmem        *uint64 `json:"shmem,omitempty"`
	Kernel       *uint64 `json:"kernel,omitempty"`
	OOM          *uint64 `json:"oom,omitempty"`
	OOMKill      *uint64 `json:"oomKill,omitempty"`
	OOMGroupKill *uint64 `json:"oomGroupKill,omitempty"`
}

// Limit is a number or no limit at all, written "unlimited". A limit that is
// not known is a nil pointer.
type Limit struct {
	Value     uint64
	Unlimited bool
}

const unlimited = "unlimited"

// MarshalJSON gives the number, or "unlimited".
func (l Limit) MarshalJSON() ([]byte, error) {
	if l.Unlimited {
		return json.Marshal(unlimited)
	}
	return strconv.AppendUint(nil, l.Value, 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Limit) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+unlimited+`"` {
		*l = Limit{Unlimited: true}
		return nil
	}
	var v uint64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("limit is neither a number nor %q: %w", unlimited, err)
	}
	*l = Limit{Value: v}
	return nil
}
