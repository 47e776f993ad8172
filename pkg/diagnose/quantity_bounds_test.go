package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestCountable(t *testing.T) {
	for _, c := range []struct {
		name   corev1.ResourceName
		amount string
		want   bool
	}{
		{"cpu", "0", true},
		{"cpu", "2", true},
		{"cpu", "9223372036854775", true},
		{"cpu", "9223372036854776", false},
		{"cpu", "1e30", false},
		{"cpu", "1e999999999", false},
		{"cpu", "-1m", false},
		{"memory", "7Ei", true},
		{"memory", "8Ei", false},
		{"memory", "9223372036854775808", false},
		{"memory", "-1", false},
	} {
		if got := countable(c.name, resource.MustParse(c.amount)); got != c.want {
			t.Errorf("%s %s: %v", c.name, c.amount, got)
		}
	}
}

// A pod of the bundle whose request the sums do not hold leaves the fit check
// unknown; it is not counted wrapped around.
func TestWhatIfAmongUncountable(t *testing.T) {
	for _, c := range []struct{ cpu, memory string }{{"-2", "64Mi"}, {"1e30", "64Mi"}, {"100m", "16Ei"}, {"100m", "-1Gi"}} {
		b := recorded("smt2-k612/bundle", "shop", "frac")(t)
		b.pod().Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpuAndMemory(c.cpu, c.memory), Limits: cpuAndMemory(c.cpu, c.memory)}
		b.pod().Status.ContainerStatuses[0].AllocatedResources = nil
		b.pod().Status.ContainerStatuses[0].Resources = nil
		r := ask(t, b.open(), newPod(cpuAndMemory("100m", "64Mi")), "smt2")
		for _, f := range r.Findings {
			if f.Confidence == report.Proven && (f.Code == report.WouldBeAdmittedNow || f.Code == report.FitCheckRefused) {
				t.Errorf("%v: %s proven: %s", c, f.Code, f.Summary)
			}
		}
		told := false
		for _, g := range r.Gaps {
			told = told || strings.Contains(g.Reason, "shop/frac requests")
		}
		if !told {
			t.Errorf("%v: no gap names the pod: %+v", c, r.Gaps)
		}
	}
}

// The sum of two amounts that int64 holds is shown whole.
func TestMisfitSum(t *testing.T) {
	m := misfit{resource: corev1.ResourceMemory, used: 5 << 60, requested: 5 << 60}
	if got := m.sum(); got != "10Ei" {
		t.Error(got)
	}
	m = misfit{resource: corev1.ResourceCPU, used: 1500, requested: 500}
	if got := m.sum(); got != "2" {
		t.Error(got)
	}
}

func TestSharedPoolOfUncountable(t *testing.T) {
	for _, c := range []struct{ cpu, code, text string }{
		{"-2", "shared-pool-no-limit", "its CPU request is -2, not above zero"},
		{"1e30", "shared-pool-fractional-cpu", "it asks for 1e30 CPUs, which in thousandths is beyond int64"},
		{"1E", "shared-pool-fractional-cpu", "it asks for 1E CPUs, which in thousandths is beyond int64"},
		{"200m", "shared-pool-fractional-cpu", "it asks for 200m, which is not a whole number of CPUs"},
	} {
		b := recorded("smt2-k612/bundle", "shop", "frac")(t)
		b.pod().Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: cpuAndMemory(c.cpu, "64Mi"), Limits: cpuAndMemory(c.cpu, "64Mi")}
		b.pod().Status.ContainerStatuses[0].AllocatedResources = nil
		b.pod().Status.ContainerStatuses[0].Resources = nil
		r, err := Pod(b.open(), "shop", "frac", Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, f := range r.Findings {
			if string(f.Code) == c.code {
				found = f.Summary
			}
		}
		if !strings.Contains(found, c.text) {
			t.Errorf("%s: %q, want %q", c.cpu, found, c.text)
		}
	}
}
