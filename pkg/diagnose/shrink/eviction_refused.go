package shrink

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/drain"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// evictionRefused: on a node that is not Karpenter's the eviction API refuses
// pods by their PodDisruptionBudgets, whoever asks: the Cluster Autoscaler, or a
// person who drains the node.
func evictionRefused(n *nodeCase) []report.Finding {
	if n.pdbsErr != nil || n.autoscaled() == nil && !n.neither() {
		return nil
	}
	var out []report.Finding
	pods := map[*policyv1.PodDisruptionBudget][]string{}
	for _, h := range n.drainPlan().Held {
		name := h.Pod.Namespace + "/" + h.Pod.Name
		if !h.Several() {
			pods[h.PDBs[0]] = append(pods[h.PDBs[0]], name)
			continue
		}
		var names []string
		var because []report.Evidence
		for i, pdb := range h.PDBs {
			names = append(names, pdb.Namespace+"/"+pdb.Name)
			if i < mostNamed {
				because = append(because, pdbEvidence(pdb)...)
			}
		}
		f := report.NewFinding(report.SeveralPDBs, report.Proven, report.Subject{Kind: "Pod", Namespace: h.Pod.Namespace, Name: h.Pod.Name},
			fmt.Sprintf("%s keeps pod %s: %d PodDisruptionBudgets select it, %s, and the eviction API refuses such a pod whatever they allow.", n.title(), name, len(h.PDBs), some(names)), because...)
		f.Remedies = []report.Remedy{{Summary: "Leave the pod only one budget: narrow the selectors, or delete all but one of " + some(names) + ".",
			Command: "kubectl -n " + shellWord(h.Pod.Namespace) + " get poddisruptionbudgets", Effect: "the one that is left then decides by what it allows"}}
		if len(out) < mostPods {
			out = append(out, f)
		}
	}
	for i := range n.pdbs {
		if held := pods[&n.pdbs[i]]; len(held) > 0 {
			out = append(out, n.pdbFinding(&n.pdbs[i], held))
		}
	}
	return out
}

// drainPlan is what draining the node by hand comes to, made once.
func (n *nodeCase) drainPlan() drain.Plan {
	if n.drainRead == nil {
		var o drain.Lookup
		if n.pdbsErr == nil {
			o.PDBs = func(p *corev1.Pod) []*policyv1.PodDisruptionBudget { return n.karpenter.PDBs.Matching(p) }
		}
		if sets, err := n.snap.DaemonSets(); err == nil && n.snap.Partial("cluster/daemonsets.json") == nil {
			o.HasDaemonSet = has(sets, func(s *appsv1.DaemonSet) (string, string) { return s.Namespace, s.Name })
		}
		plan := drain.PlanOf(n.node.Pods, o)
		n.drainRead = &plan
	}
	return *n.drainRead
}
