package disruption

import (
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

func TestCosts(t *testing.T) {
	priority := func(v int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &v } }
	tests := []struct {
		name string
		pod  *corev1.Pod
		want float64
	}{
		{"plain", pod("a"), 1},
		{"deletion cost", pod("a", annotated(corev1.PodDeletionCost, "134217728")), 2},
		{"least", pod("a", annotated(corev1.PodDeletionCost, "-2147483647")), -10},
		{"no number", pod("a", annotated(corev1.PodDeletionCost, "x")), 1},
		{"priority", pod("a", priority(33554432)), 2},
		{"system", pod("a", priority(2000001000)), 10},
		{"not yet known in 1.14", pod("a", annotated(karpenter.DisruptionCostAnnotation, "134217728")), 1},
	}
	for _, tt := range tests {
		if got := EvictionCost(tt.pod, karpenter.DefaultRules()); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	own := pod("a", annotated(karpenter.DisruptionCostAnnotation, "134217728"), annotated(corev1.PodDeletionCost, "0"))
	if got := EvictionCost(own, rulesOf(t, "1.15")); got != 2 {
		t.Errorf("1.15: %v", got)
	}
}

func TestEmptyByVersion(t *testing.T) {
	worthless := pod("a", annotated(corev1.PodDeletionCost, "-134217728"))
	tests := []struct {
		name     string
		pods     []*corev1.Pod
		now, old bool // in 1.14, in 1.13
	}{
		{"nothing", nil, true, true},
		{"pods that stay", []*corev1.Pod{pod("a", ownedByKind("apps/v1", "DaemonSet")), pod("b", ownedByKind("v1", "Node"))}, true, true},
		{"only pods of no cost", []*corev1.Pod{worthless}, true, false},
		{"a pod without owner", []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.OwnerReferences = nil })}, false, false},
		{"terminating", []*corev1.Pod{pod("a", terminating(0))}, true, true},
		{"terminating of a StatefulSet", []*corev1.Pod{pod("a", terminating(0), ownedByKind("apps/v1", "StatefulSet"))}, false, false},
	}
	for _, tt := range tests {
		n := healthy("n", tt.pods...)
		c := clusterOf(t, []*Node{n})
		for version, want := range map[string]bool{"1.14": tt.now, "1.13.0": tt.old} {
			c.Rules = rulesOf(t, version)
			candidate, blocker := c.Candidate(n, Graceful, now)
			if blocker != nil || candidate.Empty != want {
				t.Errorf("%s in %s: empty, want %v; %+v", tt.name, version, want, blocker)
			}
		}
	}
}

func TestFilters(t *testing.T) {
	tests := []struct {
		name   string
		spec   string
		change func(*Node)
		pods   bool
		method string
		want   []Check
	}{
		{"empty", `{"disruption":{"consolidateAfter":"0s"}}`, nil, false, "Emptiness", nil},
		{"not empty", `{"disruption":{"consolidateAfter":"0s"}}`, nil, true, "Emptiness", []Check{CheckNotEmpty}},
		{"never", `{"disruption":{"consolidateAfter":"Never"}}`, nil, false, "Emptiness", []Check{CheckConsolidationNever}},
		{"static", `{"replicas":3}`, nil, false, "Emptiness", []Check{CheckStaticNodePool}},
		{"static drift of a dynamic pool", `{}`, nil, false, "StaticDrift", []Check{CheckDynamicNodePool, CheckNotDrifted}},
		{"static drift", `{"replicas":3}`, func(n *Node) { n.set(karpenter.ConditionDrifted, before(0)) }, false, "StaticDrift", nil},
		{"drift", `{}`, func(n *Node) { n.set(karpenter.ConditionDrifted, before(0)) }, true, "Drift", nil},
		{"consolidation", `{"disruption":{"consolidateAfter":"0s"}}`, nil, true, "SingleNodeConsolidation", nil},
		{"left to emptiness", `{"disruption":{"consolidateAfter":"0s"}}`, nil, false, "SingleNodeConsolidation", []Check{CheckEmpty}},
		{
			"everything", `{"disruption":{"consolidateAfter":"Never","consolidationPolicy":"WhenEmpty"}}`,
			func(n *Node) {
				n.Node.Labels[corev1.LabelInstanceTypeStable] = "x"
				delete(n.Node.Labels, corev1.LabelTopologyZone)
				delete(n.Node.Labels, karpenter.CapacityTypeLabel)
				n.NodeClaim.Status.Conditions = nil
			},
			true, "MultiNodeConsolidation",
			[]Check{CheckInstanceTypeNotFound, CheckNoCapacityType, CheckNoZone, CheckConsolidationNever, CheckPolicyWhenEmpty, CheckNotConsolidatable},
		},
	}
	for _, tt := range tests {
		n := healthy("n")
		if tt.pods {
			n.Pods = []*corev1.Pod{pod("a")}
		}
		if tt.change != nil {
			tt.change(n)
		}
		c := clusterOf(t, []*Node{n})
		c.Pools["default"] = poolOf(t, tt.spec)
		candidate, blocker := c.Candidate(n, Graceful, now)
		if blocker != nil {
			t.Fatalf("%s: %+v", tt.name, blocker)
		}
		for _, m := range Methods(c.Rules) {
			if m.Name != tt.method {
				continue
			}
			if got := checksOf(c.Filter(m, candidate)); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func TestMethodsByVersion(t *testing.T) {
	tests := map[string][]string{
		"1.0.8":  {"Drift", "Emptiness", "MultiNodeConsolidation", "SingleNodeConsolidation"},
		"1.6.4":  {"Emptiness", "Drift", "MultiNodeConsolidation", "SingleNodeConsolidation"},
		"1.14.3": {"Emptiness", "StaticDrift", "Drift", "MultiNodeConsolidation", "SingleNodeConsolidation"},
	}
	for version, want := range tests {
		var got []string
		for _, m := range Methods(rulesOf(t, version)) {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

func TestTimer(t *testing.T) {
	tests := []struct {
		name, spec string
		change     func(*Node)
		state      TimerState
		left       time.Duration
	}{
		{"by initialization", `{"disruption":{"consolidateAfter":"1h"}}`, nil, TimerRunning, 10 * time.Minute},
		{"by a pod event", `{"disruption":{"consolidateAfter":"1h"}}`, func(n *Node) { n.NodeClaim.Status.LastPodEventTime = before(time.Minute) }, TimerRunning, 59 * time.Minute},
		{"over at the second", `{"disruption":{"consolidateAfter":"50m"}}`, nil, TimerElapsed, 0},
		{"zero, event in the future", `{"disruption":{"consolidateAfter":"0s"}}`, func(n *Node) { n.NodeClaim.Status.LastPodEventTime = before(-time.Minute) }, TimerElapsed, 0},
		{"never", `{"disruption":{"consolidateAfter":"Never"}}`, nil, TimerOff, 0},
		{"absent", `{}`, nil, TimerOff, 0},
		{"static", `{"replicas":1,"disruption":{"consolidateAfter":"1h"}}`, nil, TimerStatic, 0},
		{"not initialized", `{"disruption":{"consolidateAfter":"0s"}}`, func(n *Node) { n.NodeClaim.Status.Conditions = nil }, TimerNotInitialized, 0},
	}
	for _, tt := range tests {
		n := healthy("n")
		if tt.change != nil {
			tt.change(n)
		}
		timer := TimerOf(poolOf(t, tt.spec), n.NodeClaim, now)
		if timer.State != tt.state || timer.Remaining(now) != tt.left {
			t.Errorf("%s: %+v, %v left; want %v, %v", tt.name, timer, timer.Remaining(now), tt.state, tt.left)
		}
	}
	for gap, want := range map[time.Duration]bool{0: false, time.Second: true, 10 * time.Second: false, -time.Second: false} {
		if got := Unrecorded(now, now.Add(gap)); got != want {
			t.Errorf("event after %v: unrecorded %v", gap, got)
		}
	}
}

func TestOrder(t *testing.T) {
	candidate := func(name, pool string, price, cost, old float64) *Candidate {
		return &Candidate{Node: healthy(name), Pool: &karpenter.NodePool{ObjectMeta: poolOf(t, `{}`).ObjectMeta}, Price: price, RescheduleDisruptionCost: cost, DisruptionCost: old}
	}
	a, b, c := candidate("a", "x", 0.1, 1, 3), candidate("b", "x", 0.4, 2, 1), candidate("c", "x", 0.4, 2, 2)
	d := candidate("d", "y", 0.01, 1, 9)
	d.Pool.Name = "another"
	names := func(candidates []*Candidate) string {
		out := ""
		for _, c := range candidates {
			out += c.Node.Name()
		}
		return out
	}
	all := []*Candidate{a, c, d, b}
	if got := names(Order(all, rulesOf(t, "1.14"))); got != "bcad" {
		t.Errorf("by ratio: %s", got)
	}
	if got := names(Order(all, rulesOf(t, "1.13.0"))); got != "bcad" {
		t.Errorf("by cost: %s", got)
	}
	c.DisruptionCost = 0
	if got := names(Order(all, rulesOf(t, "1.13.0"))); got != "cbad" {
		t.Errorf("by cost: %s", got)
	}
	if got := names(SingleNodeOrder(all, rulesOf(t, "1.14"))); got != "dbca" {
		t.Errorf("pool by pool: %s", got)
	}
	a.Reschedulable = []*corev1.Pod{pod("p")}
	a.Node.set(karpenter.ConditionDrifted, before(3*time.Hour))
	b.Node.set(karpenter.ConditionDrifted, before(time.Hour))
	c.Node.set(karpenter.ConditionDrifted, before(2*time.Hour))
	if got := names(DriftOrder([]*Candidate{a, b, c})); got != "cba" {
		t.Errorf("drifted: %s", got)
	}
}

func TestBalanced(t *testing.T) {
	uniform := Totals{Cost: 0.8, Disruption: 40}
	tests := []struct {
		name          string
		savings, cost float64
		totals        Totals
		value         float64
		approved      bool
	}{
		{"delete one of four", 0.2, 10, uniform, 1, true},
		{"replace by one a little cheaper", 0.05, 10, uniform, 0.25, false},
		{"replace by one of half the price", 0.1, 10, uniform, 0.5, true},
		{"delete a dense one", 0.2, 31, Totals{0.8, 61}, 0.25 / (31.0 / 61), false},
		{"saves nothing", 0, 10, uniform, 0, false},
		{"costs nothing", 0.2, 0, uniform, math.Inf(1), true},
		{"no known price", 0.2, 10, Totals{0, 40}, 0, false},
	}
	for _, tt := range tests {
		score := ScoreMove(tt.savings, tt.cost, tt.totals)
		if got := score.Value(); got != tt.value && math.Abs(got-tt.value) > 1e-9 || score.Approved() != tt.approved {
			t.Errorf("%s: %v, approved %v; want %v, %v", tt.name, got, score.Approved(), tt.value, tt.approved)
		}
	}
}

func TestTotalsCountAllNodes(t *testing.T) {
	free := healthy("free", pod("a"), pod("b"))
	held := healthy("held", pod("c", annotated(karpenter.DoNotDisruptAnnotation, "true")), pod("d", ownedByKind("apps/v1", "DaemonSet")), pod("e", ownedByKind("v1", "Node")))
	c := clusterOf(t, []*Node{free, held})
	totals := c.Totals(c.Candidates(Graceful, now))
	// free: 1 + 2 pods; held: 1 + the protected pod and the static one, which the cluster's state counts
	if got := totals["default"]; math.Abs(got.Cost-0.4) > 1e-9 || got.Disruption != 6 {
		t.Errorf("%+v", got)
	}
	c.Pools["default"] = poolOf(t, `{"disruption":{"consolidationPolicy":"Balanced"}}`)
	candidate, _ := c.Candidate(free, Graceful, now)
	if !CanPassThreshold(candidate, totals) || CanPassThreshold(candidate, map[string]Totals{"default": {Cost: 4, Disruption: 6}}) {
		t.Error("the threshold is not heeded")
	}
}
