package shrink

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/drain"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// neither: whoever could remove the node was asked for, and nothing ties it to
// Karpenter, nor surely to the Cluster Autoscaler.
func (n *nodeCase) neither() bool {
	if !n.others() {
		return false
	}
	if a := n.autoscaled(); a != nil && a.belongs != report.Possible {
		return false
	}
	_, deployments := n.snap.Deployments()
	return n.claimsErr == nil || n.poolsErr == nil || n.unserved() || deployments == nil || n.autoscaler().runs()
}

// unserved: the API server was asked and serves no NodePools.
func (c *Cluster) unserved() bool {
	return errors.Is(c.poolsErr, fs.ErrNotExist) && c.snap.Partial("cluster/nodepools.karpenter.sh.json") != nil
}

// ownPodsErr says why the node's pods are not all known; those of other nodes
// do not matter.
func (n *nodeCase) ownPodsErr() error {
	if _, err := n.snap.Pods(); err != nil {
		return err
	}
	return n.snap.Partial("nodes/" + n.node.Name() + "/pods.json")
}

// notManaged: neither Karpenter nor the Cluster Autoscaler has the node, so that
// only a person removes it. It is never proven: an autoscaler may run outside of
// the cluster and write no status.
func notManaged(n *nodeCase) []report.Finding {
	if !n.neither() {
		return nil
	}
	confidence := report.Likely
	label := report.Evidence{Source: "api:nodes/" + n.node.Name(), Field: "metadata.labels[" + karpenter.NodePoolLabel + "]", Value: "(absent)", Means: "each node of Karpenter's has it"}
	because := []report.Evidence{label}
	if n.claimsErr == nil {
		because = append(because, report.Evidence{Source: "api:nodeclaims.karpenter.sh", Field: "items", Value: fmt.Sprint(n.claims()), Means: "NodeClaims, none of them with the node's provider ID"})
	} else if n.unserved() {
		because = append(because, report.Evidence{Source: "api:nodepools.karpenter.sh", Field: "items", Value: "NotFound", Means: "the API server serves no NodePools: Karpenter is not installed"})
	} else {
		n.gaps.Miss("cluster/nodeclaims.karpenter.sh.json", n.claimsErr, "that the node is not Karpenter's follows from its labels alone", "collect nodeclaims.karpenter.sh (list)")
	}
	s := n.autoscaler()
	removed := "is"
	by := "nothing ties it to Karpenter, and nothing shows a Cluster Autoscaler"
	switch a := n.autoscaled(); {
	case a != nil:
		confidence, removed = report.Possible, "may be"
		by = "nothing ties it to Karpenter, nor to one of the Cluster Autoscaler's node groups, though it may be in one"
		because = append(because, a.tie)
	case s.statusErr == nil:
		by = "nothing ties it to Karpenter, and it is in none of the Cluster Autoscaler's node groups"
		because = append(because, report.Evidence{Source: autoscalerStatusSource, Field: "status.nodeGroups", Value: plural(len(s.status.Groups), "node group"), Means: "other nodes fill them"})
	default:
		n.noteStatus("that no Cluster Autoscaler has the node follows from its controller's absence alone; one may run outside of the cluster")
	}
	f := report.NewFinding(report.NotManaged, confidence, n.subject(), "", because...)
	if err := n.ownPodsErr(); err != nil {
		n.gaps.Miss("cluster/pods.json", err, "what draining the node would do to its pods is not known", "list pods of all namespaces")
		f.Summary = fmt.Sprintf("%s %s removed by nobody but a person: %s.", n.title(), removed, by)
		return []report.Finding{f}
	}
	n.gaps.Miss("cluster/poddisruptionbudgets.json", n.pdbsErr, "whether a PodDisruptionBudget refuses evictions from the node is not known", "collect poddisruptionbudgets (list) of all namespaces")
	plan := n.drainPlan()
	f.Summary = fmt.Sprintf("%s %s removed by nobody but a person: %s; draining it would evict %s%s.", n.title(), removed, by, plural(len(plan.Evicted), "pod"), n.heldText(plan))
	f.Because = append(f.Because, drainEvidence(plan)...)
	f.Arithmetic = fmt.Sprintf("%s = %d evicted + %d of DaemonSets + %d static", plural(len(n.node.Pods), "pod"), len(plan.Evicted), len(plan.KeptDaemonSet), len(plan.KeptStatic))
	f.Remedies = []report.Remedy{{Summary: "Empty the node by hand.", Command: plan.Command(shellWord(n.node.Name())), Effect: n.drainEffect(plan), Caution: drainLosses(plan)}}
	return []report.Finding{f}
}

// claims is how many NodeClaims there are.
func (c *Cluster) claims() int {
	total := len(c.unlaunched)
	for _, n := range c.karpenter.Nodes {
		if n.NodeClaim != nil {
			total++
		}
	}
	return total
}

// heldText counts what is in the way of a drain.
func (n *nodeCase) heldText(p drain.Plan) string {
	var parts []string
	if len(p.Held) > 0 {
		parts = append(parts, fmt.Sprintf("%d refused by PodDisruptionBudgets", len(p.Held)))
	}
	if len(p.Lost) > 0 {
		parts = append(parts, fmt.Sprintf("%d that nobody makes again", len(p.Lost)))
	}
	if len(p.Emptied) > 0 {
		parts = append(parts, fmt.Sprintf("%d with an emptyDir", len(p.Emptied)))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", of them " + join(parts)
}

// drainEvidence is what of each pod decides.
func drainEvidence(p drain.Plan) []report.Evidence {
	var out []report.Evidence
	for i, pod := range p.Lost {
		if i < mostNamed {
			out = append(out, podField(pod, "metadata.ownerReferences", controllerText(pod), "nobody makes it again: kubectl drain wants "+drain.Force))
		}
	}
	for i, pod := range p.Emptied {
		if i < mostNamed {
			out = append(out, podField(pod, "spec.volumes", "emptyDir "+some(cutAll(drain.EmptyDirs(pod))), "lost with the pod: kubectl drain wants "+drain.DeleteEmptyDirData))
		}
	}
	for i, h := range p.Held {
		if i < mostNamed {
			out = append(out, podField(h.Pod, "metadata.labels", cut(labelText(h.Pod.Labels), 200), "selected by "+some(pdbNames(h.PDBs))+", because of which the eviction API refuses it"))
		}
	}
	for i, pod := range p.KeptDaemonSet {
		if i < 1 {
			out = append(out, podField(pod, "metadata.ownerReferences", controllerText(pod), fmt.Sprintf("%s of DaemonSets on the node: kubectl drain wants %s", plural(len(p.KeptDaemonSet), "pod"), drain.IgnoreDaemonSets)))
		}
	}
	return out
}

func controllerText(pod *corev1.Pod) string {
	if owner := controllerOf(pod); owner != "" {
		return owner
	}
	return "(no controller)"
}

func labelText(labels map[string]string) string {
	if key, value, ok := telling(labels); ok {
		return key + "=" + value
	}
	return "(none)"
}

func cutAll(texts []string) []string {
	for i := range texts {
		texts[i] = cut(texts[i], 70)
	}
	return texts
}

func pdbNames(pdbs []*policyv1.PodDisruptionBudget) []string {
	var out []string
	for _, pdb := range pdbs {
		out = append(out, pdb.Namespace+"/"+pdb.Name)
	}
	return out
}

func namesOf(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// drainEffect says what the command does with the pods that are there.
func (n *nodeCase) drainEffect(p drain.Plan) string {
	text := fmt.Sprintf("evicts %s", plural(len(p.Evicted), "pod"))
	if len(p.Evicted) > 0 {
		text += ": " + some(namesOf(p.Evicted))
	}
	if kept := append(append([]*corev1.Pod{}, p.KeptDaemonSet...), p.KeptStatic...); len(kept) > 0 {
		text += fmt.Sprintf("; leaves %d of DaemonSets and %d static on the node: %s", len(p.KeptDaemonSet), len(p.KeptStatic), some(namesOf(kept)))
	}
	var waits, refused []string
	for _, h := range p.Held {
		name := h.Pod.Namespace + "/" + h.Pod.Name + " (" + some(pdbNames(h.PDBs)) + ")"
		if h.Several() {
			refused = append(refused, name)
		} else {
			waits = append(waits, name)
		}
	}
	if len(waits) > 0 {
		text += fmt.Sprintf("; waits, until its --timeout, for %s whose budget allows no eviction: %s", plural(len(waits), "pod"), some(waits))
	}
	if len(refused) > 0 {
		text += fmt.Sprintf("; fails on %s of several budgets: %s", plural(len(refused), "pod"), some(refused))
	}
	for _, queue := range n.oneByOne(p) {
		text += "; " + queue
	}
	if n.pdbsErr != nil {
		text += "; what PodDisruptionBudgets refuse is not known"
	}
	return text
}

// oneByOne are the budgets that allow some of the node's pods and not all at once.
func (n *nodeCase) oneByOne(p drain.Plan) []string {
	if n.pdbsErr != nil {
		return nil
	}
	count := map[*policyv1.PodDisruptionBudget]int{}
	for _, pod := range p.Evicted {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		if pdbs := n.karpenter.PDBs.Matching(pod); len(pdbs) == 1 {
			count[pdbs[0]]++
		}
	}
	var out []string
	for i := range n.pdbs {
		pdb := &n.pdbs[i]
		if allowed := int(pdb.Status.DisruptionsAllowed); allowed > 0 && count[pdb] > allowed && len(out) < mostNamed {
			out = append(out, fmt.Sprintf("budget %s/%s allows %d of the %d pods on the node that it selects, the others wait for successors", pdb.Namespace, pdb.Name, allowed, count[pdb]))
		}
	}
	return out
}

// drainLosses says what each flag of the command gives up.
func drainLosses(p drain.Plan) string {
	var out []string
	for _, flag := range p.Flags {
		switch flag {
		case drain.IgnoreDaemonSets:
			out = append(out, fmt.Sprintf("%s loses nothing: %s of DaemonSets stay until the machine goes", flag, plural(len(p.KeptDaemonSet), "pod")))
		case drain.DeleteEmptyDirData:
			var texts []string
			for _, pod := range p.Emptied {
				texts = append(texts, pod.Namespace+"/"+pod.Name+" ("+some(cutAll(drain.EmptyDirs(pod)))+")")
			}
			out = append(out, fmt.Sprintf("%s loses the emptyDirs of %s: %s", flag, plural(len(p.Emptied), "pod"), some(texts)))
		case drain.Force:
			out = append(out, fmt.Sprintf("%s loses %s that nobody makes again: %s", flag, plural(len(p.Lost), "pod"), some(namesOf(p.Lost))))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, ". ") + "."
}
