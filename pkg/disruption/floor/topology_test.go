package floor

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

func TestBar(t *testing.T) {
	zone := corev1.LabelTopologyZone
	host := corev1.LabelHostname
	// p is the pod in question, on a; b and c are the others, c in another zone.
	build := func(p, onB, onC []func(*corev1.Pod)) []*disruption.Node {
		n := []*disruption.Node{node("a", "z1", 8, 8), node("b", "z1", 8, 8), node("c", "z2", 8, 8)}
		put(n[0], "p", 1, 1, p...)
		if onB != nil {
			put(n[1], "q", 1, 1, onB...)
		}
		if onC != nil {
			put(n[2], "r", 1, 1, onC...)
		}
		return n
	}
	edit := func(n []*disruption.Node, edit func([]*disruption.Node)) []*disruption.Node { edit(n); return n }
	do := func(e ...func(*corev1.Pod)) []func(*corev1.Pod) { return append([]func(*corev1.Pod){}, e...) }
	plain := do()
	end := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	shop := func(t *corev1.PodAffinityTerm) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}
	}
	pending := func(edit ...func(*corev1.Pod)) []*corev1.Pod {
		n := node("x", "z1", 1, 1)
		put(n, "pending", 1, 1, edit...)
		return n.Pods
	}
	for _, c := range []struct {
		name    string
		nodes   []*disruption.Node
		pending []*corev1.Pod
		b, c    string
	}{
		{name: "nothing", nodes: build(plain, plain, plain)},
		{name: "own anti-affinity", nodes: build(do(apart(host)), plain, nil), b: "anti-affinity 1"},
		{name: "of others", nodes: build(plain, nil, do(apart(host))), c: "inverse anti-affinity 1"},
		{name: "of others that do not mean it", nodes: build(do(labelled("db")), nil, do(apart(host)))},
		{name: "by zone", nodes: build(do(apart(zone)), nil, plain), c: "anti-affinity 1"},
		{name: "by zone, of a pod on its own node", nodes: edit(build(do(apart(zone)), nil, nil), func(n []*disruption.Node) { put(n[0], "s", 1, 1) })},
		{name: "of a pod that ends", nodes: build(do(apart(host)), do(end), do(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))},
		{name: "of a pod on a node that goes", nodes: edit(build(do(apart(zone)), plain, nil), func(n []*disruption.Node) { n[1].Marked = true })},
		{name: "of another namespace", nodes: build(do(apart(host)), do(func(p *corev1.Pod) { p.Namespace = "other" }), nil)},
		{name: "of namespaces that are named", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) { t.Namespaces = []string{"other"} })), do(func(p *corev1.Pod) { p.Namespace = "other" }), plain), b: "anti-affinity 1"},
		{name: "of every namespace", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{} })), do(func(p *corev1.Pod) { p.Namespace = "other" }), nil), b: "anti-affinity 1"},
		{name: "of namespaces by their labels", nodes: build(do(apart(host, shop)), plain, plain)},
		{name: "without a selector", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) { t.LabelSelector = nil })), plain, plain)},
		{name: "with a selector that cannot be read", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) {
			t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Odd"}}}
		})), plain, plain)},
		{name: "on a label that only one has", nodes: edit(build(do(apart("rack")), plain, plain), func(n []*disruption.Node) { n[1].Node.Labels["rack"] = "1" }), b: "anti-affinity 1"},
		{name: "on a hostname that only the name tells", nodes: edit(build(do(apart(host)), plain, nil), func(n []*disruption.Node) { delete(n[1].Node.Labels, host) }), b: "anti-affinity 1"},
		{name: "only of the same value", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = []string{"v", "absent"} }), func(p *corev1.Pod) { p.Labels["v"] = "2" }),
			do(func(p *corev1.Pod) { p.Labels["v"] = "2" }), do(func(p *corev1.Pod) { p.Labels["v"] = "1" })), b: "anti-affinity 1"},
		{name: "only of other values", nodes: build(do(apart(host, func(t *corev1.PodAffinityTerm) { t.MismatchLabelKeys = []string{"v"} }), func(p *corev1.Pod) { p.Labels["v"] = "2" }),
			do(func(p *corev1.Pod) { p.Labels["v"] = "2" }), do(func(p *corev1.Pod) { p.Labels["v"] = "1" })), c: "anti-affinity 1"},

		{name: "spread on hostname", nodes: build(do(spread(host, 1)), plain, nil), b: "topology spread 1, 2 > 1"},
		{name: "spread on hostname that leaves room", nodes: build(do(spread(host, 2)), plain, plain)},
		{name: "spread that does not count itself", nodes: build(do(spread(host, 1), labelled("db")), plain, plain)},
		{name: "spread that may be dropped", nodes: build(do(spread(host, 1, func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway })), plain, plain)},
		{name: "spread over zones", nodes: build(do(spread(zone, 1)), nil, plain), c: "topology spread 1, 2 > 1, z1 has 0"},
		{name: "spread over zones with as many in its own", nodes: build(do(spread(zone, 1)), plain, plain)},
		{name: "spread over zones with one that may come to its own", nodes: build(do(spread(zone, 1)), nil, plain), pending: pending(), c: ""},
		{name: "spread over zones with another one that may come", nodes: build(do(spread(zone, 1)), nil, plain), pending: pending(labelled("db")), c: "topology spread 1, 2 > 1, z1 has 0"},
		{name: "spread over zones with another pod of its node", nodes: edit(build(do(spread(zone, 1)), nil, plain), func(n []*disruption.Node) { put(n[0], "s", 1, 1) })},
		{name: "spread over zones with one from a node that goes", nodes: edit(build(do(spread(zone, 1)), plain, plain), func(n []*disruption.Node) { n[1].Marked = true })},
		{name: "spread over a zone that only its node is in", nodes: edit(build(do(spread(zone, 1)), nil, plain), func(n []*disruption.Node) { n[1].Node.Labels[zone] = "z2" }),
			b: "topology spread 1, 2 > 1, z1 has 0 assumed", c: "topology spread 1, 2 > 1, z1 has 0 assumed"},
		{name: "pods on nodes that it does not select do not count", nodes: edit(build(do(spread(zone, 1), wants("pool", "a")), nil, plain), func(n []*disruption.Node) {
			n[0].Node.Labels["pool"], n[1].Node.Labels["pool"] = "a", "a"
		})},
		{name: "but count where it says so", nodes: edit(build(do(spread(zone, 1, func(c *corev1.TopologySpreadConstraint) {
			p := corev1.NodeInclusionPolicyIgnore
			c.NodeAffinityPolicy = &p
		}), wants("pool", "a")), nil, plain), func(n []*disruption.Node) {
			n[0].Node.Labels["pool"], n[1].Node.Labels["pool"] = "a", "a"
		}), c: "topology spread 1, 2 > 1, z1 has 0"},
		{name: "pods count by their nodes' taints", nodes: build(do(spread(zone, 1, func(c *corev1.TopologySpreadConstraint) {
			p := corev1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &p
		})), nil, plain)},
		{name: "a node that the pod would not be put on now", nodes: build(do(spread(zone, 1, func(c *corev1.TopologySpreadConstraint) {
			p := corev1.NodeInclusionPolicyIgnore
			c.NodeAffinityPolicy = &p
		}), wants(zone, "z2")), nil, plain)},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := NewTopology(c.nodes, c.pending).Of(c.nodes[0].Pods[0], c.nodes[0])
			for i, want := range []string{c.b, c.c} {
				if got := barText(kept.Bar(c.nodes[i+1])); got != want {
					t.Errorf("node %s: got %q, want %q", c.nodes[i+1].Name(), got, want)
				}
			}
		})
	}
}

func barText(b *Bar) string {
	if b == nil {
		return ""
	}
	text := fmt.Sprintf("%s %d", b.Constraint.Kind, b.Count)
	if b.Inverse {
		text = "inverse " + text
	}
	if b.Constraint.Kind == TopologySpread {
		text += fmt.Sprintf(", %d > %d", b.Skew, b.Constraint.MaxSkew)
	}
	if b.Own != "" {
		text += fmt.Sprintf(", %s has %d", b.Own, b.OwnCount)
	}
	if b.Assumed {
		text += " assumed"
	}
	return text
}

// Without one constraint the others still bar.
func TestWithout(t *testing.T) {
	n := []*disruption.Node{node("a", "z1", 8, 8), node("b", "z1", 8, 8), node("c", "z1", 8, 8)}
	put(n[0], "p", 1, 1, spread(corev1.LabelHostname, 1), apart(corev1.LabelHostname))
	put(n[1], "q", 1, 1)
	put(n[2], "r", 1, 1, labelled("db"), apart(corev1.LabelHostname))
	kept := NewTopology(n, nil).Of(n[0].Pods[0], n[0])
	bar := kept.Bar(n[1])
	if got := barText(bar); got != "topology spread 1, 2 > 1" || !kept.Constrained() {
		t.Fatalf("got %q", got)
	}
	if got := barText(kept.Without(&bar.Constraint, n[1])); got != "anti-affinity 1" {
		t.Errorf("without its spread: %q", got)
	}
	inverse := kept.Bar(n[2])
	if got := barText(inverse); got != "inverse anti-affinity 1" || inverse.Other == nil || inverse.Other.Name != "r" {
		t.Fatalf("got %q of %v", got, inverse)
	}
	if got := NewTopology(n, nil).Of(n[2].Pods[0], n[2]); got.Constrained() != true || got.Bar(n[0]) == nil {
		t.Error("the term of r selects p")
	}
}

// What is hostile costs no more than it may.
func TestManyConstraints(t *testing.T) {
	n := []*disruption.Node{node("a", "z1", 8, 8), node("b", "z1", 8, 8)}
	for i := range 3000 {
		put(n[i%2], fmt.Sprint(i), 0, 0, labelled(fmt.Sprint(i)), func(p *corev1.Pod) {
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
		})
	}
	topology := NewTopology(n, nil)
	for _, pod := range n[0].Pods {
		if bar := topology.Of(pod, n[0]).Bar(n[1]); bar != nil {
			t.Fatalf("%s is barred: %+v", pod.Name, bar)
		}
	}
	if len(topology.order) > mostConstraints || len(topology.matches) > mostConstraints {
		t.Errorf("%d terms and %d selectors looked at", len(topology.order), len(topology.matches))
	}
	if floors := Of(n).Floors(); len(floors) > mostConstraints+2*mostSizes {
		t.Errorf("%d floors", len(floors))
	}
}
