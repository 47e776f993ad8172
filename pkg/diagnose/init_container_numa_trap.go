package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// initTrap: the CPUs of an init container have to be used again, so that only
// sets with their NUMA nodes remain for the containers after it; without the
// init container the pod would get in (found by running it).
func (n *nodeCase) initTrap(a *attempt, container string, subject report.Subject) []report.Finding {
	_, reusable := a.freeCPUs()
	if container == "" || reusable.IsEmpty() || a.container(container).CPUs == 0 {
		return nil
	}
	p := a.pod.DeepCopy()
	var kept []corev1.Container
	var dropped []string
	for _, c := range p.Spec.InitContainers {
		k := a.container(c.Name)
		if k.Kind == alloc.Init && k.CPUs > 0 {
			dropped = append(dropped, c.Name)
			continue
		}
		kept = append(kept, c)
	}
	p.Spec.InitContainers = kept
	if !a.from.admits(node.Pod{Pod: p, Devices: a.pod.Devices}) {
		return nil
	}
	var nodes []int
	for _, m := range a.from.config.Topology.NUMANodes {
		if !m.CPUs.Intersection(reusable).IsEmpty() {
			nodes = append(nodes, m.ID)
		}
	}
	free, _ := a.freeCPUs()
	here := 0
	for _, id := range nodes {
		m, _ := a.from.config.Topology.NUMANode(id)
		here += m.CPUs.Intersection(free.Union(reusable)).Size()
	}
	need := a.container(container).CPUs
	f := n.refusal(a, report.InitContainerNUMATrap, subject,
		fmt.Sprintf("Init container %s got CPUs %s on NUMA node %s, which container %s has to use again; so only sets of NUMA nodes with %s remain for it, and there %d of %d CPUs are to be had.",
			join(dropped), reusable, ids(nodes), container, ids(nodes), here, need),
		a.requestEvidence(container, corev1.ResourceCPU, fmt.Sprint(need)),
		a.requestEvidence(dropped[0], corev1.ResourceCPU, fmt.Sprint(a.container(dropped[0]).CPUs)),
		n.configEvidence("topologyManagerScope", a.from.config.Kubelet.TopologyManagerScope, "container by container: the init container's place is chosen before it is known what follows"))
	f.Arithmetic = fmt.Sprintf("NUMA node %s: %d free with those to be used again < %d", ids(nodes), here, need)
	if len(dropped) == 1 {
		f.Remedies = a.requestRemedy(dropped[0], corev1.ResourceCPU, cpuQuantity(need))
		f.Remedies = append(f.Remedies, a.requestRemedy(dropped[0], corev1.ResourceCPU, milliQuantity(int64(a.container(dropped[0]).CPUs)*1000-1))...)
	}
	f.Remedies = append(f.Remedies, a.policyRemedies()...)
	return []report.Finding{f}
}
