package shrink

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caCase is a node that the Cluster Autoscaler may remove.
type caCase struct {
	*nodeCase
	*autoscalerState
	// belongs says how sure it is that the node is in a node group, tie by what.
	belongs report.Confidence
	tie     report.Evidence
	// group is the node's; nil where it is not known, or one of several.
	group *autoscaler.Group
	// held are the pods that hold the node, with every rule that does. It stays
	// empty where the pods are not known.
	held []heldPod
}

type heldPod struct {
	pod      *corev1.Pod
	blockers []autoscaler.Blocker
}

// ofAutoscaler makes a rule about nodes of the Cluster Autoscaler one about nodes.
func ofAutoscaler(find func(*caCase) []report.Finding) func(*nodeCase) []report.Finding {
	return func(n *nodeCase) []report.Finding {
		if a := n.autoscaled(); a != nil && !a.goes() {
			return find(a)
		}
		return nil
	}
}

// goes: the Cluster Autoscaler is removing the node, so that nothing keeps it
// from choosing it any more.
func (a *caCase) goes() bool {
	_, _, ok := autoscaler.TaintOf(a.node.Node, autoscaler.ToBeDeletedTaint)
	return ok
}

// unregisteredTaint is on a node of Karpenter's before it has its labels.
const unregisteredTaint = "karpenter.sh/unregistered"

// others: a node that is not Karpenter's, as far as the objects tell.
func (n *nodeCase) others() bool {
	if n.node.Node == nil || n.node.Managed() {
		return false
	}
	if _, ok := n.node.NodePool(); ok {
		return false
	}
	return !slices.ContainsFunc(n.node.Node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == unregisteredTaint })
}

// autoscaled is the node as the Cluster Autoscaler sees it; nil where nothing
// ties it to one.
func (n *nodeCase) autoscaled() *caCase {
	if !n.autoscaledRead {
		n.autoscaledRead = true
		n.autoscaledCase = n.readAutoscaled()
	}
	return n.autoscaledCase
}

func (n *nodeCase) readAutoscaled() *caCase {
	if !n.others() {
		return nil
	}
	a := &caCase{nodeCase: n, autoscalerState: n.autoscaler()}
	if !a.belong() {
		return nil
	}
	n.noteAutoscaler()
	n.gaps.Miss("cluster/pods.json", n.ownPodsErr(), "which other pods hold the node is not known", "collect pods (list) of all namespaces")
	n.gaps.Miss("cluster/poddisruptionbudgets.json", n.pdbsErr, "whether a PodDisruptionBudget holds the node, or frees it of a pod of kube-system, is not known", "collect poddisruptionbudgets (list) of all namespaces")
	n.gaps.Miss("cluster/events.json", n.eventsErr, "whether the Cluster Autoscaler pauses after it added or failed to remove a node is not known", "collect events (list) of all namespaces")
	if a.belongs != report.Proven {
		n.gaps.Lack("which node group a node is in", "no API object names it; only what the cloud provider wrote into the node can", "that the Cluster Autoscaler may remove it is "+string(a.belongs)+", and so is what follows from it", "compare with the node groups that the Cluster Autoscaler is given")
	}
	objects := a.objects()
	for _, pod := range n.node.Pods {
		if blockers := autoscaler.Holds(pod, a.settings, objects, n.at); len(blockers) > 0 {
			a.held = append(a.held, heldPod{pod, blockers})
		}
	}
	return a
}

// belong finds what ties the node to a node group, and how surely.
func (a *caCase) belong() bool {
	node := a.node.Node
	groups := a.status.Groups
	tie, tied := autoscaler.TieOf(node, groups)
	if tied && len(tie.Groups) == 1 {
		a.group = &groups[tie.Groups[0]]
	}
	for _, key := range []string{autoscaler.ToBeDeletedTaint, autoscaler.DeletionCandidateTaint} {
		if taint, _, ok := autoscaler.TaintOf(node, key); ok {
			a.belongs, a.tie = report.Proven, a.field("spec.taints", cut(taint.ToString(), 200), "only the Cluster Autoscaler sets this taint, on nodes of its groups")
			return true
		}
	}
	if e, ok := a.said(autoscalerEvent); ok {
		a.belongs, a.tie = report.Proven, a.eventEvidence(e, "the Cluster Autoscaler speaks of the node")
		return true
	}
	if tied {
		means := "names node group " + groups[tie.Groups[0]].Name
		if n := len(tie.Groups); n > 1 {
			means = fmt.Sprintf("names %d node groups, %s the first", n, groups[tie.Groups[0]].Name)
		}
		a.belongs, a.tie = report.Likely, a.field(tie.Field, cut(tie.Value, 200), cut(means, 300))
		if tie.Exact {
			a.belongs = report.Proven
		}
		return true
	}
	return a.belongByCount()
}

// belongByCount tells by the numbers of the status, or else by that there is an
// autoscaler at all.
func (a *caCase) belongByCount() bool {
	if !a.runs() {
		return false
	}
	a.belongs, a.tie = report.Possible, a.shown()
	if a.statusErr != nil {
		// Without a status there is only that some nodes are its.
		if !a.controlPlane() {
			a.belongs = report.Likely
		}
		return true
	}
	if len(a.status.Groups) == 0 {
		return false
	}
	var inGroups int64
	full := a.perGroup != nil
	for i, g := range a.status.Groups {
		inGroups += max(0, min(g.Health.Total, 1<<32))
		full = full && a.perGroup[i] >= g.Health.Total
	}
	if full {
		return false // other nodes fill every group
	}
	if len(a.status.Groups) == 1 {
		a.group = &a.status.Groups[0]
	}
	total := a.status.Health.Total
	counts := report.Evidence{Source: autoscalerStatusSource, Field: "status.clusterWide.health.nodeCounts.registered.total", Value: fmt.Sprint(total),
		Means: fmt.Sprintf("%d of them in its %s", inGroups, plural(len(a.status.Groups), "node group"))}
	if a.nodesErr == nil && total > 0 && inGroups == total && total == int64(len(a.karpenter.Nodes)) {
		a.belongs, a.tie = report.Likely, counts
		return true
	}
	a.tie = counts
	return true
}

// controlPlane: the node is one of those that hardly ever are in a node group.
func (n *nodeCase) controlPlane() bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, ok := n.node.Node.Labels[label]; ok {
			return true
		}
	}
	return false
}

// objects are those that the autoscaler's rules look up, as far as they are known.
func (a *caCase) objects() autoscaler.Objects {
	var o autoscaler.Objects
	if a.pdbsErr == nil {
		o.PDBs = func(p *corev1.Pod) []*policyv1.PodDisruptionBudget { return a.karpenter.PDBs.Matching(p) }
	}
	if sets, err := a.snap.ReplicaSets(); err == nil && a.snap.Partial("cluster/replicasets.json") == nil {
		o.HasReplicaSet = has(sets, func(s *appsv1.ReplicaSet) (string, string) { return s.Namespace, s.Name })
	}
	if sets, err := a.snap.DaemonSets(); err == nil && a.snap.Partial("cluster/daemonsets.json") == nil {
		o.HasDaemonSet = has(sets, func(s *appsv1.DaemonSet) (string, string) { return s.Namespace, s.Name })
	}
	return o
}

// has looks up objects by namespace and name.
func has[T any](items []T, key func(*T) (namespace, name string)) func(namespace, name string) bool {
	there := make(map[[2]string]bool, len(items))
	for i := range items {
		namespace, name := key(&items[i])
		there[[2]string{namespace, name}] = true
	}
	return func(namespace, name string) bool { return there[[2]string{namespace, name}] }
}

// heldBy are the pods that a rule holds, each with what it says.
func (a *caCase) heldBy(is func(autoscaler.Blocker) bool) []heldPod {
	var out []heldPod
	for _, h := range a.held {
		for _, b := range h.blockers {
			if is(b) {
				out = append(out, heldPod{h.pod, []autoscaler.Blocker{b}})
				break
			}
		}
	}
	return out
}

// podsFinding is one about the pods that hold the node by one rule.
func (a *caCase) podsFinding(code report.Code, confidence report.Confidence, summary string, pods []heldPod, evidence func(heldPod) report.Evidence, remedy func(heldPod) []report.Remedy) report.Finding {
	f := report.NewFinding(code, weaker(confidence, a.belongs), a.subject(), summary)
	for i, h := range pods {
		if i < mostPods {
			f.Because = append(f.Because, evidence(h))
		}
		if i < mostNamed {
			f.Remedies = append(f.Remedies, remedy(h)...)
		}
	}
	f.Because = append(f.Because, a.tie)
	return f
}

func podNames(pods []heldPod) []string {
	var out []string
	for _, h := range pods {
		out = append(out, h.pod.Namespace+"/"+h.pod.Name)
	}
	return out
}

// kept is the subject with the confidence that it is the autoscaler's at all.
func (a *caCase) kept() string {
	if a.belongs == report.Possible {
		return a.title() + ", if it is in one of the Cluster Autoscaler's node groups,"
	}
	return a.title()
}

// after is what holds the node once a pod has been changed, by the same rules.
func (a *caCase) after(pod *corev1.Pod, edit func(*corev1.Pod)) string {
	changed := pod.DeepCopy()
	edit(changed)
	return a.left(pod, autoscaler.Holds(changed, a.settings, a.objects(), a.at))
}

// left is what still holds the node when only these rules hold a pod.
func (a *caCase) left(pod *corev1.Pod, blockers []autoscaler.Blocker) string {
	text := "the pod then holds the node no longer"
	if len(blockers) > 0 {
		var reasons []string
		for _, b := range blockers {
			reasons = append(reasons, string(b.Reason))
		}
		text = "the pod still holds the node by " + join(reasons)
	}
	others := 0
	for _, h := range a.held {
		if h.pod != pod && slices.ContainsFunc(h.blockers, func(b autoscaler.Blocker) bool { return !b.Over }) {
			others++
		}
	}
	if others == 0 {
		return text + "; no other pod does"
	}
	return text + fmt.Sprintf("; %s still does", plural(others, "other pod"))
}

// annotate sets an annotation of a pod; value "" takes it off.
func annotate(pod *corev1.Pod, key, value string) string {
	word := key + "-"
	if value != "" {
		word = "--overwrite " + key + "=" + shellWord(value)
	}
	return "kubectl -n " + shellWord(pod.Namespace) + " annotate pods " + shellWord(pod.Name) + " " + word
}

// allowEviction lets the autoscaler take a pod with its node whatever it is.
func (a *caCase) allowEviction(h heldPod, caution string) report.Remedy {
	return report.Remedy{Summary: fmt.Sprintf("Say that pod %s/%s may go, if it may.", h.pod.Namespace, h.pod.Name),
		Command: annotate(h.pod, autoscaler.SafeToEvict, "true"),
		Effect: a.after(h.pod, func(p *corev1.Pod) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[autoscaler.SafeToEvict] = "true"
		}),
		Caution: strings.TrimSpace(caution + " " + toLast(h.pod))}
}

// toLast says where an annotation of a pod has to stand for its successors.
func toLast(pod *corev1.Pod) string {
	owner := controllerOf(pod)
	if owner == "" {
		return ""
	}
	return "The annotation goes with the pod; for its successors it belongs into the pod template that " + cut(owner, 120) + " has it from."
}
