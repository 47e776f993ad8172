package disruption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

var now = time.Date(2026, 3, 4, 9, 30, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func rulesOf(t *testing.T, version string) karpenter.Rules {
	t.Helper()
	rules, _, err := karpenter.RulesFor(version)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// healthy is a node of the pool "default" that any method may choose, an hour old.
func healthy(name string, pods ...*corev1.Pod) *Node {
	labels := map[string]string{
		karpenter.NodePoolLabel: "default", karpenter.RegisteredLabel: "true", karpenter.InitializedLabel: "true",
		corev1.LabelInstanceTypeStable: "m.large", corev1.LabelTopologyZone: "a", karpenter.CapacityTypeLabel: "on-demand",
	}
	return &Node{
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       corev1.NodeSpec{ProviderID: "id-" + name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		NodeClaim: &karpenter.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: labels, CreationTimestamp: before(time.Hour)},
			Status: karpenter.NodeClaimStatus{ProviderID: "id-" + name, Conditions: []metav1.Condition{
				{Type: karpenter.ConditionLaunched, Status: metav1.ConditionTrue},
				{Type: karpenter.ConditionInitialized, Status: metav1.ConditionTrue, LastTransitionTime: before(50 * time.Minute)},
				{Type: karpenter.ConditionConsolidatable, Status: metav1.ConditionTrue},
			}},
		},
		Pods: pods,
	}
}

func (n *Node) set(condition string, since metav1.Time) *Node {
	n.NodeClaim.Status.Conditions = append(n.NodeClaim.Status.Conditions,
		metav1.Condition{Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: since})
	return n
}

func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", Labels: map[string]string{"app": name}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func ownedByKind(apiVersion, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind}} }
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func terminating(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { t := before(since); p.DeletionTimestamp = &t }
}

func pdbFor(app string, allowed int32, changes ...func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	object := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "pdb-" + app, Namespace: "shop"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
	for _, change := range changes {
		change(&object)
	}
	return object
}

func poolOf(t *testing.T, spec string) *karpenter.NodePool {
	t.Helper()
	pool, err := karpenter.DecodeNodePool([]byte(`{"metadata":{"name":"default"},"spec":` + spec + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return &pool
}

func clusterOf(t *testing.T, nodes []*Node, pdbs ...policyv1.PodDisruptionBudget) *Cluster {
	t.Helper()
	prepared, err := NewPDBs(pdbs)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{
		Rules: karpenter.DefaultRules(), Nodes: nodes, PDBs: prepared,
		Pools: map[string]*karpenter.NodePool{"default": poolOf(t, `{"disruption":{"consolidateAfter":"0s"}}`)},
		Types: InstanceTypes{"m.large": {{"a", "on-demand"}: 0.2}},
	}
}
