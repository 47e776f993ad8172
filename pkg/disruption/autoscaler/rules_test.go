package autoscaler

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)

// replicated is a running pod of a ReplicaSet in kube-system, an hour and a half old.
func replicated(edit ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Minute)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &yes}}}}
	p.Status.Phase = corev1.PodRunning
	for _, e := range edit {
		e(p)
	}
	return p
}

func note(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func everything(p *corev1.Pod) {
	p.Namespace = "kube-system"
	p.OwnerReferences = nil
	p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// Every rule in the autoscaler's order, and what ends the questions early.
func TestHolds(t *testing.T) {
	none := func(*corev1.Pod) []*policyv1.PodDisruptionBudget { return nil }
	closed := func(*corev1.Pod) []*policyv1.PodDisruptionBudget { return []*policyv1.PodDisruptionBudget{{}} }
	priority := func(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	deleted := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { at := metav1.NewTime(now.Add(-ago)); p.DeletionTimestamp = &at }
	}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		o    Objects
		want string
	}{
		{"a replicated pod", replicated(), Objects{PDBs: none}, ""},
		{"all of it", replicated(everything, note(SafeToEvict, "false")), Objects{PDBs: none}, "NotReplicated UnmovableKubeSystemPod NotSafeToEvictAnnotation LocalStorageRequested"},
		{"all of it, budgets not known", replicated(everything, note(SafeToEvict, "false")), Objects{}, "NotReplicated NotSafeToEvictAnnotation LocalStorageRequested"},
		{"all of it, and safe", replicated(everything, note(SafeToEvict, "true")), Objects{PDBs: none}, ""},
		{"a closed budget", replicated(), Objects{PDBs: closed}, "NotEnoughPdb"},
		{"a closed budget in kube-system", replicated(everything), Objects{PDBs: closed}, "NotReplicated LocalStorageRequested NotEnoughPdb"},
		{"its ReplicaSet is gone", replicated(), Objects{HasReplicaSet: func(string, string) bool { return false }}, "ControllerNotFound"},
		{"its ReplicaSet is gone, and it is safe", replicated(note(SafeToEvict, "true")), Objects{HasReplicaSet: func(string, string) bool { return false }}, "ControllerNotFound"},
		{"static", replicated(everything, note(corev1.MirrorPodAnnotationKey, "x")), Objects{PDBs: none}, ""},
		{"like one of a DaemonSet", replicated(everything, note(DaemonSetPod, "true")), Objects{PDBs: none}, ""},
		{"expendable", replicated(everything, priority(-11)), Objects{PDBs: none}, ""},
		{"hardly not expendable", replicated(priority(-10), func(p *corev1.Pod) { p.OwnerReferences = nil }), Objects{}, "NotReplicated"},
		{"failed", replicated(everything, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), Objects{PDBs: none}, ""},
		{"succeeded and started again", replicated(func(p *corev1.Pod) {
			p.OwnerReferences, p.Status.Phase, p.Spec.RestartPolicy = nil, corev1.PodSucceeded, corev1.RestartPolicyAlways
		}), Objects{}, "NotReplicated"},
		{"long terminating", replicated(everything, deleted(2*time.Minute)), Objects{PDBs: none}, ""},
		{"terminating", replicated(deleted(10*time.Second), func(p *corev1.Pod) { p.OwnerReferences = nil }), Objects{}, "NotReplicated"},
	} {
		var got []string
		for _, b := range Holds(c.pod, Defaults(36), c.o, now) {
			got = append(got, string(b.Reason))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The moment at which a system pod goes after all.
func TestSystemPodTimeout(t *testing.T) {
	pod := replicated(func(p *corev1.Pod) { p.Namespace = "kube-system" })
	o := Objects{PDBs: func(*corev1.Pod) []*policyv1.PodDisruptionBudget { return nil }}
	until := pod.CreationTimestamp.Add(time.Hour)
	for _, c := range []struct {
		at    time.Time
		minor int
		over  bool
		until time.Time
	}{{until, 36, false, until}, {until.Add(time.Second), 36, true, until}, {until.Add(time.Hour), 32, false, time.Time{}}} {
		b := Holds(pod, Defaults(c.minor), o, c.at)
		if len(b) != 1 || b[0].Over != c.over || !b[0].Until.Equal(c.until) {
			t.Errorf("1.%d at %v: %+v", c.minor, c.at, b)
		}
	}
}

func nodeOf(cpu, memory string) *corev1.Node {
	n := &corev1.Node{}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return n
}

func asking(list corev1.ResourceList, edit ...func(*corev1.Pod)) *corev1.Pod {
	return replicated(append(edit, func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}}
	})...)
}

func cpu(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

func ofDaemonSet(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }

func TestUtilization(t *testing.T) {
	ignoring := Defaults(36)
	ignoring.IgnoreDaemonSets = true
	gpu := nodeOf("4", "16Gi")
	gpu.Labels = map[string]string{"k8s.amazonaws.com/accelerator": "x"}
	gpu.Status.Allocatable[gpuResource] = resource.MustParse("4")
	noGPU := nodeOf("4", "16Gi")
	noGPU.Labels = gpu.Labels
	for _, c := range []struct {
		name  string
		node  *corev1.Node
		s     Settings
		pods  []*corev1.Pod
		want  string
		stays bool
	}{
		{"empty", nodeOf("4", "16Gi"), Defaults(36), nil, "cpu 0", false},
		{"CPU decides", nodeOf("4", "16Gi"), Defaults(36), []*corev1.Pod{asking(cpu("1")), asking(cpu("1500m"))}, "cpu 0.625", true},
		{"memory decides", nodeOf("4", "16Gi"), Defaults(36), []*corev1.Pod{asking(cpu("1")), asking(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")})}, "memory 0.375", false},
		{"finished pods do not count", nodeOf("4", "16Gi"), Defaults(36), []*corev1.Pod{asking(cpu("1")), asking(cpu("3"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, "cpu 0.25", false},
		{"DaemonSets count", nodeOf("4", "16Gi"), Defaults(36), []*corev1.Pod{asking(cpu("1")), asking(cpu("2"), ofDaemonSet)}, "cpu 0.75", true},
		{"or are taken off both sides", nodeOf("4", "16Gi"), ignoring, []*corev1.Pod{asking(cpu("1")), asking(cpu("2"), ofDaemonSet)}, "cpu 0.5", true},
		{"which may leave nothing", nodeOf("4", "16Gi"), ignoring, []*corev1.Pod{asking(cpu("1")), asking(cpu("4"), ofDaemonSet)}, fmt.Sprintf("cpu %g", math.MaxFloat64), true},
		{"a GPU alone counts", gpu, Defaults(36), []*corev1.Pod{asking(cpu("4")), asking(corev1.ResourceList{gpuResource: resource.MustParse("1")})}, "nvidia.com/gpu 0.25", false},
		{"a GPU that is not there yet", noGPU, Defaults(36), []*corev1.Pod{asking(cpu("4"))}, "nvidia.com/gpu 0", false},
		{"more than can be counted", nodeOf("4", "16Gi"), Defaults(36), []*corev1.Pod{asking(cpu("9223372036854775")), asking(cpu("9223372036854775"))}, fmt.Sprintf("cpu %g", float64(math.MaxInt64)/4000), true},
	} {
		u, err := UtilizationOf(c.node, c.pods, c.s, now)
		if got := fmt.Sprintf("%s %g", u.Resource, u.Ratio); err != nil || got != c.want || u.Stays() != c.stays {
			t.Errorf("%s: %s, stays %v (%v), want %s, %v", c.name, got, u.Stays(), err, c.want, c.stays)
		}
	}
	if _, err := UtilizationOf(&corev1.Node{}, nil, Defaults(36), now); err != ErrNoAllocatable {
		t.Errorf("without allocatable: %v", err)
	}
}

func TestTieOf(t *testing.T) {
	id := func(text string) *corev1.Node { return &corev1.Node{Spec: corev1.NodeSpec{ProviderID: text}} }
	label := func(key, value string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{key: value}}}
	}
	const uuid = "0aaaaaaa-1bbb-2ccc-3ddd-4eeeeeeeeeee"
	for _, c := range []struct {
		name   string
		node   *corev1.Node
		groups string
		want   string
	}{
		{"a scale set", id("azure:///subscriptions/s/virtualMachineScaleSets/AKS-Pool-1-vmss/virtualMachines/0"), "aks-pool-1-vmss aks-pool-2-vmss", "[0] true"},
		{"the name of the instance itself names no group", id("aws:///zone/workers"), "workers", ""},
		{"a managed instance group", id("gce://p/z/gke-c-pool-1a2b-x9zz"), "https://e/gke-c-pool-1a2b-grp gke-c-other-1a2b-grp", "[0] false"},
		{"not that of a longer name", id("gce://p/z/gke-c-pool-1a2b-x9zz-y"), "gke-c-pool-1a2b-grp", ""},
		{"EKS", label("eks.amazonaws.com/nodegroup", "a"), "eks-a-" + uuid + " eks-a-b-" + uuid, "[0] false"},
		{"eksctl", label("alpha.eksctl.io/nodegroup-name", "ng"), "eksctl-c-nodegroup-ng-NodeGroup-1X eksctl-c-nodegroup-ng2-NodeGroup-1X", "[0] false"},
		{"AKS", label("kubernetes.azure.com/agentpool", "pool"), "aks-pool-123-vmss aks-pool2-123-vmss", "[0] false"},
		{"GKE, one for each zone", label("cloud.google.com/gke-nodepool", "a"), "gke-c-a-1a-grp gke-c-a-2b-grp gke-c-a-b-1a-grp", "[0 1] false"},
		{"kops", label("kops.k8s.io/instancegroup", "nodes"), "nodes.c.example.com", "[0] false"},
		{"the Cluster API", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ownerAnnotation: "md-0-x7k"}}}, "MachineDeployment/ns/md-0 MachineDeployment/ns/md", "[0] false"},
		{"a label of one's own", label("team/pool", "workers"), "others workers", "[1] false"},
		{"a label of Kubernetes", label("kubernetes.io/hostname", "workers"), "workers", ""},
		{"nothing", &corev1.Node{}, "workers", ""},
		{"a group without a name", label("team/pool", ""), "x/", ""},
	} {
		var groups []Group
		for _, name := range strings.Fields(c.groups) {
			groups = append(groups, Group{Name: name})
		}
		got := ""
		if tie, ok := TieOf(c.node, groups); ok {
			got = fmt.Sprint(tie.Groups, tie.Exact)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: DeletionCandidateTaint, Value: "1784019600"}, {Key: ToBeDeletedTaint, Value: "99999999999999"}}}}
	if _, since, ok := TaintOf(node, DeletionCandidateTaint); !ok || !since.Equal(now) {
		t.Errorf("since %v, %v", since, ok)
	}
	if _, since, ok := TaintOf(node, ToBeDeletedTaint); !ok || !since.IsZero() {
		t.Errorf("a year that cannot be written: %v, %v", since, ok)
	}
	if _, _, ok := TaintOf(node, "other"); ok {
		t.Error("a taint that is not there")
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	for want, conditions := range map[string][]corev1.NodeCondition{
		"":                           {condition("Ready", "True"), condition("DiskPressure", "False")},
		"Ready is Unknown":           {condition("Ready", "Unknown")},
		"DiskPressure is True":       {condition("Ready", "True"), condition("DiskPressure", "True")},
		"it has no condition Ready":  nil,
		"NetworkUnavailable is True": {condition("NetworkUnavailable", "True")},
	} {
		if got := Unready(&corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}); got != want {
			t.Errorf("%v: %q, want %q", conditions, got, want)
		}
	}
	for image, want := range map[string]bool{"registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1": true, "cluster-autoscaler-amd64:v1": true, "example/vpa:1": false, "cluster-autoscaler/other:1": false} {
		if _, ok := IsController(nil, []corev1.Container{{Name: "c", Image: image}}); ok != want {
			t.Errorf("%s is the controller: %v", image, ok)
		}
	}
	if i, ok := IsController(map[string]string{"app.kubernetes.io/name": "aws-cluster-autoscaler"}, []corev1.Container{{Name: "c", Image: "mirror/ca"}}); !ok || i != 0 {
		t.Error("the chart's label is not known")
	}
}
