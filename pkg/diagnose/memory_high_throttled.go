package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryHighThrottled speaks of a group that memory.high holds back: every
// allocation beyond it has to reclaim and to wait, and where nothing can be
// reclaimed the group neither runs nor reaches memory.max, so that no OOM kill
// ends it (Linux, mem_cgroup_handle_over_high). The kubelet writes the file by
// MemoryQoS and memoryThrottlingFactor.
//
// The counter alone proves no harm: page cache above memory.high is taken back
// at once. PSI tells the two apart, and without it what there is to take.
func memoryHighThrottled(c *podCase) []report.Finding {
	var out []report.Finding
	for _, m := range c.memoryGroups() {
		if f, ok := c.highThrottled(m); ok {
			out = append(out, f)
		}
	}
	return out
}

func (c *podCase) highThrottled(m memoryGroup) (report.Finding, bool) {
	high, highErr := m.group.MemoryHigh()
	if highErr == nil && high.Max {
		return report.Finding{}, false
	}
	times, _, counted := m.count("high")
	if counted && times == 0 || !counted && highErr != nil {
		return report.Finding{}, false
	}
	grown, sampled := c.grownEvent(m, "high")
	atLimit := highErr == nil && m.currentErr == nil && float64(m.current) >= atHigh*float64(high.Bytes)
	if !atLimit && (!sampled || grown == 0) {
		return report.Finding{}, false // in the past, if ever
	}
	left, leftKnown := c.reclaimable(m)
	nothingLeft := leftKnown && float64(left) < littleLeft*float64(m.current)
	psi, psiKnown := c.memoryStall(m.group)

	confidence := report.Proven
	switch {
	case psiKnown && psi.most() < stalledShare:
		return report.Finding{}, false // reclaim copes
	case sampled && grown == 0 && psi.most() < 0.1:
		return report.Finding{}, false // it waits for memory at another level
	case psiKnown && (sampled && grown == 0 || !counted || !sampled && !nothingLeft && psi.full < 0.1):
		confidence = report.Likely
	case psiKnown:
	case nothingLeft:
		confidence = report.Likely
	case leftKnown:
		return report.Finding{}, false
	default:
		confidence = report.Possible
	}
	if hit, _, ok := m.count("max"); ok && hit > 0 && m.limited() && float64(m.current) >= atHigh*float64(m.limit.Bytes) {
		confidence = weaker(confidence, report.Likely) // its limit is met as well
	}
	f := report.NewFinding(report.MemoryHighThrottled, confidence, c.subject(m.container), c.highSummary(m, high, highErr, times, grown, sampled, psi, psiKnown, left, leftKnown))
	f.Because = c.memoryCount(m, "high", "times that tasks had to reclaim and wait")
	if highErr == nil {
		f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.high"), "", high.String(), m.who))
	}
	if m.currentErr == nil {
		f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.current"), "", fmt.Sprint(m.current), "in use"))
	}
	if m.limitErr == nil {
		f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.max"), "", m.limit.String(), "the limit, where an OOM kill would come"))
	}
	f.Because = append(f.Because, psi.evidence...)
	f.Because = append(f.Because, c.statEvidence(m, "anon", anonMeans, "file", "page cache, tmpfs included", "shmem", "tmpfs")...)
	f.Because = append(f.Because, c.memoryCount(m, "max", "times that the limit was met")...)
	f.Because = append(f.Because, c.memoryCount(m, "oom", "OOMs")...)
	if swap, err := m.group.MemorySwapMax(); err == nil {
		f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.swap.max"), "", swap.String(), "swap that it may use"))
	}
	origin := c.highOrigin(m, high, highErr)
	f.Because = append(f.Because, origin.because...)
	f.Arithmetic = origin.arithmetic
	f.Remedies = append(origin.remedies, report.Remedy{
		Summary: "Lower what the container holds; the findings on what fills it say what that is.",
	})
	return f, true
}

func weaker(a, b report.Confidence) report.Confidence {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// reclaimable is what the kernel can take from the group: page cache, slab and,
// as far as there is swap, anonymous memory.
func (c *podCase) reclaimable(m memoryGroup) (uint64, bool) {
	if m.statErr != nil || m.currentErr != nil {
		return 0, false
	}
	left, ok := m.stat.Evictable()
	if !ok {
		return 0, false
	}
	swap, known := c.swapRoom(m)
	if !known {
		return 0, false
	}
	anon, _ := m.stat.Anon()
	shmem, _ := m.stat.Shmem()
	return left + min(swap, anon+min(shmem, math.MaxUint64-anon)), true
}

func (c *podCase) highSummary(m memoryGroup, high cgroup.Limit, highErr error, times, grown uint64, sampled bool, psi stall, psiKnown bool, left uint64, leftKnown bool) string {
	var b strings.Builder
	limit := "memory.high, whose value was not read"
	if highErr == nil {
		limit = fmt.Sprintf("memory.high of %s", bothBytes(high.Bytes))
	}
	fmt.Fprintf(&b, "%s is held back by %s", sentence(m.who), limit)
	if times > 0 {
		fmt.Fprintf(&b, ": %s that its tasks had to reclaim and wait", plural(times, "time"))
		if sampled {
			fmt.Fprintf(&b, " (%d of them in the sample)", grown)
		}
	}
	if psiKnown {
		fmt.Fprintf(&b, "; %s %s some thread waited for memory, %s every one", percent(psi.some), psi.over, percent(psi.full))
	}
	if m.currentErr == nil {
		fmt.Fprintf(&b, ". In use are %s", bothBytes(m.current))
		if leftKnown {
			fmt.Fprintf(&b, ", of which reclaim can take %s", bytes(left))
		}
	}
	if m.limited() && highErr == nil && high.Bytes < m.limit.Bytes {
		fmt.Fprintf(&b, "; the limit of %s stays out of reach, so that no OOM kill ends it", bytes(m.limit.Bytes))
	}
	return b.String() + "."
}

// statEvidence quotes keys of memory.stat, given with their meanings.
func (c *podCase) statEvidence(m memoryGroup, keyAndMeaning ...string) []report.Evidence {
	if m.statErr != nil {
		return nil
	}
	var out []report.Evidence
	for pair := range slices.Chunk(keyAndMeaning, 2) {
		if v, ok := m.stat.Get(pair[0]); ok {
			out = append(out, c.fileEvidence(m.group.File("memory.stat"), pair[0], fmt.Sprint(v), pair[1]))
		}
	}
	return out
}
