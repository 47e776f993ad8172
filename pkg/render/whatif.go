package render

import (
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// whatIf writes what each node's kubelet would answer: the place of every
// container, or the changes with which the pod would be admitted.
func (p *page) whatIf(nodes []report.WhatIf) {
	for i, w := range nodes {
		if i == 0 {
			p.section("WHAT IF", "")
		} else {
			p.blank()
		}
		p.whatIfAnswer(w)
		p.whatIfPlaces(w.Containers)
		p.nearest(w.Nearest)
	}
}

func (p *page) whatIfAnswer(w report.WhatIf) {
	answer := "not known"
	switch {
	case w.Admitted == nil:
	case *w.Admitted:
		answer = "admitted"
	default:
		answer = "refused"
	}
	parts := []part{{"node " + Escape(w.Node), p.palette.plain}, {answer, p.palette.strong}, {Escape(w.Reason), p.palette.plain}}
	for _, s := range w.Settings {
		parts = append(parts, part{"supposed " + Escape(s), p.palette.plain})
	}
	p.heading("  ", 4, parts)
	if w.Message != "" {
		p.prose(4, p.palette.plain, w.Message)
	}
	if r := w.Readmitted; r != nil {
		for _, path := range r.CheckpointsRemoved {
			p.prose(4, p.palette.plain, "with "+path+" removed, on which that kubelet would not start")
		}
		p.line(4, p.palette.plain, strconv.Itoa(r.Admitted)+" pods of the node admitted again, "+strconv.Itoa(len(r.Refused))+" refused")
		for _, refused := range r.Refused {
			p.prose(6, p.palette.plain, "- "+refused.Namespace+"/"+refused.Pod+": "+refused.Reason+": "+refused.Message)
		}
	}
}

func (p *page) whatIfPlaces(containers []report.WhatIfContainer) {
	t := table{keys: 1, columns: []column{{head: "CONTAINER"}, {head: "CPUS"}, {head: "EXCLUSIVE"}, {head: "NUMA"}, {head: "MEMORY"}}}
	for _, c := range containers {
		name := orAbsent(c.Name)
		if c.Init {
			name += " (init)"
		}
		exclusive := "no"
		if c.Exclusive {
			exclusive = "yes"
		}
		t.add(name, cpuList(c.CPUs), exclusive, ints(c.NUMANodes, ","), memoryBlocks(c.Memory))
	}
	p.facts("", "", t)
}

func (p *page) nearest(changes []report.Nearest) {
	if len(changes) == 0 {
		return
	}
	p.blank()
	p.line(2, p.palette.plain, "would be admitted with one of these, each found by running it")
	for _, c := range changes {
		text := "- " + c.Change
		if c.CPUs != nil {
			text += ": "
			if c.Container != "" {
				text += "container " + c.Container + " "
			}
			text += "CPUs " + *c.CPUs
		}
		if len(c.NUMANodes) > 0 {
			text += " on NUMA " + ints(c.NUMANodes, ",")
		}
		p.prose(4, p.palette.plain, text)
	}
}
