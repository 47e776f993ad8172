package shrink

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// pdbBlocks: a PodDisruptionBudget that allows no eviction now keeps the node
// of every pod that it selects (Karpenter 1.14, pkg/utils/pdb/pdb.go). One
// finding for each budget.
func pdbBlocks(n *nodeCase) []report.Finding {
	pods := map[types.NamespacedName][]string{}
	forgiven := false
	for _, b := range n.blocked(disruption.CheckPDB) {
		pods[b.PDBs[0]] = append(pods[b.PDBs[0]], b.Pod.String())
		forgiven = forgiven || b.Forgiven
	}
	var out []report.Finding
	for _, pdb := range n.pdbs {
		key := types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}
		if len(pods[key]) == 0 {
			continue
		}
		f := n.pdbFinding(&pdb, pods[key])
		if forgiven {
			f.Because = append(f.Because, n.claimField("spec.terminationGracePeriod", span(n.node.NodeClaim.Spec.TerminationGracePeriod.Duration), "because of it drift goes on all the same; Emptiness and consolidation do not"))
		}
		out = append(out, f)
	}
	return out
}

func (n *nodeCase) pdbFinding(pdb *policyv1.PodDisruptionBudget, pods []string) report.Finding {
	s := pdb.Status
	lasts, confidence := pdbLasts(pdb)
	f := report.NewFinding(report.PDBBlocks, confidence, n.subject(),
		fmt.Sprintf("%s is kept by PodDisruptionBudget %s/%s, which allows 0 evictions (%d of %d expected pods healthy, %d desired): it selects %s; %s%s.",
			n.title(), pdb.Namespace, pdb.Name, s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy, some(pods), lasts, n.driftsAnyway()))
	f.Because = pdbEvidence(pdb)
	f.Arithmetic = fmt.Sprintf("currentHealthy %d - desiredHealthy %d = %d, so disruptionsAllowed is %d; with all %d expected pods healthy it would be %d",
		s.CurrentHealthy, s.DesiredHealthy, int64(s.CurrentHealthy)-int64(s.DesiredHealthy), s.DisruptionsAllowed, s.ExpectedPods, max(0, int64(s.ExpectedPods)-int64(s.DesiredHealthy)))
	f.Because = append(f.Because, n.blockedEvent("["+pdb.Namespace+"/"+pdb.Name+"]")...)
	f.Remedies = n.pdbRemedies(pdb, pods)
	return f
}

// pdbLasts says whether the budget can come to allow an eviction by itself.
func pdbLasts(pdb *policyv1.PodDisruptionBudget) (string, report.Confidence) {
	s := pdb.Status
	switch {
	case syncFailed(pdb) != nil:
		return fmt.Sprintf("its controller cannot compute it, and allows none until it can (%s)", valueOr(cut(syncFailed(pdb).Message, 200), "SyncFailed")), report.Proven
	case s.ObservedGeneration == 0 && s.ExpectedPods == 0 && s.DesiredHealthy == 0:
		return "its status was never filled in, so that 0 may only mean that nobody counted", report.Likely
	case pdb.Generation > s.ObservedGeneration && s.ObservedGeneration > 0:
		return "its status is older than its spec and may change at once", report.Proven
	case disruption.FullyBlocks(pdb):
		return "so it is whatever the pods' state, until someone changes it", report.Proven
	case s.DesiredHealthy >= s.ExpectedPods:
		return "so it stays even with every pod healthy, until there are more replicas or another setting", report.Proven
	case s.CurrentHealthy < s.ExpectedPods:
		return fmt.Sprintf("it passes once %s", moreHealthy(int64(s.DesiredHealthy)+1-int64(s.CurrentHealthy))), report.Proven
	}
	return "it passes once the evictions that it counts as under way are done", report.Proven
}

// syncFailed is the condition of a budget that allows no eviction because it
// cannot be computed (Kubernetes 1.37, pkg/controller/disruption: failSafe).
func syncFailed(pdb *policyv1.PodDisruptionBudget) *metav1.Condition {
	i := slices.IndexFunc(pdb.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == policyv1.DisruptionAllowedCondition && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason
	})
	if i < 0 {
		return nil
	}
	return &pdb.Status.Conditions[i]
}

func moreHealthy(n int64) string {
	if n == 1 {
		return "1 more pod is healthy"
	}
	return fmt.Sprintf("%d more pods are healthy", n)
}

func pdbEvidence(pdb *policyv1.PodDisruptionBudget) []report.Evidence {
	source := "api:poddisruptionbudgets/" + pdb.Namespace + "/" + pdb.Name
	field := func(name, value, means string) report.Evidence {
		return report.Evidence{Source: source, Field: name, Value: value, Means: means}
	}
	out := []report.Evidence{field("status.disruptionsAllowed", fmt.Sprint(pdb.Status.DisruptionsAllowed), "evictions that are allowed now"),
		field("status.currentHealthy/desiredHealthy", fmt.Sprintf("%d/%d", pdb.Status.CurrentHealthy, pdb.Status.DesiredHealthy), fmt.Sprintf("of %d expected pods", pdb.Status.ExpectedPods))}
	if v := pdb.Spec.MinAvailable; v != nil {
		out = append(out, field("spec.minAvailable", v.String(), ""))
	}
	if v := pdb.Spec.MaxUnavailable; v != nil {
		out = append(out, field("spec.maxUnavailable", v.String(), ""))
	}
	selector, means := cut(metav1.FormatLabelSelector(pdb.Spec.Selector), 300), "the pods that it is for"
	if pdb.Spec.Selector != nil && len(pdb.Spec.Selector.MatchLabels)+len(pdb.Spec.Selector.MatchExpressions) == 0 {
		selector, means = "{}", "empty: every pod of its namespace"
	}
	return append(out, field("spec.selector", selector, means))
}

// pdbRemedies are for the owner of the budget, or of the pods.
func (n *nodeCase) pdbRemedies(pdb *policyv1.PodDisruptionBudget, pods []string) []report.Remedy {
	var out []report.Remedy
	s := pdb.Status
	scaled := n.scaled(pdb.Namespace, pods)
	if scaled && pdb.Spec.MinAvailable != nil && pdb.Spec.MinAvailable.String() == fmt.Sprint(s.DesiredHealthy) && s.DesiredHealthy >= s.ExpectedPods && s.DesiredHealthy > 0 {
		r := report.Remedy{Summary: fmt.Sprintf("Run %d replicas of what it selects, one more than the %d that it wants available.", int64(s.DesiredHealthy)+1, s.DesiredHealthy),
			Effect: "with all of them healthy it allows 1 eviction"}
		if _, name, _ := strings.Cut(pods[0], "/"); name != "" {
			r.Command = n.scaleCommand(n.podNamed(pdb.Namespace, name), int64(s.DesiredHealthy)+1)
		}
		out = append(out, r)
	}
	if r, ok := allowOne(pdb, scaled); ok {
		out = append(out, r)
	}
	if unready := n.unready(pods); len(unready) > 0 && !alwaysAllow(pdb) {
		patch := `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`
		out = append(out, report.Remedy{Summary: "Let pods that are not ready go in any case: " + some(unready) + ".",
			Command: "kubectl -n " + shellWord(pdb.Namespace) + " patch poddisruptionbudgets " + shellWord(pdb.Name) + " --type=merge -p " + shellWord(patch), Patch: patch,
			Effect: "these pods no longer keep the node"})
	}
	return out
}

// allowOne has the budget allow one pod to be unavailable, where it does not do
// so already. Of pods without a scale that takes a number of pods that stay:
// maxUnavailable and percentages need to know how many there should be
// (Kubernetes 1.37, pkg/controller/disruption: getExpectedPodCount).
func allowOne(pdb *policyv1.PodDisruptionBudget, scaled bool) (report.Remedy, bool) {
	s := pdb.Status
	if scaled && pdb.Spec.MaxUnavailable != nil && !disruption.FullyBlocks(pdb) {
		return report.Remedy{}, false
	}
	patch := `{"spec":{"maxUnavailable":1,"minAvailable":null}}`
	caution := "A single replica is then down until its successor is ready."
	allows := max(0, 1-max(0, int64(s.ExpectedPods)-int64(s.CurrentHealthy)))
	if !scaled {
		stay := max(0, int64(s.CurrentHealthy)-1)
		patch = fmt.Sprintf(`{"spec":{"maxUnavailable":null,"minAvailable":%d}}`, stay)
		caution = "What it selects has no scale of its own, so that only a whole number of minAvailable works. A pod that nobody makes again is gone for good."
		allows = max(0, int64(s.CurrentHealthy)-stay)
	}
	effect := ""
	if s.ExpectedPods > 0 {
		effect = fmt.Sprintf("evaluated with %d of %d healthy: %s allowed", s.CurrentHealthy, s.ExpectedPods, plural(int(allows), "eviction"))
	}
	return report.Remedy{Summary: "Let whoever owns the budget allow one pod to be unavailable.",
		Command: "kubectl -n " + shellWord(pdb.Namespace) + " patch poddisruptionbudgets " + shellWord(pdb.Name) + " --type=merge -p " + shellWord(patch), Patch: patch,
		Effect: effect, Caution: caution}, true
}

// scaled: something says how many there should be of one of the pods at least.
func (n *nodeCase) scaled(namespace string, names []string) bool {
	for _, name := range names {
		pod := n.podNamed(namespace, strings.TrimPrefix(name, namespace+"/"))
		if pod == nil {
			return true
		}
		switch kind, _, _ := strings.Cut(controllerOf(pod), " "); kind {
		case "", "DaemonSet", "Job", "Node":
		default:
			return true
		}
	}
	return false
}

func alwaysAllow(pdb *policyv1.PodDisruptionBudget) bool {
	return pdb.Spec.UnhealthyPodEvictionPolicy != nil && *pdb.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
}

// unready are those of the pods whose condition Ready is False.
func (n *nodeCase) unready(names []string) []string {
	var out []string
	for _, p := range n.node.Pods {
		name := p.Namespace + "/" + p.Name
		if slices.Contains(names, name) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
		}) {
			out = append(out, name)
		}
	}
	return out
}

// scaleCommand scales what makes the pod, where that is known by name: a
// StatefulSet, or the Deployment whose ReplicaSet it is.
func (n *nodeCase) scaleCommand(pod *corev1.Pod, replicas int64) string {
	if pod == nil {
		return ""
	}
	kind, name, _ := strings.Cut(controllerOf(pod), " ")
	switch kind {
	case "StatefulSet":
		name = "statefulset/" + name
	case "ReplicaSet":
		deployments, err := n.snap.Deployments()
		hash := strings.LastIndex(name, "-")
		if err != nil || hash < 0 || !slices.ContainsFunc(deployments, func(d appsv1.Deployment) bool { return d.Namespace == pod.Namespace && d.Name == name[:hash] }) {
			return ""
		}
		name = "deployment/" + name[:hash]
	default:
		return ""
	}
	return fmt.Sprintf("kubectl -n %s scale %s --replicas=%d", shellWord(pod.Namespace), shellWord(name), replicas)
}
