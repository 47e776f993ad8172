// Package kubeletconfig reads the fields of a KubeletConfiguration that decide about CPUs, memory and cgroups, from the kubelet's
// /configz or from a configuration in JSON, and computes the node reservation and the feature gates that follow from it.
package kubeletconfig

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// Config is a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) with its defaults filled in (kubelet 1.37, v1beta1/defaults.go
// and, for evictionHard, cmd/kubelet/app/server.go). Fields that a kubelet of another version would default otherwise are pointers,
// nil where they were not written. IsSet tells what was written.
type Config struct {
	// Served: a kubelet's /configz answer, known by its wrapping and by containerRuntimeEndpoint, which is never left out of one. There
	// every default is written out, and a list or map that is missing was configured empty.
	Served bool

	CPUManagerPolicy          string // none or static
	CPUManagerPolicyOptions   map[string]string
	CPUManagerReconcilePeriod time.Duration
	ReservedSystemCPUs        cpuset.Set

	MemoryManagerPolicy string // None or Static
	ReservedMemory      []MemoryReservation

	TopologyManagerPolicy        string // none, best-effort, restricted or single-numa-node
	TopologyManagerScope         string // container or pod
	TopologyManagerPolicyOptions map[string]string

	// KubeReserved and SystemReserved are quantities by resource (cpu, memory, ephemeral-storage, pid), as written. Reservation applies
	// reservedSystemCPUs to them.
	KubeReserved, SystemReserved             map[string]string
	KubeReservedCgroup, SystemReservedCgroup string
	EnforceNodeAllocatable                   []string

	// EvictionHard is the map in force: the default where none was written, and completed by it with MergeDefaultEvictionSettings.
	EvictionHard                     map[string]string
	EvictionSoft                     map[string]string
	EvictionSoftGracePeriod          map[string]string
	EvictionMinimumReclaim           map[string]string
	EvictionMaxPodGracePeriod        int64 // seconds
	EvictionPressureTransitionPeriod time.Duration
	MergeDefaultEvictionSettings     bool

	CgroupDriver      string // cgroupfs or systemd
	CgroupRoot        string
	CgroupsPerQOS     bool
	KubeletCgroups    string
	SystemCgroups     string
	QOSReserved       map[string]string
	CPUCFSQuota       bool
	CPUCFSQuotaPeriod time.Duration

	FailSwapOn             bool
	MemorySwapBehavior     string // memorySwap.swapBehavior; "" is NoSwap
	MemoryThrottlingFactor *float64
	// MemoryReservationPolicy exists from 1.36 on, where its default is None; "" if not written.
	MemoryReservationPolicy string
	SingleProcessOOMKill    *bool // nil: false on cgroup v2
	FailCgroupV1            *bool

	PodPidsLimit int64 // -1: no limit of the pod's own
	MaxPods      int64
	PodsPerCore  int64

	// MaxContainerRestartPeriod is crashLoopBackOff.maxContainerRestartPeriod.
	MaxContainerRestartPeriod *time.Duration

	FeatureGates map[string]bool

	// Ignored are the names of fields that are not read here, ascending.
	Ignored []string

	set map[string]bool
}

// MemoryReservation is one element of reservedMemory.
type MemoryReservation struct {
	NUMANode int
	Limits   corev1.ResourceList // memory and hugepages-<size>
}

// IsSet reports whether the document has the top-level field of that name, other than null. A field that a kubelet served is set
// whether a person or a default wrote it.
func (c Config) IsSet(name string) bool { return c.set[name] }

// ThrottlingFactor returns memoryThrottlingFactor for a kubelet of 1.minor: what was written, else 0.9 before 1.37 and none from 1.37 on.
func (c Config) ThrottlingFactor(minor int) (factor float64, ok bool) {
	switch {
	case c.MemoryThrottlingFactor != nil:
		return *c.MemoryThrottlingFactor, true
	case minor <= 36:
		return 0.9, true
	}
	return 0, false
}

// FailsOnCgroupV1 returns failCgroupV1 for a kubelet of 1.minor: what was written, else true from 1.35 on.
func (c Config) FailsOnCgroupV1(minor int) bool {
	if c.FailCgroupV1 != nil {
		return *c.FailCgroupV1
	}
	return minor >= 35
}
