package floor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

func TestLeast(t *testing.T) {
	for _, c := range []struct {
		name  string
		need  int64
		holds []int64
		want  string
	}{
		{"nothing needed", 0, []int64{1}, "{0 0 0 0} true"},
		{"nothing there", 1, nil, "{0 1 0 0} false"},
		{"the largest first", 10, []int64{3, 8, 4}, "{2 10 12 8} true"},
		{"exactly", 12, []int64{8, 4, 3}, "{2 12 12 8} true"},
		{"one more", 13, []int64{8, 4, 3}, "{3 13 15 12} true"},
		{"not even all", 16, []int64{8, 4, 3}, "{3 16 15 12} false"},
		{"a negative one holds nothing", 9, []int64{8, -4, 1}, "{2 9 9 8} true"},
		{"without end", endless, []int64{endless, endless}, fmt.Sprintf("{1 %d %d 0} true", endless, endless)},
		{"sums do not wrap", endless, []int64{endless - 1, endless - 1}, fmt.Sprintf("{2 %d %d %d} true", endless, endless, endless-1)},
	} {
		b, ok := Least(c.need, c.holds)
		if got := fmt.Sprintf("%v %v", b, ok); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// node has a zone and so much CPU and memory, in units of both.
func node(name, zone string, cpu, memory int64) *disruption.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory<<30, resource.BinarySI), corev1.ResourcePods: resource.MustParse("110")}
	return &disruption.Node{Node: n}
}

func put(n *disruption.Node, name string, cpu, memory int64, edit ...func(*corev1.Pod)) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	pod.Spec.NodeName = n.Node.Name
	pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory<<30, resource.BinarySI)}}}}
	pod.Status.Phase = corev1.PodRunning
	for _, e := range edit {
		e(pod)
	}
	n.Pods = append(n.Pods, pod)
}

func labelled(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": value} }
}

func ownedBy(apiVersion, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner"}}
	}
}

func wants(label, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{label: value} }
}

func web() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func spread(key string, skew int32, edit ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web()}
		for _, e := range edit {
			e(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func apart(key string, edit ...func(*corev1.PodAffinityTerm)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: web()}
		for _, e := range edit {
			e(&term)
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	}
}

// spelled are floors as tests write them.
func spelled(floors []Floor) string {
	var out []string
	for _, f := range floors {
		text := fmt.Sprintf("%s %d", f.By, f.Nodes)
		switch f.By {
		case Requests:
			text += fmt.Sprintf(" of %s", f.Resource)
		case LargePods:
			text += fmt.Sprintf(" of %s from %d: %d pods", f.Resource, f.Each, len(f.Pods))
		case NodeSelection:
			text += fmt.Sprintf(" by %s %v", f.Label, f.Values)
		default:
			text += fmt.Sprintf(" of %d pods", len(f.Pods))
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestFloors(t *testing.T) {
	three := func() []*disruption.Node {
		return []*disruption.Node{node("a", "z1", 8, 32), node("b", "z1", 8, 32), node("c", "z2", 4, 16)}
	}
	fill := func(edit func(n []*disruption.Node)) []*disruption.Node { n := three(); edit(n); return n }
	for _, c := range []struct {
		name  string
		nodes []*disruption.Node
		want  string
	}{
		{"no nodes", nil, ""},
		{"no pods", three(), ""},
		{"the resource that decides", fill(func(n []*disruption.Node) { put(n[0], "p", 1, 20); put(n[1], "q", 1, 16); put(n[2], "r", 1, 2) }),
			"requests 2 of memory; requests 1 of cpu; requests 1 of pods"},
		{"what DaemonSets take", fill(func(n []*disruption.Node) {
			for i, node := range n {
				put(node, "agent", 1, 4, ownedBy("apps/v1", "DaemonSet"))
				put(node, "p", 1, 9+int64(i)*10)
			}
			n[2].Pods = n[2].Pods[:1]
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"static pods too", fill(func(n []*disruption.Node) {
			put(n[0], "static", 1, 4, ownedBy("v1", "Node"))
			put(n[0], "p", 1, 16)
			put(n[1], "static", 1, 4, ownedBy("v1", "Node"))
			put(n[1], "q", 1, 13)
		}), "requests 2 of memory; requests 1 of cpu; requests 1 of pods"},
		{"pods that end need nothing", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 30, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			put(n[1], "q", 1, 30, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, ownedBy("apps/v1", "StatefulSet"))
			put(n[2], "r", 1, 1)
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"large pods", fill(func(n []*disruption.Node) {
			n[2].Node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("6")
			for _, node := range n {
				put(node, "p"+node.Name(), 5, 1)
			}
		}),
			"large pods 3 of cpu from 5000: 3 pods; requests 2 of cpu; requests 1 of memory; requests 1 of pods"},
		{"an extended resource", fill(func(n []*disruption.Node) {
			for _, node := range n[:2] {
				node.Node.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
				put(node, "p"+node.Name(), 1, 1, func(p *corev1.Pod) {
					p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
				})
			}
		}), "requests 2 of example.com/gpu; requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"what is not there cannot be held", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 1, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("1")
			})
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"memory that is not known", fill(func(n []*disruption.Node) {
			delete(n[0].Node.Status.Allocatable, corev1.ResourceMemory)
			put(n[0], "p", 1, 32)
			put(n[1], "q", 1, 32)
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"values that nobody means", fill(func(n []*disruption.Node) {
			n[0].Node.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("9e18")
			put(n[0], "p", 1, 1, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("8E")
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("-1")
			})
		}), "requests 1 of pods"},
		{"two zones", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 1, wants(corev1.LabelTopologyZone, "z1"))
			put(n[0], "q", 8, 1, wants(corev1.LabelTopologyZone, "z1"))
			put(n[2], "r", 1, 1, wants(corev1.LabelTopologyZone, "z2"))
		}), "node selection 3 by topology.kubernetes.io/zone [{z1 2 2} {z2 1 1}]; requests 2 of cpu; requests 1 of memory; requests 1 of pods"},
		{"one zone", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 1, wants(corev1.LabelTopologyZone, "z1"))
			put(n[2], "r", 1, 1)
		}),
			"requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"a zone that its node is not in", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 1, wants(corev1.LabelTopologyZone, "z1"))
			put(n[0], "r", 1, 1, wants(corev1.LabelTopologyZone, "z2"))
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"anti-affinity on hostname", fill(func(n []*disruption.Node) {
			for _, node := range n {
				put(node, "p"+node.Name(), 1, 1, apart(corev1.LabelHostname))
			}
		}), "anti-affinity 3 of 3 pods; requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"anti-affinity on others only", fill(func(n []*disruption.Node) {
			for _, node := range n {
				put(node, "p"+node.Name(), 1, 1, apart(corev1.LabelHostname), labelled("other"))
			}
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"anti-affinity of two that share a node", fill(func(n []*disruption.Node) {
			put(n[0], "p", 1, 1, apart(corev1.LabelHostname))
			put(n[0], "q", 1, 1, apart(corev1.LabelHostname))
			put(n[1], "r", 1, 1, apart(corev1.LabelHostname))
		}), "anti-affinity 2 of 3 pods; requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"spread on hostname", fill(func(n []*disruption.Node) {
			for i := range 5 {
				put(n[i%3], fmt.Sprint(i), 1, 1, spread(corev1.LabelHostname, 2))
			}
		}), "topology spread 3 of 5 pods; requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
		{"a spread of a wide skew", fill(func(n []*disruption.Node) {
			for i := range 3 {
				put(n[i], fmt.Sprint(i), 1, 1, spread(corev1.LabelHostname, 3))
			}
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods; topology spread 1 of 3 pods"},
		{"a spread that may be dropped", fill(func(n []*disruption.Node) {
			for i := range 3 {
				put(n[i], fmt.Sprint(i), 1, 1, spread(corev1.LabelHostname, 1, func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }))
			}
		}), "requests 1 of cpu; requests 1 of memory; requests 1 of pods"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := spelled(Of(c.nodes).Floors()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Nodes that go hold nothing, and their pods are not the pool's.
func TestLeaving(t *testing.T) {
	a, b := node("a", "z1", 8, 32), node("b", "z1", 8, 32)
	put(a, "p", 8, 1)
	put(b, "q", 8, 1)
	b.Marked = true
	p := Of([]*disruption.Node{a, b})
	if got := spelled(p.Floors()); len(p.Nodes) != 1 || len(p.Leaving) != 1 || got != "requests 1 of cpu; requests 1 of memory; requests 1 of pods" {
		t.Errorf("%d nodes, %d leave: %s", len(p.Nodes), len(p.Leaving), got)
	}
}

// No bound is above what a search through all placements finds. A placement is one that pods can get to from the present one by
// moves that Karpenter would plan.
func TestFloorsNeverExceedTheOptimum(t *testing.T) {
	const seed = 20260714
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	tight := map[Kind]int{}
	for range 1500 {
		nodes := make([]*disruption.Node, 2+r.IntN(3))
		for i := range nodes {
			nodes[i] = node(fmt.Sprint("n", i), fmt.Sprint("z", r.IntN(2)), 4+r.Int64N(5), 4+r.Int64N(5))
			if r.IntN(3) == 0 {
				put(nodes[i], "agent", 1, 1, ownedBy("apps/v1", "DaemonSet"))
			}
		}
		var edits [][]func(*corev1.Pod)
		edits = append(edits, nil, []func(*corev1.Pod){apart(corev1.LabelHostname)}, []func(*corev1.Pod){spread(corev1.LabelHostname, 1+r.Int32N(2))})
		for i := range 1 + r.IntN(5) {
			n := nodes[r.IntN(len(nodes))]
			edit := slices.Clone(edits[r.IntN(len(edits))])
			if r.IntN(3) == 0 {
				edit = append(edit, wants(corev1.LabelTopologyZone, n.Node.Labels[corev1.LabelTopologyZone]))
			}
			if r.IntN(4) == 0 {
				edit = append(edit, labelled("other"))
			}
			put(n, fmt.Sprint("p", i), 1+r.Int64N(4), 1+r.Int64N(4), edit...)
			if !fits(nodes) {
				n.Pods = n.Pods[:len(n.Pods)-1]
			}
		}
		best := optimum(Of(nodes))
		for i, f := range Of(nodes).Floors() {
			if f.Nodes > best {
				t.Fatalf("%s, but %d nodes hold all pods: %s", spelled([]Floor{f}), best, world(nodes))
			}
			if i == 0 && f.Nodes == best && best > 1 {
				tight[f.By]++
			}
		}
	}
	for _, kind := range []Kind{Requests, LargePods, NodeSelection, TopologySpread, AntiAffinity} {
		if tight[kind] == 0 {
			t.Errorf("%s never decided: %v", kind, tight)
		}
	}
}

func world(nodes []*disruption.Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, fmt.Sprintf("%s %v", n.Name(), n.Node.Status.Allocatable))
		for _, p := range n.Pods {
			out = append(out, fmt.Sprintf("  %s %v %v %v %v", p.Name, p.Labels, p.Spec.Containers[0].Resources.Requests, p.Spec.NodeSelector, p.Spec.TopologySpreadConstraints))
		}
	}
	return strings.Join(out, "\n")
}

// fits: what is requested on each node is there.
func fits(nodes []*disruption.Node) bool {
	for _, n := range nodes {
		used := amounts{}
		for _, p := range n.Pods {
			for name, amount := range requests(p) {
				used[name] += amount
			}
		}
		for name, amount := range used {
			if q := n.Node.Status.Allocatable[name]; q.MilliValue() < amount {
				return false
			}
		}
	}
	return true
}

// optimum is the least number of nodes with pods on them in any placement that single moves lead to.
func optimum(p *Pool) int {
	start := fmt.Sprint(p.at)
	best := len(p.Nodes)
	seen := map[string]bool{start: true}
	for queue := [][]int{p.at}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		best = min(best, len(slices.Compact(slices.Sorted(slices.Values(at)))))
		for i := range at {
			for to := range p.Nodes {
				if to == at[i] || !p.takes(at, i, to) {
					continue
				}
				next := slices.Clone(at)
				next[i] = to
				if key := fmt.Sprint(next); !seen[key] {
					seen[key] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return best
}

// takes is Karpenter's test of one pod on one node, written anew.
func (p *Pool) takes(at []int, i, to int) bool {
	pod, n := p.Pods[i], p.Nodes[to].Node
	for label, value := range pod.Spec.NodeSelector {
		if n.Labels[label] != value {
			return false
		}
	}
	cpu, memory := n.Status.Allocatable.Cpu().Value(), n.Status.Allocatable.Memory().Value()
	for _, other := range p.Nodes[to].Pods {
		if disruption.IsDaemonSetPod(other) {
			cpu -= other.Spec.Containers[0].Resources.Requests.Cpu().Value()
			memory -= other.Spec.Containers[0].Resources.Requests.Memory().Value()
		}
	}
	same := 0
	for j, other := range p.Pods {
		if at[j] != to && j != i {
			continue
		}
		cpu -= other.Spec.Containers[0].Resources.Requests.Cpu().Value()
		memory -= other.Spec.Containers[0].Resources.Requests.Memory().Value()
		if j == i {
			continue
		}
		isWeb := other.Labels["app"] == "web"
		if isWeb {
			same++
		}
		if isWeb && pod.Spec.Affinity != nil || pod.Labels["app"] == "web" && other.Spec.Affinity != nil {
			return false
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		self := 0
		if pod.Labels["app"] == "web" {
			self = 1
		}
		if same+self > int(c.MaxSkew) {
			return false
		}
	}
	return cpu >= 0 && memory >= 0
}
