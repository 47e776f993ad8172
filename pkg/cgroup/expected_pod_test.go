package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodQuota(t *testing.T) {
	small := podOf(containerOf("app", resourceList("cpu", "10m"), resourceList("cpu", "125m")))
	exact := Value{"12500 100000", "exact", "125m × 100000 µs / 1000 = 12500 µs"}
	rounded := Value{"13000 100000", "rounded up to 1 % of a CPU by systemd",
		"125m × 100000 µs / 1000 = 12500 µs; up to a whole percent of 100000 µs = 13000 µs"}
	wantFile(t, PodValues(small, Desired, kubeletAt(34)), "cpu.max", exact, rounded)
	for _, minor := range []int{35, 36, 37, 40} {
		wantFile(t, PodValues(small, Desired, kubeletAt(minor)), "cpu.max", rounded, exact)
	}
	cgroupfs := kubeletAt(37)
	cgroupfs.Systemd = false
	wantFile(t, PodValues(small, Desired, cgroupfs), "cpu.max", exact)

	off := kubeletAt(37)
	off.CFSQuota, off.CFSPeriodUsec = false, 50000
	wantTexts(t, PodValues(small, Desired, off), "cpu.max", "max 50000")

	exclusive := kubeletAt(37)
	exclusive.Exclusive = func(name string) bool { return name == "app" }
	sidecar := containerOf("side", nil, resourceList("cpu", "100m"))
	sidecar.RestartPolicy = alwaysRestart()
	small.Spec.InitContainers = []corev1.Container{sidecar}
	wantTexts(t, PodValues(small, Desired, exclusive), "cpu.max", "max 100000")

	// An init container without a limit takes the limit from the whole pod.
	small.Spec.InitContainers = append(small.Spec.InitContainers, containerOf("setup", resourceList("cpu", "1"), nil))
	wantFile(t, PodValues(small, Desired, kubeletAt(37)), "cpu.max")
	small.Spec.Resources = &corev1.ResourceRequirements{Limits: resourceList("cpu", "300m")}
	wantFile(t, PodValues(small, Desired, kubeletAt(37)), "cpu.max",
		Value{"30000 100000", "exact", "pod-level 300m; 300m × 100000 µs / 1000 = 30000 µs"})
	withoutGate := kubeletAt(37)
	withoutGate.PodLevelResources = false
	wantFile(t, PodValues(small, Desired, withoutGate), "cpu.max")
}

func TestPodValuesBestEffort(t *testing.T) {
	s := kubeletAt(37)
	s.PodPidsLimit = 1024
	want := []FileValues{
		{"cpu.weight", []Value{{"1", "BestEffort: 2 shares", "1 + (2 − 2) × 9999 / 262142 = 1"}}},
		{"pids.max", []Value{{"1024", "podPidsLimit", ""}}},
	}
	if diff := cmp.Diff(want, PodValues(podOf(containerOf("app", nil, nil)), Desired, s)); diff != "" {
		t.Error(diff)
	}
}

func TestPodSums(t *testing.T) {
	amounts := resourceList("cpu", "100m", "memory", "64Mi")
	pod := podOf(containerOf("a", amounts, amounts), containerOf("b", amounts, amounts))
	pod.Spec.Overhead = resourceList("cpu", "50m", "memory", "16Mi")
	setup := resourceList("cpu", "150m", "memory", "256Mi")
	pod.Spec.InitContainers = []corev1.Container{containerOf("setup", setup, setup)}
	got := PodValues(pod, Desired, kubeletAt(37))
	wantFile(t, got, "cpu.max", Value{"25000 100000", "exact",
		"100m + 100m + overhead 50m = 250m; 250m × 100000 µs / 1000 = 25000 µs"})
	wantFile(t, got, "memory.max", Value{"285212672", "exact",
		"max(256Mi, 64Mi + 64Mi) + overhead 16Mi = 285212672 bytes"})

	for range maxTerms {
		pod.Spec.Containers = append(pod.Spec.Containers, containerOf("more", amounts, amounts))
	}
	wantFile(t, PodValues(pod, Desired, kubeletAt(37)), "cpu.max", Value{"85000 100000", "exact",
		"sum of 8 containers + overhead 50m = 850m; 850m × 100000 µs / 1000 = 85000 µs"})
}

func TestPodHugepages(t *testing.T) {
	pages := resourceList("hugepages-2Mi", "16Mi", "hugepages-1Gi", "1Gi", "memory", "64Mi", "cpu", "1")
	got := PodValues(podOf(containerOf("a", pages, pages)), Desired, kubeletAt(37))
	wantTexts(t, got, "hugetlb.2MB.max", "16777216")
	wantTexts(t, got, "hugetlb.1GB.max", "1073741824")
}

func TestNodeValues(t *testing.T) {
	s := kubeletAt(36)
	s.CapacityMemory, s.ReservableMemory = 8<<30, 7<<30
	node := NodeResources{CPUCapacity: 16000, CPUReserved: 4000, PIDCapacity: 32768, PIDReserved: 1000, EnforcePods: true}
	burstablePod := podOf(containerOf("app", resourceList("cpu", "500m"), nil))
	ended := podOf(containerOf("app", resourceList("cpu", "10"), nil))
	ended.Status.Phase = corev1.PodSucceeded
	got := NodeValues(node, []*corev1.Pod{burstablePod, ended, nil, burstablePod, podOf(containerOf("x", nil, nil))}, Desired, s)
	want := NodeSlices{
		Kubepods: []FileValues{
			{"cpu.weight", []Value{{"469", "linear formula",
				"16000m − 4000m reserved = 12000m; 12000m × 1024 / 1000 = 12288 shares; 1 + (12288 − 2) × 9999 / 262142 = 469"}}},
			{"memory.max", []Value{{"7516192768", "exact", "8589934592 − 1073741824 reserved = 7516192768 bytes"}}},
			{"pids.max", []Value{{"31768", "pid capacity less reserved", ""}}},
		},
		Burstable: []FileValues{{"cpu.weight", []Value{{"39", "linear formula",
			"requests of 2 Burstable pods = 1000m; 1000m × 1024 / 1000 = 1024 shares; 1 + (1024 − 2) × 9999 / 262142 = 39"}}}},
		BestEffort: []FileValues{{"cpu.weight", []Value{{"1", "always 2 shares", "1 + (2 − 2) × 9999 / 262142 = 1"}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	node.EnforcePods = false
	got = NodeValues(node, nil, Desired, s)
	wantTexts(t, got.Kubepods, "cpu.weight", "625")
	wantTexts(t, got.Kubepods, "memory.max", "8589934592")
	wantTexts(t, got.Kubepods, "pids.max", "32768")

	wantTexts(t, NodeValues(NodeResources{CPUCapacity: 8000, CPUReserved: 2000, EnforcePods: true}, nil, Desired, s).Kubepods, "cpu.weight", "235")
	unknown := NodeValues(NodeResources{EnforcePods: true}, nil, Desired, kubeletAt(36))
	if len(unknown.Kubepods) != 0 {
		t.Errorf("values of an unknown capacity: %+v", unknown.Kubepods)
	}
}
