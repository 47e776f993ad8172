package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestContainerValues(t *testing.T) {
	pod := podOf(containerOf("app", resourceList("cpu", "100m", "memory", "64Mi"), resourceList("cpu", "200m", "memory", "170Mi")))
	got := containerValues(t, pod, "app", Desired, kubeletAt(37))
	want := []FileValues{
		{"cpu.weight", []Value{
			{"17", "quadratic formula", "100m × 1024 / 1000 = 102 shares; L = log2(102), ceil(10^((L² + 125 L) / 612 − 7/34)) = 17"},
			{"4", "linear formula", "100m × 1024 / 1000 = 102 shares; 1 + (102 − 2) × 9999 / 262142 = 4"},
		}},
		{"cpu.max", []Value{{"20000 100000", "exact", "200m × 100000 µs / 1000 = 20000 µs"}}},
		{"memory.max", []Value{{"178257920", "exact", "170Mi = 178257920 bytes"}}},
		{"memory.high", []Value{{"max", "reset while MemoryQoS is off", ""}}},
		{"memory.oom.group", []Value{{"1", "singleProcessOOMKill is false", ""}}},
		{"memory.swap.max", []Value{{"0", "swapBehavior NoSwap", ""}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := ContainerValues(pod, "none", Desired, kubeletAt(37)); err == nil {
		t.Error("unknown container is no error")
	}
}

func TestContainerQuota(t *testing.T) {
	limited := podOf(containerOf("app", nil, resourceList("cpu", "125m")))
	free := podOf(containerOf("app", resourceList("cpu", "1"), nil))
	exclusive := func(string) bool { return true }
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		change func(*Settings)
		want   []string
	}{
		"systemd, runtime unknown":       {limited, func(s *Settings) {}, []string{"13000 100000", "12500 100000"}},
		"cgroupfs":                       {limited, func(s *Settings) { s.Systemd = false }, []string{"12500 100000"}},
		"other period":                   {limited, func(s *Settings) { s.CFSPeriodUsec = 50000 }, []string{"6500 50000", "6250 50000"}},
		"cpuCFSQuota off":                {limited, func(s *Settings) { s.CFSQuota = false }, nil},
		"no limit":                       {free, func(s *Settings) {}, []string{"max 100000"}},
		"no limit, other period":         {free, func(s *Settings) { s.CFSPeriodUsec = 50000 }, []string{"max 50000"}},
		"exclusive":                      {limited, func(s *Settings) { s.Exclusive = exclusive }, []string{"max 100000"}},
		"exclusive, gate off at 1.36":    {limited, func(s *Settings) { s.Exclusive, s.QuotaWithExclusive, s.Minor = exclusive, true, 36 }, []string{"13000 100000", "12500 100000"}},
		"exclusive, gate locked at 1.37": {limited, func(s *Settings) { s.Exclusive, s.QuotaWithExclusive = exclusive, true }, []string{"max 100000"}},
		"below the floor":                {podOf(containerOf("app", nil, resourceList("cpu", "5m"))), func(s *Settings) {}, []string{"1000 100000"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletAt(37)
			c.change(&s)
			wantTexts(t, containerValues(t, c.pod, "app", Desired, s), "cpu.max", c.want...)
		})
	}
}

func TestContainerWeight(t *testing.T) {
	podLevel := podOf(containerOf("app", nil, nil))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Limits: resourceList("cpu", "200m")}
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		podLevel bool
		want     []string
	}{
		"request":                   {podOf(containerOf("app", resourceList("cpu", "1"), nil)), true, []string{"100", "39"}},
		"request of 0 counts":       {podOf(containerOf("app", resourceList("cpu", "0"), resourceList("cpu", "1"))), true, []string{"1"}},
		"limit for want of request": {podOf(containerOf("app", nil, resourceList("cpu", "1"))), true, []string{"100", "39"}},
		"neither":                   {podOf(containerOf("app", nil, nil)), true, []string{"1"}},
		"pod-level limit":           {podLevel, true, []string{"29", "8"}},
		"pod-level gate off":        {podLevel, false, []string{"1"}},
		"formulas agree":            {podOf(containerOf("app", resourceList("cpu", "2m"), nil)), true, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletAt(37)
			s.PodLevelResources = c.podLevel
			wantTexts(t, containerValues(t, c.pod, "app", Desired, s), "cpu.weight", c.want...)
		})
	}
}

func TestContainerMemoryMax(t *testing.T) {
	own := podOf(containerOf("app", nil, resourceList("memory", "460M")))
	wantFile(t, containerValues(t, own, "app", Desired, kubeletAt(37)), "memory.max", Value{
		Text: "459997184", Rule: "rounded down to a page by the kernel",
		Arithmetic: "460M = 460000000 bytes; down to pages of 4096 bytes = 459997184",
	})
	large := kubeletAt(37)
	large.PageSize = 65536
	wantTexts(t, containerValues(t, own, "app", Desired, large), "memory.max", "459997184")

	podLevel := podOf(containerOf("app", nil, nil))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Limits: resourceList("memory", "160Mi")}
	wantFile(t, containerValues(t, podLevel, "app", Desired, kubeletAt(37)), "memory.max",
		Value{Text: "167772160", Rule: "exact", Arithmetic: "pod-level limit 160Mi = 167772160 bytes"})
	wantFile(t, containerValues(t, podOf(containerOf("app", nil, nil)), "app", Desired, kubeletAt(37)), "memory.max")
}

func TestContainerOOMGroup(t *testing.T) {
	s := kubeletAt(37)
	s.SingleProcessOOMKill = true
	wantFile(t, containerValues(t, podOf(containerOf("app", nil, nil)), "app", Desired, s), "memory.oom.group")
}

func TestContainerSwap(t *testing.T) {
	requests, limits := resourceList("memory", "1Gi"), resourceList("memory", "2Gi")
	critical := podOf(containerOf("app", requests, limits))
	priority := int32(2000000000)
	critical.Spec.Priority = &priority
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		capacity int64
		want     []Value
	}{
		"burstable": {podOf(containerOf("app", requests, limits)), 16 << 30, []Value{
			{"536870912", "LimitedSwap by memory request", "1073741824 / 17179869184 × 8589934592 = 536870912 bytes"}}},
		"critical":       {critical, 16 << 30, []Value{{"0", "LimitedSwap gives none: critical pod", ""}}},
		"best effort":    {podOf(containerOf("app", nil, nil)), 16 << 30, []Value{{"0", "LimitedSwap gives none: not Burstable", ""}}},
		"cpu only":       {podOf(containerOf("app", resourceList("cpu", "1"), nil)), 16 << 30, []Value{{"0", "LimitedSwap gives none: no memory request", ""}}},
		"equal":          {podOf(containerOf("app", resourceList("memory", "2Gi"), limits)), 16 << 30, []Value{{"0", "LimitedSwap gives none: memory request equals limit", ""}}},
		"larger":         {podOf(containerOf("app", requests, limits)), 1 << 20, []Value{{"0", "LimitedSwap gives none: memory request above the node's memory", ""}}},
		"capacity wants": {podOf(containerOf("app", requests, limits)), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletAt(37)
			s.Swap, s.SwapCapacity, s.CapacityMemory = LimitedSwap, 8<<30, c.capacity
			wantFile(t, containerValues(t, c.pod, "app", Desired, s), "memory.swap.max", c.want...)
		})
	}
}
