package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// kubepods is the group of all pods, if the tree was found.
func (n *nodeCase) kubepods() (cgroup.Group, bool) {
	if n.treeErr != nil || n.mode != cgroup.V2 {
		return cgroup.Group{}, false
	}
	return cgroup.Group{FS: n.fsys, Path: n.tree.Kubepods}, true
}

// nodeCPUFilesDiffer and nodeMemoryFilesDiffer compare the files of kubepods
// with what capacity less reservation makes the kubelet write.
func nodeCPUFilesDiffer(n *nodeCase) []report.Finding {
	return n.kubepodsDiffer(report.CPUFilesDifferFromSpec, "cpu.max", "cpu.weight")
}

func nodeMemoryFilesDiffer(n *nodeCase) []report.Finding {
	return n.kubepodsDiffer(report.MemoryFilesDifferFromSpec, "memory.max")
}

func (n *nodeCase) kubepodsDiffer(code report.Code, files ...string) []report.Finding {
	g, ok := n.kubepods()
	if !ok || n.object == nil || n.configErr != nil {
		return nil
	}
	var out []report.Finding
	wants := n.kubepodsWants()
	if wants == nil {
		return nil
	}
	for _, want := range withDefaults(wants, files) {
		out = append(out, n.compare(code, n.subject(), "the cgroup of all pods", g, want)...)
	}
	return out
}

// kubepodsWants is what kubepods should hold by configuration and capacity.
func (n *nodeCase) kubepodsWants() []cgroup.FileValues {
	capacity := n.object.Status.Capacity
	res := cgroup.NodeResources{
		CPUCapacity: capacity.Cpu().MilliValue(),
		EnforcePods: slices.Contains(n.config.EnforceNodeAllocatable, "pods"),
	}
	// A reservation that cannot be read leaves kubepods' values unknown.
	reserved, err := n.config.Reservation(capacity)
	if err != nil {
		n.gaps.Lack("nodes/"+n.name+"/configz.json", err.Error(), "what the limits of all pods should be", "")
		return nil
	}
	cpu := reserved[corev1.ResourceCPU]
	res.CPUReserved = cpu.Quantity.MilliValue()
	return cgroup.NodeValues(res, nil, cgroup.Desired, n.settings("")).Kubepods
}

// reservableMemory is capacity less kube- and system-reserved, in bytes: the
// limit of all pods. Eviction thresholds are not taken off it.
func (n *nodeCase) reservableMemory() int64 {
	if n.object == nil || n.configErr != nil {
		return 0
	}
	reserved, err := n.config.Reservation(n.object.Status.Capacity)
	if err != nil {
		return 0
	}
	left := n.object.Status.Capacity.Memory().Value()
	for _, term := range reserved[corev1.ResourceMemory].Terms {
		if !strings.HasPrefix(term.Field, "evictionHard") {
			left -= term.Quantity.Value()
		}
	}
	return max(left, 0)
}

// nodeReservationByWeight says how reserved CPU is kept: kubepods gets a weight
// for the allocatable CPUs and no quota, by design. It matters only against
// system.slice and only while both want more than there is.
func nodeReservationByWeight(n *nodeCase) []report.Finding {
	g, ok := n.kubepods()
	if !ok {
		return nil
	}
	weight, err := g.CPUWeight()
	if err != nil {
		n.gaps.Miss(n.filePath(g.File("cpu.weight")), err, "how the node's reserved CPU is kept", "the node pod")
		return nil
	}
	max, maxErr := g.CPUMax()
	if maxErr == nil && !max.Max || weight == 0 {
		return nil
	}
	system := cgroup.Group{FS: n.fsys, Path: "/system.slice"}
	other, otherErr := system.CPUWeight()
	means := "what all pods together weigh"
	if otherErr != nil {
		other = 100
	}
	share := float64(weight) / float64(weight+other)
	f := report.NewFinding(report.NodeReservationByWeight, report.Proven, n.subject(),
		fmt.Sprintf("Reserved CPU is kept by weight, not by a quota: all pods together weigh %d against %d of system.slice, %s to %s while both want more than there is; while the system is idle pods may use every CPU.",
			weight, other, percent(share), percent(1-share)),
		n.fileEvidence(g.File("cpu.weight"), "", fmt.Sprint(weight), means))
	if maxErr == nil {
		f.Because = append(f.Because, n.fileEvidence(g.File("cpu.max"), "", max.String(), "no quota, by design"))
	}
	if otherErr == nil {
		f.Because = append(f.Because, n.fileEvidence(system.File("cpu.weight"), "", fmt.Sprint(other), "system daemons"))
	} else {
		f.Confidence = report.Likely
		n.gaps.Miss(n.filePath(system.File("cpu.weight")), otherErr, "the share of system.slice is computed with its default weight of 100", "the node pod")
	}
	f.Arithmetic = fmt.Sprintf("%d / (%d + %d) = %s", weight, weight, other, percent(share))
	if n.object != nil && n.configErr == nil {
		for _, want := range n.kubepodsWants() {
			if v, ok := want.Accepts(fmt.Sprint(weight)); ok && want.File == "cpu.weight" && v.Arithmetic != "" {
				f.Arithmetic += "; " + v.Arithmetic
			}
		}
	}
	return []report.Finding{f}
}

// nodeHealthy says what was checked where nothing of it was wrong.
func nodeHealthy(n *nodeCase, findings []report.Finding) []report.Finding {
	for _, f := range findings {
		if f.Severity != report.Info {
			return nil
		}
	}
	var checked []string
	var because []report.Evidence
	if state, err := n.cpuState(); err == nil {
		if what := n.checkpointChecked("CPU", n.config.CPUManagerPolicy == "static", state.Checksums); what != "" {
			checked = append(checked, what)
			because = append(because, n.fileEvidence(cpuStatePath, "policyName", state.PolicyName, verified(state.Checksums)))
		}
	}
	if state, err := n.memState(); err == nil {
		if what := n.checkpointChecked("Memory", n.config.MemoryManagerPolicy == "Static", state.Checksums); what != "" {
			checked = append(checked, what)
			because = append(because, n.fileEvidence(memoryStatePath, "policyName", state.PolicyName, verified(state.Checksums)))
		}
	}
	if g, ok := n.kubepods(); ok && n.object != nil && n.configErr == nil && n.kubepodsWants() != nil {
		if l, err := g.MemoryMax(); err == nil {
			checked = append(checked, "the limits of all pods against capacity less reservation")
			because = append(because, n.fileEvidence(g.File("memory.max"), "", l.String(), "the limit of all pods"))
		}
	}
	arithmetic := ""
	if said, evidence, sums := n.startChecked(); len(said) > 0 {
		checked, because, arithmetic = append(checked, said...), append(because, evidence...), sums
	}
	if ps := n.pressures(); len(ps) > 0 {
		checked = append(checked, "the signals of eviction")
		because = append(because, n.configEvidence(ps[0].threshold.Field, ps[0].threshold.Text, ps[0].text()))
	}
	if len(checked) == 0 {
		if len(findings) > 0 {
			return nil
		}
		return []report.Finding{report.NewFinding(report.EvidenceMissing, report.Proven, n.subject(),
			"The data show the node neither healthy nor ill: "+n.unread()+".")}
	}
	f := report.NewFinding(report.NodeHealthy, report.Proven, n.subject(), fmt.Sprintf("Checked and well: %s.", join(checked)), because...)
	f.Arithmetic = arithmetic
	return []report.Finding{f}
}

// unread names what would show whether the node is well, and was not read.
func (n *nodeCase) unread() string {
	var out []string
	_, cpuErr := n.cpuState()
	_, memErr := n.memState()
	if cpuErr != nil && memErr != nil {
		out = append(out, "its checkpoints")
	}
	if n.configErr != nil {
		out = append(out, "its configuration")
	} else if _, err := n.topo(); err != nil {
		out = append(out, "the machine's topology, which its configuration has to suit")
	}
	if _, ok := n.kubepods(); !ok {
		out = append(out, "its cgroups")
	}
	if len(out) == 0 {
		return "what was read does not suffice"
	}
	return join(out) + " could not be read"
}

const checksumVerified = "checksum verified"

// verified says what a checkpoint's checksum is worth: the kubelet lets a file
// without one pass.
func verified(sums []checkpoint.Checksum) string {
	if len(sums) == 0 || sums[0].Absent0 {
		return "no checksum to verify"
	}
	return checksumVerified
}
