package cgroup

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// wantFile checks the accepted values of one file; none means that the file
// is not named.
func wantFile(t *testing.T, got []FileValues, file string, want ...Value) {
	t.Helper()
	var accept []Value
	for _, f := range got {
		if f.File == file {
			accept = f.Accept
		}
	}
	if diff := cmp.Diff(want, accept); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// wantTexts is wantFile without rules and arithmetic.
func wantTexts(t *testing.T, got []FileValues, file string, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range got {
		if f.File == file {
			for _, v := range f.Accept {
				texts = append(texts, v.Text)
			}
		}
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func kubeletAt(minor int) Settings {
	return Settings{Minor: minor, Systemd: true, CFSQuota: true, PodLevelResources: true}
}

func containerOf(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

func containerValues(t *testing.T, pod *corev1.Pod, name string, res Resources, s Settings) []FileValues {
	t.Helper()
	values, err := ContainerValues(pod, name, res, s)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func drawPod(t *rapid.T) *corev1.Pod {
	list := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		l := corev1.ResourceList{}
		if rapid.Bool().Draw(t, "cpu") {
			l[corev1.ResourceCPU] = *resource.NewMilliQuantity(rapid.Int64().Draw(t, "milli"), resource.DecimalSI)
		}
		if rapid.Bool().Draw(t, "memory") {
			l[corev1.ResourceMemory] = *resource.NewQuantity(rapid.Int64().Draw(t, "bytes"), resource.BinarySI)
		}
		return l
	})
	requirements := rapid.Custom(func(t *rapid.T) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: list.Draw(t, "requests"), Limits: list.Draw(t, "limits")}
	})
	one := rapid.Custom(func(t *rapid.T) corev1.Container {
		c := corev1.Container{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), Resources: requirements.Draw(t, "resources")}
		if rapid.Bool().Draw(t, "sidecar") {
			c.RestartPolicy = alwaysRestart()
		}
		return c
	})
	pod := podOf(rapid.SliceOfN(one, 0, 3).Draw(t, "containers")...)
	pod.Spec.InitContainers = rapid.SliceOfN(one, 0, 3).Draw(t, "init")
	pod.Spec.Overhead = list.Draw(t, "overhead")
	if rapid.Bool().Draw(t, "pod level") {
		r := requirements.Draw(t, "pod resources")
		pod.Spec.Resources = &r
	}
	pod.Status.QOSClass = rapid.SampledFrom([]corev1.PodQOSClass{"", corev1.PodQOSBurstable, corev1.PodQOSGuaranteed, corev1.PodQOSBestEffort, "odd"}).Draw(t, "class")
	if rapid.Bool().Draw(t, "status") {
		r := requirements.Draw(t, "actuated")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list.Draw(t, "allocated"), Resources: &r}}
		pod.Status.Resources = &r
		pod.Status.AllocatedResources = list.Draw(t, "pod allocated")
	}
	return pod
}

// Whatever the API holds, values come out well-formed, the same each time, and
// the pod is left alone.
func TestExpectedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		before := pod.DeepCopy()
		factor := rapid.Float64().Draw(t, "factor")
		s := Settings{
			Minor:    rapid.IntRange(30, 40).Draw(t, "minor"),
			Systemd:  rapid.Bool().Draw(t, "systemd"),
			CFSQuota: true, CFSPeriodUsec: rapid.Uint64().Draw(t, "period"),
			MemoryQoS: rapid.Bool().Draw(t, "qos"), MemoryThrottlingFactor: &factor,
			TieredReservation: rapid.Bool().Draw(t, "tiered"),
			CapacityMemory:    rapid.Int64().Draw(t, "capacity"), ReservableMemory: rapid.Int64().Draw(t, "reservable"),
			PageSize: rapid.SampledFrom([]int64{0, 4096, 65536, -1}).Draw(t, "page"),
			Swap:     LimitedSwap, SwapCapacity: rapid.Int64().Draw(t, "swap"),
			PodLevelResources: rapid.Bool().Draw(t, "gate"),
		}
		res := Resources(rapid.IntRange(0, 3).Draw(t, "resources"))
		all := func() [][]FileValues {
			groups := [][]FileValues{PodValues(pod, res, s)}
			for _, name := range []string{"a", "b", "c"} {
				values, err := ContainerValues(pod, name, res, s)
				if _, known := FindContainer(pod, name); known != (err == nil) {
					t.Fatalf("container %s: %v", name, err)
				}
				groups = append(groups, values)
			}
			n := NodeValues(NodeResources{CPUCapacity: math.MaxInt64, EnforcePods: true}, []*corev1.Pod{pod, pod}, res, s)
			return append(groups, n.Kubepods, n.Burstable, n.BestEffort)
		}
		first := all()
		if diff := cmp.Diff(first, all()); diff != "" {
			t.Fatalf("twice the same gives\n%s", diff)
		}
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("the pod was changed\n%s", diff)
		}
		for _, files := range first {
			seen := map[string]bool{}
			for _, f := range files {
				if seen[f.File] || len(f.Accept) == 0 {
					t.Fatalf("%s: twice or empty: %+v", f.File, files)
				}
				seen[f.File] = true
				texts := map[string]bool{}
				for _, v := range f.Accept {
					if v.Text == "" || v.Text[0] == '-' || v.Rule == "" || texts[v.Text] {
						t.Fatalf("%s: %+v", f.File, f.Accept)
					}
					texts[v.Text] = true
				}
			}
		}
	})
}
