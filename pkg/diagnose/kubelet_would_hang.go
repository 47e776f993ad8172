package diagnose

import (
	"fmt"

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
		f := newFinding(report.KubeletWouldHang, n.startConfidence(), n.subject(),
			"The kubelet hangs at its start: distributing the reserved CPUs over the NUMA nodes never ends.",
			n.configEvidence("cpuManagerPolicyOptions", fault.value, "the remainder is handed out in whole groups, and no NUMA node has one left"))
		field, value := cpuReservationField(&n.config)
		f.Because = append(f.Because, n.configEvidence(field, value, ""))
		f.Remedies = []report.Remedy{{Summary: "Name the reserved CPUs in reservedSystemCPUs, or take distribute-cpus-across-numa out.", Effect: fmt.Sprintf("The kubelet of 1.%d then has nothing to distribute at its start.", n.rules.Minor)}}
		out = append(out, f)
	}
	return out
}
