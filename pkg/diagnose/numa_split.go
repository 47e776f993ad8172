package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// numaSplit says that a container's own CPUs lie on several NUMA nodes: part of
// its memory is far from every one of its threads.
func numaSplit(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		nodes := numaNodesWith(topo, k.cpus)
		if len(nodes) < 2 {
			continue
		}
		var parts []string
		f := report.NewFinding(report.NUMASplit, report.Proven, c.subject(k.Name), "", c.ownershipEvidence(k.Name)...)
		for _, n := range nodes {
			here := n.CPUs.Intersection(k.cpus)
			parts = append(parts, fmt.Sprintf("%s on node %d", here, n.ID))
			f.Because = append(f.Because, c.topologyEvidence(topo, n, here))
		}
		f.Summary = fmt.Sprintf("The %d CPUs of container %s lie on NUMA nodes %s: %s%s.", k.cpus.Size(), k.Name, idList(nodeIDs(nodes)), join(parts), c.farthest(topo, nodes, &f))
		f.Summary += c.whySplit(topo, k, &f)
		out = append(out, f)
	}
	return out
}

// farthest names the greatest distance between two of the nodes.
func (c *podCase) farthest(topo *topology.Topology, nodes []topology.NUMANode, f *report.Finding) string {
	most, from := uint64(0), -1
	for _, a := range nodes {
		for _, b := range nodes {
			// A row has one value for each node in the order of ids.
			i := slices.IndexFunc(topo.NUMANodes, func(n topology.NUMANode) bool { return n.ID == b.ID })
			if a.ID != b.ID && a.HasDistances && i < len(a.Distances) && a.Distances[i] > most {
				most, from = a.Distances[i], a.ID
			}
		}
	}
	if from < 0 {
		return ""
	}
	path := fmt.Sprintf("sys/devices/system/node/node%d/distance", from)
	node, _ := topo.NUMANode(from)
	f.Because = append(f.Because, c.fileEvidence(path, "", strings.Trim(strings.ReplaceAll(fmt.Sprint(node.Distances), " ", " "), "[]"), "10 is the node's own memory"))
	return fmt.Sprintf(", at a distance of up to %d (10 is local)", most)
}

// whySplit says whether one node would have done at all, and which setting lets
// a set spread.
func (c *podCase) whySplit(topo *topology.Topology, k pinned, f *report.Finding) string {
	reserved, _ := c.reservedCPUs()
	largest := 0
	for _, n := range topo.NUMANodes {
		largest = max(largest, n.CPUs.Difference(reserved).Size())
	}
	if k.cpus.Size() > largest {
		f.Arithmetic = fmt.Sprintf("%d CPUs > %d, the most that one NUMA node has beside reserved ones", k.cpus.Size(), largest)
		f.Remedies = []report.Remedy{{Summary: fmt.Sprintf("Ask for at most %s, or several containers of that size, if the CPUs are to lie on one NUMA node.", plural(largest, "CPU"))}}
		why := fmt.Sprintf(" No NUMA node has more than %d to give, so one could not do", largest)
		if c.configErr == nil && c.config.TopologyManagerPolicy == "single-numa-node" {
			f.Because = append(f.Because, c.configEvidence("topologyManagerPolicy", "single-numa-node", "insists on one NUMA node"))
			return why + ", and " + c.policyLetsThrough() + "."
		}
		return why + "."
	}
	if c.configErr != nil {
		return ""
	}
	policy := c.config.TopologyManagerPolicy
	f.Because = append(f.Because, c.configEvidence("topologyManagerPolicy", policy, "how far the kubelet insists on one NUMA node"))
	if c.config.CPUManagerPolicyOptions["distribute-cpus-across-numa"] == "true" && policy != "single-numa-node" {
		f.Because = append(f.Because, c.configEvidence("cpuManagerPolicyOptions[distribute-cpus-across-numa]", "true", "spreads sets that need several nodes"))
	}
	f.Remedies = c.onePlaceRemedies()
	return fmt.Sprintf(" One NUMA node could have done (up to %s), but %s.", plural(largest, "CPU"), c.policyLetsThrough())
}

// numaAligned says that CPUs, and memory where it is booked, lie on one NUMA
// node of several, and no device of the container on another.
func numaAligned(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil || topo.NumNUMANodes < 2 {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		nodes := numaNodesWith(topo, k.cpus)
		if len(nodes) != 1 {
			continue
		}
		blocks := c.memoryBlocks(c.uid, k.Name)
		elsewhere := slices.ContainsFunc(blocks, func(b report.MemoryBlock) bool { return !slices.Equal(b.NUMANodes, []int{nodes[0].ID}) })
		if elsewhere || len(c.farDevices(k, nodeIDs(nodes))) > 0 {
			continue
		}
		f := report.NewFinding(report.NUMAAligned, report.Proven, c.subject(k.Name), "", c.ownershipEvidence(k.Name)...)
		f.Because = append(f.Because, c.topologyEvidence(topo, nodes[0], k.cpus))
		what := fmt.Sprintf("The %s of container %s", noun(k.cpus.Size(), "CPU"), k.Name)
		f.Summary = fmt.Sprintf("%s (%s) %s on NUMA node %d.", what, k.cpus, verb(k.cpus.Size(), "lies", "lie"), nodes[0].ID)
		if len(blocks) > 0 {
			for _, b := range blocks {
				f.Because = append(f.Because, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+k.Name+"] "+b.Type, fmt.Sprint(b.Size), "bytes on NUMA node "+idList(b.NUMANodes)))
			}
			f.Summary = fmt.Sprintf("%s (%s) and the memory booked for it lie on NUMA node %d.", what, k.cpus, nodes[0].ID)
		}
		out = append(out, f)
	}
	return out
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
