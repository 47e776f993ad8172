package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name, kind, owner string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if kind != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, Controller: &yes}}
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
}

func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }

func hostPath(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}})
}

// TestPlan holds what kubectl's own code answered for the same pods.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		want string
	}{
		{"nothing", nil, "kubectl drain n"},
		{"a ReplicaSet's", []*corev1.Pod{pod("p", "ReplicaSet", "rs")}, "kubectl drain n; evicted p"},
		{"a hostPath is kept by the node", []*corev1.Pod{pod("p", "ReplicaSet", "rs", hostPath)}, "kubectl drain n; evicted p"},
		{"an emptyDir in memory", []*corev1.Pod{pod("p", "ReplicaSet", "rs", emptyDir)}, "kubectl drain n --delete-emptydir-data; evicted p; emptied p"},
		{"no controller", []*corev1.Pod{pod("p", "", "")}, "kubectl drain n --force; evicted p; lost p"},
		{"a finished one asks for nothing", []*corev1.Pod{pod("p", "", "", finished, emptyDir)}, "kubectl drain n; evicted p"},
		{"a DaemonSet's, whatever its volumes", []*corev1.Pod{pod("p", "DaemonSet", "there", emptyDir)}, "kubectl drain n --ignore-daemonsets; kept p"},
		{"a finished one of a DaemonSet", []*corev1.Pod{pod("p", "DaemonSet", "there", finished)}, "kubectl drain n; evicted p"},
		{"of a DaemonSet that is gone", []*corev1.Pod{pod("p", "DaemonSet", "gone")}, "kubectl drain n --force; evicted p; lost p"},
		{"a static one of a DaemonSet that is gone", []*corev1.Pod{pod("p", "DaemonSet", "gone", mirror)}, "kubectl drain n --force; static p"},
		{"a static one", []*corev1.Pod{pod("p", "Node", "n", mirror)}, "kubectl drain n; static p"},
		{"all at once, in the order of the flags", []*corev1.Pod{pod("a", "", "", emptyDir), pod("b", "DaemonSet", "there"), pod("c", "Job", "j")},
			"kubectl drain n --ignore-daemonsets --delete-emptydir-data --force; evicted a c; lost a; emptied a; kept b"},
	} {
		plan := PlanOf(c.pods, Lookup{HasDaemonSet: func(_, name string) bool { return name == "there" }})
		got := plan.Command("n")
		for _, list := range []struct {
			word string
			pods []*corev1.Pod
		}{{"evicted", plan.Evicted}, {"lost", plan.Lost}, {"emptied", plan.Emptied}, {"kept", plan.KeptDaemonSet}, {"static", plan.KeptStatic}} {
			if len(list.pods) > 0 {
				got += "; " + list.word
				for _, p := range list.pods {
					got += " " + p.Name
				}
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestHeld(t *testing.T) {
	always := policyv1.AlwaysAllow
	pdb := func(allowed, healthy, desired int32, policy *policyv1.UnhealthyPodEvictionPolicyType) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: policy},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: desired}}
	}
	closed := pdb(0, 1, 1, nil)
	for _, c := range []struct {
		name  string
		phase corev1.PodPhase
		ready corev1.ConditionStatus
		pdbs  []*policyv1.PodDisruptionBudget
		want  int
	}{
		{"no budget", corev1.PodRunning, corev1.ConditionTrue, nil, 0},
		{"one that allows", corev1.PodRunning, corev1.ConditionTrue, []*policyv1.PodDisruptionBudget{pdb(1, 2, 1, nil)}, 0},
		{"one that allows none", corev1.PodRunning, corev1.ConditionTrue, []*policyv1.PodDisruptionBudget{closed}, 1},
		{"a pending pod is not asked about", corev1.PodPending, corev1.ConditionFalse, []*policyv1.PodDisruptionBudget{closed}, 0},
		{"an unready one while enough are healthy", corev1.PodRunning, corev1.ConditionFalse, []*policyv1.PodDisruptionBudget{closed}, 0},
		{"an unready one while too few are", corev1.PodRunning, corev1.ConditionFalse, []*policyv1.PodDisruptionBudget{pdb(0, 0, 1, nil)}, 1},
		{"unless it may always go", corev1.PodRunning, corev1.ConditionFalse, []*policyv1.PodDisruptionBudget{pdb(0, 0, 1, &always)}, 0},
		{"several that allow", corev1.PodRunning, corev1.ConditionTrue, []*policyv1.PodDisruptionBudget{pdb(1, 2, 1, nil), pdb(1, 2, 1, nil)}, 2},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: c.phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: c.ready}}}}
		plan := PlanOf([]*corev1.Pod{pod}, Lookup{PDBs: func(*corev1.Pod) []*policyv1.PodDisruptionBudget { return c.pdbs }})
		got := 0
		for _, h := range plan.Held {
			got = len(h.PDBs)
			if h.Several() != (c.want > 1) {
				t.Errorf("%s: several %v", c.name, h.Several())
			}
		}
		if got != c.want {
			t.Errorf("%s: held by %d, want %d", c.name, got, c.want)
		}
	}
}
