package alloc

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

func withManagers(t testing.TB, version string) Rules {
	return rules(t, version).With(kubeletconfig.Config{FeatureGates: map[string]bool{"PodLevelResourceManagers": true}})
}

func TestRequestsOf(t *testing.T) {
	const gi = 1 << 30
	p := pod("cpu=2 memory=1Gi =", "cpu=500m memory=1Gi hugepages-2Mi=4Mi =")
	withInit(p, "setup", "cpu=4 memory=4Gi hugepages-1Gi=1Gi =", false)
	withInit(p, "proxy", "cpu=1 memory=1Gi =", true)
	withInit(p, "last", "cpu=3 memory=2Gi =", false)
	got := RequestsOf(p, rules(t, "v1.37.2"))
	want := PodRequests{
		QOS: corev1.PodQOSGuaranteed,
		Containers: []ContainerRequests{
			{Name: "setup", Kind: Init, CPUs: 4, Memory: []MemoryRequest{{"hugepages-1Gi", gi}, {"memory", 4 * gi}}},
			{Name: "proxy", Kind: Sidecar, CPUs: 1, Memory: []MemoryRequest{{"memory", gi}}},
			{Name: "last", Kind: Init, CPUs: 3, Memory: []MemoryRequest{{"memory", 2 * gi}}},
			{Name: "a", CPUs: 2, Memory: []MemoryRequest{{"memory", gi}}},
			{Name: "b", Memory: []MemoryRequest{{"hugepages-2Mi", 4 << 20}, {"memory", gi}}},
		},
		CPUs: 4,
		// The page size that only an init container asks for does not count.
		Memory: []MemoryRequest{{"hugepages-2Mi", 4 << 20}, {"memory", 4 * gi}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRequestsOfPodLevel(t *testing.T) {
	p := withPodLevel(pod("cpu=2 memory=1Gi =", "cpu=1"), "cpu=8 memory=8Gi =")
	got := RequestsOf(p, withManagers(t, "v1.37.2"))
	if !got.PodLevel || got.Unmanaged || got.CPUs != 8 || len(got.Memory) != 1 || got.Memory[0].Size != 8<<30 {
		t.Errorf("managed: %+v", got)
	}
	if a, b := got.Containers[0], got.Containers[1]; a.CPUs != 2 || !a.OwnCPUs || !a.OwnMemory || b.CPUs != 0 || len(b.Memory) != 0 || b.OwnMemory {
		t.Errorf("containers: %+v", got.Containers)
	}
	got = RequestsOf(p, rules(t, "v1.37.2"))
	if got.PodLevel || !got.Unmanaged || got.CPUs != 0 || len(got.Memory) != 0 {
		t.Errorf("unmanaged: %+v", got)
	}
}

func TestRequestsOfTooMuchMemory(t *testing.T) {
	got := RequestsOf(pod("cpu=2 memory=100E ="), rules(t, "v1.37.2"))
	if !errors.Is(got.MemoryErr, ErrNotInt64) || !errors.Is(got.Containers[0].MemoryErr, ErrNotInt64) {
		t.Errorf("%+v", got)
	}
}

// Both tell of a container how many CPUs it gets.
func TestRequestsOfAsGuaranteedCPUs(t *testing.T) {
	texts := []string{"", "cpu=2 memory=1Gi =", "cpu=1500m memory=1Gi =", "cpu=1", "cpu=2 memory=1Gi / cpu=4 memory=1Gi", "cpu=0 memory=1Gi ="}
	rapid.Check(t, func(rt *rapid.T) {
		p := pod(rapid.SliceOfN(rapid.SampledFrom(texts), 1, 3).Draw(rt, "containers")...)
		if rapid.Bool().Draw(rt, "init") {
			withInit(p, "i", rapid.SampledFrom(texts).Draw(rt, "of init"), rapid.Bool().Draw(rt, "sidecar"))
		}
		if rapid.Bool().Draw(rt, "pod level") {
			withPodLevel(p, "cpu=8 memory=8Gi =")
		}
		r := rapid.SampledFrom([]Rules{rules(t, "v1.34.1"), rules(t, "v1.37.2"), withManagers(t, "v1.36.0")}).Draw(rt, "rules")
		for _, c := range RequestsOf(p, r).Containers {
			if n, why := GuaranteedCPUs(p, c.Name, r); int(n) != c.CPUs {
				rt.Fatalf("%s: %d, but %d %s", c.Name, c.CPUs, n, why)
			}
		}
	})
}
