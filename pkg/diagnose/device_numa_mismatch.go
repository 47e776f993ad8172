package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// deviceNUMAMismatch says that a container's device is on another NUMA node
// than its CPUs, by PodResources and the checkpoint.
func deviceNUMAMismatch(c *podCase) []report.Finding {
	r, err := c.devices()
	topo, topoErr := c.topo()
	if err != nil || topoErr != nil {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinned() {
		held, ok := r.Find(c.pod.Namespace, c.pod.Name, k.Name)
		if !ok {
			continue
		}
		nodes := nodeIDs(numaNodesWith(topo, k.cpus))
		var far []podresources.Device
		for _, d := range held.Devices {
			if len(d.Nodes) > 0 && !slices.ContainsFunc(d.Nodes, func(id int) bool { return slices.Contains(nodes, id) }) {
				far = append(far, d)
			}
		}
		if len(far) == 0 {
			continue
		}
		var names []string
		f := newFinding(report.DeviceNUMAMismatch, report.Proven, c.subject(k.Name), "", c.ownershipEvidence(k.Name)...)
		for _, d := range far {
			names = append(names, fmt.Sprintf("%s %s on node %s", clip(d.Resource), clip(d.ID), idList(d.Nodes)))
			f.Because = append(f.Because, report.Evidence{Source: podResourcesSource, Field: "list " + clip(d.Resource), Value: clip(d.ID), Means: "NUMA node " + idList(d.Nodes)})
		}
		for _, n := range numaNodesWith(topo, k.cpus) {
			f.Because = append(f.Because, c.topologyEvidence(topo, n, n.CPUs.Intersection(k.cpus)))
		}
		f.Summary = fmt.Sprintf("The CPUs %s of container %s are on NUMA node %s, but its %s %s: data cross between the nodes.",
			k.cpus, k.Name, idList(nodes), noun(len(far), "device"), join(names))
		if c.configErr == nil {
			f.Because = append(f.Because, c.configEvidence("topologyManagerPolicy", c.config.TopologyManagerPolicy, "how far the kubelet insists on one place"))
			f.Remedies = []report.Remedy{{
				Summary: "Set topologyManagerPolicy to restricted or single-numa-node: a pod whose CPUs and devices fit no common place is then refused.",
				Caution: "A pod that is refused is Failed, and its controller makes another at once.",
			}}
		}
		out = append(out, f)
	}
	return out
}
