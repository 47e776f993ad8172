package alloc

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
)

func TestRulesFor(t *testing.T) {
	r34 := Rules{Minor: 34, PodLevelResources: true, InPlacePodVerticalScaling: true, CPUCheckpoint: 2, MemoryCheckpoint: 1,
		CPUManagerPolicyBetaOptions: true, TopologyManagerPolicyBetaOptions: true,
		MaxAllowableNUMANodesBeta: true, StrictCPUReservationBeta: true, PreferAlignUncoreBeta: true, SMTCheckFirst: true, MemoryPinsNothing: true}
	r35 := r34
	r35.Minor, r35.MaxAllowableNUMANodesBeta, r35.StrictCPUReservationBeta = 35, false, false
	r36 := r35
	r36.Minor, r36.PreferAlignUncoreBeta, r36.PodLevelAlwaysShared = 36, false, true
	r37 := r36
	r37.Minor, r37.PodLevelResourcesFixKubeletQOSClass, r37.CPUCheckpoint, r37.MemoryCheckpoint = 37, true, 4, 3
	r37.SMTCheckFirst, r37.MemoryPinsNothing, r37.DistributeHeedsSockets, r37.DistributeClamps = false, false, true, true
	for _, tc := range []struct {
		version string
		want    Rules
		exact   bool
	}{
		{"v1.37.2", r37, true},
		{"1.37.0", r37, true},
		{"v1.37", r37, true},
		{"v1.36.3-eks-1234", r36, true},
		{"v1.35.0-rc.1", r35, true},
		{"v1.34.4+rke2r1", r34, true},
		{"v1.30.1+k3s1", r34, false},
		{"v1.9.11", r34, false},
		{"v1.38.0-beta.0", r37, false},
	} {
		got, exact, err := RulesFor(tc.version)
		if d := cmp.Diff(tc.want, got); d != "" || exact != tc.exact || err != nil {
			t.Errorf("%s: exact %v, %v (-want +got):\n%s", tc.version, exact, err, d)
		}
	}
	for _, version := range []string{"", "v", "v1", "v1.", "v1.x", "v2.0.1", "37.2", "v1.37x", "v1.-37", "v1.99999999999999999999.0", "v1.37\x1b[2J"} {
		if got, exact, err := RulesFor(version); err == nil || exact || got != (Rules{}) {
			t.Errorf("%q: %+v, %v, %v", version, got, exact, err)
		}
	}
}

func TestRulesWith(t *testing.T) {
	for _, tc := range []struct {
		version, config             string
		plr, managers, fix, inPlace bool
		cpu, memory                 int
	}{
		{"v1.34.0", `{"featureGates":{"InPlacePodVerticalScaling":false,"PodLevelResourceManagers":true}}`, true, false, false, false, 2, 1},
		{"v1.35.0", `{"featureGates":{"InPlacePodVerticalScaling":false}}`, true, false, false, true, 2, 1},
		{"v1.36.0", `{"featureGates":{"PodLevelResourceManagers":true}}`, true, true, false, true, 3, 2},
		{"v1.36.0", `{"featureGates":{"PodLevelResourceManagers":true,"PodLevelResources":false}}`, false, false, false, true, 2, 1},
		{"v1.37.0", `{"featureGates":{"PodLevelResourceManagers":true}}`, true, true, true, true, 4, 3},
		{"v1.37.0", `{"featureGates":{"PodLevelResourcesFixKubeletQOSClass":false}}`, true, false, false, true, 4, 3},
	} {
		c, err := kubeletconfig.Decode([]byte(tc.config))
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := RulesFor(tc.version)
		if err != nil {
			t.Fatal(err)
		}
		want := r
		want.PodLevelResources, want.PodLevelResourceManagers, want.PodLevelResourcesFixKubeletQOSClass = tc.plr, tc.managers, tc.fix
		want.InPlacePodVerticalScaling, want.CPUCheckpoint, want.MemoryCheckpoint = tc.inPlace, tc.cpu, tc.memory
		if d := cmp.Diff(want, r.With(c)); d != "" {
			t.Errorf("%s with %s (-want +got):\n%s", tc.version, tc.config, d)
		}
	}
}

func FuzzRulesFor(f *testing.F) {
	for _, s := range []string{"v1.37.2", "v1.36.3-eks-1234", "v1.30.1+k3s1", "", "v1."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, version string) {
		r, exact, err := RulesFor(version)
		if err == nil && (r.Minor < 34 || r.Minor > 37) || err != nil && (exact || len(err.Error()) > 400) {
			t.Errorf("%q: %+v, %v, %v", version, r, exact, err)
		}
	})
}
