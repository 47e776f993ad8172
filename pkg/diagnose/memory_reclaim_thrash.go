package diagnose

import (
	"fmt"
	"math"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryReclaimThrash speaks of a limit that is too small for the page cache
// (or, with swap, for the heap) that the container works on: it is full again
// and again, no OOM comes because there is always a page to take, and the pages
// taken are the ones needed next, so that they are read back (workingset_refault).
// A limit full of cache that is read once does no harm, and has no refaults.
func memoryReclaimThrash(c *podCase) []report.Finding {
	var out []report.Finding
	for _, m := range c.memoryGroups() {
		f, ok := c.thrash(m)
		repeats := slices.ContainsFunc(out, func(o report.Finding) bool { return m.container != "" && o.Subject.Container == m.container })
		if ok && !repeats {
			out = append(out, f)
		}
	}
	return out
}

func (c *podCase) thrash(m memoryGroup) (report.Finding, bool) {
	if m.statErr != nil || !m.limited() {
		return report.Finding{}, false
	}
	if _, throttled := c.highThrottled(m); throttled {
		return report.Finding{}, false
	}
	met, local, ok := m.count("max")
	if !ok || met == 0 || !local && m.isPod(c) && m.container == "" {
		return report.Finding{}, false // or it was a container's limit
	}
	r := c.refaults(m)
	if r.count == 0 {
		return report.Finding{}, false
	}
	psi, psiKnown := c.memoryStall(m.group)
	if psiKnown && psi.most() < stalledShare {
		return report.Finding{}, false // what is taken is soon back
	}
	f := report.NewFinding(report.MemoryReclaimThrash, report.Proven, c.subject(m.container), "")
	grown, sampled := c.grownEvent(m, "max")
	switch {
	case sampled && r.sampled:
		ooms, counted := c.grownEvent(m, "oom")
		if grown == 0 || ooms > 0 {
			return report.Finding{}, false
		}
		if !psiKnown && float64(r.bytes) < 0.1*float64(m.limit.Bytes) {
			return report.Finding{}, false
		}
		if !psiKnown || !counted {
			f.Confidence = report.Likely
		}
	default:
		// One reading: the counters are a life's totals, only PSI is of now.
		if ooms, _, ok := m.count("oom"); !ok || ooms > 0 || !psiKnown || psi.most() < 0.05 ||
			m.currentErr != nil || float64(m.current) < nearLimitShare*float64(m.limit.Bytes) || r.bytes < m.limit.Bytes {
			return report.Finding{}, false
		}
		f.Confidence = report.Likely
		c.gaps.Lack("nodes/"+c.name+"/samples", "no second sample", "whether reclaim and refaults go on", "collect with two samples")
	}
	what, remedy := "page cache", "it works on more file data, program code included, than the limit leaves room for"
	if r.anon > r.file {
		what, remedy = "swapped memory", "its heap does not fit the limit, and what does not fit travels to swap and back"
	}
	over, times := "since the cgroup was made", met
	if sampled && r.sampled {
		over, times = "in the sample of "+usec(float64(c.wallUsec)), grown
	}
	f.Summary = fmt.Sprintf("%s met its limit of %s %s %s without an OOM, and %s of %s that had been taken back were needed again",
		sentence(m.who), bothBytes(m.limit.Bytes), plural(times, "time"), over, bytes(r.bytes), what)
	if psiKnown {
		f.Summary += fmt.Sprintf("; %s %s some thread waited for memory", percent(psi.some), psi.over)
	}
	f.Summary += ": " + remedy + "."
	f.Because = append(f.Because, c.memoryCount(m, "max", "times that the limit was met")...)
	f.Because = append(f.Because, c.memoryCount(m, "oom", "OOMs")...)
	f.Because = append(f.Because, r.evidence...)
	f.Because = append(f.Because, psi.evidence...)
	f.Because = append(f.Because, c.fileEvidence(m.group.File("memory.max"), "", m.limit.String(), m.who))
	f.Because = append(f.Because, c.statEvidence(m, "anon", anonMeans, "file", "page cache, tmpfs included", "pgmajfault", "faults that had to read from a disk")...)
	f.Arithmetic = fmt.Sprintf("%d pages × %d bytes = %d bytes read again", r.count, pageSize, r.bytes)
	f.Remedies = []report.Remedy{{
		Summary: "Raise the memory limit by what is read again and again, or let the container work on less at a time.",
		Effect:  "An OOM kill will not end this: reclaim always finds a page, the wrong one.",
		Caution: "How much more it needs is not known: the pages that came back were not counted apart. Raise it and measure again.",
	}}
	return f, true
}

// refaults are pages that had been taken back and were needed again.
type refaults struct {
	file, anon, count, bytes uint64
	sampled                  bool
	evidence                 []report.Evidence
}

// refaults reads workingset_refault_file and _anon, between the samples where
// there are two. Kernels before 5.9 have one key for both.
func (c *podCase) refaults(m memoryGroup) refaults {
	r := refaults{sampled: true}
	for _, key := range []string{"workingset_refault_file", "workingset_refault_anon", "workingset_refault"} {
		total, ok := m.stat.Get(key)
		if !ok {
			continue
		}
		pages, means := total, "pages needed again since the cgroup was made"
		if grown, ok := c.grownStat(m, key); ok {
			pages, means = grown, fmt.Sprintf("+%d in the sample: pages taken back and needed again", grown)
		} else {
			r.sampled = false
		}
		if key == "workingset_refault_anon" {
			r.anon = pages
		} else {
			r.file += min(pages, math.MaxUint64-r.file)
		}
		if pages > 0 {
			r.evidence = append(r.evidence, c.fileEvidence(m.group.File("memory.stat"), key, fmt.Sprint(total), means))
		}
	}
	r.count = r.file + min(r.anon, math.MaxUint64-r.file)
	r.bytes = min(r.count, math.MaxUint64/pageSize) * pageSize
	return r
}
