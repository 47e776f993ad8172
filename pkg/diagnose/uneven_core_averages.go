package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// unevenCoreAverages says that the kubelet's CPUs per core, an average rounded
// down, is no core's true size on this machine: a core with as many free
// threads as the average counts as free, and all its threads are taken, those
// of others too (cpu_assignment.go, kubelet 1.34 to 1.37).
func unevenCoreAverages(n *nodeCase) []report.Finding {
	topo, err := n.topo()
	if err != nil || n.configErr != nil || n.config.CPUManagerPolicy != "static" || topo.NumCores == 0 {
		return nil
	}
	average := topo.CPUsPerCore()
	sizes := map[int]cpuset.Set{}
	largest, smallest := 0, topo.NumCPUs
	for _, core := range topo.Cores {
		size := core.CPUs.Size()
		sizes[size] = sizes[size].Union(core.CPUs)
		largest, smallest = max(largest, size), min(smallest, size)
	}
	if largest == smallest && largest == average {
		return nil
	}
	f := report.NewFinding(report.UnevenCoreAverages, report.Proven, n.subject(), "")
	f.Arithmetic = fmt.Sprintf("⌊%d CPUs / %s⌋ = %d", topo.NumCPUs, plural(topo.NumCores, "core"), average)
	for size := smallest; size <= largest; size++ {
		if set, ok := sizes[size]; ok {
			source, field, value, means := n.coreEvidence(topo, set, fmt.Sprintf("CPUs of cores with %s", plural(size, "thread")))
			f.Because = append(f.Because, report.Evidence{Source: source, Field: field, Value: value, Means: means})
		}
	}
	effect := fmt.Sprintf("a core of %d threads never counts as free as a whole", largest)
	if average < largest {
		effect = fmt.Sprintf("a core of %d threads counts as free as soon as %s, and all its threads are then taken, reserved ones and those of other containers too",
			largest, map[bool]string{true: "one is", false: fmt.Sprintf("%d are", average)}[average == 1])
	}
	f.Summary = fmt.Sprintf("The cores of this machine have %d to %d threads, but the kubelet counts with their average of %d: %s.", smallest, largest, average, effect)
	if overlap, who := n.overlaps(); !overlap.IsEmpty() {
		f.Summary += fmt.Sprintf(" It has happened: %s.", who)
		f.Because = append(f.Because, n.fileEvidence(cpuStatePath, "entries", overlap.String(), who))
	}
	if set, ok := sizes[1]; ok && largest > 1 {
		if offline := topo.Kernel.Offline; offline.Known && !offline.CPUs.IsEmpty() {
			f.Because = append(f.Because, n.fileEvidence("sys/devices/system/cpu/offline", "", offline.CPUs.String(), "siblings may be among these"))
		}
		f.Remedies = []report.Remedy{{
			Summary: fmt.Sprintf("Bring offline siblings back, or turn SMT off altogether; on a machine of unlike cores keep exclusive CPUs to nodes of another kind (cores with one thread: %s).", set),
			Caution: "A set that overlaps reserved CPUs lets the next kubelet start fail.",
		}}
	}
	return []report.Finding{f}
}

// overlaps are CPUs that a container owns beside the reservation, the shared
// pool or another pod.
func (n *nodeCase) overlaps() (cpuset.Set, string) {
	state, ok := n.cpuCheckpoint()
	if !ok {
		return cpuset.Set{}, ""
	}
	reserved, _ := n.reservedCPUs()
	var all, twice cpuset.Set
	for _, containers := range state.Entries {
		var pod cpuset.Set
		for _, set := range containers {
			pod = pod.Union(set)
		}
		twice = twice.Union(pod.Intersection(all)).Union(pod.Intersection(reserved)).Union(pod.Intersection(state.Default))
		all = all.Union(pod)
	}
	return twice, fmt.Sprintf("%s %s booked for a container and for another, the pool or the reservation", noun(twice.Size(), "CPU")+" "+twice.String(), verb(twice.Size(), "is", "are"))
}
