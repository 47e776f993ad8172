package diagnose

import (
	"fmt"
	"slices"

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
// NUMA nodes on which none of its own CPUs are (memory.numa_stat).
func memoryRemote(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil || topo.NumNUMANodes < 2 {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinned() {
		near := nodeIDs(numaNodesWith(topo, k.cpus))
		g, ok := c.containerGroup(k.Name)
		if !ok || !k.running() || len(near) == 0 {
			continue
		}
		stat, err := g.MemoryNUMAStat()
		if err != nil {
			c.gaps.miss(c.filePath(g.File("memory.numa_stat")), err, "on which NUMA nodes the memory of container "+k.Name+" is", "the node pod")
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
		f := newFinding(report.MemoryRemote, report.Proven, c.subject(k.Name), fmt.Sprintf(
			"%s of the anonymous memory of container %s (%s of %s) is on other NUMA nodes than its CPUs %s (node %s).",
			percent(share), k.Name, bytes(remote), bytes(total), k.cpus, idList(near)), c.ownershipEvidence(k.Name)...)
		f.Because = append(f.Because, c.fileEvidence(g.File("memory.numa_stat"), "anon", join(parts), "bytes on each NUMA node"))
		if mems, err := g.CPUSetMemsEffective(); err == nil {
			f.Because = append(f.Because, c.fileEvidence(g.File("cpuset.mems.effective"), "", mems.String(), "the NUMA nodes it may take memory from"))
		}
		f.Arithmetic = fmt.Sprintf("%d / %d = %s (reported from %s and %s on)", remote, total, percent(share), percent(remoteShare), bytes(remoteBytes))
		f.Remedies = []report.Remedy{{
			Summary: "Set memoryManagerPolicy Static (with reservedMemory) and a Topology Manager policy: a Guaranteed pod's memory is then kept to the NUMA nodes of its CPUs.",
			Caution: "Pages that are there already do not move: restart the pod.",
		}}
		out = append(out, f)
	}
	return out
}
