package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const fullPCPUsOnly = "full-pcpus-only"

// reservedSplitsCore says that under full-pcpus-only the siblings of reserved
// CPUs can never be pinned, although the scheduler counts them (policy_static.go,
// enforceSMTAlignment).
func reservedSplitsCore(n *nodeCase) []report.Finding {
	topo, err := n.topo()
	reserved, known := n.reservedCPUs()
	if err != nil || !known || n.config.CPUManagerPolicy != "static" || n.config.CPUManagerPolicyOptions[fullPCPUsOnly] != "true" {
		return nil
	}
	physical := topo.WholeCores(reserved)
	lost := physical.Difference(reserved)
	if lost.IsEmpty() {
		return nil
	}
	all := topo.AllCPUs()
	allocatable, usable := all.Difference(reserved).Size(), all.Difference(physical).Size()
	f := report.NewFinding(report.ReservedSplitsCore, report.Proven, n.subject(), fmt.Sprintf(
		"The reserved %s %s %s a core: %s %s %s can never be pinned under %s, so that of the %d CPUs that are not reserved only %d can be exclusive (%s).",
		noun(reserved.Size(), "CPU"), reserved, verb(reserved.Size(), "splits", "split"), verb(reserved.Size(), "its", "their"), noun(lost.Size(), "sibling"), lost, fullPCPUsOnly, allocatable, usable, all.Difference(physical)),
		n.reservedEvidence(reserved),
		n.configEvidence("cpuManagerPolicyOptions["+fullPCPUsOnly+"]", "true", "exclusive CPUs come in whole cores"))
	for _, core := range topo.Cores {
		if part := core.CPUs.Intersection(reserved); !part.IsEmpty() && part != core.CPUs {
			source, field, value, means := n.coreEvidence(topo, core.CPUs, "threads of one core; reserved "+part.String())
			f.Because = append(f.Because, report.Evidence{Source: source, Field: field, Value: value, Means: means})
		}
	}
	if n.object != nil {
		if q, ok := n.object.Status.Allocatable[corev1.ResourceCPU]; ok {
			f.Because = append(f.Because, n.apiEvidence("status.allocatable.cpu", q.String(), "what the scheduler counts"))
		}
	}
	f.Arithmetic = fmt.Sprintf("%d CPUs − %d of the cores with a reserved CPU (%s) = %d", all.Size(), physical.Size(), physical, usable)
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Reserve whole cores: %s together%s.", physical, n.fewerCores(reserved)),
		Effect:  fmt.Sprintf("Allocatable would be %s, and all of it could be exclusive.", plural(usable, "CPU")),
		Caution: "The reservation is checked against the checkpoint at kubelet start: drain the node and delete cpu_manager_state before.",
	}}
	return []report.Finding{f}
}

// fewerCores names whole cores of as many CPUs, where the reserved ones are
// spread over more.
func (n *nodeCase) fewerCores(reserved cpuset.Set) string {
	topo, err := n.topo()
	if err != nil {
		return ""
	}
	var set cpuset.Set
	for _, core := range topo.Cores {
		if set.Size()+core.CPUs.Size() <= reserved.Size() {
			set = set.Union(core.CPUs)
		}
	}
	if set.Size() != reserved.Size() {
		return ""
	}
	return fmt.Sprintf(", or whole cores of as many CPUs, such as %s", set)
}

// reservedEvidence says where the reserved CPUs come from.
func (n *nodeCase) reservedEvidence(reserved cpuset.Set) report.Evidence {
	if !n.config.ReservedSystemCPUs.IsEmpty() {
		return n.configEvidence("reservedSystemCPUs", reserved.String(), "kept from exclusive use")
	}
	amount := ""
	if r, err := n.config.Reservation(n.capacity()); err == nil {
		cpu := r[corev1.ResourceCPU].Quantity
		amount = cpu.String()
	}
	return n.configEvidence("systemReserved + kubeReserved [cpu]", amount, fmt.Sprintf("rounded up to whole CPUs, which the kubelet picks by topology: %s", reserved))
}
