package cgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// resizing is a pod whose spec asks for 300m/256Mi, admitted with the requests
// of 200m/128Mi and running with 100m/64Mi.
func resizing() *corev1.Pod {
	pod := podOf(containerOf("app", resourceList("cpu", "30m", "memory", "256Mi"), resourceList("cpu", "300m", "memory", "256Mi")))
	pod.Status.QOSClass = corev1.PodQOSBurstable
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:               "app",
		AllocatedResources: resourceList("cpu", "20m", "memory", "128Mi"),
		Resources: &corev1.ResourceRequirements{
			Requests: resourceList("cpu", "10m", "memory", "64Mi"),
			Limits:   resourceList("cpu", "100m", "memory", "64Mi"),
		},
	}}
	return pod
}

func TestResizeInFlight(t *testing.T) {
	pending := resizing()
	pending.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}}
	behind := resizing()
	behind.Generation, behind.Status.ObservedGeneration = 3, 2
	fresh := resizing()
	fresh.Status.ContainerStatuses[0].Resources, fresh.Status.ContainerStatuses[0].AllocatedResources = nil, nil
	for name, c := range map[string]struct {
		pod                 *corev1.Pod
		res                 Resources
		quota, weight, most string
	}{
		"desired":                        {resizing(), Desired, "30000 100000", "2", "268435456"},
		"admitted: limits of the spec":   {resizing(), Allocated, "30000 100000", "1", "268435456"},
		"pending: limits of the runtime": {pending, Allocated, "10000 100000", "1", "67108864"},
		"spec not yet seen":              {behind, Allocated, "10000 100000", "1", "67108864"},
		"actuated":                       {resizing(), Actuated, "10000 100000", "1", "67108864"},
		"no status":                      {fresh, Actuated, "30000 100000", "2", "268435456"},
	} {
		t.Run(name, func(t *testing.T) {
			got := PodValues(c.pod, c.res, kubeletAt(37))
			wantTexts(t, got, "cpu.max", c.quota)
			wantTexts(t, got, "cpu.weight", c.weight)
			wantTexts(t, got, "memory.max", c.most)
			scope := containerValues(t, c.pod, "app", c.res, kubeletAt(37))
			wantTexts(t, scope, "cpu.max", c.quota)
			wantTexts(t, scope, "memory.max", c.most)
		})
	}
}

func TestResizePodLevel(t *testing.T) {
	pod := podOf(containerOf("app", nil, nil))
	pod.Spec.Overhead = resourceList("cpu", "50m", "memory", "16Mi")
	pod.Spec.Resources = &corev1.ResourceRequirements{
		Requests: resourceList("cpu", "400m", "memory", "128Mi"),
		Limits:   resourceList("cpu", "400m", "memory", "128Mi"),
	}
	// Both fields of the status include the overhead, and the CPU request is
	// read back from a weight.
	pod.Status.AllocatedResources = resourceList("cpu", "350m", "memory", "80Mi")
	pod.Status.Resources = &corev1.ResourceRequirements{
		Requests: resourceList("cpu", "333m", "memory", "80Mi"),
		Limits:   resourceList("cpu", "250m", "memory", "80Mi"),
	}
	pod.Status.QOSClass = corev1.PodQOSBurstable
	for _, c := range []struct {
		res                 Resources
		quota, weight, most string
	}{
		{Desired, "45000 100000", "18", "150994944"},
		{Allocated, "45000 100000", "14", "150994944"},
		{Actuated, "25000 100000", "14", "83886080"},
	} {
		got := PodValues(pod, c.res, kubeletAt(37))
		wantTexts(t, got, "cpu.max", c.quota)
		wantTexts(t, got, "cpu.weight", c.weight)
		wantTexts(t, got, "memory.max", c.most)
	}
	if q := pod.Spec.Resources.Limits.Cpu(); q.MilliValue() != 400 {
		t.Errorf("the pod was changed: limit %v", q)
	}
}

func TestPodQOS(t *testing.T) {
	full := resourceList("cpu", "1", "memory", "1Gi")
	emptyPodLevel := podOf(containerOf("a", full, full))
	emptyPodLevel.Spec.Resources = &corev1.ResourceRequirements{}
	podLevel := podOf(containerOf("a", nil, nil))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Requests: full, Limits: full}
	statusWins := podOf(containerOf("a", nil, nil))
	statusWins.Status.QOSClass = corev1.PodQOSGuaranteed
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		minor int
		want  corev1.PodQOSClass
	}{
		"guaranteed":            {podOf(containerOf("a", full, full)), 37, corev1.PodQOSGuaranteed},
		"one without":           {podOf(containerOf("a", full, full), containerOf("b", nil, nil)), 37, corev1.PodQOSBurstable},
		"request only":          {podOf(containerOf("a", full, nil)), 37, corev1.PodQOSBurstable},
		"cpu only":              {podOf(containerOf("a", resourceList("cpu", "1"), resourceList("cpu", "1"))), 37, corev1.PodQOSBurstable},
		"nothing":               {podOf(containerOf("a", nil, nil)), 37, corev1.PodQOSBestEffort},
		"no containers":         {podOf(), 37, corev1.PodQOSBestEffort},
		"pod level":             {podLevel, 34, corev1.PodQOSGuaranteed},
		"empty pod level, 1.37": {emptyPodLevel, 37, corev1.PodQOSGuaranteed},
		"empty pod level, 1.36": {emptyPodLevel, 36, corev1.PodQOSBestEffort},
		"status wins":           {statusWins, 37, corev1.PodQOSGuaranteed},
	} {
		if got := podQOS(c.pod, c.minor, true); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestEffective(t *testing.T) {
	pod := podOf(containerOf("own", resourceList("cpu", "100m"), resourceList("cpu", "200m", "memory", "1Gi")), containerOf("none", nil, nil))
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	check := func(name string, request, limit, memory int64, some bool) {
		t.Helper()
		c, ok := FindContainer(pod, name)
		if !ok {
			t.Fatalf("no container %s", name)
		}
		r, hasR := EffectiveCPURequest(pod, c)
		l, hasL := EffectiveCPULimit(pod, c)
		m, hasM := EffectiveMemoryLimit(pod, c)
		if r != request || l != limit || m != memory || hasR != some || hasL != some || hasM != some {
			t.Errorf("%s: %d %v, %d %v, %d %v", name, r, hasR, l, hasL, m, hasM)
		}
	}
	check("own", 100, 200, 1<<30, true)
	check("none", 0, 0, 0, false)
	check("debug", 0, 0, 0, false)
	pod.Spec.Resources = &corev1.ResourceRequirements{Limits: resourceList("cpu", "2", "memory", "4Gi")}
	check("own", 100, 200, 1<<30, true)
	check("none", 2000, 2000, 4<<30, true)
	check("debug", 2000, 2000, 4<<30, true)
	if _, ok := FindContainer(pod, ""); ok {
		t.Error("found a container without a name")
	}
}
