package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryNearLimit speaks of a group whose memory that cannot be taken back is
// close to its limit: the next growth is an OOM kill. Page cache does not
// count, nor what could still be swapped out. Where an OOM kill has come
// already, its own finding says more, and so does memory-high-throttled.
func memoryNearLimit(c *podCase) []report.Finding {
	var out []report.Finding
	said := map[string]bool{} // containers of whose limit enough is said
	for _, m := range c.memoryGroups() {
		// The pod's group repeats what holds for its only container.
		if !m.limited() || c.oomKnown(m) || m.container != "" && said[m.container] {
			continue
		}
		if _, throttled := c.highThrottled(m); throttled {
			said[m.container] = true
			continue
		}
		if f, ok := c.nearLimit(m); ok {
			said[m.container] = true
			out = append(out, f)
		}
	}
	return out
}

// oomKnown says whether an OOM of the group, or of its container, is counted or
// in the kernel log.
func (c *podCase) oomKnown(m memoryGroup) bool {
	for _, key := range []string{"oom", "oom_kill"} {
		if n, ok := m.events.inTree(key); ok && n > 0 {
			return true
		}
	}
	e := c.oom()
	return m.isPod(c) && len(e.kills) > 0 || m.container != "" && (len(e.of(m.container)) > 0 ||
		slices.ContainsFunc(c.oomVictims(e), func(k container) bool { return k.Name == m.container }))
}

func (c *podCase) nearLimit(m memoryGroup) (report.Finding, bool) {
	if m.statErr != nil {
		if m.currentErr == nil && float64(m.current) >= nearLimitShare*float64(m.limit.Bytes) {
			c.gaps.Miss(c.filePath(m.group.File("memory.stat")), m.statErr, "whether what fills "+m.who+" is page cache, which does no harm", "")
		}
		return report.Finding{}, false
	}
	held, ok := m.stat.Held()
	if !ok {
		return report.Finding{}, false
	}
	stuck, arithmetic := held.Bytes, held.Arithmetic
	swap, swapKnown := c.swapRoom(m)
	if swapKnown && swap > 0 {
		anon, _ := m.stat.Anon()
		shmem, _ := m.stat.Shmem()
		swap = min(swap, min(anon+shmem, stuck))
		stuck -= swap
		arithmetic = fmt.Sprintf("%s; less %d that fit into swap = %d", arithmetic, swap, stuck)
	}
	share := float64(stuck) / float64(m.limit.Bytes)
	if share < nearLimitShare {
		return report.Finding{}, false
	}
	atLeast := ""
	if held.Floor {
		atLeast = "at least "
	}
	f := report.NewFinding(report.MemoryNearLimit, report.Proven, c.subject(m.container),
		fmt.Sprintf("%s holds %s%s that cannot be taken back, %s of its limit of %s: %s are left before an OOM kill.",
			sentence(m.who), atLeast, bothBytes(stuck), percent(share), bothBytes(m.limit.Bytes), bytes(m.limit.Bytes-min(stuck, m.limit.Bytes))))
	if !swapKnown {
		f.Confidence = report.Likely
		c.gaps.Lack(c.filePath(m.group.File("memory.swap.max")), "NotCollected", "whether part of it could go to swap", "")
	}
	f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.max"), "", m.limit.String(), m.who))
	f.Because = append(f.Because, c.statEvidence(m, "anon", anonMeans, "shmem", "tmpfs and shared memory", "kernel", "kernel memory",
		"slab_reclaimable", "the part of it that can be taken back", "sock", "socket buffers")...)
	f.Because = append(f.Because, c.memoryCount(m, "max", "times that the limit was met and reclaim still helped")...)
	f.Because = append(f.Because, c.memoryCount(m, "oom", "OOMs")...)
	f.Arithmetic = fmt.Sprintf("%s; %d / %d = %s", arithmetic, stuck, m.limit.Bytes, percent(share))
	usage := c.usageOfGroup(m)
	f.Because = dedupe(append(f.Because, usage.because...))
	f.Arithmetic += usage.arithmetic
	advice, because := c.heapAdvice(m.container, m.limit.Bytes)
	f.Because = append(f.Because, because...)
	raise := "Raise the pod's memory limit"
	if m.container != "" {
		raise = "Raise limits.memory of container " + m.container
	}
	f.Remedies = append(advice, report.Remedy{
		Summary: raise + ", or lower what it holds; the findings on what fills it say what that is.",
		Caution: "How much it would need is not known from one moment; memory.peak is capped by the limit.",
	})
	return f, true
}
