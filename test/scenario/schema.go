// Package scenario describes what happens to a node's resource managers, as JSON, and runs it on the replay of package alloc. The same
// lines can be run on the kubelet's own code, and the results compared.
package scenario

import "encoding/json"

// Scenario is a machine, a kubelet on it, and what happens to its pods.
type Scenario struct {
	ID       string     `json:"id"`
	Version  string     `json:"version,omitempty"` // of the kubelet, 1.34 to 1.37; "" is 1.37
	Topology Topology   `json:"topology"`
	Kubelet  Kubelet    `json:"kubelet"`
	State    *SeedState `json:"state,omitempty"`
	Steps    []Step     `json:"steps"`
}

// SeedState is the state files that the kubelet finds: each an object, or a string with the text of the file.
type SeedState struct {
	CPU    json.RawMessage `json:"cpu,omitempty"`
	Memory json.RawMessage `json:"memory,omitempty"`
}

type Topology struct {
	CPUs []CPU  `json:"cpus"`
	NUMA []NUMA `json:"numa"`
	// What cadvisor would count, where it is not what the CPUs give.
	NumCores   int `json:"numCores,omitempty"`
	NumSockets int `json:"numSockets,omitempty"`
}

// CPU is an online CPU. Core is a key inside its NUMA node and socket.
type CPU struct {
	CPU    int  `json:"cpu"`
	Core   int  `json:"core"`
	Socket int  `json:"socket"`
	NUMA   int  `json:"numa"`
	Uncore *int `json:"uncore,omitempty"` // nil: no uncore cache
}

type NUMA struct {
	ID        int        `json:"id"`
	Memory    uint64     `json:"memory"` // bytes
	HugePages []HugePage `json:"hugepages,omitempty"`
	Distances []uint64   `json:"distances,omitempty"` // nil: not readable
}

type HugePage struct {
	PageSizeKiB uint64 `json:"pageSizeKiB"`
	Count       uint64 `json:"count"`
}

type Kubelet struct {
	FeatureGates                 map[string]bool   `json:"featureGates,omitempty"`
	CPUManagerPolicy             string            `json:"cpuManagerPolicy"`
	CPUManagerPolicyOptions      map[string]string `json:"cpuManagerPolicyOptions,omitempty"`
	ReservedSystemCPUs           string            `json:"reservedSystemCPUs,omitempty"`
	MemoryManagerPolicy          string            `json:"memoryManagerPolicy"`
	ReservedMemory               []ReservedMemory  `json:"reservedMemory,omitempty"`
	TopologyManagerPolicy        string            `json:"topologyManagerPolicy"`
	TopologyManagerScope         string            `json:"topologyManagerScope"`
	TopologyManagerPolicyOptions map[string]string `json:"topologyManagerPolicyOptions,omitempty"`
	// NodeReservation is the sum of kubeReserved, systemReserved and for memory evictionHard.
	NodeReservation map[string]string `json:"nodeReservation,omitempty"`
}

type ReservedMemory struct {
	NUMANode int32             `json:"numaNode"`
	Limits   map[string]string `json:"limits"`
}

// Step is one of: add a pod; remove one; start a container; restart the kubelet, with another configuration or machine maybe.
type Step struct {
	Op        string    `json:"op"`
	Pod       *Pod      `json:"pod,omitempty"`
	UID       string    `json:"uid,omitempty"`
	Container string    `json:"container,omitempty"`
	Kubelet   *Kubelet  `json:"kubelet,omitempty"`
	Topology  *Topology `json:"topology,omitempty"`
}

type Pod struct {
	UID            string      `json:"uid"`
	Resources      *Resources  `json:"resources,omitempty"`
	InitContainers []Container `json:"initContainers,omitempty"`
	Containers     []Container `json:"containers"`
}

// Resources: a limit without a request makes one.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

type Container struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy,omitempty"`
	Resources
	// AllocatedResources are those of the container's status.
	AllocatedResources map[string]string `json:"allocatedResources,omitempty"`
	DeviceHints        map[string][]Hint `json:"deviceHints,omitempty"` // by resource; no hints: impossible
}

// Hint is a set of NUMA nodes; nil: no preference.
type Hint struct {
	NUMA      []int `json:"numa"`
	Preferred bool  `json:"preferred"`
}

// Output is the result of a scenario.
type Output struct {
	ID    string       `json:"id"`
	Setup SetupResult  `json:"setup"`
	Steps []StepResult `json:"steps,omitempty"`
	// Error is "timeout" where the kubelet would loop for ever, "panic: ..." where it would crash, else what is wrong with the input.
	Error string `json:"error,omitempty"`
	// Alternatives are the other results that are possible, where the kubelet's hangs on the order of a map.
	Alternatives []Output `json:"alternatives,omitempty"`
}

type SetupResult struct {
	OK          bool   `json:"ok"`
	Stage       string `json:"stage,omitempty"`
	Error       string `json:"error,omitempty"`
	AllCPUs     string `json:"allCPUs,omitempty"`
	Allocatable string `json:"allocatableCPUs,omitempty"`
	State       *State `json:"state,omitempty"`
}

type StepResult struct {
	Op         string            `json:"op"`
	UID        string            `json:"uid,omitempty"`
	Admit      *bool             `json:"admit,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	QOS        string            `json:"qos,omitempty"`
	Containers []ContainerResult `json:"containers,omitempty"`
	PodCPUs    string            `json:"podCPUs,omitempty"`
	PodMemory  []Block           `json:"podMemory,omitempty"`
	AtReject   *State            `json:"atReject,omitempty"` // before what the pod got was collected
	Restart    *SetupResult      `json:"restart,omitempty"`
	Readmit    []Readmit         `json:"readmit,omitempty"`
	State      *State            `json:"state,omitempty"`
}

type Readmit struct {
	UID     string `json:"uid"`
	Admit   bool   `json:"admit"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

type ContainerResult struct {
	Name       string  `json:"name"`
	Init       bool    `json:"init,omitempty"`
	Assigned   bool    `json:"assigned"` // has an entry of its own
	CPUs       string  `json:"cpus"`
	CPULevel   string  `json:"cpuLevel"` // host, pod or container
	Memory     []Block `json:"memory,omitempty"`
	MemNodes   []int   `json:"memNodes,omitempty"`
	MemLevel   string  `json:"memLevel"`
	MergedHint *Hint   `json:"mergedHint,omitempty"`
}

type Block struct {
	NUMA []int  `json:"numa"`
	Type string `json:"type"`
	Size uint64 `json:"size"`
}

type State struct {
	// Digest stands in a recording for all the rest.
	Digest         string                        `json:"digest,omitempty"`
	Default        string                        `json:"default"`
	Assignments    map[string]map[string]string  `json:"assignments,omitempty"`
	PodAssignments map[string]string             `json:"podAssignments,omitempty"`
	Memory         map[string]map[string][]Block `json:"memory,omitempty"`
	PodMemory      map[string][]Block            `json:"podMemory,omitempty"`
	Machine        []NodeState                   `json:"machine,omitempty"`
}

type NodeState struct {
	ID          int        `json:"id"`
	Assignments int        `json:"assignments"`
	Cells       []int      `json:"cells"`
	Tables      []MemTable `json:"tables"`
}

type MemTable struct {
	Type           string `json:"type"`
	Total          uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"`
	Free           uint64 `json:"free"`
}
