package diagnose

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// stateFindings speak of checkpoints that can be read and whose content the
// kubelet refuses at its start: other CPUs or memory than the machine's, another
// reservation, sets that overlap.
func (n *nodeCase) stateFindings() []report.Finding {
	var out []report.Finding
	for _, fault := range n.startFaults() {
		switch {
		case fault.code != report.KubeletCheckpointInvalid:
		case fault.stage == node.CPUManagerStart:
			out = append(out, n.cpuStateFinding(fault))
		case fault.stage == node.MemoryManagerStart:
			out = append(out, n.memoryStateFinding(fault))
		}
	}
	return out
}

func (n *nodeCase) cpuStateFinding(fault startFault) report.Finding {
	state, _ := n.cpuState()
	all := state.AllCPUs()
	f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, n.subject(),
		fmt.Sprintf("The CPU manager's checkpoint /%s does not fit the machine and its configuration, and the kubelet %s: %s.", cpuStatePath, n.startVerb(), fault.message),
		n.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), "the shared pool; the kubelet's words: "+fault.message+"; invalid state, please drain node and remove policy state file"))
	missing := cpuset.Set{}
	reserved, reservedKnown := n.reservedCPUs()
	if topo, err := n.topo(); err == nil {
		machine := topo.AllCPUs()
		f.Because = append(f.Because, report.Evidence{Source: n.cpusSource(), Field: "CPUs", Value: machine.String(), Means: "what the machine has online"})
		missing = machine.Difference(all)
		if n.strictReservation() {
			missing = missing.Difference(reserved)
		}
		var parts []string
		if !missing.IsEmpty() {
			parts = append(parts, fmt.Sprintf("%s − %s = %s: on the machine, not in the checkpoint", machine, all, missing))
		}
		if unknown := all.Difference(machine); !unknown.IsEmpty() {
			parts = append(parts, fmt.Sprintf("%s − %s = %s: in the checkpoint, not on the machine", all, machine, unknown))
		}
		f.Arithmetic = join(parts)
	}
	for _, a := range state.Assignments() {
		if shared := a.CPUs.Intersection(state.Default); !shared.IsEmpty() {
			f.Because = append(f.Because, n.fileEvidence(cpuStatePath, "entries["+a.PodUID+"]["+a.Container+"]", a.CPUs.String(), shared.String()+" are in the shared pool as well"))
		}
	}
	if reservedKnown {
		f.Because = append(f.Because, n.configEvidence("reservedSystemCPUs", reserved.String(), "the reserved CPUs"))
	}
	f.Because = append(f.Because, n.logEvidence(fault.message)...)
	f.Because = append(f.Because, n.readyEvidence()...)
	f.Remedies = drainAndDelete("/" + cpuStatePath)
	if n.strictReservation() && missing.IsEmpty() && state.Default.IsEmpty() && len(state.Assignments()) > 0 {
		n.explainFullPool(&f, state)
	}
	n.weakenState(&f, fault, !missing.IsEmpty() && all.Difference(n.machineCPUs()).IsEmpty())
	return f
}

// weakenState lowers the confidence where the file may be right all the same:
// between two writes of one operation CPUs are in neither set.
func (n *nodeCase) weakenState(f *report.Finding, fault startFault, between bool) {
	_, up, known := n.ready()
	switch {
	case fault.luck:
		f.Confidence = report.Possible
		f.Summary += " Whether it does hangs on the random order of a map, and changes from one start to the next."
	case between && known && up:
		f.Confidence = report.Likely
		n.gaps.Lack("nodes/"+n.name+"/root/"+cpuStatePath, "read once, while the kubelet runs", "whether the file was read between two of its writes", "read it again")
	case !n.rulesExact:
		f.Confidence = report.Likely
	}
}

func (n *nodeCase) machineCPUs() cpuset.Set {
	topo, err := n.topo()
	if err != nil {
		return cpuset.Set{}
	}
	return topo.AllCPUs()
}

func (n *nodeCase) cpusSource() string {
	if topo, err := n.topo(); err == nil && topo.Source == "lscpu" {
		return "node:lscpu -p"
	}
	return n.source("sys/devices/system/cpu/online")
}

func (n *nodeCase) memoryStateFinding(fault startFault) report.Finding {
	f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, n.subject(),
		fmt.Sprintf("The memory manager's checkpoint /%s does not fit the machine and its configuration, and the kubelet %s: %s.", memoryStatePath, n.startVerb(), fault.message))
	f.Because = n.machineStateDiffers()
	if len(f.Because) == 0 {
		state, _ := n.memState()
		f.Because = []report.Evidence{n.fileEvidence(memoryStatePath, "policyName", state.PolicyName, "the blocks of the entries do not add up to what machineState has booked")}
	}
	f.Because[0].Means += "; the kubelet's words: " + fault.message
	f.Because = append(f.Because, n.logEvidence(fault.message)...)
	f.Because = append(f.Because, n.readyEvidence()...)
	f.Remedies = drainAndDelete("/" + memoryStatePath)
	n.weakenState(&f, fault, false)
	return f
}

// machineStateDiffers compares the machine in the Memory Manager's checkpoint
// with the real one and its configuration.
func (n *nodeCase) machineStateDiffers() []report.Evidence {
	state, err := n.memState()
	topo, topoErr := n.topo()
	if err != nil || topoErr != nil {
		return nil
	}
	topo = n.withRecordedMemory(topo)
	var out []report.Evidence
	for _, id := range state.Nodes() {
		field := fmt.Sprintf("machineState[%d]", id)
		node, ok := topo.NUMANode(id)
		if !ok {
			out = append(out, n.fileEvidence(memoryStatePath, field, "present", "the machine has no such NUMA node"))
			continue
		}
		tables := state.MachineState[id].MemoryMap
		totals := map[corev1.ResourceName]uint64{corev1.ResourceMemory: node.MemTotal}
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			if size, huge := hugePageSize(name); huge {
				for _, pages := range node.HugePages {
					if pages.SizeKiB*1024 == size {
						totals[name] = pages.Count * size
					}
				}
			}
			t := tables[name]
			if total, known := totals[name]; !known || total != t.Total {
				means := "the machine has none of it there"
				if known {
					means = fmt.Sprintf("the machine has %d bytes of it there", total)
				}
				out = append(out, n.fileEvidence(memoryStatePath, field+"."+string(name)+".total", fmt.Sprint(t.Total), means))
			}
			if kept := n.reservedMemoryOf(id, name); kept != t.SystemReserved {
				out = append(out, n.fileEvidence(memoryStatePath, field+"."+string(name)+".systemReserved", fmt.Sprint(t.SystemReserved), fmt.Sprintf("reservedMemory now says %d bytes", kept)))
			}
		}
	}
	for _, node := range topo.NUMANodes {
		if _, ok := state.MachineState[node.ID]; !ok {
			out = append(out, n.fileEvidence(memoryStatePath, fmt.Sprintf("machineState[%d]", node.ID), "absent", "the machine has this NUMA node"))
		}
	}
	return out
}

// reservedMemoryOf is what reservedMemory keeps back on a NUMA node, in bytes.
func (n *nodeCase) reservedMemoryOf(id int, name corev1.ResourceName) uint64 {
	for _, r := range n.config.ReservedMemory {
		if q, ok := r.Limits[name]; ok && r.NUMANode == id {
			return uint64(q.Value())
		}
	}
	return 0
}
