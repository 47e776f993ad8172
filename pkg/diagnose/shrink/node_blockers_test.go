package shrink

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// edited is a node x of pool a.
func edited(edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
	return newWorld().pool("a").node("a", "x", edit...)
}

// with sets a condition of the NodeClaim.
func with(kind string, status metav1.ConditionStatus, reason, message string, ago time.Duration) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(_ *corev1.Node, c *karpenter.NodeClaim) {
		condition := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
		for i := range c.Status.Conditions {
			if c.Status.Conditions[i].Type == kind {
				c.Status.Conditions[i] = condition
				return
			}
		}
		c.Status.Conditions = append(c.Status.Conditions, condition)
	}
}

// uninitialized is a node that is registered, and not more.
func uninitialized(n *corev1.Node, c *karpenter.NodeClaim) {
	n.Labels = without(n.Labels, karpenter.InitializedLabel)
	with(karpenter.ConditionInitialized, metav1.ConditionUnknown, "StartupTaintsExist", "StartupTaint \"agent\" still exists", 50*time.Minute)(n, c)
}

func without(labels map[string]string, key string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func TestNodeDoNotDisrupt(t *testing.T) {
	const kept = "node-do-not-disrupt@x proven"
	annotated := func(value string) func(*corev1.Node, *karpenter.NodeClaim) {
		return func(n *corev1.Node, _ *karpenter.NodeClaim) {
			n.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: value}
		}
	}
	onClaim := func(_ *corev1.Node, c *karpenter.NodeClaim) {
		c.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
	}
	checkRules(t, []ruleCase{
		{name: "true", world: edited(annotated("true")), want: []string{kept}, text: []string{`Node x carries karpenter.sh/do-not-disrupt: "true", which keeps it from every voluntary disruption`, "api:nodes/x", "kubectl annotate nodes x karpenter.sh/do-not-disrupt-"}, lacks: []string{"template"}},
		{name: "none", world: edited()},
		{name: "True", world: edited(annotated("True"))},
		{name: "a duration", world: edited(annotated("1h"))},
		{name: "on the NodeClaim alone", world: edited(onClaim)},
		{name: "on the NodeClaim of a node that has not registered", world: edited(onClaim, func(n *corev1.Node, c *karpenter.NodeClaim) {
			n.Labels = without(n.Labels, karpenter.RegisteredLabel)
		}), want: []string{kept}, text: []string{"api:nodeclaims.karpenter.sh/x-claim", "kubectl annotate nodeclaims.karpenter.sh x-claim"}},
		{name: "from the pool's template", world: edited(annotated("true")).edit(func(p *karpenter.NodePool) {
			p.Spec.Template.Metadata.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		}), want: []string{kept}, text: []string{"as the template of NodePool a gives it", "all nodes of the pool become drifted"}},
		{name: "in the template alone", world: edited().edit(func(p *karpenter.NodePool) {
			p.Spec.Template.Metadata.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
		})},
		{name: "of nobody", world: newWorld().pool("a").node("", "x", annotated("true"))},
		{name: "Karpenter's word", world: edited(annotated("true")).event("Node", "x", "DisruptionBlocked", `Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`, time.Minute), want: []string{kept}, text: []string{"last seen 1m before"}},
		{name: "its word in 1.0", world: edited(annotated("true")).event("Node", "x", "DisruptionBlocked", `Cannot disrupt Node: disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation`, time.Minute), version: "1.0.8", want: []string{kept}, text: []string{"last seen 1m before"}},
	}, report.NodeDoNotDisrupt)
}

func TestNodeNominated(t *testing.T) {
	const possible, likely = "node-nominated@x possible", "node-nominated@x likely"
	nominated := func(w *world, message string, ago time.Duration) *world {
		return w.event("Pod", "waiting", "Nominated", message, ago)
	}
	const onX = "Pod should schedule on: nodeclaim/x-claim, node/x"
	const blocked = "Node is nominated for a pending pod"
	checkRules(t, []ruleCase{
		{name: "a pod", world: nominated(edited(), onX, 19*time.Second), want: []string{likely}, text: []string{"nominated for 1 pending pod", "keeps it until 2026-07-14T09:00:01Z at the latest", "max(2 × 10s, 10s) = 20s"}},
		{name: "it has passed this second", world: nominated(edited(), onX, 20*time.Second)},
		{name: "later than the moment", world: nominated(edited(), onX, -time.Second)},
		{name: "onto another", world: nominated(edited(), "Pod should schedule on: nodeclaim/y-claim, node/xy", time.Second)},
		{name: "onto a NodeClaim without a node", world: nominated(edited(), "Pod should schedule on: nodeclaim/x-claim", time.Second)},
		{name: "the same pod twice", world: nominated(nominated(edited(), onX, 15*time.Second), onX, 5*time.Second), want: []string{likely}, text: []string{"for 1 pending pod", "until 2026-07-14T09:00:15Z"}},
		{name: "two pods", world: nominated(edited(), onX, 15*time.Second).event("Pod", "other", "Nominated", onX, 5*time.Second), want: []string{likely}, text: []string{"for 2 pending pods"}},
		{name: "an event of something else", world: edited().event("Node", "x", "Nominated", onX, time.Second)},
		{name: "Karpenter's word alone", world: edited().event("Node", "x", "DisruptionBlocked", blocked, 19*time.Second), want: []string{possible}, text: []string{"a pending pod", "2026-07-14T09:00:01Z"}},
		{name: "its word of before", world: edited().event("Node", "x", "DisruptionBlocked", blocked, 20*time.Second)},
		{name: "it has said something else since", world: edited().event("Node", "x", "DisruptionBlocked", blocked, 19*time.Second).event("Node", "x", "Unconsolidatable", "Can't replace with a cheaper node", 5*time.Second)},
		{name: "its word in 1.0", world: edited().event("Node", "x", "DisruptionBlocked", "Cannot disrupt Node: state node is nominated for a pending pod", time.Second), version: "1.0.8", want: []string{possible}},
		{name: "going", world: nominated(edited(with(karpenter.ConditionDisruptionReason, "True", "Empty", "", time.Minute)), onX, time.Second)},
		{name: "of nobody", world: nominated(newWorld().pool("a").node("", "x"), onX, time.Second)},
	}, report.NodeNominated)
}

func TestNodeClaimNotInitialized(t *testing.T) {
	const held, likely = "nodeclaim-not-initialized@x proven", "nodeclaim-not-initialized@x likely"
	startup := corev1.Taint{Key: "agent", Value: "1", Effect: corev1.TaintEffectNoSchedule}
	left := func(n *corev1.Node, c *karpenter.NodeClaim) {
		n.Spec.Taints, c.Spec.StartupTaints = append(n.Spec.Taints, startup), append(c.Spec.StartupTaints, startup)
	}
	notReady := func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	silent := func(n *corev1.Node, c *karpenter.NodeClaim) {
		uninitialized(n, c)
		with(karpenter.ConditionInitialized, metav1.ConditionUnknown, "AwaitingReconciliation", "", time.Minute)(n, c)
	}
	checkRules(t, []ruleCase{
		{name: "a startup taint", world: edited(uninitialized, left), want: []string{held}, text: []string{"Node x is not initialized since 2026-07-14T08:10:00Z (for 50m), held by the startup taint agent=1:NoSchedule", "counts in no budget",
			"kubectl taint nodes x agent:NoSchedule-", `Unknown StartupTaintsExist: StartupTaint "agent" still exists`}},
		{name: "initialized", world: edited()},
		{name: "a startup taint that came back later", world: edited(left)},
		{name: "another effect is another taint", world: edited(uninitialized, left, func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }), want: []string{held}, lacks: []string{"kubectl taint"}},
		{name: "not ready", world: edited(uninitialized, notReady), want: []string{held}, text: []string{"held by the node's condition Ready (False)", "kubectl delete nodeclaims.karpenter.sh x-claim"}},
		{name: "not registered", world: edited(uninitialized, func(n *corev1.Node, _ *karpenter.NodeClaim) { delete(n.Labels, karpenter.RegisteredLabel) }), want: []string{held}, text: []string{"held by the node's registration", `"api:nodes/x"`, "(absent)"}},
		{name: "by what Karpenter says", world: edited(uninitialized), want: []string{held}, text: []string{`held by StartupTaint "agent" still exists`}},
		{name: "by nothing that shows", world: edited(silent), want: []string{likely}, text: []string{"neither its conditions nor its node tell"}},
		{name: "no node", world: func() *world {
			w := edited(uninitialized, with(karpenter.ConditionRegistered, metav1.ConditionUnknown, "NodeNotFound", "", 50*time.Minute))
			w.Nodes = []corev1.Node{}
			return w
		}(), node: "x-claim", want: []string{"nodeclaim-not-initialized@x-claim proven"}, text: []string{"no node has joined for it", "test:///x"}},
		{name: "its node is gone", world: func() *world { w := edited(); w.Nodes = []corev1.Node{}; return w }(), node: "x-claim", want: []string{"nodeclaim-not-initialized@x-claim proven"},
			text: []string{"NodeClaim x-claim has no Node any more, although one had registered for it at 2026-07-14T08:00:00Z: no method", "Karpenter deletes the NodeClaim by itself"}, lacks: []string{"not initialized since", "has joined"}},
		{name: "nodes that nobody collected", world: func() *world { w := edited(uninitialized); w.Nodes = nil; return w }(), node: "x-claim"},
		{name: "in the pool's report", world: func() *world { w := edited(uninitialized); w.Nodes = []corev1.Node{}; return w }(), pool: "a", want: []string{"nodeclaim-not-initialized@x-claim proven"}},
		{name: "in the pool's report, nodes that nobody collected", world: func() *world { w := edited(uninitialized); w.Nodes = nil; return w }(), pool: "a", gap: "cluster/nodes.json"},
		{name: "deleted", world: edited(uninitialized, deleted(time.Minute))},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
		{name: "Karpenter's word", world: edited(uninitialized, left).event("Node", "x", "DisruptionBlocked", "Node isn't initialized", time.Minute), want: []string{held}, text: []string{"last seen 1m before"}},
		{name: "its word in 1.0", world: edited(uninitialized, left).event("Node", "x", "DisruptionBlocked", "Cannot disrupt Node: state node isn't initialized", time.Minute), version: "1.0.8", want: []string{held}, text: []string{"last seen 1m before"}},
	}, report.NodeClaimNotInitialized)
}

func TestNodePoolNotFound(t *testing.T) {
	const gone, likely = "nodepool-not-found@x proven", "nodepool-not-found@x likely"
	const says = "NodePool not found (NodePool=a)"
	unlabelled := func(n *corev1.Node, c *karpenter.NodeClaim) {
		n.Labels = without(n.Labels, karpenter.NodePoolLabel)
	}
	poolless := func() *world { w := edited(); w.Pools = w.Pools[:0]; return w }
	checkRules(t, []ruleCase{
		{name: "it is there", world: edited()},
		{name: "deleted", world: poolless(), want: []string{gone}, text: []string{"Node x belongs to NodePool a, which is not there any more", "api:nodepools.karpenter.sh", "kubectl delete nodeclaims.karpenter.sh x-claim"}},
		{name: "deleted, with all that it owns", world: func() *world {
			w := poolless()
			w.Claims[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "a", UID: "pool-a"}}
			return w
		}(), want: []string{gone},
			text: []string{"garbage collector deletes its NodeClaim, which names the pool as its owner, whatever the budgets say", "metadata.ownerReferences", "does not save it"}, lacks: []string{"nothing but its deletion", "Create the pool again"}},
		{name: "pools that nobody collected", world: func() *world { w := edited(); w.Pools = nil; return w }(), gap: "cluster/nodepools.karpenter.sh.json"},
		{name: "deleted, and Karpenter's word", world: poolless().event("Node", "x", "DisruptionBlocked", says, time.Hour), want: []string{gone}, text: []string{"last seen 1h before"}},
		{name: "no label", world: edited(unlabelled), want: []string{gone}, text: []string{"has no label karpenter.sh/nodepool", "kubectl label nodes x karpenter.sh/nodepool=a"}},
		{name: "its types cannot be listed", world: edited().event("Node", "x", "DisruptionBlocked", says, 5*time.Minute), want: []string{likely}, text: []string{"although it is there: it cannot list the pool's instance types"}},
		{name: "and its pool says why", world: edited().edit(func(p *karpenter.NodePool) {
			p.Status.Conditions = []metav1.Condition{{Type: "NodeClassReady", Status: "False", Reason: "NotFound", Message: "no such class"}, {Type: "ValidationSucceeded", Status: "True"}}
		}).event("Node", "x", "DisruptionBlocked", says, time.Minute), want: []string{likely}, text: []string{"status.conditions[NodeClassReady]", "no such class"}, lacks: []string{"ValidationSucceeded"}},
		{name: "too long ago", world: edited().event("Node", "x", "DisruptionBlocked", says, 5*time.Minute+time.Second)},
		{name: "another pool's", world: edited().event("Node", "x", "DisruptionBlocked", "NodePool not found (NodePool=ab)", time.Minute)},
		{name: "it has said something else since", world: edited().event("Node", "x", "DisruptionBlocked", says, 2*time.Minute).event("Node", "x", "DisruptionBlocked", "Node is nominated for a pending pod", time.Minute)},
		{name: "going", world: func() *world { w := edited(deleted(time.Minute)); w.Pools = w.Pools[:0]; return w }()},
		{name: "of nobody", world: newWorld().pool("a").node("", "x")},
	}, report.NodePoolNotFound)
}

func TestNodePoolLimitReached(t *testing.T) {
	const reached = "nodepool-limit-reached@a proven"
	use := func(limits, used map[string]string) *world {
		return edited().edit(func(p *karpenter.NodePool) {
			p.Spec.Limits, p.Status.Resources = corev1.ResourceList{}, corev1.ResourceList{}
			for k, v := range limits {
				p.Spec.Limits[corev1.ResourceName(k)] = resource.MustParse(v)
			}
			for k, v := range used {
				p.Status.Resources[corev1.ResourceName(k)] = resource.MustParse(v)
			}
		})
	}
	two := int64(2)
	counted := func(limit string) *world {
		return use(map[string]string{"nodes": limit}, nil).edit(func(p *karpenter.NodePool) { p.Status.Nodes = &two })
	}
	cases := []ruleCase{
		{name: "all of it", world: use(map[string]string{"cpu": "8"}, map[string]string{"cpu": "8000m"}), want: []string{reached}, text: []string{"has used up its limits (cpu 8 of 8)", "cpu: 8 used, limit 8: remaining 0", "status.resources.cpu", "spec.limits.cpu", "stays within the limit once the nodes that it replaces are gone"}},
		{name: "more than it", world: use(map[string]string{"cpu": "8"}, map[string]string{"cpu": "9"}), want: []string{reached}, text: []string{"cpu 9 of 8", "remaining 0", "not as a replacement either"}},
		{name: "a thousandth less", world: use(map[string]string{"cpu": "8"}, map[string]string{"cpu": "7999m"})},
		{name: "no limit", world: use(nil, map[string]string{"cpu": "8"})},
		{name: "one of two", world: use(map[string]string{"cpu": "8", "memory": "32Gi"}, map[string]string{"cpu": "4", "memory": "32Gi"}), want: []string{reached}, text: []string{"memory 32Gi of 32Gi"}, lacks: []string{"cpu"}},
		{name: "both", world: use(map[string]string{"memory": "32Gi", "cpu": "8"}, map[string]string{"cpu": "8", "memory": "33Gi"}), want: []string{reached}, text: []string{"cpu 8 of 8, memory 33Gi of 32Gi", "remaining 0; memory"}},
		{name: "a status that does not tell it", world: use(map[string]string{"cpu": "8"}, nil), gap: "status.resources of NodePool a"},
		{name: "nodes", world: counted("2"), want: []string{reached}, text: []string{"nodes 2 of 2"}},
		{name: "one node less", world: counted("3")},
	}
	checkRules(t, cases, report.NodePoolLimitReached)
	for i := range cases {
		cases[i].pool = "a"
	}
	t.Run("pool", func(t *testing.T) { checkRules(t, cases, report.NodePoolLimitReached) })
}

func TestKarpenterUnsynced(t *testing.T) {
	const unsynced = "karpenter-unsynced@y-claim proven"
	launching := func(ago time.Duration, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
		w := edited().pool("b").node("b", "y", append(edit, func(_ *corev1.Node, c *karpenter.NodeClaim) {
			c.Status.ProviderID, c.CreationTimestamp = "", metav1.NewTime(now.Add(-ago))
		})...)
		w.Nodes = w.Nodes[:1]
		return w
	}
	failed := with(karpenter.ConditionLaunched, "Unknown", "LaunchFailed", "no capacity", 3*time.Minute)
	cases := []ruleCase{
		{name: "a minute", world: launching(time.Minute), want: []string{unsynced}, text: []string{"Karpenter disrupts nothing, in no pool, until NodeClaim y-claim has an instance or is gone", "since 2026-07-14T08:59:00Z (for 1m)", "kubectl delete nodeclaims.karpenter.sh y-claim"}},
		{name: "a second less", world: launching(59 * time.Second)},
		{name: "asked before", world: launching(time.Minute), at: now.Add(-time.Second)},
		{name: "an instance", world: edited()},
		{name: "what its launch says", world: launching(time.Hour, failed), want: []string{unsynced}, text: []string{"Unknown LaunchFailed: no capacity"}},
		{name: "two", world: func() *world {
			w := launching(time.Hour)
			c := w.Claims[1]
			c.Name, c.CreationTimestamp = "z-claim", metav1.NewTime(now.Add(-2*time.Hour))
			w.Claims = append(w.Claims, c)
			return w
		}(), want: []string{"karpenter-unsynced@z-claim proven"}, text: []string{"until every NodeClaim has an instance", "y-claim and z-claim", "the oldest since 2026-07-14T07:00:00Z"}},
		{name: "and its metrics", world: func() *world {
			w := launching(time.Hour)
			w.files[metricsFile] = "karpenter_cluster_state_synced 0\n"
			return w
		}(), want: []string{unsynced}, text: []string{"karpenter_cluster_state_synced"}},
		{name: "NodeClaims that nobody collected", world: func() *world { w := launching(time.Hour); w.Claims = nil; return w }()},
	}
	checkRules(t, cases, report.KarpenterUnsynced)
	for i := range cases {
		cases[i].pool = "a" // another pool than that of the launch
	}
	t.Run("pool", func(t *testing.T) { checkRules(t, cases, report.KarpenterUnsynced) })
	found, _ := ruleCase{world: newWorld().pool("a").node("", "x").node("b", "y", func(_ *corev1.Node, c *karpenter.NodeClaim) { c.Status.ProviderID = "" })}.answer(t, report.KarpenterUnsynced)
	if len(found) > 0 {
		t.Errorf("of a node that is not Karpenter's: %+v", found)
	}
}
