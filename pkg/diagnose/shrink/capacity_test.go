package shrink

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

func memory(amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(amount)
	}
}

func daemon(p *corev1.Pod) {
	p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "DaemonSet", "agent"
}

func sized(instanceType, mem string) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(n *corev1.Node, _ *karpenter.NodeClaim) {
		n.Labels[corev1.LabelInstanceTypeStable] = instanceType
		n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse(mem)
	}
}

func TestCapacityFacts(t *testing.T) {
	three := func() *world {
		return newWorld().pool("a").node("a", "n1").node("a", "n2").node("a", "n3").node("", "other").pod("other", "elsewhere", memory("15Gi"))
	}
	edit := func(w *world, edit func(*world)) *world { edit(w); return w }
	for _, c := range []struct {
		name  string
		world *world
		want  string
		text  []string
		gap   string
	}{
		{name: "memory decides", world: three().pod("n1", "p", memory("10Gi")).pod("n2", "q", memory("6Gi")).pod("n3", "r", memory("512Mi")), want: "3 nodes, 3 pods, needs 2: 2 requests memory",
			text: []string{"16.5Gi requested by 3 pods; the largest node leaves 16Gi, the 2 largest 32Gi"}},
		{name: "what DaemonSets leave", world: three().pod("n1", "p", memory("10Gi")).pod("n2", "q", memory("5Gi")).pod("n1", "d1", memory("2Gi"), daemon).pod("n2", "d2", memory("2Gi"), daemon).pod("n3", "d3", memory("2Gi"), daemon),
			want: "3 nodes, 2 pods, needs 2: 2 requests memory", text: []string{"15Gi requested by 2 pods; the largest node leaves 14Gi, the 2 largest 28Gi", "api:nodes/n1", "leave 14Gi"}},
		{name: "mixed sizes", world: newWorld().pool("a").node("a", "n1", sized("big", "32Gi")).node("a", "n2").pod("n1", "p", memory("20Gi")).pod("n2", "q", memory("15Gi")),
			want: "2 nodes, 2 pods, needs 2: 2 requests memory", text: []string{"the largest node leaves 32Gi, the 2 largest 48Gi", "{InstanceType:big Nodes:1} {InstanceType:m-4x Nodes:1}"}},
		{name: "one that leaves", world: edit(three().pod("n1", "p", memory("10Gi")).pod("n2", "q", memory("10Gi")), func(w *world) {
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: karpenter.DisruptedTaint, Effect: corev1.TaintEffectNoSchedule}}
		}), want: "2 nodes and 1 leaving, 1 pods, needs 1: 1 requests cpu"},
		{name: "nothing to move", world: three(), want: "3 nodes, 0 pods, needs 0"},
		{name: "anti-affinity of a Deployment", world: three().pod("n1", "p", apart).pod("n2", "q", apart).pod("n3", "r", apart), want: "3 nodes, 3 pods, needs 3: 3 anti-affinity Deployment shop/web",
			text: []string{"3 pods, of which a node takes at most 1; the 2 largest nodes hold 2, the 3 largest 3", "kubernetes.io/hostname, selects app=web"}},
		{name: "large pods", world: three().pod("n1", "p", memory("9Gi")).pod("n2", "q", memory("9Gi")).pod("n3", "r", memory("9Gi")), want: "3 nodes, 3 pods, needs 3: 3 large pods memory, 2 requests memory",
			text: []string{"3 pods request 9Gi or more each; the 2 largest nodes take 2, the 3 largest 3"}},
		{name: "two zones", world: edit(three(), func(w *world) { w.Nodes[2].Labels[corev1.LabelTopologyZone] = "zone-b" }).
			pod("n1", "p", in("zone-a")).pod("n3", "q", in("zone-b")).pod("n3", "r", in("zone-b")), want: "3 nodes, 3 pods, needs 2: 2 node selection topology.kubernetes.io/zone",
			text: []string{"1 for zone-a (1 pod) + 1 for zone-b (2 pods) = 2"}},
		{name: "pending pods", world: three().pod("n1", "p").pod("", "q"), want: "3 nodes, 1 pods, needs 1: 1 requests cpu", gap: "where pods without a node will run"},
		{name: "pods not collected", world: edit(three(), func(w *world) { w.Pods = nil }), want: "none", gap: "cluster/pods.json"},
		{name: "a part of the pods", world: edit(three(), func(w *world) { w.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused"}]` }), want: "none", gap: "cluster/pods.json"},
		{name: "nodes not collected", world: edit(three(), func(w *world) { w.Nodes = nil }), want: "none", gap: "cluster/nodes.json"},
		{name: "NodeClaims not collected", world: edit(three(), func(w *world) { w.Claims = nil }), want: "none", gap: "cluster/nodeclaims.karpenter.sh.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gaps := &gap.Log{}
			answer, _ := Read(c.world.open(t), now, gaps, Options{}).NodePool("a")
			got := "none"
			for _, f := range answer.Capacity {
				got = fmt.Sprintf("%d nodes", f.Nodes)
				if f.Leaving > 0 {
					got += fmt.Sprintf(" and %d leaving", f.Leaving)
				}
				got += fmt.Sprintf(", %d pods, needs %d", f.Pods, f.Needed)
				for i, fl := range f.Floors {
					got += fmt.Sprintf("%s%d %s %s", []string{": ", ", "}[min(i, 1)], fl.Nodes, fl.By, fl.Of)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if text := fmt.Sprintf("%+v", answer.Capacity); !containsAll(text, c.text) {
				t.Errorf("%q\nnot all of\n%q", text, c.text)
			}
			if text := fmt.Sprintf("%+v", gaps.List()); !strings.Contains(text, c.gap) || c.gap == "" && (strings.Contains(text, "cluster/pods") || strings.Contains(text, "where pods")) {
				t.Errorf("gaps %s, want %q", text, c.gap)
			}
		})
	}
}

// apart is one of a Deployment whose pods take no node twice.
func apart(p *corev1.Pod) {
	p.Labels["pod-template-hash"], p.OwnerReferences[0].Name = "5d4f", "web-5d4f"
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{antiAffinity(corev1.LabelHostname)}}}
}

func antiAffinity(key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
}

func in(zone string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone} }
}

func TestSizes(t *testing.T) {
	var nodes []*disruption.Node
	for i := range 30 {
		for range 1 + i%3 {
			n := &corev1.Node{}
			n.Labels = map[string]string{corev1.LabelInstanceTypeStable: fmt.Sprintf("t%02d", i)}
			nodes = append(nodes, &disruption.Node{Node: n})
		}
	}
	got := sizesOf(nodes)
	if len(got) != mostSizes+1 || got[0] != (report.NodeSize{InstanceType: "t02", Nodes: 3}) || got[mostSizes] != (report.NodeSize{InstanceType: "of other types", Nodes: 60 - 10*3 - 2*2}) {
		t.Errorf("got %+v", got)
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct {
		name   corev1.ResourceName
		amount int64
		want   string
	}{
		{"cpu", 34000, "34"}, {"cpu", 15710, "15.71"}, {"memory", 433 << 30 * 1000, "433Gi"}, {"memory", (124<<30 - 120<<20) * 1000, "123.88Gi"},
		{"memory", 512 << 20 * 1000, "512Mi"}, {"memory", 1000, "1"}, {"memory", 1500, "1.5"}, {"memory", (1<<50 + 1) * 1000, "1Pi"}, {"hugepages-2Mi", 4 << 20 * 1000, "4Mi"}, {"example.com/gpu", 2000, "2"},
	} {
		if got := readable(c.name, c.amount); got != c.want {
			t.Errorf("%s %d: got %s, want %s", c.name, c.amount, got, c.want)
		}
	}
}
