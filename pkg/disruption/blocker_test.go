package disruption

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func checksOf(blockers []Blocker) []Check {
	var out []Check
	for _, b := range blockers {
		out = append(out, b.Check)
	}
	return out
}

func TestBlockersAreAllOfThem(t *testing.T) {
	protected := pod("a", annotated(karpenter.DoNotDisruptAnnotation, "2h"), func(p *corev1.Pod) { s := before(time.Hour); p.Status.StartTime = &s })
	n := healthy("n", protected, pod("b"), pod("c"))
	n.Queued, n.Marked, n.Nominated = true, true, true
	n.Node.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
	n.Node.Labels[karpenter.NodePoolLabel] = "gone"
	n.NodeClaim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	c := clusterOf(t, []*Node{n}, pdbFor("b", 0), pdbFor("c", 1), pdbFor("c", 1, func(p *policyv1.PodDisruptionBudget) { p.Name = "other" }))
	blockers := c.Blockers(n, now)
	want := []Check{CheckInQueue, CheckDeleting, CheckNominated, CheckNodeDoNotDisrupt, CheckNodePoolNotFound, CheckPodDoNotDisrupt, CheckPDB, CheckSeveralPDBs}
	if got := checksOf(blockers); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if dnd := blockers[5]; dnd.Pod.Name != "a" || !dnd.Until.Equal(now.Add(time.Hour)) || !dnd.Forgiven || dnd.Text != `pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/a)` {
		t.Errorf("%+v", dnd)
	}
	if several := blockers[7]; several.Text != "eviction does not support multiple PDBs (PodDisruptionBudget(s)=[shop/other shop/pdb-c])" || len(several.PDBs) != 2 {
		t.Errorf("%+v", several)
	}
	if blockers[0].Forgiven || blockers[4].Forgiven {
		t.Error("a blocker of the node is forgiven")
	}
}

func TestNodeBlockers(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Node)
		want   []Check
	}{
		{"healthy", func(*Node) {}, nil},
		{"of others", func(n *Node) { n.NodeClaim = nil }, []Check{CheckNotManaged}},
		{"no node", func(n *Node) { n.Node = nil }, []Check{CheckNoNode}},
		{"not initialized", func(n *Node) { delete(n.Node.Labels, karpenter.InitializedLabel) }, []Check{CheckNotInitialized}},
		{"initialized, but not with true", func(n *Node) { n.Node.Labels[karpenter.InitializedLabel] = "True" }, []Check{CheckNotInitialized}},
		{"deleted", func(n *Node) { d := before(0); n.NodeClaim.DeletionTimestamp = &d }, []Check{CheckDeleting}},
		{"instance going", func(n *Node) { n.set(karpenter.ConditionInstanceTerminating, before(0)) }, []Check{CheckDeleting}},
		{"annotation of a node is no duration", func(n *Node) { n.Node.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "1h"} }, nil},
		{"annotation of the claim does not count", func(n *Node) { n.NodeClaim.Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"} }, nil},
		{"without pool", func(n *Node) { delete(n.Node.Labels, karpenter.NodePoolLabel) }, []Check{CheckNoNodePoolLabel}},
	}
	for _, tt := range tests {
		n := healthy("n")
		tt.change(n)
		if got := checksOf(clusterOf(t, []*Node{n}).Blockers(n, now)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEventualForgivesPods(t *testing.T) {
	n := healthy("n", pod("a", annotated(karpenter.DoNotDisruptAnnotation, "true")))
	c := clusterOf(t, []*Node{n})
	if _, blocker := c.Candidate(n, Eventual, now); blocker == nil {
		t.Error("forgiven without a termination grace period")
	}
	n.NodeClaim.Spec.TerminationGracePeriod = &metav1.Duration{}
	if _, blocker := c.Candidate(n, Eventual, now); blocker != nil {
		t.Errorf("eventual: %+v", blocker)
	}
	if _, blocker := c.Candidate(n, Graceful, now); blocker == nil {
		t.Error("a graceful method forgives")
	}
}

func TestPDBs(t *testing.T) {
	alwaysAllow := func(p *policyv1.PodDisruptionBudget) {
		policy := policyv1.AlwaysAllow
		p.Spec.UnhealthyPodEvictionPolicy = &policy
	}
	everything := func(p *policyv1.PodDisruptionBudget) { p.Name, p.Spec.Selector = "all", &metav1.LabelSelector{} }
	unready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	tests := []struct {
		name    string
		version string
		pod     *corev1.Pod
		pdbs    []policyv1.PodDisruptionBudget
		want    int // blocking
	}{
		{"allows none", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 1},
		{"allows one", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 1)}, 0},
		{"of other pods", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("b", 0)}, 0},
		{"empty selector", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("b", 0, everything)}, 1},
		{"two, both open", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 5), pdbFor("a", 5, everything)}, 2},
		{"two, both open, in 1.0", "1.0.8", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 5), pdbFor("a", 5, everything)}, 0},
		{"two, one closed, in 1.0", "1.0.8", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 0), pdbFor("a", 5, everything)}, 1},
		{"unready, always allowed", "1.14", pod("a", unready), []policyv1.PodDisruptionBudget{pdbFor("a", 0, alwaysAllow)}, 0},
		{"unready, if healthy budget", "1.14", pod("a", unready), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 1},
		{"ready, always allowed", "1.14", pod("a"), []policyv1.PodDisruptionBudget{pdbFor("a", 0, alwaysAllow)}, 1},
		{"of a DaemonSet", "1.14", pod("a", ownedByKind("apps/v1", "DaemonSet")), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 1},
		{"static", "1.14", pod("a", ownedByKind("v1", "Node")), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 0},
		{"terminating", "1.14", pod("a", terminating(0)), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 0},
		{"tolerates everything", "1.14", pod("a", tolerates), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 0},
		{"protected itself", "1.14", pod("a", annotated(karpenter.DoNotDisruptAnnotation, "true")), []policyv1.PodDisruptionBudget{pdbFor("a", 0)}, 0},
	}
	for _, tt := range tests {
		pdbs, err := NewPDBs(tt.pdbs)
		if err != nil {
			t.Fatal(err)
		}
		if got := pdbs.Blocking(tt.pod, now, rulesOf(t, tt.version)); len(got) != tt.want {
			t.Errorf("%s: %d block, want %d", tt.name, len(got), tt.want)
		}
	}
	if _, err := NewPDBs([]policyv1.PodDisruptionBudget{pdbFor("a", 0, func(p *policyv1.PodDisruptionBudget) {
		p.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})}); err == nil {
		t.Error("an unknown operator gives no error")
	}
}

func TestDoNotDisrupt(t *testing.T) {
	started := func(p *corev1.Pod) { s := before(time.Hour); p.Status.StartTime = &s }
	tests := []struct {
		value, version string
		started        bool
		holds, err     bool
	}{
		{"true", "1.14", true, true, false},
		{"true", "1.0.8", true, true, false},
		{"false", "1.14", true, false, true},
		{"True", "1.14", true, false, true},
		{"2h", "1.14", true, true, false},
		{"1h", "1.14", true, false, false},
		{"1h", "1.14", false, true, false},
		{"2h", "1.11.0", true, false, true},
		{"0s", "1.14", true, false, true},
		{"-5m", "1.14", true, false, true},
		{"", "1.14", true, false, true},
	}
	for _, tt := range tests {
		p := pod("a", annotated(karpenter.DoNotDisruptAnnotation, tt.value))
		if tt.started {
			started(p)
		}
		d := DoNotDisruptOf(p, rulesOf(t, tt.version))
		if d.Holds(now) != tt.holds || (d.Err != nil) != tt.err {
			t.Errorf("%q in %s: holds %v, %v", tt.value, tt.version, d.Holds(now), d.Err)
		}
	}
	if d := DoNotDisruptOf(pod("a"), karpenter.DefaultRules()); d.Holds(now) || d.Err != nil {
		t.Errorf("without annotation: %+v", d)
	}
}

func TestEvents(t *testing.T) {
	tests := []struct{ text, version, want string }{
		{karpenter.NoNode, "1.14", "Nodeclaim does not have an associated node"},
		{karpenter.NotInitialized, "1.14", "Node isn't initialized"},
		{karpenter.NotInitialized, "1.0.8", "Cannot disrupt Node: state node isn't initialized"},
		{karpenter.Nominated, "1.0.8", "Cannot disrupt Node: state node is nominated for a pending pod"},
		{karpenter.NodePoolNotFound("x"), "1.14", "NodePool not found (NodePool=x)"},
	}
	for _, tt := range tests {
		if got := karpenter.BlockedEvent(tt.text, rulesOf(t, tt.version)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.version, got, tt.want)
		}
	}
}
