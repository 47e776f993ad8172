package diagnose

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeWouldHang speaks of a kubelet whose start does not come to an end: the
// choice of the reserved CPUs by distribute-cpus-across-numa.
func nodeWouldHang(n *nodeCase) []report.Finding {
	var out []report.Finding
	for _, fault := range n.startFaults() {
		if fault.code != report.KubeletWouldHang {
			continue
		}
		f := report.NewFinding(report.KubeletWouldHang, n.startConfidence(), n.subject(),
			"The kubelet hangs at its start: distributing the reserved CPUs over the NUMA nodes never ends.",
			n.configEvidence("cpuManagerPolicyOptions", fault.value, "the remainder is handed out in whole groups, and no NUMA node has one left"))
		field, value := cpuReservationField(&n.config)
		f.Because = append(f.Because, n.configEvidence(field, value, ""))
		f.Remedies = []report.Remedy{{Summary: "Name the reserved CPUs in reservedSystemCPUs, or take distribute-cpus-across-numa out.", Effect: fmt.Sprintf("The kubelet of 1.%d then has nothing to distribute at its start.", n.rules.Minor)}}
		out = append(out, f)
	}
	if len(out) == 0 {
		out = n.readmissionHangs()
	}
	return out
}

// readmissionHangs speaks of a pod whose admission at the kubelet's next start
// hangs, or ends the kubelet.
func (n *nodeCase) readmissionHangs() []report.Finding {
	_, refused, crash, err := n.restart()
	if err != nil || crash == nil {
		return nil
	}
	return []report.Finding{n.crashFinding(refused[len(refused)-1].pod, crash)}
}

func (n *nodeCase) crashFinding(p *corev1.Pod, crash error) report.Finding {
	confidence := n.startConfidence()
	what := "would not come to an end, and no later pod of the node would be admitted"
	var panics *hint.Crash
	if errors.As(crash, &panics) {
		what = fmt.Sprintf("would crash (%s), and again at each start while the pod is there", panics.Panic)
	}
	f := report.NewFinding(report.KubeletWouldHang, confidence, n.subject(),
		fmt.Sprintf("At its next start the kubelet admits pod %s/%s again, and %s.", p.Namespace, p.Name, what),
		report.Evidence{Source: "api:pods/" + p.Namespace + "/" + p.Name, Field: "spec.containers[].resources.requests", Value: requestsText(p), Means: "what was replayed"},
		n.configEvidence("topologyManagerPolicyOptions", valueOr(options(n.config.TopologyManagerPolicyOptions), "none"), ""),
		n.configEvidence("cpuManagerPolicyOptions", valueOr(options(n.config.CPUManagerPolicyOptions), "none"), ""))
	if topo, err := n.topo(); err == nil {
		f.Because = append(f.Because, n.numaNodesEvidence(topo))
		if last := topo.NUMANodes[max(len(topo.NUMANodes)-1, 0):]; panics != nil && len(last) == 1 && last[0].ID >= len(topo.NUMANodes) && n.config.TopologyManagerPolicyOptions["prefer-closest-numa-nodes"] == "true" {
			f.Because = append(f.Because, n.configEvidence("topologyManagerPolicyOptions.prefer-closest-numa-nodes", "true",
				fmt.Sprintf("looks distances up by the NUMA node's id, and the kernel lists %d of them: the ids have holes", len(topo.NUMANodes))))
		}
	}
	f.Remedies = []report.Remedy{{Summary: "Move the pod away before the kubelet restarts, or take the option out that leads there."}}
	return f
}
