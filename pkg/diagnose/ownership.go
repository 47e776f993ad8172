package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const cpuStatePath = kubeletDir + "/cpu_manager_state"
const memoryStatePath = kubeletDir + "/memory_manager_state"

// cpuCheckpoint is the CPU Manager's state where it can be trusted.
func (n *nodeCase) cpuCheckpoint() (checkpoint.CPUState, bool) {
	state, err := n.cpuState()
	return state, err == nil
}

// ownedCPUs is the set that the checkpoint books for a container.
func (n *nodeCase) ownedCPUs(uid, container string) (cpuset.Set, bool) {
	state, ok := n.cpuCheckpoint()
	if !ok {
		return cpuset.Set{}, false
	}
	set, ok := state.Entries[uid][container]
	return set, ok
}

// ownershipEvidence quotes the checkpoint's entry of a container.
func (c *podCase) ownershipEvidence(container string) []report.Evidence {
	set, ok := c.ownedCPUs(c.uid, container)
	if !ok {
		return nil
	}
	return []report.Evidence{c.fileEvidence(cpuStatePath, "entries["+c.uid+"]["+container+"]", set.String(), "the CPU Manager's checkpoint")}
}

// memoryBlocks are what the Memory Manager books for a container.
func (n *nodeCase) memoryBlocks(uid, container string) []report.MemoryBlock {
	state, err := n.memState()
	if err != nil {
		return nil
	}
	var out []report.MemoryBlock
	for _, b := range checkpoint.SortedBlocks(state.Entries[uid][container]) {
		out = append(out, report.MemoryBlock{Type: string(b.Type), NUMANodes: b.NUMAAffinity, Size: b.Size})
	}
	return out
}

// idList writes ids as the kernel does.
func idList(ids []int) string {
	var set cpuset.Set
	for _, id := range ids {
		if !set.Add(id) {
			return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
		}
	}
	return set.String()
}

// liveCPUs is the cpuset of a container's cgroup: cpuset.cpus, or where that
// was not read or is empty (inherit) the effective one.
func (c *podCase) liveCPUs(name string) (set string, file string, ok bool) {
	g, stands := c.containerGroup(name)
	if !stands {
		return "", "", false
	}
	if own, err := g.CPUSetCPUs(); err == nil && !own.IsEmpty() {
		return own.String(), g.File("cpuset.cpus"), true
	}
	effective, err := g.CPUSetCPUsEffective()
	if err == nil && effective.IsEmpty() {
		// The kernel never leaves a group without a CPU: the file was cut.
		c.gaps.Lack(c.filePath(g.File("cpuset.cpus.effective")), "the file is empty", "which CPUs container "+name+" really runs on", "")
		return "", "", false
	}
	if err != nil {
		c.gaps.Miss(c.filePath(g.File("cpuset.cpus.effective")), err, "which CPUs container "+name+" really runs on", "")
		return "", "", false
	}
	return effective.String(), g.File("cpuset.cpus.effective"), true
}

// numaNodesOf are the NUMA nodes of a CPU set, where the topology is known and
// has all its CPUs.
func (n *nodeCase) numaNodesOf(set cpuset.Set) []int {
	topo, err := n.topo()
	if err != nil || !set.IsSubsetOf(topo.AllCPUs()) {
		return nil
	}
	var out []int
	for _, node := range topo.NUMANodes {
		if !node.CPUs.Intersection(set).IsEmpty() {
			out = append(out, node.ID)
		}
	}
	return out
}

// finished says whether an init container is done and will not come back.
func (k container) finished() bool {
	return k.init && !k.sidecar && k.status != nil && k.status.State.Terminated != nil && k.status.State.Terminated.ExitCode == 0
}

// active says whether the pod holds resources in the kubelet's view.
func active(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}
