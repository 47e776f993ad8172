package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// littleApart is the share of what is in use from which two ways to count it
// are apart enough to be told apart.
const littleApart = 0.05

// anonMeans explains the key anon of memory.stat.
const anonMeans = "heap and stacks; what metrics call RSS (container_memory_rss)"

// usage names the figures that different tools give for the same memory.
type usage struct {
	because    []report.Evidence
	arithmetic string // begins with "; ", or is empty
	top        string // what kubectl top shows, "" where that is not known or no other figure
}

// usageOfGroup explains memory.current, the working set (kubectl top, eviction)
// and RSS where they are more than a little apart.
func (c *podCase) usageOfGroup(m memoryGroup) usage {
	if m.currentErr != nil || m.statErr != nil {
		return usage{}
	}
	set, okSet := cgroup.WorkingSet(m.current, m.stat)
	anon, okAnon := m.stat.Anon()
	apart := func(v uint64) bool { return float64(m.current)-float64(v) > littleApart*float64(m.current) }
	if !(okSet && apart(set)) && !(okAnon && apart(anon)) {
		return usage{}
	}
	u := usage{because: []report.Evidence{c.fileEvidence(m.group.File("memory.current"), "", fmt.Sprint(m.current),
		"everything that is charged, page cache too (container_memory_usage_bytes)")}}
	if okSet {
		inactive, _ := m.stat.InactiveFile()
		u.because = append(u.because, c.fileEvidence(m.group.File("memory.stat"), "inactive_file", fmt.Sprint(inactive),
			fmt.Sprintf("memory.current − inactive_file is the working set: what kubectl top shows and eviction goes by, %s", bytes(set))))
		u.top = bytes(set)
		u.arithmetic = fmt.Sprintf("; working set (kubectl top) %d − %d = %d", m.current, inactive, set)
	}
	if okAnon {
		u.because = append(u.because, c.fileEvidence(m.group.File("memory.stat"), "anon", fmt.Sprint(anon), anonMeans))
	}
	return u
}
