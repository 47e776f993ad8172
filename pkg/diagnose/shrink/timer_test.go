package shrink

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// recorded is when Karpenter wrote down the last pod event.
func recorded(ago time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Status.LastPodEventTime = metav1.NewTime(now.Add(-ago))
	}
}

// waiting is not consolidatable.
func waiting(_ *corev1.Node, c *karpenter.NodeClaim) {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == karpenter.ConditionConsolidatable {
			c.Status.Conditions = append(c.Status.Conditions[:i:i], c.Status.Conditions[i+1:]...)
			return
		}
	}
}

func after(d time.Duration) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) {
		p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{Duration: d, Set: true, Text: d.String()}
	}
}

// bound is when the scheduler bound a pod.
func bound(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-ago)) }
}

// ended is a pod that succeeded.
func ended(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-ago))}}}}
	}
}

func never(p *karpenter.NodePool) {
	p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{Text: "Never"}
}

func TestConsolidateAfterRunning(t *testing.T) {
	const running, likely = "consolidate-after-running@x proven", "consolidate-after-running@x likely"
	quiet := func(ago time.Duration, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		return edited(append(edit, waiting, recorded(ago))...)
	}
	initialized := with(karpenter.ConditionInitialized, "True", "Initialized", "", 10*time.Second)
	job := func(p *corev1.Pod) {
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "batch/v1", "Job", "report-29401234"
	}
	// busy has a pod that ends every 20 s, the last of them 15 s ago.
	busy := func() *world {
		w := quiet(15 * time.Second)
		for i := range 5 {
			w.pod("x", fmt.Sprintf("p%d", i), job, ended(15*time.Second+time.Duration(i)*20*time.Second), bound(time.Hour))
		}
		return w
	}
	checkRules(t, []ruleCase{
		{name: "a second left", world: quiet(29 * time.Second), want: []string{running},
			text: []string{"Node x becomes consolidatable at 2026-07-14T09:00:01Z, in 1s, if no pod comes, ends or is deleted there before: consolidateAfter is 30s", "of a pod that is gone or whose object does not tell it, was at 2026-07-14T08:59:31Z",
				"2026-07-14T08:59:31Z + 30s = 2026-07-14T09:00:01Z; 2026-07-14T09:00:00Z - 2026-07-14T08:59:31Z = 29s of 30s passed"}},
		{name: "none left", world: quiet(30 * time.Second)},
		{name: "asked a second before", world: quiet(30 * time.Second), at: now.Add(-time.Second), want: []string{running}},
		{name: "no time at all", world: quiet(0).edit(after(0))},
		{name: "no pod event", world: edited(waiting, initialized), want: []string{running}, text: []string{"the node was initialized at 2026-07-14T08:59:50Z", "status.conditions[Initialized]"}},
		{name: "no pod event, long ago", world: edited(waiting)},
		{name: "not initialized", world: quiet(time.Second, uninitialized)},
		{name: "Never", world: quiet(time.Second).edit(never)},
		{name: "a static pool", world: quiet(time.Second).edit(static(1))},
		{name: "a pool that nobody collected", world: func() *world { w := quiet(time.Second); w.Pools = nil; return w }(), gap: "cluster/nodepools.karpenter.sh.json"},
		{name: "going", world: quiet(time.Second, chosen)},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
		{name: "who reset it", world: quiet(10*time.Second).pod("x", "p", bound(11*time.Second)), want: []string{running}, text: []string{"pod shop/p of ReplicaSet web-1 was bound to the node at 2026-07-14T08:59:50Z", "was bound to the node at 2026-07-14T08:59:49Z"}},
		{name: "too far apart", world: quiet(10*time.Second).pod("x", "p", bound(13*time.Second)), want: []string{running}, lacks: []string{"shop/p"}},
		{name: "a pod that ended", world: quiet(10*time.Second).pod("x", "p", job, ended(10*time.Second)), want: []string{running}, text: []string{"pod shop/p of Job report-29401234 (of CronJob report, by its name) ended (Succeeded)"}},
		{name: "a pod that was deleted", world: quiet(10*time.Second).pod("x", "p", terminating(10*time.Second)), want: []string{running}, text: []string{"shop/p of ReplicaSet web-1 was deleted"}},
		{name: "of a DaemonSet it was not", world: quiet(10*time.Second).pod("x", "p", owned("apps/v1", "DaemonSet"), bound(10*time.Second)), want: []string{running}, lacks: []string{"shop/p"}},
		{name: "of the kubelet it was", world: quiet(10*time.Second).pod("x", "p", owned("v1", "Node"), bound(10*time.Second)), want: []string{running}, text: []string{"shop/p"}},
		{name: "a condition that says otherwise", world: edited(recorded(10 * time.Second)), want: []string{likely}, text: []string{"its condition Consolidatable is still True", "contradicts the clock"}},
		{name: "a condition of later", world: edited(recorded(10*time.Second), with(karpenter.ConditionConsolidatable, "True", "x", "", -20*time.Second)), want: []string{running}, text: []string{"set later than the moment asked for"}},
		{name: "a pool that is never quiet", world: busy(), want: []string{running}, text: []string{"of the 5 pod events known from 2026-07-14T08:58:25Z to 2026-07-14T08:59:45Z the longest quiet time between two was 20s, less than 30s", `"consolidateAfter":"19s"`, "with 19s the clock would have run out once"}},
		{name: "a pool that was quiet for as long once", world: busy().pod("x", "old", job, ended(3*time.Minute), bound(125*time.Second)), want: []string{running}, lacks: []string{"less than", `"19s"`}},
	}, report.ConsolidateAfterRunning)
	checkRules(t, []ruleCase{
		{name: "a clock that ran out a minute ago, and no condition", world: quiet(90 * time.Second), gap: "condition Consolidatable"},
	}, report.ConsolidateAfterRunning)
	unset := func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Status.Conditions[2].LastTransitionTime = metav1.Time{}
	}
	for name, w := range map[string]*world{"initialized nobody knows when": edited(waiting, unset), "less than a minute ago": quiet(89 * time.Second), "and the condition is there": edited(recorded(90 * time.Second))} {
		if _, gaps := (ruleCase{world: w}).answer(t); len(gaps.List()) > 0 {
			t.Errorf("%s: %+v", name, gaps.List())
		}
	}
}

func TestPodEventNotRecorded(t *testing.T) {
	const early = "pod-event-not-recorded@x likely"
	quiet := func(ago time.Duration) *world { return edited(recorded(ago)).edit(after(time.Minute)) }
	checkRules(t, []ruleCase{
		{name: "5 s later", world: quiet(30*time.Second).pod("x", "p", bound(25*time.Second)), want: []string{early},
			text: []string{"Node x counts as quiet 5s too early: pod shop/p was bound to the node at 2026-07-14T08:59:35Z, later than the recorded 2026-07-14T08:59:30Z (Karpenter writes down one event in 10 s at most)",
				"2026-07-14T08:59:35Z - 2026-07-14T08:59:30Z = 5s; quiet from 2026-07-14T09:00:30Z on instead of 2026-07-14T09:00:35Z"}},
		{name: "2 s later", world: quiet(30*time.Second).pod("x", "p", bound(28*time.Second)), want: []string{early}},
		{name: "1 s is how times are cut", world: quiet(30*time.Second).pod("x", "p", bound(29*time.Second))},
		{name: "the same", world: quiet(30*time.Second).pod("x", "p", bound(30*time.Second))},
		{name: "before", world: quiet(30*time.Second).pod("x", "p", bound(40*time.Second))},
		{name: "9 s later", world: quiet(30*time.Second).pod("x", "p", bound(21*time.Second)), want: []string{early}, text: []string{"one event in 10 s at most"}},
		{name: "10 s later is no matter of that", world: quiet(30*time.Second).pod("x", "p", bound(20*time.Second)), want: []string{early}, text: []string{"did not run or did not see it"}},
		{name: "after the moment", world: quiet(30*time.Second).pod("x", "p", bound(-5*time.Second))},
		{name: "of a DaemonSet", world: quiet(30*time.Second).pod("x", "p", owned("apps/v1", "DaemonSet"), bound(25*time.Second))},
		{name: "an end", world: quiet(30*time.Second).pod("x", "p", bound(time.Hour), ended(25*time.Second)), want: []string{early}, text: []string{"ended (Succeeded) at 2026-07-14T08:59:35Z"}},
		{name: "while the clock has run out too early", world: quiet(61*time.Second).pod("x", "p", bound(59*time.Second)), want: []string{early}},
		{name: "it is quiet all the same by now", world: quiet(62*time.Second).pod("x", "p", bound(60*time.Second))},
		{name: "nothing recorded", world: edited().edit(after(time.Minute)).pod("x", "p", bound(25*time.Second))},
		{name: "consolidateAfter 0s", world: quiet(30*time.Second).pod("x", "p", bound(25*time.Second)).edit(after(0))},
		{name: "Never", world: quiet(30*time.Second).pod("x", "p", bound(25*time.Second)).edit(never)},
		{name: "static", world: quiet(30*time.Second).pod("x", "p", bound(25*time.Second)).edit(static(1))},
		{name: "going", world: edited(recorded(30*time.Second), chosen).edit(after(time.Minute)).pod("x", "p", bound(25*time.Second))},
	}, report.PodEventNotRecorded)
}

// raw is a node x of a pool a whose spec is written as it is.
func raw(spec string) *world {
	w := edited()
	w.Pools = nil
	w.files["cluster/nodepools.karpenter.sh.json"] = `{"items":[{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a"},"spec":` + spec + `}]}`
	return w
}

func TestConsolidationNever(t *testing.T) {
	const off = "consolidation-never@a proven"
	cases := []ruleCase{
		{name: "Never", world: edited().edit(never), want: []string{off}, text: []string{"NodePool a never gives up a node for being empty or underutilized: consolidateAfter is Never", "kubectl patch nodepools.karpenter.sh a", `"value":"Never"`}},
		{name: "a duration", world: edited()},
		{name: "0s", world: edited().edit(after(0))},
		{name: "no block at all is 0s", world: raw(`{}`)},
		{name: "a block without it", world: raw(`{"disruption":{"consolidationPolicy":"WhenEmpty"}}`), want: []string{off}, text: []string{"absent from the stored object", "(absent)"}},
		{name: "a static pool", world: edited().edit(never).edit(static(1))},
		{name: "replicas before static pools", world: edited().edit(never).edit(static(1)), version: "1.6.4", want: []string{off}},
		{name: "Karpenter's word", world: edited().edit(never).event("Node", "x", "Unconsolidatable", `NodePool "a" has consolidation disabled`, 3*time.Minute), want: []string{off}, text: []string{"last seen 3m before"}},
	}
	checkBoth(t, cases, "a", report.ConsolidationNever)
	found, _ := ruleCase{world: newWorld().pool("a", never).node("", "x")}.answer(t, report.ConsolidationNever)
	if len(found) > 0 {
		t.Errorf("of a node that is not Karpenter's: %+v", found)
	}
}

// checkBoth asks about node x, and with the same answer about a pool.
func checkBoth(t *testing.T, cases []ruleCase, pool string, codes ...report.Code) {
	t.Helper()
	checkRules(t, cases, codes...)
	for i := range cases {
		cases[i].pool = pool
	}
	t.Run("pool", func(t *testing.T) { checkRules(t, cases, codes...) })
}

func TestStaticNodePool(t *testing.T) {
	const fixed = "static-nodepool@a proven"
	checkBoth(t, []ruleCase{
		{name: "replicas", world: edited().node("a", "y").edit(static(2)), want: []string{fixed}, text: []string{"NodePool a is static: spec.replicas is 2 with 2 nodes running", "2 running - 2 replicas: surplus 0; 0 more await replacements", "to 1 for one node less", `"replicas":1`, "a surplus of 1"}},
		{name: "none", world: edited()},
		{name: "0 is a number too", world: edited().edit(static(0)), want: []string{fixed}, text: []string{"surplus 1", `"replicas":0`}},
		{name: "one going, one chosen", world: edited().node("a", "y", deleted(time.Minute)).node("a", "z", chosen).edit(static(3)), want: []string{fixed}, text: []string{"with 1 node running", "1 running - 3 replicas: surplus 0; 1 more await replacements"}},
		{name: "more than it should have", world: edited().node("a", "y").node("a", "z").edit(static(2)), want: []string{fixed}, text: []string{"removes a node of it; the surplus of 1 goes at once and asks no budget", "a surplus of 2"}},
		{name: "one awaits its replacement", world: edited().node("a", "y", chosen).edit(static(1)), want: []string{fixed}, text: []string{"surplus 0; 1 more await replacements"}, lacks: []string{"goes at once and asks no budget"}},
		{name: "another pool's", world: edited().pool("b", static(1)).node("b", "y")},
		{name: "1.11", world: edited().edit(static(1)), version: "1.11.0", want: []string{fixed}},
		{name: "1.6 has none", world: edited().edit(static(1)), version: "1.6.4"},
	}, "a", report.StaticNodePool)
	found, _ := ruleCase{pool: "a", world: func() *world { w := edited().edit(static(2)); w.Claims = nil; return w }()}.answer(t, report.StaticNodePool)
	checkText(t, found, []string{"spec.replicas is 2,"}, []string{"running", "surplus 0"})
}

func TestPolicyWhenEmpty(t *testing.T) {
	const ofNode, ofPool = "policy-when-empty@x proven", "policy-when-empty@a proven"
	whenEmpty := func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = karpenter.WhenEmpty }
	cheap := func(p *corev1.Pod) {
		p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-134217728"}
	}
	cases := []ruleCase{
		{name: "a pod", world: one().edit(whenEmpty), want: []string{ofNode}, text: []string{"Node x is not empty, and NodePool a gives up only empty nodes (consolidationPolicy WhenEmpty): 1 pod would have to be moved, shop/p", "eviction cost 1)"}},
		{name: "another policy", world: one()},
		{name: "no policy is another", world: one().edit(func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = "" })},
		{name: "no pod", world: edited().edit(whenEmpty)},
		{name: "of a DaemonSet", world: one(owned("apps/v1", "DaemonSet")).edit(whenEmpty)},
		{name: "of the kubelet", world: one(owned("v1", "Node")).edit(whenEmpty)},
		{name: "over", world: one(phase(corev1.PodSucceeded)).edit(whenEmpty)},
		{name: "terminating", world: one(terminating(time.Second)).edit(whenEmpty)},
		{name: "terminating, of a StatefulSet", world: one(terminating(time.Second), owned("apps/v1", "StatefulSet")).edit(whenEmpty), want: []string{ofNode}},
		{name: "an orphan", world: one(orphan).edit(whenEmpty), want: []string{ofNode}},
		{name: "of no cost", world: one(cheap).edit(whenEmpty)},
		{name: "of no cost, before costs counted", world: one(cheap).edit(whenEmpty), version: "1.13.0", want: []string{ofNode}},
		{name: "Never comes first", world: one().edit(whenEmpty).edit(never)},
		{name: "a static pool", world: one().edit(whenEmpty).edit(static(1))},
		{name: "going", world: newWorld().pool("a", whenEmpty).node("a", "x", chosen).pod("x", "p")},
		{name: "of nobody", world: newWorld().pool("a", whenEmpty).node("", "x").pod("x", "p")},
		{name: "Karpenter's word", world: one().edit(whenEmpty).event("Node", "x", "Unconsolidatable", `NodePool "a" has consolidation policy WhenEmpty, but node is not empty`, time.Minute), want: []string{ofNode}, text: []string{"last seen 1m before"}},
		{name: "its word before 1.14", world: one().edit(whenEmpty).event("Node", "x", "Unconsolidatable", `NodePool "a" has non-empty consolidation disabled`, time.Minute), version: "1.11.0", want: []string{ofNode}, text: []string{"last seen 1m before"}},
		{name: "pods that nobody collected", world: func() *world { w := one().edit(whenEmpty); w.Pods = nil; return w }(), gap: "cluster/pods.json"},
	}
	checkRules(t, cases, report.PolicyWhenEmpty)
	for i := range cases {
		cases[i].pool = "a"
		if len(cases[i].want) > 0 {
			cases[i].want, cases[i].text = []string{ofPool}, []string{"1 of its 1 node have pods to move: x"}
		}
	}
	t.Run("pool", func(t *testing.T) { checkRules(t, cases, report.PolicyWhenEmpty) })
}
