package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

var now = time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)

// draw makes small clusters in which everything is scarce.
type draw struct{ *rand.Rand }

func (r draw) one(in int) bool { return r.IntN(in) == 0 }

func pick[T any](r draw, of ...T) T { return of[r.IntN(len(of))] }

func (r draw) requests() corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(r, "100m", "500m", "1", "1500m", "2")), corev1.ResourceMemory: resource.MustParse(pick(r, "128Mi", "1Gi", "2Gi"))}
	if r.one(6) {
		out["example.com/gpu"] = resource.MustParse("1")
	}
	return out
}

func (r draw) tolerations() (out []corev1.Toleration) {
	for _, key := range []string{"dedicated", "other"} {
		if r.one(3) {
			out = append(out, corev1.Toleration{Key: key, Operator: pick(r, corev1.TolerationOpExists, corev1.TolerationOpEqual), Value: "", Effect: pick(r, "", corev1.TaintEffectNoSchedule)})
		}
	}
	return out
}

func (r draw) required() *corev1.Affinity {
	term := func() corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: pick(r, "disk", corev1.LabelTopologyZone), Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{pick(r, "ssd", "hdd", "a", "b")}}}}
	}
	terms := []corev1.NodeSelectorTerm{term()}
	if r.one(2) {
		terms = append(terms, term())
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

func (r draw) pod(name, node string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": pick(r, "web", "db")}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}}
	p.Spec.NodeName = node
	p.Spec.Tolerations = r.tolerations()
	c := corev1.Container{Name: "c"}
	c.Resources.Requests = r.requests()
	if r.one(6) {
		c.Ports = []corev1.ContainerPort{{HostPort: pick[int32](r, 80, 81), HostIP: pick(r, "", "10.0.0.1", "10.0.0.2"), Protocol: pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP)}}
	}
	p.Spec.Containers = []corev1.Container{c}
	p.Status.Phase = corev1.PodRunning
	switch r.IntN(10) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"disk": pick(r, "ssd", "hdd")}
	case 1, 2:
		p.Spec.Affinity = r.required()
	case 3:
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(r, "claim-a", "claim-b")}}}}
	case 4:
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	case 5:
		p.DeletionTimestamp = &metav1.Time{Time: now}
	}
	if r.one(12) {
		p.Status.Phase = corev1.PodSucceeded
	}
	return p
}

// problem is a cluster, and what is known of it.
type problem struct {
	cluster *disruption.Cluster
	known   Known
}

func (r draw) problem() problem {
	var nodes []corev1.Node
	var claims []karpenter.NodeClaim
	var pods []corev1.Pod
	for i := range 2 + r.IntN(3) {
		name := fmt.Sprintf("n%d", i)
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: pick(r, "a", "b"), corev1.LabelInstanceTypeStable: "t"}}}
		if r.one(2) {
			n.Labels["disk"] = pick(r, "ssd", "hdd")
		}
		n.Spec.ProviderID = "p:///" + name
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(r, "2", "3", "4")), corev1.ResourceMemory: resource.MustParse(pick(r, "2Gi", "4Gi")), corev1.ResourcePods: resource.MustParse(pick(r, "3", "110"))}
		if r.one(3) {
			n.Status.Allocatable["example.com/gpu"] = resource.MustParse("1")
		}
		for _, key := range []string{"dedicated", "other"} {
			if r.one(4) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: pick(r, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)})
			}
		}
		if !r.one(4) {
			n.Labels[karpenter.NodePoolLabel], n.Labels[karpenter.RegisteredLabel] = "pool", "true"
			if !r.one(6) {
				n.Labels[karpenter.InitializedLabel] = "true"
			}
			c := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c" + name, Labels: n.Labels}}
			c.Status.ProviderID = n.Spec.ProviderID
			if r.one(8) {
				c.DeletionTimestamp = &metav1.Time{Time: now}
			}
			claims = append(claims, c)
		}
		nodes = append(nodes, n)
		there := &disruption.Node{Node: &n}
		for j := range r.IntN(4) {
			p := r.pod(fmt.Sprintf("p%d-%d", i, j), name)
			if p.Status.Phase != corev1.PodRunning || together(there, []*corev1.Pod{&p}, true) {
				pods = append(pods, p)
				there.Pods = append(there.Pods, &p)
			}
		}
	}
	pool := karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	known := Known{Now: now, DaemonSets: &[]appsv1.DaemonSet{}, Claims: &[]corev1.PersistentVolumeClaim{}, Volumes: &[]corev1.PersistentVolume{}}
	for _, zone := range []string{"a", "b"} {
		v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol-" + zone}}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
		*known.Volumes = append(*known.Volumes, v)
		*known.Claims = append(*known.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim-" + zone}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: v.Name}})
	}
	for i := range r.IntN(2) {
		p := r.pod(fmt.Sprintf("pending%d", i), "")
		known.Pending = append(known.Pending, &p)
	}
	joined, _ := disruption.Join(nodes, claims, pods)
	rules, _, _ := karpenter.RulesFor("1.14.3")
	return problem{&disruption.Cluster{Rules: rules, Nodes: joined, Pools: map[string]*karpenter.NodePool{"pool": &pool}}, known}
}

// fits is the scheduler's own view of one pod on a node, written down from its documentation and not from what is tested.
func (q problem) fits(p *corev1.Pod, n *disruption.Node) bool {
	if _, untolerated := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Node.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false); untolerated {
		return false
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n.Node); err != nil || !match {
		return false
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != "claim-"+n.Node.Labels[corev1.LabelTopologyZone] {
			return false
		}
	}
	return true
}

// together reports whether the pods fit on the node beside those that are there; ones that are terminating count if asked.
func together(n *disruption.Node, pods []*corev1.Pod, terminating bool) bool {
	all := slices.Clone(pods)
	for _, p := range n.Pods {
		if p.Status.Phase == corev1.PodRunning && (terminating || p.DeletionTimestamp == nil) {
			all = append(all, p)
		}
	}
	sum := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(all)), resource.DecimalSI)}
	for i, p := range all {
		for name, q := range podresource.PodRequests(p, podresource.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
		for _, other := range all[i+1:] {
			for _, x := range p.Spec.Containers[0].Ports {
				for _, y := range other.Spec.Containers[0].Ports {
					if x.HostPort == y.HostPort && x.Protocol == y.Protocol && (x.HostIP == y.HostIP || x.HostIP == "" || y.HostIP == "") {
						return false
					}
				}
			}
		}
	}
	for name, q := range sum {
		if free := n.Node.Status.Allocatable[name]; q.Cmp(free) > 0 {
			return false
		}
	}
	return true
}

// assignable tries every way to put the pods on the nodes.
func (q problem) assignable(pods []*corev1.Pod, nodes []*disruption.Node, on map[*disruption.Node][]*corev1.Pod) bool {
	if len(pods) == 0 {
		return true
	}
	for _, n := range nodes {
		if !n.Initialized() || !q.fits(pods[0], n) {
			continue
		}
		on[n] = append(on[n], pods[0])
		if together(n, on[n], false) && q.assignable(pods[1:], nodes, on) {
			return true
		}
		on[n] = on[n][:len(on[n])-1]
	}
	return false
}

// Where some assignment of all pods exists, nothing is proven against it, and a plan is one.
func TestAgainstAllAssignments(t *testing.T) {
	var outcomes [3]int
	possible := 0
	for seed := range uint64(4000) {
		r := draw{rand.New(rand.NewPCG(seed, 1))}
		q := r.problem()
		planner := New(q.cluster, q.known)
		for _, n := range q.cluster.Nodes {
			a := planner.Of(n)
			outcomes[a.Outcome]++
			var pods []*corev1.Pod
			for _, p := range a.Pods {
				pods = append(pods, p.Pod)
			}
			assignable := q.assignable(pods, a.Targets, map[*disruption.Node][]*corev1.Pod{})
			if assignable {
				possible++
			}
			if assignable && a.Outcome == CannotDelete {
				t.Fatalf("seed %d, node %s: proven that it cannot go, but every pod has a place: %+v", seed, n.Name(), a)
			}
			for _, p := range a.Pods {
				// Where labels are vague a pod without a place may not be proven to be.
				if alone := q.assignable([]*corev1.Pod{p.Pod}, a.Targets, map[*disruption.Node][]*corev1.Pod{}); alone && p.Stuck || alone != !p.Stuck && len(planner.vague) == 0 {
					t.Fatalf("seed %d, node %s, pod %s: stuck is %v, but it has a place alone: %v; %v", seed, n.Name(), p.Pod.Name, p.Stuck, alone, p.Failed)
				}
			}
			if a.Outcome != ProbablyRemovable {
				continue
			}
			on := map[*disruption.Node][]*corev1.Pod{}
			moved := 0
			for _, m := range a.Moves {
				if m.To == n || !m.To.Initialized() || m.To.MarkedForDeletion() || !q.fits(m.Pod, m.To) || !slices.Contains(pods, m.Pod) {
					t.Fatalf("seed %d, node %s: %s to %s is no place", seed, n.Name(), m.Pod.Name, m.To.Name())
				}
				on[m.To] = append(on[m.To], m.Pod)
				moved++
			}
			for target, group := range on {
				if !together(target, group, true) {
					t.Fatalf("seed %d, node %s: the plan overfills %s", seed, n.Name(), target.Name())
				}
			}
			if moved != len(pods) {
				t.Fatalf("seed %d, node %s: %d of %d pods are in the plan", seed, n.Name(), moved, len(pods))
			}
		}
	}
	t.Logf("unknown %d, cannot %d, removable %d; assignable %d", outcomes[Unknown], outcomes[CannotDelete], outcomes[ProbablyRemovable], possible)
	if slices.Min(outcomes[:]) < 500 {
		t.Errorf("the clusters test little: %v", outcomes)
	}
}
