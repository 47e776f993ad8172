package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// startChecked says that the kubelet starts with its configuration on this
// machine, where all that decides about it is known and nothing is at fault; nil
// otherwise. sums are those of reservedMemory, which the Static policy compares.
func (n *nodeCase) startChecked() (said []string, because []report.Evidence, sums string) {
	if n.name == "" || n.configErr != nil || !n.rulesExact {
		return nil, nil, ""
	}
	capacity := n.capacity()
	reservation, err := n.config.Reservation(capacity)
	if _, partial := n.managerConfig(); err != nil || partial != nil || len(n.startFaults()) > 0 {
		return nil, nil, ""
	}
	because = []report.Evidence{
		n.configEvidence("cpuManagerPolicy", n.config.CPUManagerPolicy, ""),
		n.configEvidence("topologyManagerPolicy", n.config.TopologyManagerPolicy, ""),
		n.configEvidence("memoryManagerPolicy", n.config.MemoryManagerPolicy, "the managers start with it, by replay"),
	}
	if _, known := capacity[corev1.ResourceMemory]; n.config.MemoryManagerPolicy != "Static" {
		return []string{"the kubelet's configuration"}, because, ""
	} else if !known {
		return nil, nil, ""
	}
	because = append(because, n.configEvidence("reservedMemory", reservedMemoryText(n.config.ReservedMemory), "its sums are what the node keeps back"))
	var parts []string
	for _, u := range memorySums(n.config.ReservedMemory, reservation) {
		parts = append(parts, u.arithmetic())
		because = append(because, n.reservationEvidence(u)...)
	}
	return []string{"the kubelet's configuration", "the sums of reservedMemory"}, because, strings.Join(parts, "; ")
}

// checkpointChecked is what of a manager's checkpoint was checked and found
// well: all of it where its content was compared with the machine too, which a
// policy that keeps no books does not need; else its checksum, if it has one.
func (n *nodeCase) checkpointChecked(manager string, keepsBooks bool, sums []checkpoint.Checksum) string {
	c, err := n.managerConfig()
	compared := n.configErr == nil && (!keepsBooks || err == nil)
	if manager == "Memory" && keepsBooks && compared {
		compared = n.memoryKnown(c.Topology)
	}
	switch {
	case compared:
		return "the " + manager + " Manager's checkpoint"
	case verified(sums) == checksumVerified:
		return "the checksum of the " + manager + " Manager's checkpoint"
	}
	return ""
}
