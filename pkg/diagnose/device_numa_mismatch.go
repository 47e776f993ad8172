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
	topo, err := c.topo()
	if err != nil {
		return nil
	}
	var out []report.Finding
	for _, k := range c.pinnedOn(topo) {
		nodes := nodeIDs(numaNodesWith(topo, k.cpus))
		far := c.farDevices(k, nodes)
		if len(far) == 0 {
			continue
		}
		var names []string
		f := report.NewFinding(report.DeviceNUMAMismatch, report.Proven, c.subject(k.Name), "", c.ownershipEvidence(k.Name)...)
		for _, d := range far {
			names = append(names, fmt.Sprintf("%s %s on %s %s", clip(d.Resource), clip(d.ID), noun(len(d.Nodes), "node"), idList(d.Nodes)))
			f.Because = append(f.Because, report.Evidence{Source: podResourcesSource, Field: "list " + clip(d.Resource), Value: clip(d.ID), Means: "NUMA node " + idList(d.Nodes)})
		}
		for _, n := range numaNodesWith(topo, k.cpus) {
			f.Because = append(f.Because, c.topologyEvidence(topo, n, n.CPUs.Intersection(k.cpus)))
		}
		f.Summary = fmt.Sprintf("The %s %s of container %s %s on NUMA %s %s, but its %s %s: data cross between the nodes.",
			noun(k.cpus.Size(), "CPU"), k.cpus, k.Name, verb(k.cpus.Size(), "is", "are"), noun(len(nodes), "node"), idList(nodes), noun(len(far), "device"), join(names))
		if c.configErr == nil {
			f.Because = append(f.Because, c.configEvidence("topologyManagerPolicy", c.config.TopologyManagerPolicy, "how far the kubelet insists on one place"))
			f.Remedies = c.onePlaceRemedies()
		}
		out = append(out, f)
	}
	return out
}

// farDevices are those of the container that are on none of the NUMA nodes, by
// PodResources.
func (c *podCase) farDevices(k pinned, nodes []int) []podresources.Device {
	r, err := c.devices()
	if err != nil {
		return nil
	}
	held, ok := r.Find(c.pod.Namespace, c.pod.Name, k.Name)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(held.Devices), func(d podresources.Device) bool {
		return len(d.Nodes) == 0 || slices.ContainsFunc(d.Nodes, func(id int) bool { return slices.Contains(nodes, id) })
	})
}
