package autoscaler

import (
	"slices"
	"testing"
	"time"
)

func TestParseArgs(t *testing.T) {
	s := ParseArgs([]string{"./cluster-autoscaler", "--v=4", "--skip-nodes-with-local-storage=false", "-skip-nodes-with-system-pods", "--scale-down-unneeded-time", "3m",
		"--scale-down-utilization-threshold=0.65", "--scale-down-utilization-threshold=0.7", "--max-scale-down-parallelism=4", "--scale-down-delay-after-add=ten"}, 36)
	if s.SkipLocalStorage || !s.SkipSystemPods || s.UnneededTime != 3*time.Minute || s.Utilization != 0.7 || s.ScaleDownParallelism != 4 {
		t.Errorf("read %+v", s)
	}
	if s.DelayAfterAdd != 10*time.Minute || !slices.Equal(s.Invalid, []string{"--scale-down-delay-after-add=ten"}) {
		t.Errorf("a value that is none: %v, %v", s.DelayAfterAdd, s.Invalid)
	}
	if _, set := s.Set[FlagDelayAfterAdd]; set || s.Set[FlagUtilization] != "0.7" || len(s.Set) != 5 {
		t.Errorf("set %v", s.Set)
	}
	if s := ParseArgs([]string{"--scale-down-unneeded-time"}, 0); len(s.Invalid) != 1 {
		t.Errorf("a flag without its value: %v", s.Invalid)
	}
}

func TestDefaultsByVersion(t *testing.T) {
	for minor, want := range map[int]time.Duration{0: time.Hour, 32: 0, 33: time.Hour, 36: time.Hour} {
		if got := Defaults(minor).SystemPodTimeout; got != want {
			t.Errorf("1.%d: a system pod holds for %v, want %v", minor, got, want)
		}
	}
}

func TestMinor(t *testing.T) {
	for tag, want := range map[string]int{"v1.36.1": 36, "1.9": 9, "1.30-gke": 30, "2.1": -1, "latest": -1, "v1.": -1, "1.99999999999999999999": -1, "1.40000": -1} {
		got, ok := Minor(tag)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("Minor(%q) = %d, want %d", tag, got, want)
		}
	}
}
