package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// world is n1 with the pod p, and n2 with q: each node has 4 CPUs, each pod requests one.
type world struct {
	nodes  []corev1.Node
	claims []karpenter.NodeClaim
	pods   []corev1.Pod
	pool   karpenter.NodePool
	pdbs   []policyv1.PodDisruptionBudget
	minor  string
	known  Known
}

func newWorld() *world {
	w := &world{minor: "1.14.3", known: Known{Now: now, DaemonSets: &[]appsv1.DaemonSet{}}}
	w.pool.Name = "pool"
	w.pool.Spec.Disruption = &karpenter.Disruption{ConsolidateAfter: karpenter.NillableDuration{Duration: time.Minute, Set: true, Text: "1m"}}
	for _, name := range []string{"n1", "n2"} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabel: "pool", karpenter.RegisteredLabel: "true", karpenter.InitializedLabel: "true", corev1.LabelInstanceTypeStable: "t", corev1.LabelTopologyZone: "a"}}}
		n.Spec.ProviderID = "p:///" + name
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")}
		w.nodes = append(w.nodes, n)
		c := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c" + name, Labels: n.Labels}}
		c.Status.ProviderID = n.Spec.ProviderID
		c.Status.Conditions = []metav1.Condition{{Type: karpenter.ConditionInitialized, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
		w.claims = append(w.claims, c)
	}
	w.pods = []corev1.Pod{newPod("p", "n1"), newPod("q", "n2")}
	return w
}

func newPod(name, node string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}}}}
	p.Status.Phase = corev1.PodRunning
	return p
}

func request(p *corev1.Pod, name corev1.ResourceName, amount string) {
	p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(amount)
}

func (w *world) answer(t *testing.T) *Answer {
	t.Helper()
	rules, _, err := karpenter.RulesFor(w.minor)
	if err != nil {
		t.Fatal(err)
	}
	pdbs, err := disruption.NewPDBs(w.pdbs)
	if err != nil {
		t.Fatal(err)
	}
	joined, _ := disruption.Join(w.nodes, w.claims, w.pods)
	for i := range w.pods {
		if w.pods[i].Spec.NodeName == "" {
			w.known.Pending = append(w.known.Pending, &w.pods[i])
		}
	}
	c := &disruption.Cluster{Rules: rules, Nodes: joined, Pools: map[string]*karpenter.NodePool{"pool": &w.pool}, PDBs: pdbs}
	return New(c, w.known).Of(joined[0])
}

// spell is an answer as tests write it.
func spell(a *Answer) string {
	out := []string{a.Outcome.String()}
	for _, m := range a.Moves {
		out = append(out, m.Pod.Name+" to "+m.To.Name())
	}
	for _, p := range a.Stuck() {
		for _, r := range p.Reasons {
			out = append(out, fmt.Sprintf("%s: %d %s", p.Pod.Name, r.Nodes, r.Check))
		}
	}
	if a.Together != nil {
		out = append(out, fmt.Sprintf("together: %s %d of %d on %d", a.Together.Resource, a.Together.Need, a.Together.Free, a.Together.Nodes))
	}
	for _, d := range a.Doubts {
		out = append(out, string(d.Why))
	}
	for _, n := range a.Protected {
		out = append(out, "protected "+n.Name())
	}
	for _, p := range a.LeftOut {
		out = append(out, "left out "+p.Name)
	}
	return strings.Join(out, "; ")
}

func TestOf(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: "v", Effect: effect}
	}
	daemon := func(cpu string) appsv1.DaemonSet {
		d := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent"}}
		d.Spec.Template.Spec = newPod("", "").Spec
		d.Spec.Template.Spec.NodeName = ""
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		return d
	}
	ofDaemonSet := func(p corev1.Pod) corev1.Pod {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent"}}
		return p
	}
	anti := func(app string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}
	}
	for _, c := range []struct {
		name string
		edit func(*world)
		want string
	}{
		{"room", func(*world) {}, "probably removable; p to n2"},
		{"just enough", func(w *world) { request(&w.pods[1], "cpu", "3") }, "probably removable; p to n2"},
		{"a thousandth too little", func(w *world) { request(&w.pods[1], "cpu", "3001m") }, "cannot be deleted; p: 1 resources"},
		{"finer than a thousandth", func(w *world) { request(&w.pods[1], "cpu", "3000001u") }, "unknown; " + string(DoubtPacking)},
		{"a resource that the node has none of", func(w *world) { request(&w.pods[0], "example.com/gpu", "1") }, "cannot be deleted; p: 1 resources"},
		{"as many pods as it may have", func(w *world) { w.nodes[1].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") }, "cannot be deleted; p: 1 resources"},
		{"amounts that are not told", func(w *world) { w.nodes[1].Status.Allocatable = nil }, "unknown; " + string(DoubtPacking)},
		{"an endless amount", func(w *world) { w.nodes[1].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("9E") }, "unknown; " + string(DoubtPacking)},
		{"an endless request", func(w *world) { request(&w.pods[0], "cpu", "9E") }, "unknown; " + string(DoubtOdd)},
		{"room of one that is leaving", func(w *world) {
			request(&w.pods[1], "cpu", "4")
			w.pods[1].DeletionTimestamp = &metav1.Time{Time: now}
		}, "unknown; " + string(DoubtPacking)},
		{"room of one that has ended", func(w *world) {
			request(&w.pods[1], "cpu", "4")
			w.pods[1].Status.Phase = corev1.PodSucceeded
		}, "probably removable; p to n2"},
		{"more than it requests by its status", func(w *world) {
			w.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}, AllocatedResources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}
		}, "unknown; " + string(DoubtPacking)},
		{"a taint", func(w *world) { w.nodes[1].Spec.Taints = []corev1.Taint{taint("k", corev1.TaintEffectNoExecute)} }, "cannot be deleted; p: 1 taints"},
		{"a taint that is tolerated", func(w *world) {
			w.nodes[1].Spec.Taints = []corev1.Taint{taint("k", corev1.TaintEffectNoExecute)}
			w.pods[0].Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "v"}}
		}, "probably removable; p to n2"},
		{"a taint of another value", func(w *world) {
			w.nodes[1].Spec.Taints = []corev1.Taint{taint("k", corev1.TaintEffectNoExecute)}
			w.pods[0].Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "other"}}
		}, "cannot be deleted; p: 1 taints"},
		{"a toleration that is not understood", func(w *world) {
			w.nodes[1].Spec.Taints = []corev1.Taint{taint("k", corev1.TaintEffectNoExecute)}
			w.pods[0].Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: "Gt", Value: "1"}}
		}, "unknown; " + string(DoubtPacking)},
		{"a taint that is only a preference", func(w *world) {
			w.nodes[1].Spec.Taints = []corev1.Taint{taint("k", corev1.TaintEffectPreferNoSchedule)}
		}, "unknown; " + string(DoubtPacking)},
		{"cordoned without its taint", func(w *world) { w.nodes[1].Spec.Unschedulable = true }, "unknown; " + string(DoubtPacking)},
		{"not ready without a taint", func(w *world) {
			w.nodes[1].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, "unknown; " + string(DoubtPacking)},
		{"not initialized", func(w *world) { delete(w.nodes[1].Labels, karpenter.InitializedLabel) }, "cannot be deleted; p: 1 not initialized"},
		{"a node that is leaving", func(w *world) { w.claims[1].DeletionTimestamp = &metav1.Time{Time: now} }, "cannot be deleted"},
		{"a label by its old name", func(w *world) {
			w.pods[0].Spec.NodeSelector = map[string]string{corev1.LabelFailureDomainBetaZone: "a"}
		}, "unknown; " + string(DoubtPacking)},
		{"a label of another value", func(w *world) { w.pods[0].Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"} }, "cannot be deleted; p: 1 node selector or affinity"},
		{"two names that differ", func(w *world) {
			w.pods[0].Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
			w.nodes[1].Labels[corev1.LabelFailureDomainBetaZone] = "b"
		}, "unknown; " + string(DoubtPacking)},
		{"by its own name", func(w *world) {
			w.pods[0].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}
		}, "unknown; " + string(DoubtPacking)},
		{"an affinity that cannot be read", func(w *world) {
			w.pods[0].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "Around"}}}}}}}
		}, "unknown; " + string(DoubtOdd)},
		{"only its second choice", func(w *world) {
			in := func(value string) corev1.NodeSelectorTerm {
				return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}
			}
			w.pods[0].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{in("b"), in("a")}}}}
		}, "unknown; " + string(DoubtPacking)},
		{"a label that another pod makes vague", func(w *world) {
			w.pods[0].Spec.NodeSelector = map[string]string{"team": "x"}
			w.pods[1].Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "team", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"y"}}}}}}}}
		}, "unknown; " + string(DoubtPacking)},
		{"a label that none has", func(w *world) { w.pods[0].Spec.NodeSelector = map[string]string{"team": "x"} }, "cannot be deleted; p: 1 node selector or affinity"},
		{"a port of the node", func(w *world) {
			for i := range w.pods {
				w.pods[i].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
			}
		}, "cannot be deleted; p: 1 host ports"},
		{"the port at another address", func(w *world) {
			for i := range w.pods {
				w.pods[i].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, HostIP: fmt.Sprintf("10.0.0.%d", i)}}
			}
		}, "unknown; " + string(DoubtPacking)},
		{"the port by another protocol", func(w *world) {
			w.pods[0].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
			w.pods[1].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolUDP}}
		}, "probably removable; p to n2"},
		{"a volume of the node", func(w *world) {
			w.pods[0].Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, "probably removable; p to n2"},
		{"a volume of another kind", func(w *world) {
			w.pods[0].Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}}}
		}, "unknown; " + string(DoubtVolume)},
		{"a volume of a kind that is not known", func(w *world) { w.pods[0].Spec.Volumes = []corev1.Volume{{}} }, "unknown; " + string(DoubtVolume)},
		{"a spread", func(w *world) { w.pods[0].Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}} }, "unknown; " + string(DoubtSpread)},
		{"an anti-affinity", func(w *world) { w.pods[0].Spec.Affinity = anti("db") }, "unknown; " + string(DoubtAffinity)},
		{"another pod's anti-affinity", func(w *world) { w.pods[1].Spec.Affinity = anti("web") }, "unknown; " + string(DoubtKeptOff)},
		{"another pod's anti-affinity to others", func(w *world) { w.pods[1].Spec.Affinity = anti("db") }, "probably removable; p to n2"},
		{"another namespace's anti-affinity", func(w *world) {
			w.pods[1].Spec.Affinity = anti("web")
			w.pods[1].Namespace = "else"
		}, "probably removable; p to n2"},
		{"every namespace's anti-affinity", func(w *world) {
			w.pods[1].Spec.Affinity = anti("web")
			w.pods[1].Namespace = "else"
			w.pods[1].Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{}
		}, "unknown; " + string(DoubtKeptOff)},
		{"devices", func(w *world) { w.pods[0].Spec.ResourceClaims = []corev1.PodResourceClaim{{}} }, "unknown; " + string(DoubtDevices)},
		{"a DaemonSet that is yet to come", func(w *world) { *w.known.DaemonSets = append(*w.known.DaemonSets, daemon("2500m")) }, "unknown; " + string(DoubtPacking)},
		{"a DaemonSet that is there", func(w *world) {
			*w.known.DaemonSets = append(*w.known.DaemonSets, daemon("1"))
			w.pods = append(w.pods, ofDaemonSet(newPod("agent", "n2")))
			request(&w.pods[1], "cpu", "2")
		}, "probably removable; p to n2"},
		{"a DaemonSet for other nodes", func(w *world) {
			d := daemon("4")
			d.Spec.Template.Spec.NodeSelector = map[string]string{"only": "there"}
			*w.known.DaemonSets = append(*w.known.DaemonSets, d)
		}, "probably removable; p to n2"},
		{"a DaemonSet of which only a pod is known", func(w *world) {
			w.known.DaemonSets = nil
			w.pods = append(w.pods, ofDaemonSet(newPod("agent", "n1")))
			request(&w.pods[1], "cpu", "2500m")
		}, "unknown; " + string(DoubtPacking)},
		{"inside its consolidateAfter", func(w *world) { w.claims[1].Status.LastPodEventTime = metav1.NewTime(now.Add(-30 * time.Second)) }, "unknown; " + string(DoubtPacking) + "; protected n2"},
		{"inside it before 1.14", func(w *world) {
			w.minor = "1.13.0"
			w.claims[1].Status.LastPodEventTime = metav1.NewTime(now.Add(-30 * time.Second))
		}, "probably removable; p to n2"},
		{"inside it, and no room", func(w *world) {
			w.claims[1].Status.LastPodEventTime = metav1.NewTime(now.Add(-30 * time.Second))
			w.nodes[1].Spec.Unschedulable = true
		}, "unknown; " + string(DoubtPacking)},
		{"a pending pod that comes first", func(w *world) {
			w.pods = append(w.pods, newPod("r", ""))
			request(&w.pods[2], "cpu", "2500m")
		}, "unknown; " + string(DoubtPacking)},
		{"a pending pod that fits beside it", func(w *world) { w.pods = append(w.pods, newPod("r", "")) }, "probably removable; p to n2"},
		{"a pending pod that goes where it may not", func(w *world) {
			w.claims[1].Status.LastPodEventTime = metav1.NewTime(now.Add(-30 * time.Second))
			n := *w.nodes[1].DeepCopy()
			n.Name, n.Spec.ProviderID = "n3", "p:///n3"
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
			w.nodes = append(w.nodes, n)
			w.pods = append(w.pods, newPod("r", ""))
			request(&w.pods[2], "cpu", "2")
		}, "probably removable; p to n3"},
		{"a node that is overfull of something else", func(w *world) { request(&w.pods[1], "example.com/gpu", "1") }, "unknown; " + string(DoubtPacking)},
		{"room for one of two", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"))
			request(&w.pods[1], "cpu", "2500m")
		}, "cannot be deleted; together: cpu 2000 of 1500 on 1"},
		{"room for one of two, if one leaves", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"), newPod("q2", "n2"))
			request(&w.pods[1], "cpu", "1500m")
			w.pods[3].DeletionTimestamp = &metav1.Time{Time: now}
		}, "unknown; " + string(DoubtPacking)},
		{"two, and amounts that are not told", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"))
			w.nodes[1].Status.Allocatable = nil
		}, "unknown; " + string(DoubtPacking)},
		{"two, and a node that has less than nothing of what one of them needs", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"))
			n := *w.nodes[1].DeepCopy()
			n.Name, n.Spec.ProviderID = "n3", "p:///n3"
			w.nodes = append(w.nodes, n)
			w.nodes[1].Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
			over := newPod("r", "n3")
			request(&over, "example.com/gpu", "1")
			w.pods = append(w.pods, over)
			request(&w.pods[0], "example.com/gpu", "1")
		}, "probably removable; p to n2; p2 to n2"},
		{"room for two, but on nodes that are too small for one", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"))
			for i, cpu := range []string{"500m", "600m"} {
				n := *w.nodes[1].DeepCopy()
				n.Name, n.Spec.ProviderID = fmt.Sprintf("n%d", 3+i), fmt.Sprintf("p:///n%d", 3+i)
				n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(cpu)
				w.nodes = append(w.nodes, n)
			}
			request(&w.pods[1], "cpu", "2500m")
		}, "cannot be deleted; together: cpu 2000 of 1500 on 1"},
		{"two that want the same port", func(w *world) {
			w.pods = append(w.pods, newPod("p2", "n1"))
			for _, i := range []int{0, 2} {
				w.pods[i].Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
			}
		}, "unknown; " + string(DoubtPacking)},
		{"a pending pod that no node takes", func(w *world) {
			w.pods = append(w.pods, newPod("r", ""))
			request(&w.pods[2], "cpu", "5")
		}, "unknown; " + string(DoubtOthers)},
		{"a pending pod with a spread", func(w *world) {
			w.pods = append(w.pods, newPod("r", ""))
			w.pods[2].Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{}}
		}, "unknown; " + string(DoubtOthers)},
		{"a gated pod", func(w *world) {
			w.pods = append(w.pods, newPod("r", ""))
			request(&w.pods[2], "cpu", "5")
			w.pods[2].Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
		}, "probably removable; p to n2"},
		{"a protected pod", func(w *world) { w.pods[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"} }, "probably removable; left out p"},
		{"a pod under a budget of none", func(w *world) {
			none := intstr.FromInt32(0)
			w.pdbs = []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{}}}}
		}, "probably removable; left out p"},
		{"no pool that makes nodes", func(w *world) {
			w.pool.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown}}
		}, "unknown; " + string(DoubtPools)},
		{"a static pool alone", func(w *world) { w.pool.Spec.Replicas = new(int64) }, "unknown; " + string(DoubtPools)},
		{"a pool that is ready", func(w *world) {
			w.pool.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		}, "probably removable; p to n2"},
		{"a protected pod, and a pending one without a place", func(w *world) {
			w.pods[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
			w.pods = append(w.pods, newPod("r", ""))
			request(&w.pods[2], "cpu", "5")
		}, "unknown; " + string(DoubtOthers) + "; left out p"},
		{"a protected pod that is leaving", func(w *world) {
			w.pods[0].Annotations = map[string]string{karpenter.DoNotDisruptAnnotation: "true"}
			w.pods[0].OwnerReferences[0].Kind = "StatefulSet"
			w.pods[0].DeletionTimestamp = &metav1.Time{Time: now}
		}, "probably removable; p to n2"},
		{"a pod under two budgets", func(w *world) {
			for _, name := range []string{"b1", "b2"} {
				w.pdbs = append(w.pdbs, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
			}
		}, "probably removable; left out p"},
		{"no pods", func(w *world) { w.pods = w.pods[1:] }, "probably removable"},
		{"nodes that are not all known", func(w *world) {
			w.known.NodesUnknown = true
			request(&w.pods[1], "cpu", "4")
		}, "unknown; " + string(DoubtNodes)},
		{"pods that are not all known", func(w *world) { w.known.PodsUnknown = true }, "unknown; " + string(DoubtPods)},
		{"pods that are not all known, and no room all the same", func(w *world) {
			w.known.PodsUnknown = true
			request(&w.pods[1], "cpu", "4")
		}, "cannot be deleted; p: 1 resources"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.edit(w)
			if got := spell(w.answer(t)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestZones(t *testing.T) {
	for _, c := range []struct {
		name string
		key  string
		in   []string
		want string
	}{
		{"its zone", corev1.LabelTopologyZone, []string{"a"}, "unknown; " + string(DoubtVolume)},
		{"another zone", corev1.LabelTopologyZone, []string{"b"}, "cannot be deleted; p: 1 volume zone"},
		{"another zone by the old name", corev1.LabelFailureDomainBetaZone, []string{"b"}, "cannot be deleted; p: 1 volume zone"},
		{"its zone by a driver's name", "topology.csi.example.com/zone", []string{"a"}, "unknown; " + string(DoubtVolume)},
		{"another zone by a driver's name", "topology.csi.example.com/zone", []string{"b"}, "cannot be deleted; p: 1 volume zone"},
		{"no zone by a driver's name", "topology.csi.example.com/zone", []string{""}, "unknown; " + string(DoubtVolume)},
		{"a host", corev1.LabelHostname, []string{"n1"}, "unknown; " + string(DoubtVolume)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: c.key, Operator: corev1.NodeSelectorOpIn, Values: c.in}}}}}}
			w.known.Volumes = &[]corev1.PersistentVolume{v}
			w.known.Claims = &[]corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}}
			w.pods[0].Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
			if got := spell(w.answer(t)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Of several nodes the example is the one with the most room, and never the one in question.
func TestReasons(t *testing.T) {
	w := newWorld()
	request(&w.pods[0], "cpu", "2500m")
	request(&w.pods[1], "cpu", "3")
	for i, cpu := range []string{"3500m", "2800m", "3300m"} {
		n := *w.nodes[1].DeepCopy()
		n.Name, n.Spec.ProviderID = fmt.Sprintf("n%d", 3+i), fmt.Sprintf("p:///n%d", 3+i)
		w.nodes = append(w.nodes, n)
		p := newPod(n.Name+"-pod", n.Name)
		request(&p, "cpu", cpu)
		w.pods = append(w.pods, p)
	}
	rules, _, _ := karpenter.RulesFor(w.minor)
	joined, _ := disruption.Join(w.nodes, w.claims, w.pods)
	planner := New(&disruption.Cluster{Rules: rules, Nodes: joined, Pools: map[string]*karpenter.NodePool{"pool": &w.pool}}, w.known)
	for _, c := range []struct {
		node int
		want string
	}{
		{0, "4 nodes, n4: cpu 2500 of 4000 less 2800 is 1200, enough true"},
		{1, "4 nodes, n1: cpu 3000 of 4000 less 2500 is 1500, enough true"},
		{3, "4 nodes, n1: cpu 2800 of 4000 less 2500 is 1500, enough true"},
	} {
		pod := planner.Of(joined[c.node]).Pods[0]
		if len(pod.Reasons) != 1 {
			t.Fatalf("%+v", pod)
		}
		r := pod.Reasons[0]
		got := fmt.Sprintf("%d nodes, %s: %s %d of %d less %d is %d, enough %v", r.Nodes, r.Example.Name(), r.Resource, r.Need, r.Allocatable, r.Used, r.Free, r.Enough)
		if got != c.want {
			t.Errorf("node %d: got %s, want %s", c.node, got, c.want)
		}
	}
}
