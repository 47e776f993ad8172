package cgroup

import (
	"fmt"
	"math"
)

// badnessPage is the page size that memory of processes is counted in here; the
// kernel's /proc and its log give kB, or pages of this size on all usual machines.
const badnessPage = 4096

// unkillable is the oom_score_adj of a process that the OOM killer leaves alone.
const unkillable = -1000

// OOMTask is the memory of one process that the OOM killer counts, in pages but
// for PgtablesBytes, and its oom_score_adj.
type OOMTask struct {
	RSS, Swap     uint64
	PgtablesBytes uint64
	Adj           int
}

// Killable says whether the OOM killer may choose the process at all.
func (t OOMTask) Killable() bool { return t.Adj != unkillable }

// Usage is what the kernel counts of the process, in pages: resident memory of
// all kinds, swap and page tables.
func (t OOMTask) Usage() uint64 {
	sum, ok := checkedSum(t.RSS, t.Swap, t.PgtablesBytes/badnessPage)
	if !ok {
		return math.MaxInt64
	}
	return min(sum, math.MaxInt64)
}

// Badness is the number of pages by which the OOM killer compares processes:
// the highest dies (Linux 6.1 to 6.12, oom_badness). totalPages is all memory
// and swap of the node, or the limit of the cgroup that is full. A thousandth of
// totalPages is taken first, in whole pages.
func (t OOMTask) Badness(totalPages uint64) int64 {
	unit := int64(min(totalPages/1000, math.MaxInt64/4000))
	usage := int64(t.Usage())
	if bonus := int64(t.Adj) * unit; bonus <= 0 || usage <= math.MaxInt64-bonus {
		return usage + bonus
	}
	return math.MaxInt64
}

// Arithmetic writes Badness down.
func (t OOMTask) Arithmetic(totalPages uint64) string {
	sign, adj := "+", t.Adj
	if adj < 0 {
		sign, adj = "−", -adj
	}
	return fmt.Sprintf("%d + %d + %d / %d %s %d × (%d / 1000) = %d",
		t.RSS, t.Swap, t.PgtablesBytes, badnessPage, sign, adj, totalPages, t.Badness(totalPages))
}

// OOMScore is /proc/PID/oom_score, 0 to 2000, of a process with that badness
// (Linux 6.1 to 6.12, proc_oom_score).
func OOMScore(badness int64, totalPages uint64) uint64 {
	if totalPages == 0 || totalPages > math.MaxInt64 {
		return 0
	}
	// The bounds only keep hostile figures from overflowing.
	badness = max(min(badness, math.MaxInt64/1000), math.MinInt64/1000)
	perMille := max(min(badness*1000/int64(totalPages), 1e9), -1e9)
	return uint64(max((1000+perMille)*2/3, 0))
}

// PagesOf is bytes in whole pages.
func PagesOf(bytes uint64) uint64 { return bytes / badnessPage }
