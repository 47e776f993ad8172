package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

func spread(key string, skew int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}
}

func TestFloorRules(t *testing.T) {
	codes := []report.Code{report.TopologySpreadFloor, report.AntiAffinityFloor}
	three := func(edit ...func(*corev1.Pod)) *world {
		w := newWorld().pool("a").node("a", "n1").node("a", "n2").node("a", "n3")
		for i, name := range []string{"p", "q", "r"} {
			w.pod(fmt.Sprint("n", i+1), name, edit...)
		}
		return w
	}
	edit := func(w *world, edit func(*world)) *world { edit(w); return w }
	zones := func(last string) *world {
		return edit(three(spread(corev1.LabelTopologyZone, 1)), func(w *world) {
			w.Nodes[1].Labels[corev1.LabelTopologyZone], w.Nodes[2].Labels[corev1.LabelTopologyZone] = "zone-b", last
		})
	}
	for _, c := range []struct {
		name  string
		world *world
		node  []string // of n1
		pool  []string
		text  []string // of n1 or, where it has none, of the pool
	}{
		{name: "nothing keeps them apart", world: three()},
		{name: "anti-affinity", world: three(apart), node: []string{"anti-affinity-floor@n1 proven"}, pool: []string{"anti-affinity-floor@a proven"}, text: []string{
			"Pod shop/p of node n1 fits on none of the 2 other nodes (its own anti-affinity on kubernetes.io/hostname keeps it off all of them, where pods such as shop/q are), so that the node cannot be deleted without a new one.",
			"requiredDuringSchedulingIgnoredDuringExecution[0]", "kubernetes.io/hostname, selects app=web", "kubernetes.io/hostname=n2 has 1 pod",
			"kubectl -n shop edit deployment web", "node n2 then fails no test that can be made here of pod shop/p"}},
		{name: "a node without one of them", world: three(apart).node("a", "n4")},
		{name: "a node of no pool without one of them", world: three(apart).node("", "n4")},
		{name: "one that is full", world: three(apart).node("a", "n4").pod("n4", "big", cpus("4"), func(p *corev1.Pod) { p.Labels["app"] = "db" }), node: []string{"anti-affinity-floor@n1 proven"}, pool: []string{"anti-affinity-floor@a proven"},
			text: []string{"fits on none of the 3 other nodes (its own anti-affinity on kubernetes.io/hostname keeps it off 2 of them, where pods such as shop/q are, and 1 fails another test)"}},
		{name: "all of them full", world: edit(three(apart), func(w *world) { cpus("4")(&w.Pods[0]); cpus("4")(&w.Pods[1]); cpus("4")(&w.Pods[2]) })},
		{name: "of another workload", world: edit(three(), func(w *world) {
			for i := 1; i < 3; i++ {
				w.Pods[i].Labels["app"] = "db"
				apart(&w.Pods[i])
			}
		}), node: []string{"anti-affinity-floor@n1 proven"}, pool: []string{"anti-affinity-floor@n1 proven"}, text: []string{"the anti-affinity on kubernetes.io/hostname of pods such as shop/q keeps it off all of them", "it selects pod shop/p", "run fewer replicas of Deployment shop/web"}},
		{name: "a pod that ends", world: edit(three(apart), func(w *world) { w.Pods[1].DeletionTimestamp = &metav1.Time{Time: now} })},
		{name: "a node that is chosen to go", world: edit(three(apart), func(w *world) {
			for i := range w.Claims {
				w.Claims[i].Status.Conditions = append(w.Claims[i].Status.Conditions, metav1.Condition{Type: karpenter.ConditionDisruptionReason, Status: metav1.ConditionTrue})
			}
		})},
		{name: "a static pool", world: edit(three(apart), func(w *world) { n := int64(3); w.Pools[0].Spec.Replicas = &n })},
		{name: "pods that cost nothing to move", world: edit(three(apart), func(w *world) {
			for i := range w.Pods {
				w.Pods[i].Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-2147483647"}
			}
		})},
		{name: "nodes not all known", world: edit(three(apart), func(w *world) { w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"}]` })},
		{name: "NodeClaims not known", world: edit(three(apart), func(w *world) { w.Claims = nil })},
		{name: "pods not all known", world: edit(three(apart), func(w *world) { w.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused"}]` })},

		{name: "spread over hostname", world: three(spread(corev1.LabelHostname, 1)), node: []string{"topology-spread-floor@n1 proven"}, pool: []string{"topology-spread-floor@a proven"}, text: []string{
			"its spread over kubernetes.io/hostname with maxSkew 1 keeps it off all of them, where 1 pod or more like it are already", "kubernetes.io/hostname, maxSkew 1, DoNotSchedule, selects app=web",
			"shop/p on n2: 2 with it - 0, for Karpenter could make an empty node, = 2 > maxSkew 1", "set maxSkew of the spread over kubernetes.io/hostname to 2 or more"}},
		{name: "spread over hostname with room for two", world: three(spread(corev1.LabelHostname, 2))},
		{name: "spread over zones", world: zones("zone-b").node("a", "n4", sized("small", "512Mi")), node: []string{"topology-spread-floor@n1 proven"}, pool: []string{"topology-spread-floor@n1 proven"}, text: []string{
			"its spread over topology.kubernetes.io/zone with maxSkew 1 keeps it in zone-a and off 2 of them, and 1 fails another test", "3 with it in zone-b - 0 at most left in zone-a = 3 > maxSkew 1", "to 3 or more"}},
		{name: "spread over zones, the last of its zone", world: zones("zone-b"), node: []string{"topology-spread-floor@n1 likely"}, pool: []string{"topology-spread-floor@n1 likely"}},
		{name: "spread over zones with room in its own", world: zones("zone-a"), pool: []string{"topology-spread-floor@n2 likely"}},
		{name: "both on a node each", world: edit(three(), func(w *world) {
			spread(corev1.LabelHostname, 1)(&w.Pods[0])
			w.Pods[2].Labels["app"] = "db"
			apart(&w.Pods[2])
		}), node: []string{"topology-spread-floor@n1 proven"}, pool: []string{"anti-affinity-floor@n3 proven", "topology-spread-floor@n1 proven"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.world.read(t)
			k.version.text, k.version.exact = "1.14.3", true
			all := k.Node("n1")
			found := codesOf(all, codes...)
			if got := spelled(found); !slices.Equal(got, append([]string{}, c.node...)) {
				t.Errorf("node: got %v, want %v", got, c.node)
			}
			if held := slices.ContainsFunc(all, func(f report.Finding) bool { return slices.Contains(verdictCodes, f.Code) }); len(found) > 0 && held {
				t.Errorf("a verdict beside it: %v", spelled(all))
			}
			answer, _ := k.NodePool("a")
			if got := spelled(codesOf(answer.Findings, codes...)); !slices.Equal(got, append([]string{}, c.pool...)) {
				t.Errorf("pool: got %v, want %v", got, c.pool)
			}
			if text := fmt.Sprintf("%+v", found); !containsAll(text, c.text) {
				t.Errorf("%q\nnot all of\n%q", text, c.text)
			}
			noteData(t, found, codes...)
		})
	}
}

func TestFloorsOfAPool(t *testing.T) {
	w := newWorld().pool("a")
	for i := range 9 {
		name := fmt.Sprint("n", i)
		w.node("a", name).pod(name, "p"+name, apart)
	}
	answer, _ := w.read(t).NodePool("a")
	found := codesOf(answer.Findings, report.AntiAffinityFloor)
	const want = "9 of the 9 nodes of NodePool a (n0, n1, n2, n3, n4, n5 and 3 others) cannot be deleted without a new one: each has a pod of Deployment shop/web that a required anti-affinity keeps off every other node that would take it."
	if len(found) != 1 || found[0].Summary != want || len(found[0].Because) != mostNamed+1 || found[0].Because[mostNamed].Means != "keeps node n4" {
		t.Errorf("got %+v, want %q", found, want)
	}
	if f := answer.Capacity[0]; f.Needed != 9 || f.Floors[0].By != "anti-affinity" {
		t.Errorf("capacity %+v", f)
	}
}

// Many nodes with many pods that keep each other apart are told of in time.
func TestFloorsOfManyNodes(t *testing.T) {
	w := newWorld().pool("a")
	for i := range 900 {
		name := fmt.Sprint("n", i)
		w.node("a", name)
		for j := range 3 {
			w.pod(name, fmt.Sprintf("p%d-%s", j, name), apart, cpus("100m"), func(p *corev1.Pod) {
				p.Labels["app"] = fmt.Sprint("app", j)
				p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"] = fmt.Sprint("app", j)
			})
		}
	}
	k := w.read(t)
	start := time.Now()
	answer, _ := k.NodePool("a")
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	found := codesOf(answer.Findings, report.AntiAffinityFloor)
	if len(found) != 1 || !strings.HasPrefix(found[0].Summary, "At least ") || !strings.Contains(found[0].Summary, "of the 900 nodes") {
		t.Errorf("got %+v", found)
	}
}
