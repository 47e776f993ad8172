package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// placement writes who holds which CPUs and memory: the policies, the node's
// CPU sets, a map of its CPUs, its NUMA nodes, and the containers.
func (p *page) placement(l report.Placement) {
	p.section("PLACEMENT", "")
	p.policies(l)
	p.cpuSets(l.CPUs)
	m := newMarks(l.Layout)
	p.cpuMap(l.Layout, m)
	p.numaNodes(l.NUMANodes)
	p.holders(l.Containers, m)
}

func (p *page) policies(l report.Placement) {
	var parts []part
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, part{name + " " + Escape(value), p.palette.plain})
		}
	}
	add("CPU Manager", l.Policy)
	for _, option := range slices.Sorted(maps.Keys(l.Options)) {
		add("", option+"="+l.Options[option])
	}
	add("Topology Manager", l.TopologyPolicy)
	add("scope", l.Scope)
	add("Memory Manager", l.MemoryPolicy)
	if len(parts) > 0 {
		p.heading("  ", 4, parts)
	}
}

func (p *page) cpuSets(c *report.PlacementCPUs) {
	if c == nil {
		return
	}
	var parts []part
	add := func(name string, set *string) {
		if set != nil {
			parts = append(parts, part{name + " " + cpuList(set), p.palette.plain})
		}
	}
	add("all", c.All)
	add("online", c.Online)
	add("reserved", c.Reserved)
	add("isolated", c.Isolated)
	add("shared", c.Shared)
	add("free", c.Free)
	if len(parts) > 0 {
		p.heading("  CPUs ", 7, parts)
	}
}

func (p *page) numaNodes(nodes []report.NUMANode) {
	topology := table{keys: 1, columns: []column{{head: "NUMA"}, {head: "CPUS"}, {head: "FREE"}, {head: "DISTANCES"}}}
	memory := table{keys: 2, columns: []column{{head: "NUMA"}, {head: "MEMORY"}, {head: "TOTAL", figure: true},
		{head: "SYSTEM RESERVED", figure: true}, {head: "FREE", figure: true}}}
	for _, n := range nodes {
		id := strconv.Itoa(n.ID)
		topology.add(id, cpuList(&n.CPUs), cpuList(n.FreeCPUs), ints(n.Distances, " "))
		for _, m := range n.Memory {
			memory.add(id, Escape(m.Type), byteSize(m.Total), byteSize(m.Reserved), byteSize(m.Free))
		}
	}
	p.facts("", "", topology)
	p.facts("", "", memory)
}

// holders writes a row for each container, and below one for each block of
// memory, which few have. A source that all share is said once.
func (p *page) holders(containers []report.PlacementContainer, m marks) {
	t := table{keys: 2, columns: []column{{head: "POD"}, {head: "CONTAINER"}, {head: "MARK"}, {head: "CPUS"}, {head: "EXCLUSIVE"}, {head: "LIVE"},
		{head: "NUMA"}, {head: "SOURCE"}}}
	memory := table{keys: 2, columns: []column{{head: "POD"}, {head: "CONTAINER"}, {head: "MEMORY"}, {head: "BOOKED", figure: true}, {head: "NUMA"}}}
	shared := len(containers) > 0
	for _, c := range containers {
		shared = shared && c.Source == containers[0].Source
	}
	for _, c := range containers {
		name := orAbsent(c.Container)
		if c.Init {
			name += " (init)"
		}
		exclusive, source := "no", ""
		if c.Exclusive {
			exclusive = "yes"
		}
		if !shared {
			source = orNone(Escape(p.paths.fold(c.Source)))
		}
		t.add(podName(c), name, orNone(m.owner(c)), cpuList(c.CPUs), exclusive, cpuList(c.Live), ints(c.NUMANodes, ","), source)
		for _, b := range c.Memory {
			memory.add(podName(c), name, Escape(b.Type), byteSize(b.Size), ints(b.NUMANodes, ","))
		}
	}
	p.facts("", "", t)
	p.facts("", "", memory)
	if shared && containers[0].Source != "" {
		p.line(2, p.palette.faint, "from "+Escape(p.paths.fold(containers[0].Source)))
	}
}

// podName falls back to the UID, which is all that a checkpoint knows.
func podName(c report.PlacementContainer) string {
	if c.Pod == "" && c.UID != "" {
		return "uid " + Escape(c.UID)
	}
	return qualified(c.Namespace, c.Pod)
}

// cpuList tells an empty set from one that is not known.
func cpuList(set *string) string {
	return optional(set, func(s string) string {
		if s == "" {
			return "none"
		}
		return Escape(s)
	})
}

func memoryBlocks(blocks []report.MemoryBlock) string {
	parts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		parts = append(parts, Escape(b.Type)+" "+byteSize(b.Size)+" on "+ints(b.NUMANodes, ","))
	}
	return orNone(strings.Join(parts, ", "))
}

func ints[T int | uint64](list []T, separator string) string {
	parts := make([]string, 0, len(list))
	for _, n := range list {
		parts = append(parts, count(&n))
	}
	return orNone(strings.Join(parts, separator))
}

func orNone(list string) string {
	if list == "" {
		return none
	}
	return list
}
