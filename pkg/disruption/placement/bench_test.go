package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// large is a cluster of nodes with thirty pods each, which take up to 15.6 CPUs. Each kind of pods has its own request.
func large(nodes, kinds int, cpu string) problem {
	var ns []corev1.Node
	var claims []karpenter.NodeClaim
	var pods []corev1.Pod
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenter.NodePoolLabel: "pool", karpenter.RegisteredLabel: "true", karpenter.InitializedLabel: "true",
			corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: "t", corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}}}
		n.Spec.ProviderID = "p:///" + name
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
		ns = append(ns, n)
		c := karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c" + name, Labels: n.Labels}}
		c.Status.ProviderID = n.Spec.ProviderID
		claims = append(claims, c)
		for j := range 30 {
			kind := (i*30 + j) % kinds
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p-%d-%d", i, j), UID: types.UID(fmt.Sprintf("%d-%d", i, j)), Labels: map[string]string{"app": fmt.Sprint(kind)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}}}}
			p.Spec.NodeName = name
			p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(500+int64(kind%20), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(1<<30+int64(kind), resource.BinarySI)}}}}
			p.Status.Phase = corev1.PodRunning
			pods = append(pods, p)
		}
	}
	joined, _ := disruption.Join(ns, claims, pods)
	rules, _, _ := karpenter.RulesFor("1.14.3")
	return problem{&disruption.Cluster{Rules: rules, Nodes: joined, Pools: map[string]*karpenter.NodePool{"pool": {ObjectMeta: metav1.ObjectMeta{Name: "pool"}}}}, Known{Now: now}}
}

func BenchmarkOneNode(b *testing.B) {
	q := large(1000, 300, "16")
	for b.Loop() {
		New(q.cluster, q.known).Of(q.cluster.Nodes[0])
	}
}

func BenchmarkAllNodes(b *testing.B) {
	for _, cpu := range []string{"15500m", "16"} {
		for _, kinds := range []int{300, 30000} {
			b.Run(fmt.Sprintf("cpu=%s/kinds=%d", cpu, kinds), func(b *testing.B) {
				q := large(1000, kinds, cpu)
				for b.Loop() {
					p := New(q.cluster, q.known)
					for _, n := range q.cluster.Nodes {
						p.Of(n)
					}
				}
			})
		}
	}
}
