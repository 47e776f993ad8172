package cgroup

import (
	"math"
	"math/bits"
)

// Bounds of cpu.shares, and of the cpu.weight that it is converted to.
const (
	minShares = 2
	maxShares = 262144
	minWeight = 1
	maxWeight = 10000
)

// MilliCPUToShares converts a CPU request in millicores to cpu.shares
// (kubelet 1.34–1.37, cm.MilliCPUToShares). No request gives the minimum, 2.
func MilliCPUToShares(m int64) uint64 {
	if m <= 0 {
		return minShares
	}
	return clamp(mulDiv(uint64(m), 1024, 1000), minShares, maxShares)
}

// SharesToMilliCPU is the kubelet's way back from cpu.shares to millicores,
// as used for status.resources (kubelet 1.37, cm.SharesToMilliCPU). It rounds
// up; shares below the minimum give 0.
func SharesToMilliCPU(shares uint64) int64 {
	if shares < minShares {
		return 0
	}
	hi, lo := bits.Mul64(shares, 1000)
	lo, carry := bits.Add64(lo, 1023, 0)
	if hi += carry; hi >= 1024 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 1024)
	return saturate(q)
}

// WeightLinear converts cpu.shares to cpu.weight by the formula that the
// kubelet uses for all slices it owns (kubelet 1.34–1.37, cm.getCPUWeight), and
// container runtimes up to runc 1.3.1 and crun 1.22 for their scopes.
// 0 means that the file is not written.
func WeightLinear(shares uint64) uint64 {
	switch {
	case shares == 0:
		return 0
	case shares <= minShares:
		return minWeight
	case shares >= maxShares:
		return maxWeight
	}
	return 1 + (shares-minShares)*9999/262142
}

// WeightQuadratic converts cpu.shares to cpu.weight by the formula of
// opencontainers/cgroups 0.0.3 (ConvertCPUSharesToCgroupV2Value): runc from
// 1.3.2 and crun from 1.23 use it for container scopes. It maps 1024 shares to
// 100. 0 means that the file is not written.
func WeightQuadratic(shares uint64) uint64 {
	switch {
	case shares == 0:
		return 0
	case shares <= minShares:
		return minWeight
	case shares >= maxShares:
		return maxWeight
	}
	// The order of the float64 operations decides the result at the edges.
	l := math.Log2(float64(shares))
	exponent := (l*l+125*l)/612.0 - 7.0/34.0
	return uint64(math.Ceil(math.Pow(10, exponent)))
}

// SharesFromWeight is the inverse of WeightLinear that the kubelet uses when
// it reads a slice back (kubelet 1.34–1.37, cm.cpuWeightToCPUShares). It loses:
// 102 shares become weight 4, and that 80 shares. Weight 0, which a group with
// cpu.idle shows, gives 0.
func SharesFromWeight(w uint64) uint64 {
	switch {
	case w == 0:
		return 0
	case w >= maxWeight:
		return maxShares
	}
	return (w-1)*262142/9999 + minShares
}

func clamp(v, low, high uint64) uint64 {
	return min(max(v, low), high)
}

// mulDiv returns a·b/c without overflow in between, at most MaxUint64.
// c must not be 0.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, c)
	return q
}

// saturate converts to int64, at most MaxInt64.
func saturate(v uint64) int64 {
	return int64(min(v, math.MaxInt64))
}
