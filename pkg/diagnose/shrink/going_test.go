package shrink

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// deleted is a NodeClaim that is being deleted for some time.
func deleted(ago time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		at := metav1.NewTime(now.Add(-ago))
		c.DeletionTimestamp, c.Finalizers = &at, []string{"karpenter.sh/termination"}
	}
}

func disruptedTaint(n *corev1.Node, _ *karpenter.NodeClaim) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: karpenter.DisruptedTaint, Effect: corev1.TaintEffectNoSchedule})
}

func chosen(n *corev1.Node, c *karpenter.NodeClaim) {
	disruptedTaint(n, c)
	with(karpenter.ConditionDisruptionReason, "True", "Underutilized", "", 2*time.Minute)(n, c)
}

// graced gives a pod a grace period of its own.
func graced(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func TestAlreadyDisrupting(t *testing.T) {
	const going = "already-disrupting@x proven"
	draining := func(edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		return edited(append(edit, deleted(10*time.Minute), disruptedTaint)...)
	}
	checkRules(t, []ruleCase{
		{name: "nothing", world: edited()},
		{name: "chosen", world: edited(chosen), want: []string{going}, text: []string{"Node x has been chosen for disruption (Underutilized) since 2026-07-14T08:58:00Z (for 2m); it is deleted once its replacements", "consumes one from each budget of its pool"}},
		{name: "chosen no more", world: edited(with(karpenter.ConditionDisruptionReason, "False", "Underutilized", "", time.Minute))},
		{name: "the taint alone", world: edited(disruptedTaint), want: []string{going}, text: []string{"neither marked nor deleted", "karpenter.sh/disrupted:NoSchedule"}},
		{name: "the taint alone, and chosen no more", world: edited(disruptedTaint, with(karpenter.ConditionDisruptionReason, "False", "Underutilized", "", time.Minute)), want: []string{going}, text: []string{"neither marked nor deleted"}, lacks: []string{"Underutilized"}},
		{name: "another effect is no such taint", world: edited(func(n *corev1.Node, c *karpenter.NodeClaim) {
			disruptedTaint(n, c)
			n.Spec.Taints[0].Effect = "PreferNoSchedule"
		})},
		{name: "cordoned is not going", world: edited(func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Spec.Unschedulable = true })},
		{name: "not ready is not going", world: edited(func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Status.Conditions[0].Status = "False" })},
		{name: "draining", world: draining().pod("x", "p").pod("x", "q"), want: []string{going}, text: []string{"is being deleted since 2026-07-14T08:50:00Z (for 10m): the drain waits for 2 pods, shop/p and shop/q;"}},
		{name: "draining, with an end", world: draining(bounded(time.Hour)).pod("x", "p"), want: []string{going}, text: []string{"waits for 1 pod, shop/p, at most until 2026-07-14T09:50:00Z"}},
		{name: "an end that is written down", world: draining(bounded(time.Hour), func(_ *corev1.Node, c *karpenter.NodeClaim) {
			c.Annotations = map[string]string{karpenter.TerminationTimestampAnnotation: "2026-07-14T09:01:00Z"}
		}).pod("x", "p"), want: []string{going}, text: []string{"at most until 2026-07-14T09:01:00Z"}},
		{name: "pods that a drain does not wait for", world: draining().pod("x", "m", owned("v1", "Node")).pod("x", "o", phase(corev1.PodSucceeded)).pod("x", "t", tolerant), want: []string{going}, text: []string{"its pods are gone, its volumes are being detached"}},
		{name: "volumes are gone", world: draining(with(karpenter.ConditionVolumesDetached, "True", "x", "", time.Minute)), want: []string{going}, text: []string{"its instance is being terminated"}},
		{name: "the instance goes", world: edited(with(karpenter.ConditionInstanceTerminating, "True", "x", "", time.Minute)), want: []string{going}, text: []string{"its instance is being terminated"}},
		{name: "pods that nobody collected", world: func() *world { w := draining(); w.Pods = nil; return w }(), want: []string{going}, text: []string{"not known without the pods"}, lacks: []string{"pods are gone"}},
		{name: "draining beyond its end", world: draining(bounded(5*time.Minute)).pod("x", "p"), want: []string{going}, text: []string{"waits for 1 pod, shop/p, though its termination grace period was over at 2026-07-14T08:55:00Z"}, lacks: []string{"at most until"}},
		{name: "pods that should have ended", world: draining().pod("x", "p", terminating(2*time.Minute)).pod("x", "m", owned("v1", "Node"), terminating(2*time.Minute)), want: []string{going}, text: []string{"waits no longer for 1 pod terminating for over 1 min, shop/p, and its volumes are being detached"}, lacks: []string{"pods are gone"}},
		{name: "of nobody", world: newWorld().pool("a").node("", "x", disruptedTaint)},
	}, report.AlreadyDisrupting)
}

func TestDrainStuck(t *testing.T) {
	const stuck = "drain-stuck@x proven"
	drain := func(ago time.Duration, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		return edited(append(edit, deleted(ago), disruptedTaint)...)
	}
	passing := status(2, 2, 3, 0) // once its third pod is healthy
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" }
	// pending is bound and has not started.
	pending := func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = corev1.PodPending, nil }
	checkRules(t, []ruleCase{
		{name: "a protected pod", world: drain(time.Second).pod("x", "p", protected("true")).pod("x", "q"), want: []string{stuck},
			text: []string{"has been draining since 2026-07-14T08:59:59Z (for 1s) and cannot go on: it is held by pod shop/p by karpenter.sh/do-not-disrupt: \"true\"; nothing bounds it", "2 pods waiting, 1 of them held", "consumes one from each budget"}},
		{name: "pods that nothing holds", world: drain(time.Hour).pod("x", "p")},
		{name: "not deleted", world: edited(chosen).pod("x", "p", protected("true"))},
		{name: "a budget that will not change", world: drain(time.Second).pod("x", "p").pdb("b", atMost(0)), want: []string{stuck}, text: []string{"by PodDisruptionBudget shop/b", "kubectl -n shop delete pods p"}},
		{name: "a budget that wants them all", world: drain(time.Second).pod("x", "p").pdb("b"), want: []string{stuck}},
		{name: "a budget that will not change, whatever its status counts", world: drain(time.Second).pod("x", "p").pdb("b", atMost(0), status(2, 2, 3, 0)), want: []string{stuck}},
		{name: "one that is not ready, and nobody has counted", world: drain(time.Second).pod("x", "p", unready).pdb("b", status(0, 0, 0, 0)), want: []string{stuck}},
		{name: "a budget that passes, for 5 min", world: drain(5*time.Minute).pod("x", "p").pdb("b", passing), want: []string{stuck}},
		{name: "a second less", world: drain(5*time.Minute-time.Second).pod("x", "p").pdb("b", passing)},
		{name: "two budgets", world: drain(time.Second).pod("x", "p").pdb("b", status(4, 3, 4, 1)).pdb("c", status(4, 3, 4, 1)), want: []string{stuck}, text: []string{"PodDisruptionBudget shop/b and shop/c"}},
		{name: "two budgets in 1.6", world: drain(time.Second).pod("x", "p").pdb("b", status(4, 3, 4, 1)).pdb("c", status(4, 3, 4, 1)), version: "1.6.4", want: []string{stuck}},
		{name: "one budget that allows one", world: drain(time.Hour).pod("x", "p").pdb("b", status(4, 3, 4, 1))},
		{name: "one that has not started asks no budget", world: drain(time.Hour).pod("x", "p", pending).pdb("b")},
		{name: "one that has not started, and is protected", world: drain(time.Hour).pod("x", "p", pending, protected("true")), want: []string{stuck}},
		{name: "one that is not ready, and enough others are", world: drain(time.Hour).pod("x", "p", unready).pdb("b")},
		{name: "one that is not ready, and too few others are", world: drain(time.Hour).pod("x", "p", unready).pdb("b", status(2, 3, 3, 0)), want: []string{stuck}},
		{name: "one that is not ready, and that is no matter", world: drain(time.Hour).pod("x", "p", unready).pdb("b", status(2, 3, 3, 0), policy(policyv1.AlwaysAllow))},
		{name: "one that is not ready, of two budgets", world: drain(time.Hour).pod("x", "p", unready).pdb("b").pdb("c"), want: []string{stuck}},
		{name: "of the kubelet", world: drain(time.Hour).pod("x", "p", protected("true"), owned("v1", "Node"))},
		{name: "tolerant", world: drain(time.Hour).pod("x", "p", protected("true"), tolerant)},
		{name: "terminating", world: drain(time.Hour).pod("x", "p", protected("true"), terminating(time.Second))},
		{name: "critical ones wait their turn", world: drain(time.Hour).pod("x", "p").pod("x", "q", critical, protected("true"))},
		{name: "it is their turn", world: drain(time.Hour).pod("x", "q", critical, protected("true")), want: []string{stuck}},
		{name: "DaemonSets wait their turn", world: drain(time.Hour).pod("x", "p").pod("x", "d", owned("apps/v1", "DaemonSet"), protected("true"))},
		{name: "with an end", world: drain(10*time.Minute, bounded(time.Hour)).pod("x", "p", protected("true"), graced(60)), want: []string{stuck},
			text: []string{"until it is deleted at 2026-07-14T09:49:00Z; it ends at 2026-07-14T09:50:00Z", "spec.terminationGracePeriod"}, lacks: []string{"nothing bounds it"}},
		{name: "the pod's end has come", world: drain(59*time.Minute, bounded(time.Hour)).pod("x", "p", protected("true"), graced(60))},
		{name: "a second before it", world: drain(59*time.Minute, bounded(time.Hour)).pod("x", "p", protected("true"), graced(59)), want: []string{stuck}},
		{name: "an end that nobody can read", world: drain(time.Hour, func(_ *corev1.Node, c *karpenter.NodeClaim) {
			c.Annotations = map[string]string{karpenter.TerminationTimestampAnnotation: "soon"}
		}).pod("x", "p", protected("true")), want: []string{stuck}, text: []string{"until when is not known"}, lacks: []string{"nothing bounds it"}},
		{name: "a duration", world: drain(time.Minute).pod("x", "p", protected("2h"), started(time.Hour)), want: []string{stuck}, text: []string{`do-not-disrupt: "2h" until 2026-07-14T10:00:00Z`}},
		{name: "a duration that has passed", world: drain(time.Minute).pod("x", "p", protected("1h"), started(time.Hour))},
		{name: "Karpenter's word", world: drain(time.Minute).pod("x", "p", protected("true")).event("Node", "x", "FailedDraining", "Failed to drain node, 1 pods are waiting to be evicted", 30*time.Second), want: []string{stuck}, text: []string{"last seen 30s before"}},
		{name: "pods that nobody collected", world: func() *world { w := drain(time.Hour); w.Pods = nil; return w }(), gap: "cluster/pods.json"},
		{name: "in the pool's report", world: drain(time.Minute).pod("x", "p", protected("true")), pool: "a", want: []string{stuck}},
	}, report.DrainStuck)
}

func TestDriftQueued(t *testing.T) {
	const proven, likely = "drift-queued@x proven", "drift-queued@x likely"
	drifted := with(karpenter.ConditionDrifted, "True", "NodePoolDrifted", "", 10*time.Minute)
	hashed := func(hash, version string) map[string]string {
		return map[string]string{karpenter.NodePoolHashAnnotation: hash, karpenter.NodePoolHashVersionAnnotation: version}
	}
	ofHash := func(pool, claim, version string, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		w := edited(append(edit, func(_ *corev1.Node, c *karpenter.NodeClaim) { c.Annotations = hashed(claim, version) })...)
		return w.edit(func(p *karpenter.NodePool) { p.Annotations = hashed(pool, "v3") })
	}
	budgets := func(b ...karpenter.Budget) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = b }
	}
	zone := func(values ...string) func(*karpenter.NodePool) {
		return func(p *karpenter.NodePool) {
			p.Spec.Template.Spec.Requirements = []karpenter.Requirement{{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: "In", Values: values}}}
		}
	}
	checkRules(t, []ruleCase{
		{name: "marked", world: edited(drifted), want: []string{proven}, text: []string{"Node x is to be replaced because it is drifted (NodePoolDrifted) since 2026-07-14T08:50:00Z (for 10m); the budgets leave room", "unlimited allowed of 1 node, 0 consumed"}},
		{name: "not", world: edited()},
		{name: "marked no more", world: edited(with(karpenter.ConditionDrifted, "False", "NodePoolDrifted", "", time.Minute))},
		{name: "by the provider", world: edited(with(karpenter.ConditionDrifted, "True", "AMIDrift", "", time.Minute)), want: []string{proven}, text: []string{"AMIDrift", "found by the provider"}},
		{name: "a hash that differs", world: ofHash("2", "1", "v3"), want: []string{likely}, text: []string{"NodePoolDrifted", "Karpenter has not marked it yet", "metadata.annotations[karpenter.sh/nodepool-hash]"}},
		{name: "a hash that does not", world: ofHash("1", "1", "v3")},
		{name: "hashes of two versions", world: ofHash("2", "1", "v2")},
		{name: "before the launch", world: ofHash("2", "1", "v3", with(karpenter.ConditionLaunched, "Unknown", "x", "", 0))},
		{name: "another zone is asked for", world: edited().edit(zone("zone-b", "zone-c")), want: []string{likely}, text: []string{"RequirementsDrifted", "In zone-b and zone-c", "the NodeClaim's label is zone-a"}},
		{name: "its zone is one of them", world: edited().edit(zone("zone-b", "zone-a"))},
		{name: "a label that is not in the bundle", world: edited().edit(func(p *karpenter.NodePool) {
			p.Spec.Template.Spec.Requirements = []karpenter.Requirement{{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: "other", Operator: "In", Values: []string{"b"}}}}
		})},
		{name: "budgets that allow none now", world: edited(drifted).edit(budgets(window("0", "0 8 * * *", 4*time.Hour, karpenter.Drifted))), want: []string{proven}, text: []string{"the budgets allow 0 for Drifted, until 2026-07-14T12:00:00Z", "spec.disruption.budgets[0].nodes"}},
		{name: "budgets that allow none ever", world: edited(drifted).edit(budgets(window("0", "", 0))), want: []string{proven}, text: []string{"and that never changes"}},
		{name: "budgets of other reasons", world: edited(drifted).edit(budgets(window("0", "", 0, karpenter.Empty))), want: []string{proven}, text: []string{"leave room"}},
		{name: "budgets that are used up", world: edited(drifted).node("a", "y", chosen).edit(budgets(window("1", "", 0))), want: []string{proven}, text: []string{"the 1 node that the budgets allow for Drifted are used up", "1 allowed of 2 nodes, 1 consumed, 0 remaining"}},
		{name: "budgets that nobody can read", world: edited(drifted).edit(budgets(window("1", "0 9 * * 7", time.Hour))), want: []string{proven}, text: []string{"cannot be evaluated"}},
		{name: "a pod keeps it", world: edited(drifted).pod("x", "p", protected("true")), want: []string{proven}, text: []string{"first it has to get rid of what keeps it", "shop/p"}},
		{name: "a pod keeps it, and a grace period forgives that", world: edited(drifted, bounded(time.Hour)).pod("x", "p", protected("true")), want: []string{proven}, text: []string{"leave room"}},
		{name: "a budget of pods keeps it", world: edited(drifted).pod("x", "p").pdb("b"), want: []string{proven}, text: []string{"get rid of what keeps it", "shop/b"}},
		{name: "a budget of pods keeps it, and a grace period forgives that", world: edited(drifted, bounded(time.Hour)).pod("x", "p").pdb("b"), want: []string{proven}, text: []string{"leave room"}},
		{name: "the grace period forgives no annotation of the node", world: edited(drifted, bounded(time.Hour), func(n *corev1.Node, _ *karpenter.NodeClaim) {
			n.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		}), want: []string{proven}, text: []string{"get rid of"}},
		{name: "pods that nobody collected", world: func() *world { w := edited(drifted); w.Pods = nil; return w }(), want: []string{proven}, text: []string{"whether a pod keeps it is not known"}, lacks: []string{"leave room"}},
		{name: "budgets of pods that nobody collected", world: func() *world { w := edited(drifted); w.PDBs = nil; return w }(), want: []string{proven}, lacks: []string{"leave room"}},
		{name: "nodes that were read in part", world: partly(edited(drifted)), want: []string{proven}, text: []string{"what its budgets allow is not known without the nodes"}, lacks: []string{"leave room", "0 consumed"}},
		{name: "a timer does not matter", world: edited(drifted, func(_ *corev1.Node, c *karpenter.NodeClaim) { c.Status.LastPodEventTime = metav1.NewTime(now) }), want: []string{proven}, text: []string{"leave room"}},
		{name: "a static pool", world: edited(drifted).edit(static(1)), want: []string{proven}, text: []string{"as soon as its new node is ready"}},
		{name: "going", world: edited(drifted, chosen)},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
	}, report.DriftQueued)
}

// partly is a world of which not all nodes were read.
func partly(w *world) *world {
	w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"}]`
	return w
}

func static(replicas int64) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Replicas = &replicas }
}

func TestExpiryIgnoresBudget(t *testing.T) {
	const proven, likely = "expiry-ignores-budget@x proven", "expiry-ignores-budget@x likely"
	// Of an age of one hour.
	expires := func(after time.Duration, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		return edited(append(edit, func(_ *corev1.Node, c *karpenter.NodeClaim) {
			c.Spec.ExpireAfter = karpenter.NillableDuration{Duration: after, Set: true, Text: after.String()}
		})...)
	}
	closed := func(p *karpenter.NodePool) { p.Spec.Disruption.Budgets = []karpenter.Budget{window("0", "", 0)} }
	half := func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{window("0", "", 0, karpenter.Drifted, karpenter.Empty)}
	}
	night := func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{window("2", "", 0), window("0", "0 20 * * *", 10*time.Hour)}
	}
	day := 24 * time.Hour
	checkRules(t, []ruleCase{
		{name: "within a day", world: expires(25 * time.Hour), want: []string{proven}, text: []string{"Node x expires at 2026-07-15T09:00:00Z, in 24h (created 2026-07-14T08:00:00Z, expireAfter 25h0m0s), whatever the budgets say (at that moment Empty unlimited, Drifted unlimited, Underutilized unlimited) and without a replacement first",
			"may hold it for ever", "2026-07-14T08:00:00Z + 25h0m0s = 2026-07-15T09:00:00Z", "kubectl delete nodeclaims.karpenter.sh x-claim"}},
		{name: "a second more than a day", world: expires(25*time.Hour + time.Second)},
		{name: "far, when budgets allow nothing", world: expires(30 * day).edit(closed), want: []string{proven}, text: []string{"2026-08-13T08:00:00Z, in 719h", "at that moment Empty 0, Drifted 0, Underutilized 0"}},
		{name: "far, when they allow something", world: expires(30 * day).edit(half)},
		{name: "far, in a window", world: expires(30*day + 13*time.Hour).edit(night), want: []string{proven}, text: []string{"2026-08-13T21:00:00Z"}},
		{name: "far, out of it", world: expires(30*day + 22*time.Hour).edit(night)},
		{name: "never", world: edited()},
		{name: "Never", world: edited(func(_ *corev1.Node, c *karpenter.NodeClaim) {
			c.Spec.ExpireAfter = karpenter.NillableDuration{Text: "Never"}
		})},
		{name: "over", world: expires(time.Hour), want: []string{proven}, text: []string{"expired at 2026-07-14T09:00:00Z, 0s ago, and is deleted as soon as Karpenter looks"}, lacks: []string{"kubectl delete", "does not run"}},
		{name: "long over", world: expires(30 * time.Minute), want: []string{proven}, text: []string{"30m ago, and is deleted as soon as Karpenter looks, which it does at that moment: perhaps its controller does not run"}, lacks: []string{"kubectl delete"}},
		{name: "long over by then", world: expires(2 * time.Hour), at: now.Add(2 * time.Hour), want: []string{proven}, text: []string{"1h ago"}, lacks: []string{"does not run"}},
		{name: "a second before", world: expires(time.Hour), at: now.Add(-time.Second), want: []string{proven}, text: []string{"in 1s"}},
		{name: "with a grace period", world: expires(2*time.Hour, bounded(30*time.Minute)), want: []string{proven}, text: []string{"for 30m at most (terminationGracePeriod)"}, lacks: []string{"for ever"}},
		{name: "deleted for it", world: expires(50*time.Minute, deleted(10*time.Minute-20*time.Second)), want: []string{likely}, text: []string{"was deleted at 2026-07-14T08:50:20Z because it expired at 2026-07-14T08:50:00Z", "by whom it does not say"}, lacks: []string{"kubectl delete"}},
		{name: "deleted long after", world: expires(50*time.Minute, deleted(time.Minute)), want: []string{likely}, text: []string{"expired at 2026-07-14T08:50:00Z, and is being deleted since 2026-07-14T08:59:00Z"}},
		{name: "deleted that second", world: expires(50*time.Minute, deleted(10*time.Minute)), want: []string{likely}},
		{name: "far, when they allow nothing for the last reason", world: expires(30 * day).edit(func(p *karpenter.NodePool) {
			p.Spec.Disruption.Budgets = []karpenter.Budget{window("0", "", 0, karpenter.Underutilized)}
		})},
		{name: "nodes that were read in part", world: partly(expires(2 * time.Hour)), want: []string{proven}, lacks: []string{"at that moment"}},
		{name: "deleted before", world: expires(50*time.Minute, deleted(10*time.Minute+time.Second))},
		{name: "made nobody knows when", world: expires(2*time.Hour, func(_ *corev1.Node, c *karpenter.NodeClaim) { c.CreationTimestamp = metav1.Time{} })},
		{name: "without its pool", world: func() *world { w := expires(2 * time.Hour); w.Pools = nil; return w }(), want: []string{proven}, lacks: []string{"at that moment"}},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
		{name: "in the pool's report", world: expires(2 * time.Hour), pool: "a", want: []string{proven}},
		{name: "in the pool's report, nodes that nobody collected", world: func() *world { w := expires(2 * time.Hour); w.Nodes = nil; return w }(), pool: "a"},
	}, report.ExpiryIgnoresBudget)
}

func TestRepairIgnoresBudget(t *testing.T) {
	const possible, likely = "repair-ignores-budget@x possible", "repair-ignores-budget@x likely"
	sick := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, ago time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
		return func(n *corev1.Node, c *karpenter.NodeClaim) {
			n.Spec.ProviderID = "aws:///zone-a/i-" + n.Name
			c.Status.ProviderID = n.Spec.ProviderID
			condition := corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
			if kind == corev1.NodeReady {
				n.Status.Conditions = nil
			}
			n.Status.Conditions = append(n.Status.Conditions, condition)
		}
	}
	gated := func(w *world, gates string) *world {
		return w.pod("elsewhere", "karpenter-0", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app.kubernetes.io/name": "karpenter"}
			p.Spec.Containers[0].Name = "controller"
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FEATURE_GATES", Value: gates}}
		})
	}
	crowd := func(healthy int, ill int) *world {
		w := edited(sick(corev1.NodeReady, "False", time.Minute))
		for i := range ill {
			w.node("a", fmt.Sprintf("ill%d", i), sick(corev1.NodeReady, "Unknown", time.Minute))
		}
		for i := range healthy {
			w.node("a", fmt.Sprintf("well%d", i))
		}
		return w
	}
	on := "NodeRepair=true,SpotToSpotConsolidation=false"
	checkRules(t, []ruleCase{
		{name: "not ready", world: gated(edited(sick(corev1.NodeReady, "False", 10*time.Minute)), on), want: []string{likely},
			text: []string{"Node x is unhealthy (Ready False since 2026-07-14T08:50:00Z) and is replaced at 2026-07-14T09:20:00Z; repair asks no budget", "2026-07-14T08:50:00Z + 30m (policy of the AWS provider) = 2026-07-14T09:20:00Z; ceil(20% of 1 nodes) = 1 may be unhealthy, 1 are", "env.FEATURE_GATES"}},
		{name: "the time has come", world: gated(edited(sick(corev1.NodeReady, "Unknown", 30*time.Minute)), on), want: []string{likely}, text: []string{"was due to be replaced at 2026-07-14T09:00:00Z"}},
		{name: "an accelerator", world: gated(edited(sick("AcceleratedHardwareReady", "False", 9*time.Minute)), on), want: []string{likely}, text: []string{"replaced at 2026-07-14T09:01:00Z"}},
		{name: "an accelerator that is not known of", world: gated(edited(sick("AcceleratedHardwareReady", "Unknown", time.Hour)), on)},
		{name: "a condition without a policy", world: gated(edited(sick("DiskPressure", "True", time.Hour)), on)},
		{name: "healthy", world: gated(edited(sick(corev1.NodeReady, "True", time.Hour)), on)},
		{name: "since nobody knows when", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute), func(n *corev1.Node, _ *karpenter.NodeClaim) {
			n.Status.Conditions[0].LastTransitionTime = metav1.Time{}
		}), on)},
		{name: "the gate is off", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute)), "NodeRepair=false")},
		{name: "the gate is not named", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute)), "SpotToSpotConsolidation=true")},
		{name: "nobody knows the gate", world: edited(sick(corev1.NodeReady, "False", time.Minute)), want: []string{possible}, text: []string{"if the feature gate NodeRepair is on"}, gap: "FEATURE_GATES"},
		{name: "another provider", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute), func(n *corev1.Node, c *karpenter.NodeClaim) {
			n.Spec.ProviderID, c.Status.ProviderID = "kwok://x", "kwok://x"
		}), on)},
		{name: "a fifth of the pool, rounded up", world: gated(crowd(4, 1), on), want: []string{likely}, lacks: []string{"but is not"}, text: []string{"ceil(20% of 6 nodes) = 2 may be unhealthy, 2 are"}},
		{name: "more than that", world: gated(crowd(3, 1), on), want: []string{likely}, text: []string{"but is not while more than 1 of the pool's 5 nodes are unhealthy (2 are)"}},
		{name: "1.6", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute)), on), version: "1.6.4", want: []string{likely}},
		{name: "1.0 has no repair", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute)), on), version: "1.0.8"},
		{name: "1.15 repairs by budget", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute)), on), version: "1.15.0"},
		{name: "going", world: gated(edited(sick(corev1.NodeReady, "False", time.Minute), chosen), on)},
		{name: "of nobody", world: gated(newWorld().pool("a").node("", "x", sick(corev1.NodeReady, "False", time.Minute)), on)},
	}, report.RepairIgnoresBudget)
}
