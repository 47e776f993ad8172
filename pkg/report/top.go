package report

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TopReport is the kind of Top.
const TopReport Kind = "TopReport"

// Top compares pods, their containers or nodes, a row each.
type Top struct {
	APIVersion string `json:"apiVersion"`
	Kind       Kind   `json:"kind"`
	// ObservedAt is the moment the data speak of.
	ObservedAt metav1.Time `json:"observedAt,omitzero"`
	// SortBy is the column by which the rows stand, the largest value first.
	SortBy string `json:"sortBy"`
	// Pods are rows for pods or, if asked for, for containers; Nodes for nodes.
	// Of the two only what was asked for is not nil.
	Pods  []TopPod  `json:"pods,omitzero"`
	Nodes []TopNode `json:"nodes,omitzero"`
	Gaps  []Gap     `json:"gaps,omitempty"`
}

// TopPod is a pod, or a container where Container is set. What is not known is
// nil.
type TopPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`
	Node      string `json:"node,omitempty"`
	Phase     string `json:"phase,omitempty"`
	// SampleSeconds is the time between the two samples of the node. Absent:
	// there was no second sample, and Throttled speaks of the cgroup's life.
	SampleSeconds *float64  `json:"sampleSeconds,omitempty"`
	CPU           TopCPU    `json:"cpu,omitzero"`
	Memory        TopMemory `json:"memory,omitzero"`
	// OOMKills are processes of the pod that were killed for memory since its
	// cgroup was made, which outlives its containers: in a container's row too.
	OOMKills *uint64 `json:"oomKills,omitempty"`
	// OOMKillsAtLeast says that kills before the kubelet's start are not counted.
	OOMKillsAtLeast bool `json:"oomKillsAtLeast,omitempty"`
	// CPUs are those that the CPU Manager has given away to the row.
	CPUs *TopCPUSet `json:"cpus,omitempty"`
}

// TopCPU is the CPU time of a pod's or a container's cgroup. Quota and Period
// are those of its own cpu.max, in microseconds.
type TopCPU struct {
	Used *float64 `json:"used,omitempty"` // CPUs, on average of the sample
	// Over is what Used is an average of, if not of the sample.
	Over      Window        `json:"over,omitempty"`
	Quota     *Limit        `json:"quota,omitempty"`
	Period    *uint64       `json:"period,omitempty"`
	Throttled *TopThrottled `json:"throttled,omitempty"`
	Waiting   *TopWaiting   `json:"waiting,omitempty"`
}

// TopThrottled is how many of its periods a quota cut short: of the cgroups on
// the way from the container to the root the one where it was the largest share.
type TopThrottled struct {
	// Share is 0 to 1; nil where no level has a quota, which is Unlimited.
	Share     *float64 `json:"share,omitempty"`
	Unlimited bool     `json:"unlimited,omitempty"`
	// AtLeast says that the container's or the pod's own counters are not known
	// and might show more.
	AtLeast bool `json:"atLeast,omitempty"`
	// Throttled and Periods are counted over Over. Nil where a container wanted
	// nothing that the quota of a level above could have cut short.
	Throttled *uint64 `json:"throttled,omitempty"`
	Periods   *uint64 `json:"periods,omitempty"`
	Over      Window  `json:"over,omitempty"`
	// Level is whose quota it is, Cgroup where it was counted: the cgroup of a
	// pod of one container repeats the container's own quota.
	Level     string `json:"level,omitempty"`
	Container string `json:"container,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"`
}

// TopWaiting is the part of the time, 0 to 1, in which a thread waited (PSI
// some).
type TopWaiting struct {
	Share float64 `json:"share"`
	Over  Window  `json:"over"`
}

// Window is the time that a share was measured over.
type Window string

// Windows.
const (
	OverSample   Window = "sample"   // between the two samples
	OverLifetime Window = "lifetime" // since the cgroup was made
	OverAvg10    Window = "avg10"    // the kernel's average of the last 10 seconds
	OverKubelet  Window = "kubelet"  // between the kubelet's own last readings, 10 to 15 seconds
)

// TopMemory is the memory of a pod's or a container's cgroup, in bytes. Max is
// its own memory.max, Share the part of that which is in use.
type TopMemory struct {
	Current        *uint64            `json:"current,omitempty"`
	Max            *Limit             `json:"max,omitempty"`
	Share          *float64           `json:"share,omitempty"`
	NonReclaimable *TopNonReclaimable `json:"nonReclaimable,omitempty"`
}

// TopNonReclaimable is what reclaim cannot free on a node without swap, at the
// level where it is the largest share of the limit: the container's or the
// pod's.
type TopNonReclaimable struct {
	// Share of the limit. Nil: no level has a limit, and the bytes are the row's.
	Share *float64 `json:"share,omitempty"`
	// AtLeast says that a file or a key of it was missing.
	AtLeast bool    `json:"atLeast,omitempty"`
	Bytes   *uint64 `json:"bytes,omitempty"`
	Max     *Limit  `json:"max,omitempty"`
	// Level is whose limit it is, Cgroup where it was counted. In the row of a pod
	// its cgroup counts as the container's whose limit it repeats.
	Level     string `json:"level,omitempty"`
	Container string `json:"container,omitempty"`
	Cgroup    string `json:"cgroup,omitempty"`
}

// TopCPUSet is the CPUs of a row: those of its own, empty for none, and whether
// it, or a container of it, runs on the shared pool.
type TopCPUSet struct {
	Exclusive string `json:"exclusive"`
	Shared    bool   `json:"shared"`
}

// TopNode is a node. What is not known is nil.
type TopNode struct {
	Name          string        `json:"name"`
	SampleSeconds *float64      `json:"sampleSeconds,omitempty"`
	CPU           TopNodeCPU    `json:"cpu,omitzero"`
	Pressure      TopPressure   `json:"pressure,omitzero"`
	Memory        TopNodeMemory `json:"memory,omitzero"`
	// OOMKills are processes of pods that were killed for memory since the
	// kubelet's cgroup was made, as a rule since boot.
	OOMKills *uint64 `json:"oomKills,omitempty"`
	// Pods are those of the API that have not ended.
	Pods *int `json:"pods,omitempty"`
	// Exclusive are the CPUs that containers own, Shared those of the others. An
	// empty set is none.
	Exclusive *string `json:"exclusiveCPUs,omitempty"`
	Shared    *string `json:"sharedCPUs,omitempty"`
}

// TopNodeCPU is the CPU time of a node: CPUs used on average of the sample, of
// how many that are online.
type TopNodeCPU struct {
	Used *float64 `json:"used,omitempty"`
	// Over is what Used is an average of, if not of the sample.
	Over   Window `json:"over,omitempty"`
	Online *int   `json:"online,omitempty"`
	Source string `json:"source,omitempty"`
}

// TopPressure is how much of the time some task of the node waited.
type TopPressure struct {
	CPU    *TopWaiting `json:"cpu,omitempty"`
	Memory *TopWaiting `json:"memory,omitempty"`
	IO     *TopWaiting `json:"io,omitempty"`
}

// TopNodeMemory is what the kubelet goes by when it evicts, in bytes: its
// memory.available, and the working set, which is the rest of all memory.
type TopNodeMemory struct {
	WorkingSet *uint64 `json:"workingSet,omitempty"`
	Available  *uint64 `json:"available,omitempty"`
	Source     string  `json:"source,omitempty"`
}
