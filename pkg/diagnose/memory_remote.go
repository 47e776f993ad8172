package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Pages elsewhere matter from a tenth of the container's anonymous memory and
// 16 MiB on. Below that they are what a program's libraries and start leave:
// page cache and shared pages stay where who read them first ran, and the few
// anonymous pages of a start before the cpuset was set.
const (
	remoteShare = 0.1
	remoteBytes = 16 << 20
)

// memoryRemote says that a good part of a container's anonymous memory is on
// NUMA nodes on which none of its own CPUs are (memory.numa_stat), or that all
// of it is kept to such nodes (the Memory Manager's checkpoint).
func memoryRemote(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil || topo.NumNUMANodes < 2 {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		near := nodeIDs(numaNodesWith(topo, k.cpus))
		if f, bound := c.memoryBoundElsewhere(topo, k, near); bound {
			out = append(out, f)
			continue
		}
		g, ok := c.containerGroup(k.Name)
		if !ok || !k.running() || len(near) == 0 {
			continue
		}
		stat, err := g.MemoryNUMAStat()
		if err != nil {
			c.gaps.Miss(c.filePath(g.File("memory.numa_stat")), err, "on which NUMA nodes the memory of container "+k.Name+" is", "the node pod")
			continue
		}
		values, ok := stat.Get("anon")
		if !ok {
			continue
		}
		var total, remote uint64
		var parts []string
		for _, v := range values {
			total += v.Value
			if !slices.Contains(near, v.Node) {
				remote += v.Value
			}
			parts = append(parts, fmt.Sprintf("N%d=%d", v.Node, v.Value))
		}
		if total == 0 || remote < remoteBytes || float64(remote) < remoteShare*float64(total) {
			continue
		}
		share := float64(remote) / float64(total)
		f := report.NewFinding(report.MemoryRemote, report.Proven, c.subject(k.Name), fmt.Sprintf(
			"%s of the anonymous memory of container %s (%s of %s) is on other NUMA nodes than its %s %s (%s %s).",
			percent(share), k.Name, bytes(remote), bytes(total), noun(k.cpus.Size(), "CPU"), k.cpus, noun(len(near), "node"), idList(near)), c.ownershipEvidence(k.Name)...)
		f.Because = append(f.Because, c.fileEvidence(g.File("memory.numa_stat"), "anon", join(parts), "bytes on each NUMA node"))
		if mems, err := g.CPUSetMemsEffective(); err == nil {
			f.Because = append(f.Because, c.fileEvidence(g.File("cpuset.mems.effective"), "", mems.String(), "the NUMA nodes it may take memory from"))
		}
		f.Arithmetic = fmt.Sprintf("%d / %d = %s (reported from %s and %s on)", remote, total, percent(share), percent(remoteShare), bytes(remoteBytes))
		f.Remedies = c.nearMemoryRemedies()
		out = append(out, f)
	}
	return out
}

// memoryBoundElsewhere says that the Memory Manager keeps a container's memory
// to NUMA nodes on which none of its own CPUs are.
func (c *podCase) memoryBoundElsewhere(topo *topology.Topology, k pinned, near []int) (report.Finding, bool) {
	blocks := c.memoryBlocks(c.uid, k.Name)
	var nodes []int
	for _, b := range blocks {
		nodes = append(nodes, b.NUMANodes...)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(near) == 0 || len(nodes) == 0 || slices.ContainsFunc(nodes, func(id int) bool { return slices.Contains(near, id) }) {
		return report.Finding{}, false
	}
	f := report.NewFinding(report.MemoryRemote, report.Proven, c.subject(k.Name), fmt.Sprintf(
		"The memory booked for container %s is on NUMA %s %s and kept to %s, but its %s %s %s on NUMA %s %s: it can take no memory there.",
		k.Name, noun(len(nodes), "node"), idList(nodes), verb(len(nodes), "it", "them"), noun(k.cpus.Size(), "CPU"), k.cpus, verb(k.cpus.Size(), "is", "are"), noun(len(near), "node"), idList(near)), c.ownershipEvidence(k.Name)...)
	for _, b := range blocks {
		f.Because = append(f.Because, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+k.Name+"] "+b.Type, fmt.Sprint(b.Size), "bytes on NUMA node "+idList(b.NUMANodes)))
	}
	for _, n := range numaNodesWith(topo, k.cpus) {
		f.Because = append(f.Because, c.topologyEvidence(topo, n, n.CPUs.Intersection(k.cpus)))
	}
	if g, ok := c.containerGroup(k.Name); ok {
		if mems, err := g.CPUSetMemsEffective(); err == nil {
			if slices.ContainsFunc(near, func(id int) bool { return mems.Contains(id) }) {
				return report.Finding{}, false // the binding is not in force
			}
			f.Because = append(f.Because, c.fileEvidence(g.File("cpuset.mems.effective"), "", mems.String(), "the NUMA nodes it may take memory from"))
		}
	}
	if c.configErr == nil {
		f.Because = append(f.Because, c.configEvidence("topologyManagerPolicy", c.config.TopologyManagerPolicy, "how far the kubelet insists on one place"))
	}
	f.Remedies = c.onePlaceRemedies()
	return f, true
}

// nearMemoryRemedies name what of the Memory Manager's policy and the Topology
// Manager's is not set yet.
func (c *podCase) nearMemoryRemedies() []report.Remedy {
	caution := "Pages that are there already do not move: restart the pod."
	if c.configErr == nil && c.config.MemoryManagerPolicy == "Static" {
		return c.onePlaceRemedies()
	}
	return []report.Remedy{{
		Summary: "Set memoryManagerPolicy Static (with reservedMemory) and a Topology Manager policy: a Guaranteed pod's memory is then kept to the NUMA nodes of its CPUs.",
		Caution: caution,
	}}
}
