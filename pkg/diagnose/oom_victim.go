package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// victimTable is the kernel's choice recomputed from the task table of its own
// report.
type victimTable struct {
	total      uint64 // pages that oom_score_adj is a share of
	arithmetic string // of total
	rows       []victimRow
	chosen     int // the victim's place, -1 if it is not in the table
}

type victimRow struct {
	kernlog.Task
	task    cgroup.OOMTask
	badness int64
}

// victimTable recomputes it; ok is false where the log has no table, or where
// what the shares are of is not known.
func (n *nodeCase) victimTable(k kernlog.Kill) (victimTable, bool) {
	t := victimTable{chosen: -1}
	if len(k.Tasks) == 0 || !n.totalPages(k, &t) || t.total == 0 {
		return t, false
	}
	for _, row := range k.Tasks {
		task := cgroup.OOMTask{RSS: row.RSS, Swap: row.SwapEnts, PgtablesBytes: row.PgtablesBytes, Adj: row.OOMScoreAdj}
		if task.Killable() {
			t.rows = append(t.rows, victimRow{Task: row, task: task, badness: task.Badness(t.total)})
		}
	}
	// Of equals the kernel takes the later one.
	slices.Reverse(t.rows)
	slices.SortStableFunc(t.rows, func(a, b victimRow) int { return cmp.Compare(b.badness, a.badness) })
	t.chosen = slices.IndexFunc(t.rows, func(r victimRow) bool { return r.PID == k.PID })
	return t, true
}

// totalPages sets what an OOM's shares are of: the limit that was met, or all
// memory and swap.
func (n *nodeCase) totalPages(k kernlog.Kill, t *victimTable) bool {
	switch {
	case k.Constraint == kernlog.ConstraintCpuset || k.Constraint == kernlog.ConstraintMemoryPolicy:
		return false // present pages of some nodes: the log does not have them
	case k.OOMMemcg != "" && k.HasLimit:
		t.total = k.LimitKB / 4
		t.arithmetic = fmt.Sprintf("pages = limit %d kB / 4 = %d", k.LimitKB, t.total)
	case k.OOMMemcg != "":
		return false
	case k.HasRAM && k.RAMPages >= k.ReservedPages:
		t.total = k.RAMPages - k.ReservedPages + k.TotalSwapKB/4
		t.arithmetic = fmt.Sprintf("pages = RAM %d − reserved %d + swap %d kB / 4 = %d", k.RAMPages, k.ReservedPages, k.TotalSwapKB, t.total)
	default:
		mem, err := cgroup.ReadMeminfo(n.fsys)
		if err != nil {
			return false
		}
		t.total = mem.TotalPages()
		t.arithmetic = fmt.Sprintf("pages = (MemTotal %d + SwapTotal %d) kB / 4 = %d, of /proc/meminfo", mem["MemTotal"]/1024, mem["SwapTotal"]/1024, t.total)
	}
	return true
}

// why says in a clause why the kernel chose its victim; "" where the table does
// not bear it out.
func (t victimTable) why() string {
	if t.chosen != 0 {
		return ""
	}
	v := t.rows[0]
	if len(t.rows) == 1 {
		return fmt.Sprintf("the kernel chose process %d (%s), the only one it could kill", v.PID, quoteName(v.Name))
	}
	text := fmt.Sprintf("the kernel chose process %d (%s) for the highest badness of %d: %s", v.PID, quoteName(v.Name), len(t.rows), perMille(v.task, t.total))
	largest := slices.MaxFunc(t.rows, func(a, b victimRow) int { return cmp.Compare(a.task.Usage(), b.task.Usage()) })
	if largest.PID != v.PID && largest.task.Usage() > v.task.Usage() {
		text += fmt.Sprintf("; process %d (%s) used more, but has oom_score_adj %d", largest.PID, quoteName(largest.Name), largest.OOMScoreAdj)
	}
	return text
}

// evidence are the table's first rows, and the victim's own.
func (t victimTable) evidence(k kernlog.Kill) []report.Evidence {
	const most = 4
	var out []report.Evidence
	for i, r := range t.rows {
		if i >= most && i != t.chosen {
			continue
		}
		means := fmt.Sprintf("place %d: %d points = %s", i+1, r.badness, perMille(r.task, t.total))
		if i == t.chosen {
			means += "; the victim"
		}
		out = append(out, report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("task table of line %d, pid %d (%s)", k.Line, r.PID, quoteName(r.Name)),
			Value: fmt.Sprintf("rss %d pages, swap %d pages, page tables %d bytes, oom_score_adj %d", r.RSS, r.SwapEnts, r.PgtablesBytes, r.OOMScoreAdj), Means: means})
	}
	return out
}

// points is the victim's badness written down.
func (t victimTable) points() string {
	if t.chosen < 0 {
		return t.arithmetic
	}
	return fmt.Sprintf("%s; points = rss + swap + page tables / 4096 + oom_score_adj × (pages / 1000) = %s", t.arithmetic, t.rows[t.chosen].task.Arithmetic(t.total))
}

// explainVictim adds to a finding about a kill why it hit this process, where
// several pods or containers shared the limit that was met.
func (c *podCase) explainVictim(f *report.Finding, v oomVerdict) {
	switch v.limit {
	case limitNode, limitAbovePods, limitPod:
	case limitAllocatable:
		if met, ok := c.metGroup(v); ok && cgroup.ParsePath(met).Level == cgroup.Kubepods {
			f.Arithmetic = joinText(f.Arithmetic, c.allocatableArithmetic())
		}
	default:
		return
	}
	for _, kill := range slices.Backward(v.kills) {
		t, ok := c.victimTable(kill.Kill)
		if !ok {
			continue
		}
		if why := t.why(); why != "" {
			f.Because = append(f.Because, t.evidence(kill.Kill)...)
			f.Arithmetic = joinText(f.Arithmetic, t.points())
			if adj, arithmetic, err := c.oomScoreAdj(v.container.Name); err == nil && kill.PID == t.rows[0].PID && adj == t.rows[0].OOMScoreAdj {
				f.Arithmetic += "; oom_score_adj by the kubelet: " + arithmetic
			}
			if v.limit == limitPod {
				f.Because = append(f.Because, report.Evidence{Source: "kernel:log", Field: fmt.Sprintf("line %d", kill.Line), Value: fmt.Sprintf("pid=%d", kill.PID), Means: why})
			} else {
				f.Summary = strings.TrimSuffix(f.Summary, ".") + "; " + why + "."
			}
		}
		return
	}
}

func joinText(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
