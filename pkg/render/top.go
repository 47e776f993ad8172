package render

import (
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Top writes the rows of a table, below their headers or without. No row, no
// output. Beside a share stands in brackets what it is of where that is not what
// the column is about: the level of a quota or limit that is not the container's
// own, or a time other than the sample. A share with ">=" may be larger.
func Top(w io.Writer, top report.Top, headers bool, s Style) error {
	var t table
	switch {
	case len(top.Pods) > 0:
		t = topPods(top.Pods)
	case len(top.Nodes) > 0:
		t = topNodes(top.Nodes)
	default:
		return nil
	}
	t.gap = 3
	if !headers {
		for i := range t.columns {
			t.columns[i].head = ""
		}
	}
	p := page{style: s, palette: newPalette(s.Color)}
	p.block(0, t, 0)
	return p.flush(w)
}

func topPods(rows []report.TopPod) table {
	containers := slices.ContainsFunc(rows, func(r report.TopPod) bool { return r.Container != "" })
	t := table{columns: []column{{head: "NAMESPACE"}, {head: "NAME"}}}
	if containers {
		t.columns = append(t.columns, column{head: "CONTAINER"})
	}
	t.columns = append(t.columns, column{head: "NODE"}, column{head: "CPU", figure: true}, column{head: "LIMIT", figure: true},
		column{head: "THROTTLED", figure: true}, column{head: "WAIT", figure: true}, column{head: "MEMORY", figure: true},
		column{head: "MEMORY%", figure: true}, column{head: "NONRECLAIMABLE", figure: true}, column{head: "OOM-KILLS", figure: true}, column{head: "CPUS"})
	for _, r := range rows {
		cells := []string{topName(r.Namespace), topName(r.Name)}
		if containers {
			cells = append(cells, topName(r.Container))
		}
		t.add(append(cells, orNone(strings.TrimSpace(Escape(r.Node))), cpusOver(r.CPU.Used, r.CPU.Over), cpuLimit(r.CPU.Quota, r.CPU.Period),
			throttled(r.CPU.Throttled), waiting(r.CPU.Waiting), size(r.Memory.Current), percent(r.Memory.Share, unlimited(r.Memory.Max)),
			nonReclaimable(r.Memory.NonReclaimable), marked(count(r.OOMKills), r.OOMKillsAtLeast), optional(r.CPUs, ownCPUs))...)
	}
	return t
}

func topNodes(rows []report.TopNode) table {
	t := table{columns: []column{{head: "NAME"}, {head: "CPU", figure: true}, {head: "PSI-CPU", figure: true}, {head: "PSI-MEMORY", figure: true},
		{head: "PSI-IO", figure: true}, {head: "MEMORY", figure: true}, {head: "AVAILABLE", figure: true}, {head: "OOM-KILLS", figure: true},
		{head: "PODS", figure: true}, {head: "CPUS"}, {head: "SHARED-CPUS"}}}
	for _, r := range rows {
		t.add(topName(r.Name), pair(cpusOver(r.CPU.Used, r.CPU.Over), count(r.CPU.Online)), waiting(r.Pressure.CPU), waiting(r.Pressure.Memory), waiting(r.Pressure.IO),
			size(r.Memory.WorkingSet), size(r.Memory.Available), count(r.OOMKills), count(r.Pods), cpuList(r.Exclusive), cpuList(r.Shared))
	}
	return t
}

func topName(name string) string { return orAbsent(strings.TrimSpace(name)) }

func unlimited(l *report.Limit) bool { return l != nil && l.Unlimited }

// cpus writes a number of CPUs to a thousandth.
func cpus(v *float64) string {
	return optional(v, func(n float64) string {
		if n > 0 && n < 0.001 {
			return "<0.001"
		}
		return decimal(n, 3)
	})
}

// cpusOver is cpus with what it is an average of, if not of the sample.
func cpusOver(v *float64, over report.Window) string {
	if v == nil {
		return absent
	}
	return marked(cpus(v), false, string(over))
}

// cpuLimit writes cpu.max as CPUs.
func cpuLimit(quota *report.Limit, period *uint64) string {
	switch {
	case unlimited(quota):
		return "unlimited"
	case quota == nil || period == nil || *period == 0:
		return absent
	}
	n := float64(quota.Value) / float64(*period)
	return cpus(&n)
}

// percent writes a share as percent, cut to a tenth: only the whole is 100%.
func percent(share *float64, unlimited bool) string {
	switch {
	case share == nil && unlimited:
		return none
	case share == nil:
		return absent
	case *share > 0 && *share < 0.001:
		return "<0.1%"
	}
	// A hair more, so that 0.29 is not cut to 28.9 %.
	return decimal(math.Floor(*share*1000+1e-9)/10, 1) + "%"
}

// decimal writes a number with so many digits behind the point, without zeros at
// the end.
func decimal(n float64, digits int) string {
	s := strconv.FormatFloat(n, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// marked writes a share with what has to be known of it.
func marked(share string, atLeast bool, marks ...string) string {
	if atLeast {
		share = ">=" + share
	}
	if marks = slices.DeleteFunc(marks, func(m string) bool { return m == "" }); len(marks) > 0 {
		share += "(" + Escape(strings.Join(marks, ",")) + ")"
	}
	return share
}

func throttled(t *report.TopThrottled) string {
	return optional(t, func(t report.TopThrottled) string {
		over := ""
		if t.Over == report.OverLifetime {
			over = string(t.Over)
		}
		return marked(percent(t.Share, t.Unlimited), t.AtLeast, otherLevel(t.Level), over)
	})
}

func nonReclaimable(n *report.TopNonReclaimable) string {
	return optional(n, func(n report.TopNonReclaimable) string {
		return marked(percent(n.Share, unlimited(n.Max)), n.AtLeast && n.Share != nil, otherLevel(n.Level))
	})
}

// otherLevel is the level unless it is the container's own.
func otherLevel(level string) string {
	if level == "container" {
		return ""
	}
	return level
}

func waiting(w *report.TopWaiting) string {
	return optional(w, func(w report.TopWaiting) string {
		over := ""
		if w.Over != report.OverSample {
			over = string(w.Over)
		}
		return marked(percent(&w.Share, false), false, over)
	})
}

// ownCPUs writes the CPUs of a row's own, and whether it shares others.
func ownCPUs(c report.TopCPUSet) string {
	var parts []string
	if c.Exclusive != "" {
		parts = append(parts, Escape(c.Exclusive))
	}
	if c.Shared {
		parts = append(parts, "shared")
	}
	return orNone(strings.Join(parts, "+"))
}
