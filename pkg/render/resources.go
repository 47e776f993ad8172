package render

import (
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// resources writes the limits, counters and use of each cgroup, a row each, in
// the order of the report.
func (p *page) resources(r report.Resources) {
	if len(r.Containers) == 0 {
		return
	}
	figures := func(heads ...string) table {
		t := table{columns: []column{{head: "CGROUP"}}, keys: 1}
		for _, head := range heads {
			t.columns = append(t.columns, column{head: head, figure: true})
		}
		return t
	}
	cpu := figures("QUOTA/PERIOD", "WEIGHT", "THROTTLED/PERIODS", "USAGE", "WAITING")
	memory := figures("MAX", "CURRENT", "PEAK", "WORKING-SET", "HIGH", "LOW", "MIN")
	kinds := figures("ANON", "FILE", "SHMEM", "KERNEL")
	oom := figures("OOM", "OOM-KILL", "OOM-GROUP-KILL", "OOM-SCORE-ADJ")
	for _, l := range r.Containers {
		c, m := l.CPU, l.Memory
		if c == nil {
			c = &report.CPUFacts{}
		}
		if m == nil {
			m = &report.MemoryFacts{}
		}
		name := cgroupName(l)
		cpu.add(name, quota(c.Quota, c.Period), count(c.Weight), ratio(c.Throttled, c.Periods),
			optional(c.Usage, micros), optional(c.Waiting, micros))
		memory.add(name, limit(m.Max, byteSize), size(m.Current), size(m.Peak), size(m.WorkingSet),
			limit(m.High, byteSize), limit(m.Low, byteSize), limit(m.Min, byteSize))
		kinds.add(name, size(m.Anon), size(m.File), size(m.Shmem), size(m.Kernel))
		oom.add(name, count(m.OOM), count(m.OOMKill), count(m.OOMGroupKill), count(l.OOMScoreAdj))
	}
	remark := "counted since each cgroup was made"
	if r.SampleSeconds != nil {
		remark = "counted over " + strconv.FormatFloat(*r.SampleSeconds, 'f', -1, 64) + " s"
	}
	p.facts("CPU", remark, cpu)
	p.facts("MEMORY", "", memory)
	p.facts("MEMORY BY KIND", "", kinds)
	p.facts("OOM", "counted since each cgroup was made", oom)
}

// cgroupName gives level and name, once where they are the same.
func cgroupName(l report.ResourceLevel) string {
	if l.Name == "" || l.Name == l.Level {
		return orAbsent(l.Level)
	}
	return strings.TrimSpace(Escape(l.Level) + " " + Escape(l.Name))
}

// orAbsent escapes a name that may be missing.
func orAbsent(name string) string {
	if name == "" {
		return absent
	}
	return Escape(name)
}

// quota gives cpu.max in the kernel's microseconds.
func quota(quota *report.Limit, period *uint64) string {
	return pair(limit(quota, plainUint), count(period))
}

func ratio(part, whole *int64) string { return pair(count(part), count(whole)) }

// pair joins two values that belong together; where neither is known, nothing is.
func pair(a, b string) string {
	if a == absent && b == absent {
		return absent
	}
	return a + "/" + b
}

func plainUint(n uint64) string { return strconv.FormatUint(n, 10) }
