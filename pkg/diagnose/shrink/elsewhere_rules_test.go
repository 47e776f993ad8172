package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// zoned adds a volume of a zone in shop, bound to a claim of the same name.
func (w *world) zoned(name, zone string) *world {
	v := corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	w.Volumes = append(w.Volumes, v)
	c := corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	c.Spec.VolumeName = name
	w.Claimed = append(w.Claimed, c)
	return w
}

func claim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
}

// ephemeral is a volume whose claim is made for the pod, and named after it.
func ephemeral(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
}

func inZone(zone string) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Labels[corev1.LabelTopologyZone] = zone }
}

func tainted(key string) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(n *corev1.Node, _ *karpenter.NodeClaim) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: "db", Effect: corev1.TaintEffectNoSchedule})
	}
}

func limited(name corev1.ResourceName, amount string) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) { p.Spec.Limits = corev1.ResourceList{name: resource.MustParse(amount)} }
}

// codesOf are those of a few codes only, on a node.
func codesOf(findings []report.Finding, codes ...report.Code) []report.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f report.Finding) bool { return !slices.Contains(codes, f.Code) })
}

func TestElsewhereRules(t *testing.T) {
	const noSchedule, noOther = "Not all pods would schedule, shop/p => unsatisfiable topology constraint", "Not all pods would schedule, shop/gone => exceeds node resources"
	// Three nodes of 4 CPUs in a pool that may have 8: the two that stay use them up.
	full := func(edit ...func(*karpenter.NodePool)) *world {
		return newWorld().pool("a", append([]func(*karpenter.NodePool){limited("cpu", "8")}, edit...)...).node("a", "n1").node("a", "n2").node("a", "n3").
			pod("n1", "p", cpus("2")).pod("n2", "q", cpus("3")).pod("n3", "r", cpus("2700m"))
	}
	zones := func() *world {
		return newWorld().pool("a").node("a", "n1").node("a", "n2").node("a", "n3", inZone("zone-b")).node("a", "n4", inZone("zone-b")).
			pod("n1", "p", cpus("2"), claim("vol")).pod("n2", "q", cpus("3")).zoned("vol", "zone-a")
	}
	edit := func(w *world, edits ...func(*world)) *world {
		for _, e := range edits {
			e(w)
		}
		return w
	}
	for _, c := range []struct {
		name  string
		world *world
		want  []string
		text  []string
	}{
		{name: "no room, and a limit", world: full(), want: []string{"pods-fit-nowhere@n1 proven"}, text: []string{
			"Pod shop/p of node n1 fits on none of the 2 other nodes (2 nodes: cpu 2 wanted, at most 1.3 free), and no new node can be made for it by NodePool a (spec.limits.cpu 8 leaves 0 beside its other nodes)",
			"cpu on n3: 4 allocatable - 2.7 requested by its pods = 1.3 < 2", "limit 8 - 8 capacity of its nodes that stay = 0 < 2",
			"Raise spec.limits.cpu of NodePool a to 10 or more.", "Let pod shop/p request at most 1.3 of cpu"}},
		{name: "room on one", world: edit(full(), func(w *world) { cpus("1")(&w.Pods[2]) })},
		{name: "a limit that leaves as much as it wants", world: full(limited("cpu", "10"))},
		{name: "a limit on the number of nodes", world: full(limited("nodes", "2")), want: []string{"pods-fit-nowhere@n1 proven"}, text: []string{"spec.limits.nodes 2 leaves 0"}},
		{name: "another pool without a limit", world: full().pool("b")},
		{name: "another pool with a taint", world: full().pool("b", func(p *karpenter.NodePool) {
			p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "only", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		}), want: []string{"pods-fit-nowhere@n1 proven"}, text: []string{"b (taint only=db:NoSchedule not tolerated)"}},
		{name: "another pool with a taint that new nodes lose", world: full().pool("b", func(p *karpenter.NodePool) {
			p.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "only", Effect: corev1.TaintEffectNoSchedule}}
		})},
		{name: "a static pool beside it", world: full().pool("b", func(p *karpenter.NodePool) { n := int64(3); p.Spec.Replicas = &n }), want: []string{"pods-fit-nowhere@n1 proven"}, text: []string{"b (static"}},
		{name: "a node of a static pool", world: full(func(p *karpenter.NodePool) { n := int64(3); p.Spec.Replicas = &n })},
		{name: "a pool that is not ready", world: full(limited("cpu", "100"), func(p *karpenter.NodePool) {
			p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse}}
		}), want: []string{"pods-fit-nowhere@n1 proven"}, text: []string{"a (not ready)"}},
		{name: "pools that are not all known", world: edit(full(), func(w *world) { w.Pools = nil })},
		{name: "taints and labels", world: edit(newWorld().pool("a", limited("nodes", "3")).node("a", "n1").node("a", "n2", tainted("only")).node("a", "n3").node("", "n4").
			pod("n1", "p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{karpenter.NodePoolLabel: "a"} }).pod("n3", "q", cpus("3500m"))),
			want: nil},
		{name: "taints and labels, and a limit", world: newWorld().pool("a", limited("nodes", "2")).node("a", "n1").node("a", "n2", tainted("only")).node("a", "n3").node("", "n4").
			pod("n1", "p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{karpenter.NodePoolLabel: "a"} }).pod("n3", "q", cpus("3500m")),
			want: []string{"pods-fit-nowhere@n1 proven"},
			text: []string{"none of the 3 other nodes (1 node: taint only=db:NoSchedule not tolerated; 1 node: cpu 1 wanted, at most 0.5 free; 1 node: not karpenter.sh/nodepool=a)"}},
		{name: "said of a pod that is there", world: full(limited("cpu", "100")).event("Node", "n1", unconsolidatable, noSchedule, 5*time.Minute),
			want: []string{"pods-fit-nowhere@n1 likely"}, text: []string{"At 2026-07-14T08:55:00Z Karpenter found that pod shop/p", "cpu 2 wanted, at most 1.3 free"}},
		{name: "said of drift", world: full(limited("cpu", "100")).event("NodeClaim", "n1-claim", disruptionBlocked, noSchedule, 2*time.Minute), want: []string{"pods-fit-nowhere@n1 likely"}},
		{name: "said too long ago", world: full(limited("cpu", "100")).event("Node", "n1", unconsolidatable, noSchedule, 21*time.Minute)},
		{name: "said of a pod that is gone", world: full(limited("cpu", "100")).event("Node", "n1", unconsolidatable, noOther, 5*time.Minute)},
		{name: "said, and there is room by now", world: edit(full(), func(w *world) { cpus("1")(&w.Pods[2]) }).event("Node", "n1", unconsolidatable, noSchedule, 5*time.Minute)},
		{name: "said, and a busy node would have room", world: edit(full(limited("cpu", "100")), func(w *world) {
			cpus("1")(&w.Pods[2])
			w.Claims[2].Status.LastPodEventTime = metav1.NewTime(now.Add(-10 * time.Second))
		}).event("Node", "n1", unconsolidatable, noSchedule, 5*time.Minute)},
		{name: "a volume's zone", world: zones(), want: []string{"volume-zone@n1 proven"}, text: []string{
			"Volume vol of pod shop/p can be attached in zone-a only: 2 nodes elsewhere would take the pod without it, and the other 1 node fails another test",
			"node n2 takes the pod once it has 2 of cpu free; now it has 1", "api:persistentvolumeclaims/shop/vol"}},
		{name: "a volume's zone, of a pod that counts for nothing", world: edit(zones(), func(w *world) {
			w.Pods[0].Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}
		})},
		{name: "room in the zone", world: edit(zones(), func(w *world) { cpus("1")(&w.Pods[1]) })},
		{name: "no room outside either", world: zones().pod("n3", "s", cpus("3")).pod("n4", "t", cpus("3"))},
		{name: "a volume of both zones", world: edit(zones(), func(w *world) {
			e := &w.Volumes[0].Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
			e.Values = append(e.Values, "zone-b")
		})},
		{name: "a claim that is not known", world: edit(zones(), func(w *world) { w.Claimed = nil })},
		{name: "a claim that goes with its pod", world: edit(zones(), func(w *world) {
			w.Pods[0].Spec.Volumes = nil
			ephemeral(&w.Pods[0])
			w.Claimed[0].Name = "p-data"
		})},
		{name: "a zone that no pool reaches", world: edit(zones(), func(w *world) {
			w.Pools[0].Spec.Template.Spec.Requirements = []karpenter.Requirement{{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-b"}}}}
		}), want: []string{"pods-fit-nowhere@n1 proven", "volume-zone@n1 proven"}, text: []string{"a (not in the zone of volume vol)"}},
		{name: "several new nodes", world: full(limited("cpu", "100")).event("Node", "n1", unconsolidatable, "Can't remove without creating 2 candidates", 5*time.Minute),
			want: []string{"needs-several-replacements@n1 likely"}, text: []string{"would need 2 new nodes", "4 allocatable - 2.7 requested by its pods = 1.3 < 2"}},
		{name: "several, an hour ago", world: full(limited("cpu", "100")).event("Node", "n1", unconsolidatable, "Can't remove without creating 2 candidates", time.Hour)},
		{name: "several, and there is room by now", world: edit(full(), func(w *world) { cpus("1")(&w.Pods[2]) }).event("Node", "n1", unconsolidatable, "Can't remove without creating 2 candidates", 5*time.Minute)},
	} {
		t.Run(c.name, func(t *testing.T) {
			codes := []report.Code{report.PodsFitNowhere, report.VolumeZone, report.NeedsSeveralReplacements}
			got := codesOf(c.world.read(t).Node("n1"), codes...)
			if !slices.Equal(spelled(got), append([]string{}, c.want...)) && len(got)+len(c.want) > 0 {
				t.Errorf("got %v, want %v", spelled(got), c.want)
			}
			if text := fmt.Sprintf("%+v", got); !containsAll(text, c.text) {
				t.Errorf("%q\nnot all of\n%q", text, c.text)
			}
			noteData(t, got, codes...)
		})
	}
}

func TestNoRoomTogether(t *testing.T) {
	w := newWorld().pool("a").node("a", "n1").node("a", "n2").pod("n1", "p", cpus("1")).pod("n1", "p2", cpus("1500m")).pod("n2", "q", cpus("2"))
	got := codesOf(w.read(t).Node("n1"), report.ShrinkBlockerUnknown, report.PodsFitNowhere)
	if want := []string{"shrink-blocker-unknown@n1 proven"}; !slices.Equal(spelled(got), want) {
		t.Fatalf("got %v, want %v", spelled(got), want)
	}
	w.Pools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("4")}
	full := codesOf(w.read(t).Node("n1"), report.ShrinkBlockerUnknown, report.PodsFitNowhere)
	if want := []string{"pods-fit-nowhere@n1 proven"}; !slices.Equal(spelled(full), want) {
		t.Errorf("a limit: got %v, want %v", spelled(full), want)
	}
	if text := fmt.Sprintf("%+v", full); !containsAll(text, []string{"The 2 pods of node n1 request together 2.5 of cpu, only 2 is free on the 1 node that may take any of them, and for none of them a new node can be made (shop/p: no new node can be made for it by NodePool a (spec.limits.cpu 4 leaves 0 beside its other nodes)): the node can neither",
		"cpu of NodePool a: limit 4 - 4 capacity of its nodes that stay = 0 < 1", "Raise spec.limits.cpu of NodePool a to 5"}) {
		t.Error(text)
	}
	// One of the pods may get a node of its own.
	w.Pools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("5200m")}
	if got, want := spelled(codesOf(w.read(t).Node("n1"), report.ShrinkBlockerUnknown, report.PodsFitNowhere)), []string{"shrink-blocker-unknown@n1 proven"}; !slices.Equal(got, want) {
		t.Errorf("a limit that leaves room for one: got %v, want %v", got, want)
	}
	if text := fmt.Sprintf("%+v", got); !containsAll(text, []string{"its 2 pods request together 2.5 of cpu, and only 2 is free on the 1 node that may take any of them", "Value:1500m"}) {
		t.Error(text)
	}
}

func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

func TestThousandths(t *testing.T) {
	for _, c := range []struct {
		name   corev1.ResourceName
		amount int64
		want   string
	}{{"cpu", 1300, "1.3"}, {"cpu", -50, "-0.05"}, {"cpu", 9000, "9"}, {"memory", 2 << 30 * 1000, "2Gi"}, {"memory", -1024 * 1000, "-1Ki"}, {"memory", 1500, "1.5"}, {"example.com/gpu", 2000, "2"}} {
		if got := thousandths(c.name, c.amount); got != c.want {
			t.Errorf("%s %d: got %s, want %s", c.name, c.amount, got, c.want)
		}
	}
}
