package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// roomy is the recorded node of two NUMA nodes with CPUs 2-3 and 4-7 free.
func roomy(t *testing.T) *bundle {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	for i := range b.pods {
		b.pods[i].Status.Phase = corev1.PodFailed
	}
	b.object().Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("100")
	return b
}

func finding(r report.Report, code report.Code) report.Finding {
	for _, f := range r.Findings {
		if f.Code == code {
			return f
		}
	}
	return report.Finding{}
}

// What makes the Topology Manager refuse stands before its refusal, and that
// says nothing else.
func TestTrapBeforeTopology(t *testing.T) {
	pod := newPod(cpuAndMemory("4", "64Mi"))
	pod.Pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Limits: cpuAndMemory("2", "64Mi")}}}
	r := ask(t, roomy(t).open(), pod, "smt2")
	if got := r.Findings[0].Code; got != report.InitContainerNUMATrap {
		t.Errorf("first is %s", got)
	}
	f := finding(r, report.TopologyAffinityRefused)
	if !strings.Contains(f.Summary, "CPUs 2-3 of the init containers have to be used again") || strings.Contains(f.Summary, "other containers") {
		t.Error(f.Summary)
	}
	for _, e := range f.Because {
		if strings.Contains(e.Means, "none has it free") {
			t.Errorf("%s: %s", e.Field, e.Means)
		}
	}
	r = ask(t, roomy(t).open(), pod, "smt2", "topologyManagerPolicy=restricted")
	if f := finding(r, report.TopologyAffinityRefused); f.Code != "" && strings.Contains(f.Arithmetic, "4 free < 4") {
		t.Error(f.Arithmetic)
	}
}

// A strict policy hides the check of the pod's pool behind the want of hints.
func TestEmptyPoolBehindHints(t *testing.T) {
	pod := newPod(cpuAndMemory("2", "64Mi"))
	pod.Pod.Spec.Containers = append(pod.Pod.Spec.Containers, corev1.Container{Name: "shared"})
	for limit, want := range map[string]report.Code{"2": report.PodPoolEmpty, "3": report.WouldBeAdmittedNow} {
		pod.Pod.Spec.Resources = &corev1.ResourceRequirements{Requests: cpuAndMemory(limit, "1Gi"), Limits: cpuAndMemory(limit, "1Gi")}
		for _, policy := range []string{"restricted", "single-numa-node", "best-effort"} {
			r := ask(t, roomy(t).open(), pod, "smt2", "featureGates.PodLevelResourceManagers=true", "topologyManagerScope=pod", "topologyManagerPolicy="+policy,
				"cpuManagerPolicyOptions.full-pcpus-only=false")
			if got := r.Findings[0].Code; got != want {
				t.Errorf("%s, pod-level cpu %s: first is %s: %s", policy, limit, got, r.Findings[0].Summary)
			}
			if f := finding(r, report.TopologyAffinityRefused); strings.Contains(f.Arithmetic, "< 2") {
				t.Errorf("%s: %s", policy, f.Arithmetic)
			}
		}
	}
}

// More memory than a NUMA node can have, which two have free together, of which
// one serves a container alone: the rule of the groups bars it, though the
// policy would too.
func TestGroupRuleBeforePolicy(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.object().Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("100Gi")
	b.config(map[string]any{"topologyManagerPolicy": "restricted"})
	mem, err := newNodeCase(b.open(), "smt2", b.object().CreationTimestamp.Time).memState()
	if err != nil {
		t.Fatal(err)
	}
	var most, sum uint64
	for _, id := range mem.Nodes() {
		has := mem.MachineState[id].MemoryMap[corev1.ResourceMemory].Allocatable
		most, sum = max(most, has), sum+has
	}
	for size, want := range map[uint64]report.Code{most + 1<<20: report.MemoryGroupConflict, sum + 1<<20: report.MemoryExhausted} {
		r := ask(t, b.open(), newPod(cpuAndMemory("2", resource.NewQuantity(int64(size), resource.BinarySI).String())), "smt2")
		if got := r.Findings[0]; got.Code != want {
			t.Errorf("%d bytes: %s: %s", size, got.Code, got.Summary)
		}
	}
}
