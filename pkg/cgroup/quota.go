package cgroup

import "math"

const (
	// DefaultPeriodUsec is the CFS period that kubelet and kernel use unless
	// told otherwise, in microseconds.
	DefaultPeriodUsec = 100000

	// minQuotaUsec is the smallest quota that the kernel takes; the kubelet
	// raises smaller ones to it (cm.MinQuotaPeriod).
	minQuotaUsec = 1000

	// percentUsec is one percent of a CPU in microseconds a second, the unit
	// in which systemd keeps a CPUQuota.
	percentUsec = 10000
)

// MilliCPUToQuota converts a CPU limit in millicores to the quota of cpu.max
// in microseconds (kubelet 1.34–1.37, cm.MilliCPUToQuota). 0 means that no
// limit is written; a limit is at least 1000 µs, so that everything below 10m
// acts as 10m at the usual period. A period of 0 is the default one. Where the
// kubelet's arithmetic would overflow the result is MaxInt64, which no kernel
// accepts.
func MilliCPUToQuota(m int64, periodUsec uint64) uint64 {
	if m == 0 {
		return 0
	}
	if m < 0 {
		return minQuotaUsec
	}
	quota := mulDiv(uint64(m), orDefaultPeriod(periodUsec), 1000)
	return clamp(quota, minQuotaUsec, math.MaxInt64)
}

// QuotaFloorMilli is the smallest limit in millicores that [MilliCPUToQuota]
// does not raise: 10 at the usual period of 100 ms, 200 at 5 ms. Every limit
// below acts as this one. A period of 0 is the default one.
func QuotaFloorMilli(periodUsec uint64) int64 {
	const perQuota = minQuotaUsec * 1000
	period := orDefaultPeriod(periodUsec)
	return int64((perQuota-1)/period + 1)
}

// QuotaToMilliCPU is the kubelet's way back from a quota to millicores, as
// used for status.resources (kubelet 1.37, cm.QuotaToMilliCPU).
func QuotaToMilliCPU(quotaUsec, periodUsec uint64) int64 {
	return saturate(mulDiv(quotaUsec, 1000, orDefaultPeriod(periodUsec)))
}

// SystemdRoundedQuota rounds a quota up to a whole percent of a CPU, as
// systemd does and as the runtimes' systemd driver does before it hands the
// quota to systemd (opencontainers/cgroups, systemd.addCPUQuota). From version
// 0.0.2 of that library on the rounded quota also lands in cpu.max. Both
// arguments are in microseconds; a period of 0 is the default one.
func SystemdRoundedQuota(quota, period uint64) uint64 {
	period = orDefaultPeriod(period)
	perSec := mulDiv(quota, 1000000, period)
	if perSec%percentUsec == 0 || perSec > math.MaxUint64-percentUsec {
		return quota
	}
	perSec = (perSec/percentUsec + 1) * percentUsec
	return mulDiv(perSec, period, 1000000)
}

func orDefaultPeriod(periodUsec uint64) uint64 {
	if periodUsec == 0 {
		return DefaultPeriodUsec
	}
	return periodUsec
}
