package cgroup

// Settings is what the values of a node's cgroup files follow from besides the
// pods: the kubelet's version, the parts of its configuration and its feature
// gates that matter here, and the node's capacity.
type Settings struct {
	// Minor is the kubelet's minor version, 37 for 1.37. Versions outside
	// 1.34–1.37 are taken for the nearest of these.
	Minor int

	// Systemd is the cgroup driver in force: systemd or else cgroupfs.
	Systemd bool

	CFSQuota      bool   // cpuCFSQuota
	CFSPeriodUsec uint64 // cpuCFSQuotaPeriod in microseconds; 0 is the default, 100000

	SingleProcessOOMKill bool // singleProcessOOMKill

	MemoryQoS              bool     // feature gate MemoryQoS: on by default from 1.37
	MemoryThrottlingFactor *float64 // memoryThrottlingFactor; nil is the default: 0.9 up to 1.36, none from 1.37
	TieredReservation      bool     // memoryReservationPolicy TieredReservation, from 1.36

	CapacityMemory   int64 // status.capacity.memory in bytes; 0 if not known
	ReservableMemory int64 // capacity less kubeReserved and systemReserved, in bytes; 0 if not known
	PageSize         int64 // the kernel's page size in bytes; 0 is 4096

	Swap         SwapBehavior // memorySwap.swapBehavior
	SwapCapacity int64        // the node's swap in bytes; matters to LimitedSwap only

	PodPidsLimit int64 // podPidsLimit; 0 or less is none

	// Exclusive says whether a container of the pod in question holds
	// exclusive CPUs; nil means that none does.
	Exclusive func(container string) bool

	// QuotaWithExclusive means that the gate DisableCPUQuotaWithExclusiveCPUs
	// is off, so that such a container keeps its quota. It is locked on from
	// 1.37.
	QuotaWithExclusive bool

	PodLevelResources bool // feature gate PodLevelResources: on by default
}

// SwapBehavior is memorySwap.swapBehavior of the kubelet's configuration. The
// empty one is NoSwap.
type SwapBehavior string

// The behaviours that the kubelet knows.
const (
	NoSwap      SwapBehavior = "NoSwap"
	LimitedSwap SwapBehavior = "LimitedSwap"
)

const (
	oldestMinor = 34
	newestMinor = 37

	defaultPageSize = 4096
)

func knownMinor(minor int) int {
	return min(max(minor, oldestMinor), newestMinor)
}

func (s Settings) minor() int { return knownMinor(s.Minor) }

func (s Settings) pageSize() int64 {
	if s.PageSize <= 0 {
		return defaultPageSize
	}
	return s.PageSize
}

func (s Settings) periodUsec() uint64 { return orDefaultPeriod(s.CFSPeriodUsec) }

// withoutQuota says whether a container's quota is lifted because it holds
// exclusive CPUs (cm.ContainerHasExclusiveCPUs).
func (s Settings) withoutQuota(container string) bool {
	if s.Exclusive == nil || s.QuotaWithExclusive && s.minor() < 37 {
		return false
	}
	return s.Exclusive(container)
}
