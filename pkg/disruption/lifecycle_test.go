package disruption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func TestJoin(t *testing.T) {
	a, b, c := healthy("a"), healthy("b"), healthy("c")
	b.Node.Spec.Taints = []corev1.Taint{{Key: karpenter.DisruptedTaint, Effect: corev1.TaintEffectNoSchedule}}
	c.set(karpenter.ConditionDisruptionReason, before(0))
	others := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "of-others"}}
	awaited := healthy("awaited").Node
	awaited.Spec.ProviderID = ""
	launching := *healthy("x").NodeClaim
	launching.Status.ProviderID = ""
	pods := []corev1.Pod{*pod("z"), *pod("y"), *pod("unbound")}
	pods[0].Spec.NodeName, pods[1].Spec.NodeName = "a", "a"
	joined, unlaunched := Join([]corev1.Node{others, *c.Node, *b.Node, *a.Node, *awaited}, []karpenter.NodeClaim{*a.NodeClaim, *b.NodeClaim, *c.NodeClaim, launching}, pods)
	if len(joined) != 4 || len(unlaunched) != 1 || unlaunched[0].Name != "claim-x" {
		t.Fatalf("%d joined, %d unlaunched", len(joined), len(unlaunched))
	}
	for i, want := range []struct {
		name            string
		managed, marked bool
		queued          bool
		pods            int
	}{{"a", true, false, false, 2}, {"b", true, true, false, 0}, {"c", true, true, true, 0}, {"of-others", false, false, false, 0}} {
		n := joined[i]
		if n.Name() != want.name || n.Managed() != want.managed || n.Marked != want.marked || n.Queued != want.queued || len(n.Pods) != want.pods {
			t.Errorf("%d: %s %v %v %v %d, want %+v", i, n.Name(), n.Managed(), n.Marked, n.Queued, len(n.Pods), want)
		}
	}
	if joined[0].Pods[0].Name != "y" {
		t.Error("pods are not in order of name")
	}
}

func TestUsage(t *testing.T) {
	ready, unready, deleting, marked, both := healthy("a"), healthy("b"), healthy("c"), healthy("d"), healthy("e")
	unready.Node.Status.Conditions = nil
	deleted := before(0)
	deleting.NodeClaim.DeletionTimestamp = &deleted
	marked.Marked = true
	both.Marked = true
	both.Node.Status.Conditions[0].Status = corev1.ConditionUnknown
	fresh, going, elsewhere := healthy("f"), healthy("g"), healthy("h")
	delete(fresh.Node.Labels, karpenter.InitializedLabel)
	going.set(karpenter.ConditionInstanceTerminating, before(0))
	elsewhere.Node.Labels[karpenter.NodePoolLabel] = "other"
	unmanaged := healthy("i")
	unmanaged.NodeClaim = nil
	nodes := []*Node{ready, unready, deleting, marked, both, fresh, going, elsewhere, unmanaged}
	tests := []struct {
		version string
		reason  karpenter.Reason
		want    string
	}{
		{"1.14", karpenter.Empty, "b:NotReady c:Deleting d:Marked e:NotReady e:Marked "},
		{"1.15", karpenter.Unhealthy, "c:Deleting d:Marked e:Marked "},
		{"1.15", karpenter.Drifted, "b:NotReady c:Deleting d:Marked e:NotReady e:Marked "},
	}
	for _, tt := range tests {
		usage := UsageOf("default", tt.reason, nodes, rulesOf(t, tt.version))
		got := ""
		for _, consumer := range usage.Consumers {
			for _, why := range consumer.Why {
				got += consumer.Node.Name() + ":" + string(why) + " "
			}
		}
		if usage.Total != 5 || got != tt.want {
			t.Errorf("%s %s: of %d, %s; want of 5, %s", tt.version, tt.reason, usage.Total, got, tt.want)
		}
	}
}

func TestDriftOf(t *testing.T) {
	hash := func(value, version string) map[string]string {
		return map[string]string{karpenter.NodePoolHashAnnotation: value, karpenter.NodePoolHashVersionAnnotation: version}
	}
	tests := []struct {
		name        string
		spec        string
		pool, claim map[string]string
		change      func(*Node)
		want        DriftReason
	}{
		{"none", `{}`, nil, nil, nil, ""},
		{"another hash", `{}`, hash("1", "v3"), hash("2", "v3"), nil, NodePoolDrifted},
		{"another version of hash", `{}`, hash("1", "v3"), hash("2", "v2"), nil, ""},
		{"no hash on the claim", `{}`, hash("1", "v3"), nil, nil, ""},
		{"zone", requirements("topology.kubernetes.io/zone", "In", `"b"`), nil, nil, nil, RequirementsDrifted},
		{"zone by its old name", requirements("failure-domain.beta.kubernetes.io/zone", "In", `"b"`), nil, nil, nil, RequirementsDrifted},
		{"zone fits", requirements("topology.kubernetes.io/zone", "In", `"a","b"`), nil, nil, nil, ""},
		{"label missing", requirements("team", "Exists", ""), nil, nil, nil, RequirementsDrifted},
		{"label missing as asked", requirements("team", "NotIn", `"x"`), nil, nil, nil, ""},
		{"hash before requirements", requirements("team", "Exists", ""), hash("1", "v3"), hash("2", "v3"), nil, NodePoolDrifted},
		{"type gone", `{}`, nil, nil, func(n *Node) {
			n.NodeClaim.Labels[corev1.LabelInstanceTypeStable] = "x"
			n.NodeClaim.CreationTimestamp = before(2 * time.Hour)
		}, InstanceTypeNotFoundDrift},
		{"type gone, too young to look", `{}`, nil, nil, func(n *Node) { n.NodeClaim.Labels[corev1.LabelInstanceTypeStable] = "x" }, ""},
		{"not launched", `{}`, hash("1", "v3"), hash("2", "v3"), func(n *Node) { n.NodeClaim.Status.Conditions = nil }, ""},
	}
	for _, tt := range tests {
		n := healthy("n")
		pool := poolOf(t, tt.spec)
		pool.Annotations, n.NodeClaim.Annotations = tt.pool, tt.claim
		if tt.change != nil {
			tt.change(n)
		}
		if got := clusterOf(t, nil).DriftOf(pool, n.NodeClaim, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func requirements(key, operator, values string) string {
	return `{"template":{"spec":{"requirements":[{"key":"` + key + `","operator":"` + operator + `","values":[` + values + `]}]}}}`
}

func TestExpiresAt(t *testing.T) {
	n := healthy("n")
	if at, ok := ExpiresAt(n.NodeClaim); ok {
		t.Errorf("expires at %v without expireAfter", at)
	}
	n.NodeClaim.Spec.ExpireAfter = karpenter.NillableDuration{Duration: 24 * time.Hour, Set: true}
	if at, ok := ExpiresAt(n.NodeClaim); !ok || !at.Equal(now.Add(23*time.Hour)) {
		t.Errorf("expires at %v, %v", at, ok)
	}
}

func TestRepair(t *testing.T) {
	nodes := []*Node{healthy("a"), healthy("b"), healthy("c"), healthy("d"), healthy("e"), healthy("f")}
	unready := func(n *Node) {
		n.Node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: before(10 * time.Minute)}}
	}
	unready(nodes[0])
	unready(nodes[1])
	nodes[0].Node.Status.Conditions = append(nodes[0].Node.Status.Conditions,
		corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, LastTransitionTime: before(time.Minute)})
	repair, ok := RepairOf(nodes[0].Node, AWSRepairPolicies)
	if !ok || repair.Policy.Type != "AcceleratedHardwareReady" || !repair.At.Equal(now.Add(9*time.Minute)) {
		t.Errorf("%+v", repair)
	}
	if _, ok := RepairOf(nodes[2].Node, AWSRepairPolicies); ok {
		t.Error("a healthy node is repaired")
	}
	if b := BreakerOf("default", nodes, AWSRepairPolicies); b.Open() || b != (Breaker{6, 2, 2}) {
		t.Errorf("%+v", b)
	}
	unready(nodes[2])
	if b := BreakerOf("default", nodes, AWSRepairPolicies); !b.Open() {
		t.Errorf("%+v", b)
	}
}

func TestStatic(t *testing.T) {
	pool := poolOf(t, `{"replicas":2}`)
	nodes := []*Node{healthy("a"), healthy("b"), healthy("c"), healthy("d")}
	nodes[1].Marked = true
	deleted := before(0)
	nodes[2].NodeClaim.DeletionTimestamp = &deleted
	s := StaticOf(pool, nodes)
	if s != (Static{Replicas: 2, Running: 2, Pending: 1, Deleting: 1}) || s.Surplus() != 0 {
		t.Errorf("%+v, surplus %d", s, s.Surplus())
	}
	if s.Replicas = 1; s.Surplus() != 1 {
		t.Errorf("%+v, surplus %d", s, s.Surplus())
	}
}

func TestDrain(t *testing.T) {
	grace := func(p *corev1.Pod) { s := int64(600); p.Spec.TerminationGracePeriodSeconds = &s }
	critical := func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }
	daemon := ownedByKind("apps/v1", "DaemonSet")
	n := healthy("n",
		pod("a", critical, daemon), pod("b", critical), pod("c", daemon), pod("d", grace, annotated(karpenter.DoNotDisruptAnnotation, "true")),
		pod("e"), pod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), pod("mirror", ownedByKind("v1", "Node")),
		pod("stuck", terminating(2*time.Minute)), pod("going", terminating(time.Second)))
	c := clusterOf(t, []*Node{n}, pdbFor("e", 0))
	if _, ok := c.DrainOf(n, now); ok {
		t.Error("a node that stays is drained")
	}
	deleted := before(time.Hour)
	n.NodeClaim.DeletionTimestamp = &deleted
	drain, ok := c.DrainOf(n, now)
	if !ok || drain.Stage != DrainPods || !drain.Ends.IsZero() || !drain.Started.Equal(now.Add(-time.Hour)) {
		t.Fatalf("%+v", drain)
	}
	got := ""
	for _, w := range drain.Waiting {
		got += w.Pod.Name
		if w.Turn {
			got += "!"
		}
		for _, h := range w.Holds {
			got += "(" + string(h.Check) + ")"
		}
		got += " "
	}
	if want := "d!(PodDoNotDisrupt) e!(PDB) going! c b a "; got != want {
		t.Errorf("waits for %s, want %s", got, want)
	}
	n.NodeClaim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Hour}
	drain, _ = c.DrainOf(n, now)
	if !drain.Ends.Equal(now.Add(time.Hour)) || !drain.Waiting[0].DeletedAt.Equal(now.Add(50*time.Minute)) || !drain.Waiting[1].DeletedAt.IsZero() {
		t.Errorf("ends %v, %v", drain.Ends, drain.Waiting[0].DeletedAt)
	}
	n.NodeClaim.Annotations = map[string]string{karpenter.TerminationTimestampAnnotation: "soon"}
	if drain, _ = c.DrainOf(n, now); drain.Err == nil {
		t.Error("an unreadable end gives no error")
	}
	n.Pods = nil
	if drain, _ = c.DrainOf(n, now); drain.Stage != DrainVolumes {
		t.Errorf("stage %v", drain.Stage)
	}
	n.set(karpenter.ConditionVolumesDetached, before(0))
	if drain, _ = c.DrainOf(n, now); drain.Stage != DrainInstance {
		t.Errorf("stage %v", drain.Stage)
	}
}
