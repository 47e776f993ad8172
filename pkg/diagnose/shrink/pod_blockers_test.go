package shrink

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// one is a node x of pool a with a pod p.
func one(edit ...func(*corev1.Pod)) *world {
	return newWorld().pool("a").node("a", "x").pod("x", "p", edit...)
}

func protected(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: value} }
}

func started(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { at := metav1.NewTime(now.Add(-ago)); p.Status.StartTime = &at }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// terminating since some time, with 30 s of grace.
func terminating(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		grace := int64(30)
		at := metav1.NewTime(now.Add(-ago).Add(30 * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = &at, &grace, []string{"x/y"}
	}
}

func owned(apiVersion, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = apiVersion, kind
	}
}

func orphan(p *corev1.Pod) { p.OwnerReferences = nil }

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// bounded gives the NodeClaim a termination grace period.
func bounded(d time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: d}
	}
}

// pdb adds a budget for app=web in shop that wants all of 3 pods, all healthy.
func (w *world) pdb(name string, edit ...func(*policyv1.PodDisruptionBudget)) *world {
	three := intstr.FromInt32(3)
	b := policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("pdb-" + name), Generation: 1}}
	b.Spec.MinAvailable = &three
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 3, DesiredHealthy: 3, ExpectedPods: 3}
	for _, e := range edit {
		e(&b)
	}
	w.PDBs = append(w.PDBs, b)
	return w
}

func status(healthy, desired, expected, allowed int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.CurrentHealthy, b.Status.DesiredHealthy, b.Status.ExpectedPods, b.Status.DisruptionsAllowed = healthy, desired, expected, allowed
	}
}

func atMost(n int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		v := intstr.FromInt32(n)
		b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &v
	}
}

func policy(p policyv1.UnhealthyPodEvictionPolicyType) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &p }
}

func TestPodDoNotDisrupt(t *testing.T) {
	const kept = "pod-do-not-disrupt@x proven"
	checkRules(t, []ruleCase{
		{name: "true", world: one(protected("true")), want: []string{kept},
			text: []string{"Node x is kept by 1 pod with karpenter.sh/do-not-disrupt: shop/p for as long as it has the annotation; somebody has to take the annotation off", "api:pods/shop/p",
				"kubectl -n shop annotate pods p karpenter.sh/do-not-disrupt-", "next pod of ReplicaSet web-1"}},
		{name: "none", world: one()},
		{name: "another node's", world: newWorld().pool("a").node("a", "x").node("a", "y").pod("y", "p", protected("true"))},
		{name: "an orphan needs no template", world: one(protected("true"), orphan), want: []string{kept}, lacks: []string{"pod template"}},
		{name: "of a DaemonSet", world: one(protected("true"), owned("apps/v1", "DaemonSet")), want: []string{kept}},
		{name: "of the kubelet", world: one(protected("true"), owned("v1", "Node")), want: []string{kept}},
		{name: "that tolerates the taint", world: one(protected("true"), tolerant), want: []string{kept}},
		{name: "pending", world: one(protected("true"), phase(corev1.PodPending)), want: []string{kept}},
		{name: "succeeded", world: one(protected("true"), phase(corev1.PodSucceeded))},
		{name: "failed", world: one(protected("true"), phase(corev1.PodFailed))},
		{name: "terminating", world: one(protected("true"), terminating(time.Second))},
		{name: "a duration, one second left", world: one(protected("2h"), started(2*time.Hour-time.Second)), want: []string{kept},
			text: []string{"shop/p until 2026-07-14T09:00:01Z; this passes by itself at 2026-07-14T09:00:01Z", "start at 2026-07-14T07:00:01Z: holds until 2026-07-14T09:00:01Z, 1s more"}},
		{name: "a duration that has passed this second", world: one(protected("2h"), started(2*time.Hour))},
		{name: "asked a second before", world: one(protected("2h"), started(2*time.Hour)), at: now.Add(-time.Second), want: []string{kept}},
		{name: "a duration without a start", world: one(protected("2h"), func(p *corev1.Pod) { p.Status.StartTime = nil }), want: []string{kept}, text: []string{"without a start to count from"}, lacks: []string{"by itself"}},
		{name: "the later of two", world: one(protected("2h"), started(time.Hour)).pod("x", "q", protected("90m"), started(time.Hour)), want: []string{kept},
			text: []string{"2 pods", "shop/p until 2026-07-14T10:00:00Z and shop/q until 2026-07-14T09:30:00Z; this passes by itself at 2026-07-14T10:00:00Z"}},
		{name: "one of two for ever", world: one(protected("2h"), started(time.Hour)).pod("x", "q", protected("true")), want: []string{kept}, lacks: []string{"by itself"}},
		{name: "1.13 knows durations", world: one(protected("2h"), started(time.Hour)), version: "1.13.0", want: []string{kept}},
		{name: "1.11 does not", world: one(protected("2h"), started(time.Hour)), version: "1.11.0"},
		{name: "a duration, and nobody knows the version", world: one(protected("2h"), started(time.Hour)), version: "unknown", want: []string{"pod-do-not-disrupt@x likely"}},
		{name: "true, whatever the version", world: one(protected("true")), version: "unknown", want: []string{kept}},
		{name: "1.0", world: one(protected("true")), version: "1.0.8", want: []string{kept}},
		{name: "a grace period forgives drift only", world: newWorld().pool("a").node("a", "x", bounded(time.Hour)).pod("x", "p", protected("true")), want: []string{kept},
			text: []string{"spec.terminationGracePeriod", `"1h"`, "drift goes on all the same; Emptiness and consolidation do not"}},
		{name: "Karpenter's word", world: one(protected("true")).event("Node", "x", "DisruptionBlocked", `Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/p)`, 90*time.Second), want: []string{kept},
			text: []string{"last seen 1m30s before", "names no other"}},
		{name: "drift goes on", world: edited(bounded(time.Hour), with(karpenter.ConditionDrifted, "True", "AMIDrift", "", time.Hour)).pod("x", "p", protected("true")), want: []string{kept}, text: []string{"that does not stop its replacement for drift, as its drain ends after 1h"}},
		{name: "drift does not", world: edited(with(karpenter.ConditionDrifted, "True", "AMIDrift", "", time.Hour)).pod("x", "p", protected("true")), want: []string{kept}, lacks: []string{"replacement for drift"}},
		{name: "being deleted", world: edited(deleted(time.Minute)).pod("x", "p", protected("true"))},
		{name: "of the kubelet, which has it from a file", world: one(protected("true"), owned("v1", "Node")), want: []string{kept}, text: []string{"out of the manifest of static pod shop/p"}, lacks: []string{"kubectl -n", "pod template"}},
		{name: "a node of nobody", world: newWorld().pool("a").node("", "x").pod("x", "p", protected("true"))},
		{name: "pods that nobody collected", world: func() *world { w := one(protected("true")); w.Pods = nil; return w }(), gap: "cluster/pods.json"},
	}, report.PodDoNotDisrupt)
	crowd := one(protected("true"))
	for i := range 40 {
		crowd.pod("x", fmt.Sprintf("q%02d", i), protected("true"))
	}
	found, _ := ruleCase{world: crowd}.answer(t, report.PodDoNotDisrupt)
	if len(found) != 1 || len(found[0].Because) != mostPods || len(found[0].Remedies) != mostNamed {
		t.Fatalf("%+v", found)
	}
	checkText(t, found, []string{"41 pods", "and 35 others"}, nil)
}

func TestDoNotDisruptIgnored(t *testing.T) {
	const ignored = "do-not-disrupt-ignored@x proven"
	onNode := func(value string) *world {
		return newWorld().pool("a").node("a", "x", func(n *corev1.Node, _ *karpenter.NodeClaim) {
			n.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: value}
		})
	}
	checkRules(t, []ruleCase{
		{name: "true", world: one(protected("true"))},
		{name: "a duration", world: one(protected("2h"))},
		{name: "a duration that has passed", world: one(protected("1m"))},
		{name: "none", world: one()},
		{name: "yes", world: one(protected("yes")), want: []string{ignored}, text: []string{`neither "true" nor a positive duration: shop/p ("yes")`, "annotate --overwrite pods p karpenter.sh/do-not-disrupt=true"}},
		{name: "True", world: one(protected("True")), want: []string{ignored}},
		{name: "false", world: one(protected("false")), want: []string{ignored}},
		{name: "nothing", world: one(protected("")), want: []string{ignored}},
		{name: "no time", world: one(protected("0s")), want: []string{ignored}},
		{name: "less than none", world: one(protected("-1h")), want: []string{ignored}},
		{name: "days are no unit", world: one(protected("7d")), want: []string{ignored}},
		{name: "a duration before 1.13", world: one(protected("2h")), version: "1.11.0", want: []string{ignored}, text: []string{"this version knows no durations"}},
		{name: "a duration in 1.13", world: one(protected("2h")), version: "1.13.0"},
		{name: "of a pod that is over", world: one(protected("yes"), phase(corev1.PodFailed))},
		{name: "a duration on a node", world: onNode("2h"), want: []string{ignored}, text: []string{`the node itself ("2h")`, "on a node only"}},
		{name: "true on a node", world: onNode("true")},
		{name: "a node of nobody", world: newWorld().pool("a").node("", "x").pod("x", "p", protected("yes"))},
	}, report.DoNotDisruptIgnored)
}

func TestPDBBlocks(t *testing.T) {
	const kept, likely = "pdb-blocks@x proven", "pdb-blocks@x likely"
	deployed := func(w *world) *world {
		w.Deployments = append(w.Deployments, newDeployment("web"))
		return w
	}
	checkRules(t, []ruleCase{
		{name: "all are wanted", world: deployed(one().pdb("b")), want: []string{kept},
			text: []string{"PodDisruptionBudget shop/b, which allows 0 evictions (3 of 3 expected pods healthy, 3 desired): it selects shop/p; so it stays even with every pod healthy",
				"currentHealthy 3 - desiredHealthy 3 = 0, so disruptionsAllowed is 0; with all 3 expected pods healthy it would be 0", "Run 4 replicas", "kubectl -n shop scale deployment/web --replicas=4",
				"evaluated with 3 of 3 healthy: 1 eviction allowed", "spec.minAvailable"}},
		{name: "one may go", world: one().pdb("b", status(3, 2, 3, 1))},
		{name: "two pods under one that allows one", world: one().pod("x", "q").pdb("b", status(3, 2, 3, 1))},
		{name: "one is not healthy", world: one().pdb("b", status(2, 2, 3, 0)), want: []string{kept}, text: []string{"passes once 1 more pod is healthy", "with all 3 expected pods healthy it would be 1", "evaluated with 2 of 3 healthy: 0 evictions allowed"}, lacks: []string{"Run "}},
		{name: "two are not", world: one().pdb("b", status(1, 2, 3, 0)), want: []string{kept}, text: []string{"2 more pods are healthy", "currentHealthy 1 - desiredHealthy 2 = -1"}},
		{name: "evictions under way", world: one().pdb("b", status(3, 2, 3, 0)), want: []string{kept}, text: []string{"under way are done"}},
		{name: "nothing may go", world: one().pdb("b", atMost(0)), want: []string{kept}, text: []string{"whatever the pods' state", "spec.maxUnavailable"}},
		{name: "never counted", world: one().pdb("b", status(0, 0, 0, 0), func(b *policyv1.PodDisruptionBudget) { b.Status.ObservedGeneration = 0 }), want: []string{likely}, text: []string{"never filled in"}, lacks: []string{"evaluated with"}},
		{name: "changed since", world: one().pdb("b", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), want: []string{kept}, text: []string{"older than its spec"}},
		{name: "another app's", world: one(func(p *corev1.Pod) { p.Labels["app"] = "api" }).pdb("b")},
		{name: "another namespace's", world: one(func(p *corev1.Pod) { p.Namespace = "bank" }).pdb("b")},
		{name: "an empty selector", world: one(func(p *corev1.Pod) { p.Labels = nil }).pdb("b", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }), want: []string{kept}, text: []string{"every pod of its namespace"}},
		{name: "no selector", world: one().pdb("b", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })},
		{name: "of a DaemonSet", world: one(owned("apps/v1", "DaemonSet")).pdb("b"), want: []string{kept}},
		{name: "of the kubelet", world: one(owned("v1", "Node")).pdb("b")},
		{name: "that tolerates the taint", world: one(tolerant).pdb("b")},
		{name: "over", world: one(phase(corev1.PodSucceeded)).pdb("b")},
		{name: "terminating", world: one(terminating(time.Second)).pdb("b")},
		{name: "protected anyway", world: one(protected("true")).pdb("b")},
		{name: "protected no longer", world: one(protected("1h"), started(time.Hour)).pdb("b"), want: []string{kept}},
		{name: "not ready, and that is no matter", world: one(unready).pdb("b", policy(policyv1.AlwaysAllow))},
		{name: "ready, and that is no matter", world: one().pdb("b", policy(policyv1.AlwaysAllow)), want: []string{kept}, lacks: []string{"AlwaysAllow"}},
		{name: "not ready", world: one(unready).pdb("b"), want: []string{kept}, text: []string{"AlwaysAllow", "not ready go in any case: shop/p"}},
		{name: "not ready, with a healthy budget", world: one(unready).pdb("b", policy(policyv1.IfHealthyBudget)), want: []string{kept}},
		{name: "two budgets of two pods", world: one().pod("x", "q", func(p *corev1.Pod) { p.Labels["app"] = "api" }).pdb("b").pdb("c", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "api" }),
			want: []string{kept, kept}},
		{name: "two budgets in the pool's report", world: one().pod("x", "q", func(p *corev1.Pod) { p.Labels["app"] = "api" }).pdb("b").pdb("c", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "api" }),
			pool: "a", want: []string{kept, kept}},
		{name: "two on one pod are another matter", world: one().pdb("b").pdb("c")},
		{name: "in 1.6 the first that allows nothing", world: one().pdb("b", status(4, 3, 4, 1)).pdb("c"), version: "1.6.4", want: []string{kept}, text: []string{"shop/c"}, lacks: []string{"shop/b"}},
		{name: "a grace period forgives drift only", world: newWorld().pool("a").node("a", "x", bounded(90*time.Second)).pod("x", "p").pdb("b"), want: []string{kept}, text: []string{`"1m30s"`, "drift goes on all the same"}},
		{name: "Karpenter's word", world: one().pdb("b").event("NodeClaim", "x-claim", "DisruptionBlocked", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/b])", time.Minute), want: []string{kept}, text: []string{"last seen 1m before"}},
		{name: "its word of another", world: one().pdb("b").event("NodeClaim", "x-claim", "DisruptionBlocked", "Pdb prevents pod evictions (PodDisruptionBudget=[shop/c])", time.Minute), want: []string{kept}, lacks: []string{"last seen"}},
		{name: "a node of nobody", world: newWorld().pool("a").node("", "x").pod("x", "p").pdb("b"), want: []string{kept}},
		{name: "one may be unavailable, and is", world: one().pdb("b", atMost(1), status(2, 2, 3, 0)), want: []string{kept}, text: []string{"passes once 1 more pod is healthy"}, lacks: []string{"kubectl"}},
		{name: "of a pod that nobody makes again", world: one(orphan).pdb("b", status(1, 1, 1, 0)), want: []string{kept}, text: []string{`"maxUnavailable":null,"minAvailable":0`, "evaluated with 1 of 1 healthy: 1 eviction allowed", "no scale of its own"}, lacks: []string{"Run ", `"maxUnavailable":1`}},
		{name: "of a DaemonSet, which has no scale", world: one(owned("apps/v1", "DaemonSet")).pdb("b"), want: []string{kept}, text: []string{`"minAvailable":2`}, lacks: []string{"Run ", `"maxUnavailable":1`}},
		{name: "that nobody can compute", world: one().pdb("b", atMost(1), status(0, 0, 0, 0), func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: "DisruptionAllowed", Status: "False", Reason: "SyncFailed", Message: "jobs.batch does not implement the scale subresource"}}
		}), want: []string{kept}, text: []string{"its controller cannot compute it, and allows none until it can (jobs.batch does not"}, lacks: []string{"never filled in"}},
		{name: "drift goes on", world: edited(bounded(time.Hour), with(karpenter.ConditionDrifted, "True", "AMIDrift", "", time.Hour)).pod("x", "p").pdb("b"), want: []string{kept}, text: []string{"that does not stop its replacement for drift"}},
		{name: "being deleted", world: edited(deleted(time.Minute)).pod("x", "p").pdb("b")},
		{name: "budgets that nobody collected", world: func() *world { w := one().pdb("b"); w.PDBs = nil; return w }(), gap: "cluster/poddisruptionbudgets.json"},
		{name: "a selector that nobody can read", world: one().pdb("b").pdb("c", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
		}), gap: "cluster/poddisruptionbudgets.json"},
	}, report.PDBBlocks)
}

func TestSeveralPDBs(t *testing.T) {
	const kept, likely = "several-pdbs@x proven", "several-pdbs@x likely"
	open := status(4, 3, 4, 1)
	checkRules(t, []ruleCase{
		{name: "two that allow one each", world: one().pdb("b", open).pdb("c", open), want: []string{kept},
			text: []string{"whatever they allow: pod shop/p by shop/b and shop/c", "api:poddisruptionbudgets/shop/b", "api:poddisruptionbudgets/shop/c", "kubectl -n shop get poddisruptionbudgets"}},
		{name: "one", world: one().pdb("b", open)},
		{name: "one of each namespace", world: one().pdb("b", open).pdb("c", open, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "bank" })},
		{name: "not ready is no matter here", world: one(unready).pdb("b", policy(policyv1.AlwaysAllow)).pdb("c", policy(policyv1.AlwaysAllow)), want: []string{kept}},
		{name: "of a DaemonSet", world: one(owned("apps/v1", "DaemonSet")).pdb("b", open).pdb("c", open), want: []string{kept}},
		{name: "over", world: one(phase(corev1.PodFailed)).pdb("b", open).pdb("c", open)},
		{name: "of the kubelet", world: one(owned("v1", "Node")).pdb("b", open).pdb("c", open)},
		{name: "protected anyway", world: one(protected("true")).pdb("b", open).pdb("c", open)},
		{name: "1.11", world: one().pdb("b", open).pdb("c", open), version: "1.11.0", want: []string{kept}},
		{name: "1.6 has no such rule", world: one().pdb("b", open).pdb("c", open), version: "1.6.4"},
		{name: "nobody knows the version", world: one().pdb("b", open).pdb("c", open), version: "unknown", want: []string{likely}, gap: "Karpenter's version"},
		{name: "Karpenter's word", world: one().pdb("b", open).pdb("c", open).event("Node", "x", "DisruptionBlocked", "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/b shop/c])", time.Minute), want: []string{kept}, text: []string{"last seen 1m before"}},
	}, report.SeveralPDBs)
}

func TestBarePodLost(t *testing.T) {
	const lost = "bare-pod-lost@x proven"
	checkRules(t, []ruleCase{
		{name: "an orphan", world: one(orphan), want: []string{lost}, text: []string{"1 pod on Node x without a controller would be lost with the node: shop/p", "keeps no node of Karpenter's", "annotate pods p karpenter.sh/do-not-disrupt=true"}},
		{name: "of a ReplicaSet", world: one()},
		{name: "of the kubelet", world: one(owned("v1", "Node"))},
		{name: "over", world: one(orphan, phase(corev1.PodSucceeded))},
		{name: "going", world: one(orphan, terminating(time.Second))},
		{name: "protected needs no annotation", world: one(orphan, protected("true")), want: []string{lost}, lacks: []string{"annotate"}},
		{name: "of nobody's node", world: newWorld().pool("a").node("", "x").pod("x", "p", orphan)},
		{name: "two", world: one(orphan).pod("x", "q", orphan).pod("x", "r"), want: []string{lost}, text: []string{"2 pods", "shop/p and shop/q"}},
	}, report.BarePodLost)
}
