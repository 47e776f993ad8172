package shrink

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// closing are the codes that verdicts and their neighbours give.
var closing = append([]report.Code{report.DestinationConsolidateAfter, report.PodsFitNowhere}, verdictCodes...)

// quietFor sets when the last pod event of a node was, and marks it
// Consolidatable as of 30 s later.
func quietFor(d time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Status.LastPodEventTime = metav1.NewTime(now.Add(-d))
		for i := range c.Status.Conditions {
			if k := &c.Status.Conditions[i]; k.Type == karpenter.ConditionConsolidatable {
				k.LastTransitionTime = metav1.NewTime(now.Add(30*time.Second - d))
			}
		}
	}
}

func consolidateAfter(d time.Duration) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) {
		p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{Duration: d, Set: true, Text: span(d)}
	}
}

func byPolicy(name karpenter.ConsolidationPolicy) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Disruption.ConsolidationPolicy = name }
}

func budgets(list ...karpenter.Budget) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = list }
}

func altered(w *world, edit func(*world)) *world { edit(w); return w }

func TestVerdict(t *testing.T) {
	minute := quietFor(time.Minute)
	// one node with a pod, and one whose pod cannot leave it, with room for it
	room := func(edit ...func(*karpenter.NodePool)) *world {
		return newWorld().pool("a", edit...).node("a", "x", minute).node("a", "y", minute).pod("x", "p").pod("y", "q", cpus("3"))
	}
	empty := func(edit ...func(*karpenter.NodePool)) *world {
		return newWorld().pool("a", edit...).node("a", "x", minute)
	}
	// x becomes consolidatable after a node of another pool was looked at
	late := func() *world {
		w := newWorld().pool("a", consolidateAfter(2*time.Minute)).pool("b").node("a", "x", quietFor(3*time.Minute)).node("a", "y", quietFor(3*time.Minute)).node("b", "z", quietFor(3*time.Minute)).
			pod("x", "p").pod("y", "q").pod("z", "r", cpus("3500m"))
		return w
	}
	const removable, due, unknown, destination = "probably-removable@x likely", "consolidation-recheck-due@x likely", "shrink-blocker-unknown@x possible", "destination-consolidate-after@x likely"
	const cannot = "shrink-blocker-unknown@x proven"
	for _, c := range []struct {
		name  string
		world *world
		at    time.Time
		o     Options
		want  []string
		text  []string
		// notText is not in what was found; "" is not looked for.
		notText string
	}{
		{name: "a place for its pod", world: room(), want: []string{removable}, text: []string{"by a plan its pod fits on another node (shop/p → y), and the budgets of NodePool a leave unlimited for Underutilized",
			"cpu 1, memory 1Gi", "node y: cpu 4 allocatable - 3 requested there = 1, 1 come, memory 16Gi allocatable - 1Gi requested there = 15Gi, 1Gi come", "consolidatable since 2026-07-14T08:59:30Z"}},
		{name: "empty", world: empty(budgets(karpenter.Budget{Nodes: "1"})), want: []string{removable}, text: []string{"it is empty, with no pod to move, and the budgets of NodePool a leave 1 for Empty"}},
		{name: "empty but for what no room is looked for", world: empty().pod("x", "p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: "-134217728"}
		}), want: []string{removable}, text: []string{"Karpenter counts it as empty, for evicting its 1 pod costs nothing, so that no other place is looked for, and the budgets", "leave unlimited for Empty", "-134217728"}, notText: "no pod to move"},
		{name: "and for which there is none", world: empty(limited("nodes", "1")).pod("x", "p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: "-134217728"}
		}), want: []string{removable}},
		{name: "a pod for which there is none", world: empty(limited("nodes", "0")).pod("x", "p"), want: []string{"pods-fit-nowhere@x proven"}},
		{name: "that pod before 1.14", world: empty().pod("x", "p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: "-134217728"}
		}), o: Options{KarpenterVersion: "1.13.0"}, want: []string{cannot}},
		{name: "empty since Karpenter's word", world: empty().event("Node", "x", unconsolidatable, noCheaper, 10*time.Second), want: []string{removable}},
		{name: "a pod of two budgets in 1.6, whose drain sticks", world: room().pdb("b", status(4, 3, 4, 1)).pdb("c", status(4, 3, 4, 1)), o: Options{KarpenterVersion: "1.6.4"}, want: []string{removable},
			text: []string{"its drain may then wait for ever, as there is no terminationGracePeriod, for more than one PodDisruptionBudget selects shop/p, which the eviction API refuses", "shop/b and shop/c"}},
		{name: "a pod of one", world: room().pdb("b", status(4, 3, 4, 1)), o: Options{KarpenterVersion: "1.6.4"}, want: []string{removable}, notText: "its drain"},
		{name: "what it saves", world: altered(room(), func(w *world) { w.Nodes[0].Labels[ownPriceLabel] = "0.2" }), want: []string{removable}, text: []string{"it costs $0.2 an hour, $146.00 in 730 hours"}},
		{name: "the clock has run out and the condition is not there", world: altered(room(), func(w *world) {
			quietFor(31*time.Second)(nil, &w.Claims[0])
			quietFor(31*time.Second)(nil, &w.Claims[1])
			w.Claims[0].Status.Conditions = slices.DeleteFunc(w.Claims[0].Status.Conditions, func(c metav1.Condition) bool { return c.Type == karpenter.ConditionConsolidatable })
		}), want: []string{removable}},
		{name: "and was not for minutes", world: altered(room(), func(w *world) {
			quietFor(3*time.Minute)(nil, &w.Claims[0])
			w.Claims[0].Status.Conditions = slices.DeleteFunc(w.Claims[0].Status.Conditions, func(c metav1.Condition) bool { return c.Type == karpenter.ConditionConsolidatable })
		}), want: []string{"probably-removable@x possible"}, text: []string{"once it marks it Consolidatable, which it has not though the clock ran out at 2026-07-14T08:57:30Z"}},
		{name: "left alone for long", world: altered(room(), func(w *world) {
			for i := range w.Claims {
				quietFor(40*time.Minute)(nil, &w.Claims[i])
			}
		}), want: []string{"probably-removable@x possible"}, text: []string{"but it has left it since 2026-07-14T08:20:30Z (for 39m30s) although it looks every 5m"}},
		{name: "left alone while a window was open", world: altered(room(budgets(karpenter.Budget{Nodes: "0", Schedule: ptr("0 8 * * *"), Duration: &metav1.Duration{Duration: 55 * time.Minute}})), func(w *world) {
			for i := range w.Claims {
				quietFor(40*time.Minute)(nil, &w.Claims[i])
			}
		}), want: []string{removable}},
		{name: "left alone as far as another moment tells", world: altered(room(), func(w *world) {
			for i := range w.Claims {
				quietFor(40*time.Minute)(nil, &w.Claims[i])
			}
		}), at: now.Add(time.Hour), want: []string{removable}},
		{name: "given up a minute ago", world: room().event("Node", "x", "ConsolidationRejected", "Consolidation rejected: delete: [x], reason: churn (savings: $0.10)", 20*time.Second), want: []string{"probably-removable@x possible"}, text: []string{"reason: churn"}},
		{name: "no events", world: altered(room(), func(w *world) { w.Events = nil }), want: []string{"probably-removable@x possible"}},
		{name: "drift may take it too", world: altered(room(), func(w *world) {
			w.Claims[0].Status.Conditions = append(w.Claims[0].Status.Conditions, metav1.Condition{Type: karpenter.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift"})
		}), want: []string{removable}},
		{name: "budgets that stop drift only", world: room(budgets(karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{karpenter.Drifted}})), want: []string{removable}},

		{name: "the clock runs", world: altered(room(), func(w *world) { quietFor(20*time.Second)(nil, &w.Claims[0]) })},
		{name: "never", world: room(func(p *karpenter.NodePool) {
			p.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{Text: "Never"}
		})},
		{name: "replicas", world: room(func(p *karpenter.NodePool) { p.Spec.Replicas = ptr(int64(2)) })},
		{name: "policy WhenEmpty with a pod", world: room(byPolicy(karpenter.WhenEmpty))},
		{name: "policy WhenEmpty without one", world: empty(byPolicy(karpenter.WhenEmpty)), want: []string{removable}},
		{name: "a budget of 0", world: room(budgets(karpenter.Budget{Nodes: "0"}))},
		{name: "0 for Empty only", world: room(budgets(karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{karpenter.Empty}})), want: []string{removable}},
		{name: "0 for Empty, and empty", world: empty(budgets(karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{karpenter.Empty}}))},
		{name: "used up", world: altered(room(budgets(karpenter.Budget{Nodes: "1"})), func(w *world) { w.Nodes[1].Status.Conditions[0].Status = corev1.ConditionFalse })},
		{name: "a budget that cannot be evaluated", world: room(budgets(karpenter.Budget{Nodes: "50%"}, karpenter.Budget{Nodes: "1", Schedule: ptr("60 0 * * *"), Duration: &metav1.Duration{Duration: time.Hour}}))},
		{name: "annotated", world: altered(room(), func(w *world) {
			w.Nodes[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		})},
		{name: "a protected pod", world: altered(room(), func(w *world) {
			w.Pods[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		})},
		{name: "a PodDisruptionBudget", world: altered(room(), func(w *world) {
			w.PDBs = []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}
		})},
		{name: "nominated", world: room().event("Pod", "r", "Nominated", "Pod should schedule on: nodeclaim/x-claim, node/x", 5*time.Second)},
		{name: "no zone", world: altered(room(), func(w *world) { delete(w.Nodes[0].Labels, corev1.LabelTopologyZone) })},
		{name: "no zone, and empty", world: altered(empty(), func(w *world) { delete(w.Nodes[0].Labels, corev1.LabelTopologyZone) }), want: []string{removable}},
		{name: "not initialized", world: altered(room(), func(w *world) { delete(w.Nodes[0].Labels, karpenter.InitializedLabel) })},
		{name: "its pool is gone", world: altered(room(), func(w *world) { w.Pools[0].Name = "b" })},
		{name: "going", world: altered(room(), func(w *world) {
			at := metav1.NewTime(now.Add(-time.Second))
			w.Claims[0].DeletionTimestamp, w.Claims[0].Finalizers = &at, []string{"karpenter.sh/termination"}
		})},
		{name: "not Karpenter's", world: newWorld().node("", "x").node("", "y").pod("x", "p")},
		{name: "said after the clock ran out", world: room().event("Node", "x", unconsolidatable, noCheaper, 10*time.Second)},
		{name: "said before", world: room().event("Node", "x", unconsolidatable, noCheaper, 45*time.Second), want: []string{removable}},
		{name: "a NodeClaim without an instance", world: altered(room().node("a", "n"), func(w *world) {
			w.Nodes, w.Claims[2].Status.ProviderID, w.Claims[2].Status.NodeName = w.Nodes[:2], "", ""
		})},
		{name: "Balanced, and not worth it", world: altered(room(byPolicy(karpenter.Balanced)), func(w *world) {
			w.Nodes[0].Labels[ownPriceLabel], w.Nodes[1].Labels[ownPriceLabel] = "0.01", "1"
		})},
		{name: "Balanced, and worth it", world: altered(room(byPolicy(karpenter.Balanced)), func(w *world) {
			w.Nodes[0].Labels[ownPriceLabel], w.Nodes[1].Labels[ownPriceLabel] = "1", "1"
		}), want: []string{removable}},

		{name: "no place on the only other node", world: altered(room(), func(w *world) { cpus("3500m")(&w.Pods[1]) }), want: []string{cannot},
			text: []string{"Whether Karpenter can remove node x is not known: it cannot be deleted, for pod shop/p does not fit on the only other node (1 node: cpu 1 wanted, at most 0.5 free), and whether a cheaper node", "4 allocatable - 3.5 requested by its pods = 0.5 < 1"}},
		{name: "no place, and an old event", world: altered(room(), func(w *world) { cpus("3500m")(&w.Pods[1]) }).event("Node", "x", unconsolidatable, noCheaper, time.Hour), want: []string{cannot}, text: []string{"last seen 1h before"}},
		{name: "a spread", world: altered(room(), func(w *world) {
			w.Pods[0].Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		}), want: []string{unknown}, text: []string{"of pod shop/p no place is certain, for it has topology spread constraints"}},
		{name: "a spread that keeps it, which is told", world: altered(room(), func(w *world) {
			w.Pods[0].Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		}), want: nil},
		{name: "pods that were not read", world: altered(room(), func(w *world) { w.Pods = nil }), want: []string{unknown}, text: []string{"its pods could not be read"}},
		{name: "pods that were read in part", world: altered(room(), func(w *world) {
			w.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused"}]`
		}), want: []string{unknown}, text: []string{"not all pods could be read, perhaps not all of the node's own"}},
		{name: "pods that were not read, and budgets of 0", world: altered(room(budgets(karpenter.Budget{Nodes: "0"})), func(w *world) { w.Pods = nil })},
		{name: "pods that were not read, and 0 for one reason", world: altered(room(budgets(karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{karpenter.Empty}})), func(w *world) { w.Pods = nil }), want: []string{unknown}},
		{name: "budgets of pods that were not read", world: altered(room(), func(w *world) { w.PDBs = nil }), want: []string{unknown}, text: []string{"the PodDisruptionBudgets, which may keep its pods, could not be read"}},
		{name: "pools that were not read", world: altered(room(), func(w *world) { w.Pools = nil }), want: []string{unknown}, text: []string{"its NodePool, with its policy, timer and budgets, could not be read"}},
		{name: "nodes that were read in part", world: altered(empty(budgets(karpenter.Budget{Nodes: "50%"})), func(w *world) {
			w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"}]`
		}), want: []string{unknown}, text: []string{"what the budgets leave for Empty cannot be computed"}},
		{name: "no limit, whatever nodes there are", world: altered(empty(), func(w *world) {
			w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"}]`
		}), want: []string{removable}},
		{name: "a policy to come", world: room(byPolicy("WhenIdle")), want: []string{unknown}, text: []string{`do not know the consolidationPolicy "WhenIdle"`}},
		{name: "Balanced without a price", world: room(byPolicy(karpenter.Balanced)), want: []string{unknown}, text: []string{"the policy Balanced weighs its price, which is not known"}},
		{name: "a type that is not offered", world: altered(room(), func(w *world) {
			w.files[metricsFile] = "karpenter_cloudprovider_instance_type_offering_price_estimate{instance_type=\"c-1x\",capacity_type=\"on-demand\",zone=\"zone-a\"} 0.1\n"
		}), want: []string{unknown}, text: []string{"Karpenter's metrics offer no instance type m-4x"}},
		{name: "room only on a node that goes first", world: altered(room().node("a", "e", minute), func(w *world) { cpus("3500m")(&w.Pods[1]) }), want: []string{unknown}, text: []string{"only with e, which is empty and goes first"}},
		{name: "and on one that stays empty", world: altered(room(budgets(karpenter.Budget{Nodes: "0", Reasons: []karpenter.Reason{karpenter.Empty}})).node("a", "e", minute), func(w *world) { cpus("3500m")(&w.Pods[1]) }), want: []string{removable}, text: []string{"(shop/p → e)"}},
		{name: "no clock", world: altered(room(), func(w *world) {
			w.Claims[0].Status.Conditions = slices.DeleteFunc(w.Claims[0].Status.Conditions, func(c metav1.Condition) bool { return c.Type == karpenter.ConditionInitialized })
		}), want: []string{unknown}, text: []string{"lacks the condition Initialized"}},

		{name: "became consolidatable too late", world: late(), want: []string{due}, text: []string{
			"became consolidatable at 2026-07-14T08:59:00Z, when Karpenter had looked at node z and found nothing to do, so that it looks again about 2026-07-14T09:02:00Z, 5m after the last change",
			"2026-07-14T08:57:00Z + 5m = 2026-07-14T09:02:00Z, and up to 10s", "consolidatable since 2026-07-14T08:57:30Z, and was still there", "(shop/p → y)"}},
		{name: "a round later", world: late(), at: now.Add(2*time.Minute + 11*time.Second), want: []string{removable}},
		{name: "a change since", world: late().pod("z", "s", cpus("100m"), func(p *corev1.Pod) {
			p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-30 * time.Second))
		}), want: []string{removable}},
		{name: "a pod that is gone since", world: late().event("Pod", "gone", "Killing", "Stopping container app", 30*time.Second), want: []string{removable}},
		{name: "a word of a pod that is there", world: altered(late().event("Pod", "p", "Pulled", "Image is there", 30*time.Second), func(w *world) { w.Events[0].InvolvedObject.Namespace = "shop" }), want: []string{due}},
		{name: "no pass between", world: altered(late(), func(w *world) { consolidateAfter(39 * time.Second)(&w.Pools[0]) }), want: []string{removable}},
		{name: "the other one could go, and little time was for it", world: altered(late(), func(w *world) {
			consolidateAfter(time.Minute)(&w.Pools[0])
			cpus("1")(&w.Pods[2])
		}), want: []string{removable}},
		{name: "the other one could go, and was left", world: altered(late(), func(w *world) { cpus("1")(&w.Pods[2]) }), want: []string{due}},
		{name: "the other one was no candidate", world: altered(late(), func(w *world) {
			w.Nodes[2].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		}), want: []string{removable}},
		{name: "a budget constrained that pass", world: altered(late(), func(w *world) { w.Pools[1].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}} }), want: []string{removable}},
		{name: "emptiness has its own rounds", world: altered(late(), func(w *world) { w.Pods = w.Pods[1:] }), want: []string{removable}},

		{name: "destinations inside their own clock", world: altered(room(), func(w *world) { quietFor(20*time.Second)(nil, &w.Claims[1]) }), want: []string{destination},
			text: []string{"The pods of node x fit only with 1 node that is itself inside consolidateAfter and so takes none of them: y until 2026-07-14T09:00:10Z", `"consolidateAfter":"20s"`, "in 10s"}},
		{name: "of two pools", world: altered(newWorld().pool("a").pool("b").node("a", "x", minute).node("a", "y", quietFor(20*time.Second)).node("b", "z", quietFor(20*time.Second)).
			pod("x", "p", cpus("2")).pod("x", "q", cpus("2")).pod("y", "r", cpus("2")).pod("z", "s", cpus("2")), func(*world) {}), want: []string{destination},
			text: []string{"fit only with 2 nodes that are themselves inside consolidateAfter and so take none of them: y until 2026-07-14T09:00:10Z and z until"}, notText: "patch"},
		{name: "quiet for no time", world: altered(room(), func(w *world) { quietFor(0)(nil, &w.Claims[1]) }), want: []string{destination}, notText: "patch"},
		{name: "of one pool, the shorter", world: newWorld().pool("a").node("a", "x", minute).node("a", "y", quietFor(20*time.Second)).node("a", "z", quietFor(15*time.Second)).
			pod("x", "p", cpus("2")).pod("x", "q", cpus("2")).pod("y", "r", cpus("2")).pod("z", "s", cpus("2")), want: []string{destination}, text: []string{`"consolidateAfter":"15s"`, "in 10s, the last in 15s"}},
		{name: "before 1.14", world: altered(room(), func(w *world) { quietFor(20*time.Second)(nil, &w.Claims[1]) }), o: Options{KarpenterVersion: "1.13.0"}, want: []string{removable}},
		{name: "while its own clock runs longer", world: altered(room(), func(w *world) {
			quietFor(20*time.Second)(nil, &w.Claims[1])
			quietFor(10*time.Second)(nil, &w.Claims[0])
		})},
		{name: "while its own clock runs shorter", world: altered(room(), func(w *world) {
			quietFor(20*time.Second)(nil, &w.Claims[0])
			quietFor(10*time.Second)(nil, &w.Claims[1])
		}), want: []string{destination}},
		{name: "and another that takes them", world: altered(room().node("a", "z", minute).pod("z", "r"), func(w *world) { quietFor(20*time.Second)(nil, &w.Claims[1]) }), want: []string{removable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := c.at
			if at.IsZero() {
				at = now
			}
			got := codesOf(Read(c.world.open(t), at, &gap.Log{}, c.o).Node("x"), closing...)
			if !slices.Equal(spelled(got), append([]string{}, c.want...)) {
				t.Errorf("got %v, want %v", spelled(got), c.want)
			}
			if text := texts(t, got); !containsAll(text, c.text) || c.notText != "" && strings.Contains(text, c.notText) {
				t.Errorf("%s\nnot all of\n%q\nor\n%q", text, c.text, c.notText)
			}
			noteData(t, got, closing...)
		})
	}
}

func TestLastChange(t *testing.T) {
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	of := func() *world { return newWorld().pool("a").node("a", "x").pod("x", "p") }
	for _, c := range []struct {
		name, source, means string
		edit                func(*world)
		ago                 time.Duration
	}{
		{"a node", "api:nodes/x", "a new node", func(w *world) { w.Nodes[0].CreationTimestamp = ago(time.Minute) }, time.Minute},
		{"a NodeClaim", "api:nodeclaims.karpenter.sh/x-claim", "a new NodeClaim", func(w *world) { w.Claims[0].CreationTimestamp = ago(time.Minute) }, time.Minute},
		{"a NodeClaim without an instance", "api:nodeclaims.karpenter.sh/x-claim", "a new NodeClaim", func(w *world) {
			w.Claims[0].CreationTimestamp, w.Claims[0].Status.ProviderID = ago(time.Minute), ""
		}, time.Minute},
		{"initialized", "api:nodeclaims.karpenter.sh/x-claim", "the condition Initialized", func(w *world) { w.Claims[0].Status.Conditions[2].LastTransitionTime = ago(time.Minute) }, time.Minute},
		{"chosen", "api:nodeclaims.karpenter.sh/x-claim", "the condition DisruptionReason", func(w *world) {
			w.Claims[0].Status.Conditions = append(w.Claims[0].Status.Conditions, metav1.Condition{Type: karpenter.ConditionDisruptionReason, Status: metav1.ConditionTrue, Reason: "Empty", LastTransitionTime: ago(time.Minute)})
		}, time.Minute},
		{"deleted", "api:nodeclaims.karpenter.sh/x-claim", "a NodeClaim was deleted", func(w *world) { w.Claims[0].DeletionTimestamp = ptr(ago(time.Minute)) }, time.Minute},
		{"a pod event", "api:nodeclaims.karpenter.sh/x-claim", "a pod was bound, ended or deleted", func(w *world) { w.Claims[0].Status.LastPodEventTime = ago(time.Minute) }, time.Minute},
		{"a pod", "api:pods/shop/p", "a pod was bound", func(w *world) { w.Pods[0].Status.Conditions[1].LastTransitionTime = ago(time.Minute) }, time.Minute},
		{"a pod that was not bound", "", "", func(w *world) {
			w.Pods[0].Status.Conditions[1].LastTransitionTime, w.Pods[0].Spec.NodeName = ago(time.Minute), ""
		}, time.Hour},
		{"a pool", "api:nodepools.karpenter.sh/a", "a new NodePool", func(w *world) { w.Pools[0].CreationTimestamp = ago(time.Minute) }, time.Minute},
		{"a word of a node that is gone", "api:events/default/", "it was there then and is gone", func(w *world) { w.event("Node", "gone", "Ready", "", time.Minute) }, time.Minute},
		{"a word of one that is there", "", "", func(w *world) { w.event("Node", "x", "Ready", "", time.Minute) }, time.Hour},
		{"a word of something else", "", "", func(w *world) { w.event("ReplicaSet", "gone", "SuccessfulCreate", "", time.Minute) }, time.Hour},
		{"later than the moment", "", "", func(w *world) { w.Pools[0].CreationTimestamp = ago(-time.Minute) }, time.Hour},
		{"became consolidatable", "", "", func(w *world) { w.Claims[0].Status.Conditions[4].LastTransitionTime = ago(time.Minute) }, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := altered(of(), c.edit).read(t).lastChange()
			if !got.at.Equal(now.Add(-c.ago)) || !strings.Contains(got.evidence.Source, c.source) || !strings.Contains(got.evidence.Means, c.means) {
				t.Errorf("got %s: %+v", got.at, got.evidence)
			}
		})
	}
}

// texts are findings as JSON writes them, without its escapes.
func texts(t *testing.T, findings []report.Finding) string {
	t.Helper()
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(findings); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), `\"`, `"`)
}

func ptr[T any](v T) *T { return &v }

// A pool's report has one finding of each verdict.
func TestVerdictOfPool(t *testing.T) {
	w := newWorld().pool("a").node("a", "x", quietFor(time.Minute)).pod("x", "p")
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	ask := func(w *world) []report.Finding {
		answer, ok := w.read(t).NodePool("a")
		if !ok {
			t.Fatal("no pool")
		}
		return codesOf(answer.Findings, closing...)
	}
	if got, want := spelled(ask(w.node("a", "y", quietFor(time.Minute)).pod("y", "q", spread))), []string{"probably-removable@x likely", "shrink-blocker-unknown@y possible"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got := ask(w.node("a", "e", quietFor(time.Minute)).node("a", "f", quietFor(time.Minute)).node("a", "g", quietFor(time.Minute)).pod("g", "r", spread))
	if want := []string{"probably-removable@a likely", "shrink-blocker-unknown@a possible"}; !slices.Equal(spelled(got), want) {
		t.Errorf("got %v, want %v", spelled(got), want)
	}
	if text := texts(t, got); !containsAll(text, []string{"Nothing known keeps 3 of the 5 nodes of NodePool a, each looked at by itself: e, f and x", "Of 2 of the 5 nodes of NodePool a the data do not tell whether Karpenter can remove them: g and y"}) {
		t.Errorf("%s", text)
	}
	// What holds the whole pool is told of the pool.
	if got := ask(altered(w, func(w *world) { w.Pools[0].Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0"}} })); len(got) > 0 {
		t.Errorf("got %v where nothing may go", spelled(got))
	}
}

// Of many nodes a pool's report stays short.
func TestTextOfManyNodes(t *testing.T) {
	w := newWorld().pool("a", func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = nil })
	for i := range 300 {
		name := fmt.Sprintf("node-%03d", i)
		w.node("a", name, quietFor(time.Minute), func(n *corev1.Node, _ *karpenter.NodeClaim) {
			if i%12 == 0 {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
		}).pod(name, "p-"+name, func(p *corev1.Pod) {
			switch i % 4 {
			case 1:
				p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
			case 2:
				cpus("3500m")(p)
			case 3:
				p.OwnerReferences = nil
			}
		})
	}
	answer, _ := w.read(t).NodePool("a")
	said := texts(t, answer.Findings)
	for _, want := range []string{"Nothing known keeps 150 of the 300 nodes", "of NodePool a beside the", "Of 75 of the 300 nodes of NodePool a the data do not tell", "The prices of 300 of the 300 nodes"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q", want)
		}
	}
	var out strings.Builder
	if err := render.Text(&out, []report.Report{{Kind: report.NodePoolReport, Metadata: report.Metadata{Name: "a"}, Findings: answer.Findings, Budgets: answer.Budgets}}, render.Style{Width: 120}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(out.String(), "\n")
	t.Logf("%d findings in %d lines, %d bytes", len(answer.Findings), lines, out.Len())
	if lines > 250 || out.Len() > 25_000 {
		t.Errorf("%d lines, %d bytes of 300 nodes:\n%s", lines, out.Len(), out.String())
	}
	if !strings.Contains(out.String(), "and 5 more") {
		t.Errorf("all consumers are named:\n%s", out.String())
	}
}

// A finding of a node that differs only in what it names is not dropped.
func TestPoolTellsEachOfSeveral(t *testing.T) {
	w := newWorld().pool("a").node("a", "x").pod("x", "p").pod("x", "q", func(p *corev1.Pod) { p.Labels["app"] = "db" })
	for _, app := range []string{"web", "db"} {
		w.PDBs = append(w.PDBs, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}})
	}
	answer, _ := w.read(t).NodePool("a")
	if got := codesOf(answer.Findings, report.PDBBlocks); len(got) != 2 {
		t.Errorf("got %v of two budgets", spelled(got))
	}
}
