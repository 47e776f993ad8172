package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// exclusiveCPUs says which CPUs a container owns by the CPU Manager's
// checkpoint, how they lie on the machine, and where its memory is booked.
func exclusiveCPUs(c *podCase) []report.Finding {
	if !active(c.pod) {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		set, ok := c.ownedCPUs(c.uid, k.Name)
		if !ok || set.IsEmpty() {
			continue
		}
		summary := fmt.Sprintf("Container %s owns %s %s", k.Name, noun(set.Size(), "CPU"), set)
		f := report.NewFinding(report.ExclusiveCPUs, report.Proven, c.subject(k.Name), "")
		f.Because = c.ownershipEvidence(k.Name)
		if topo, err := c.topo(); err == nil {
			text, evidence := c.layout(topo, set)
			summary += text
			f.Because = append(f.Because, evidence...)
		}
		if blocks := c.memoryBlocks(c.uid, k.Name); len(blocks) > 0 {
			summary += "; memory on NUMA node"
			for i, b := range blocks {
				if i > 0 {
					summary += ","
				}
				summary += fmt.Sprintf(" %s (%s %s)", idList(b.NUMANodes), bytes(b.Size), b.Type)
				f.Because = append(f.Because, c.fileEvidence(memoryStatePath, "entries["+c.uid+"]["+k.Name+"] "+b.Type, fmt.Sprint(b.Size), "bytes on NUMA node "+idList(b.NUMANodes)))
			}
		}
		f.Because = append(f.Because, c.podResourcesEvidence(k.Name, set)...)
		if live, file, ok := c.liveCPUs(k.Name); ok {
			f.Because = append(f.Because, c.fileEvidence(file, "", live, "the cgroup's cpuset"))
		}
		// The allocated request counts: a resize may ask for more than it got.
		asked, _ := alloc.GuaranteedCPUs(c.pod, k.Name, c.rules)
		why := fmt.Sprintf("the pod is Guaranteed and the container was granted %d whole CPUs", asked)
		topo, topoErr := c.topo()
		switch {
		case asked == 0, topoErr == nil && !set.IsSubsetOf(topo.AllCPUs()), asked != int64(set.Size()):
			why = "the CPU Manager's checkpoint says so"
		case asked == 1:
			why = "the pod is Guaranteed and the container was granted one whole CPU"
		}
		f.Because = append(f.Because, c.podField("status.qosClass", string(c.pod.Status.QOSClass), why))
		f.Summary = summary + ": " + why + "."
		if _, s, ok := c.pastStep(); ok {
			f.Arithmetic = whyThese(s.Trace, k.Name)
		}
		out = append(out, f)
	}
	return out
}

// layout says where a set lies: NUMA nodes and whole cores.
func (c *podCase) layout(topo *topology.Topology, set cpuset.Set) (string, []report.Evidence) {
	if beyond := set.Difference(topo.AllCPUs()); !beyond.IsEmpty() {
		return fmt.Sprintf(", of which the machine does not have %s", beyond), []report.Evidence{
			{Source: c.cpusSource(), Field: "CPUs", Value: topo.AllCPUs().String(), Means: "what the machine has online"}}
	}
	var nodes []int
	var evidence []report.Evidence
	for _, n := range topo.NUMANodes {
		if here := n.CPUs.Intersection(set); !here.IsEmpty() {
			nodes = append(nodes, n.ID)
			evidence = append(evidence, c.topologyEvidence(topo, n, here))
		}
	}
	if len(nodes) == 0 {
		return "", nil
	}
	touched, whole := 0, 0
	for _, core := range topo.Cores {
		if core.CPUs.Intersection(set).IsEmpty() {
			continue
		}
		touched++
		if core.CPUs.IsSubsetOf(set) {
			whole++
		}
	}
	return fmt.Sprintf(" on NUMA %s %s, %d of %s whole", noun(len(nodes), "node"), idList(nodes), whole, plural(touched, "core")), evidence
}

func noun(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
