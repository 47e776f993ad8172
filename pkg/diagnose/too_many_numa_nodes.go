package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// tooManyNUMANodes speaks of a machine with more NUMA nodes than the Topology
// Manager takes: 8, unless max-allowable-numa-nodes says more.
func tooManyNUMANodes(n *nodeCase) []report.Finding {
	topo, err := n.topo()
	if err != nil {
		return nil
	}
	var out []report.Finding
	for _, fault := range n.startFaults() {
		if fault.code != report.TooManyNUMANodes {
			continue
		}
		count := len(topo.NUMANodes)
		allowed, set := n.config.TopologyManagerPolicyOptions["max-allowable-numa-nodes"]
		if !set {
			allowed = "8"
		}
		f := report.NewFinding(report.TooManyNUMANodes, n.startConfidence(), n.subject(),
			fmt.Sprintf("The kubelet %s: the machine has %d NUMA nodes, and the Topology Manager's policy %s takes %s.", n.startVerb(), count, fault.value, allowed),
			n.numaNodesEvidence(topo),
			n.configEvidence("topologyManagerPolicy", fault.value, "the kubelet's words: "+fault.message))
		limit := n.configEvidence("topologyManagerPolicyOptions.max-allowable-numa-nodes", allowed, "")
		if !set {
			limit.Value, limit.Means = "not set", "8 by default"
		}
		f.Because = append(f.Because, limit)
		f.Because = append(f.Because, n.logEvidence(fault.message)...)
		f.Because = append(f.Because, n.readyEvidence()...)
		f.Arithmetic = fmt.Sprintf("%d > %s", count, allowed)
		f.Remedies = []report.Remedy{
			{Summary: "Allow so many NUMA nodes.", Patch: fmt.Sprintf("topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: \"%d\"", count),
				Effect:  "The kubelet starts.",
				Caution: fmt.Sprintf("Each admission weighs every set of NUMA nodes, 2^%d of them: it slows down with every further node.", count)},
			{Summary: "Or let the firmware show fewer NUMA nodes (sub-NUMA clustering, nodes per socket), or set topologyManagerPolicy to none.", Effect: "With none nothing is aligned."},
		}
		out = append(out, f)
	}
	return out
}

// numaNodesEvidence names the machine's NUMA nodes.
func (n *nodeCase) numaNodesEvidence(topo *topology.Topology) report.Evidence {
	var ids []int
	for _, node := range topo.NUMANodes {
		ids = append(ids, node.ID)
	}
	source := n.source("sys/devices/system/node")
	if topo.Source == topology.Lscpu {
		source = "node:lscpu -p"
	}
	return report.Evidence{Source: source, Field: "NUMA nodes", Value: idList(ids), Means: plural(len(ids), "node")}
}
