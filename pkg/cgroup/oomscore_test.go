package cgroup

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func resourceList(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
	}
	return list
}

func alwaysRestart() *corev1.ContainerRestartPolicy {
	policy := corev1.ContainerRestartPolicyAlways
	return &policy
}

func TestOOMScoreAdjVectors(t *testing.T) {
	var v struct {
		Constants map[string]int `json:"constants"`
		Cases     []struct {
			Desc       string `json:"desc"`
			Capacity   int64  `json:"memory_capacity_bytes"`
			QOS        string `json:"qos"`
			Priority   string `json:"priority_class"`
			PodRequest string `json:"pod_memory_request"`
			PodLimit   string `json:"pod_memory_limit"`
			Containers []struct {
				Name          string `json:"name"`
				MemoryRequest string `json:"memory_request"`
				MemoryLimit   string `json:"memory_limit"`
				CPURequest    string `json:"cpu_request"`
				CPULimit      string `json:"cpu_limit"`
				Init          bool   `json:"init"`
				Sidecar       bool   `json:"restartable_init"`
				Want          int    `json:"oom_score_adj"`
			} `json:"containers"`
		} `json:"cases"`
	}
	readVectors(t, "vectors/oom_score_adj.json", &v)
	if len(v.Cases) != 24 {
		t.Fatalf("%d cases, want 24", len(v.Cases))
	}
	if v.Constants["guaranteed"] != OOMScoreAdjGuaranteed || v.Constants["besteffort"] != OOMScoreAdjBestEffort ||
		v.Constants["pause"] != OOMScoreAdjSandbox || v.Constants["kubelet"] != OOMScoreAdjKubelet {
		t.Errorf("constants %v", v.Constants)
	}
	for _, c := range v.Cases {
		pod := &corev1.Pod{}
		if c.Priority != "" {
			priority := int32(2000001000)
			pod.Spec.Priority, pod.Spec.PriorityClassName = &priority, c.Priority
		}
		if c.PodRequest != "" {
			pod.Spec.Resources = &corev1.ResourceRequirements{
				Requests: resourceList("memory", c.PodRequest),
				Limits:   resourceList("memory", c.PodLimit),
			}
		}
		for _, cc := range c.Containers {
			container := corev1.Container{Name: cc.Name, Resources: corev1.ResourceRequirements{
				Requests: resourceList("memory", cc.MemoryRequest, "cpu", cc.CPURequest),
				Limits:   resourceList("memory", cc.MemoryLimit, "cpu", cc.CPULimit),
			}}
			if cc.Sidecar {
				container.RestartPolicy = alwaysRestart()
			}
			if cc.Sidecar || cc.Init {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
			} else {
				pod.Spec.Containers = append(pod.Spec.Containers, container)
			}
		}
		for _, fromStatus := range []bool{false, true} {
			if fromStatus {
				pod.Status.QOSClass = corev1.PodQOSClass(c.QOS)
			}
			for minor := 34; minor <= 37; minor++ {
				for _, cc := range c.Containers {
					got, arithmetic, err := OOMScoreAdj(pod, cc.Name, c.Capacity, minor)
					if err != nil || got != cc.Want || arithmetic == "" {
						t.Errorf("%s, container %s, 1.%d, class from status %v: %d (%s), %v; want %d",
							c.Desc, cc.Name, minor, fromStatus, got, arithmetic, err, cc.Want)
					}
				}
			}
		}
	}
}

func burstableOf(request string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name:      "app",
		Resources: corev1.ResourceRequirements{Requests: resourceList("memory", request)},
	}}}}
}

func TestOOMScoreAdjArithmetic(t *testing.T) {
	got, arithmetic, err := OOMScoreAdj(burstableOf("64Mi"), "app", 10161128<<10, 37)
	if want := "1000 − 1000 × 67108864 / 10404995072 = 994"; got != 994 || arithmetic != want || err != nil {
		t.Errorf("%d, %q, %v; want 994, %q", got, arithmetic, err, want)
	}

	pod := burstableOf("1Gi")
	pod.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: alwaysRestart()}}
	got, arithmetic, err = OOMScoreAdj(pod, "side", 8<<30, 37)
	if want := "sidecar: smallest app request: 1000 − 1000 × 1073741824 / 8589934592 = 875, below its own 1000"; got != 875 || arithmetic != want || err != nil {
		t.Errorf("%d, %q, %v; want 875, %q", got, arithmetic, err, want)
	}
}

func TestOOMScoreAdjCritical(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		class       string
		want        int
	}{
		"static":                {map[string]string{"kubernetes.io/config.source": "file"}, "system-node-critical", -997},
		"mirror":                {map[string]string{"kubernetes.io/config.mirror": "abc"}, "system-node-critical", -997},
		"from the API":          {map[string]string{"kubernetes.io/config.source": "api"}, "system-node-critical", 994},
		"class without prio":    {nil, "system-node-critical", 994},
		"static, other class":   {map[string]string{"kubernetes.io/config.source": "file"}, "", 994},
		"static, other cluster": {map[string]string{"kubernetes.io/config.source": "http"}, "system-cluster-critical", 994},
	} {
		pod := burstableOf("64Mi")
		pod.ObjectMeta = metav1.ObjectMeta{Annotations: c.annotations}
		pod.Spec.PriorityClassName = c.class
		if got, _, err := OOMScoreAdj(pod, "app", 10161128<<10, 37); got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", name, got, err, c.want)
		}
	}
}

func TestOOMScoreAdjErrors(t *testing.T) {
	if _, _, err := OOMScoreAdj(burstableOf("64Mi"), strings.Repeat("x", 500)+"\x1b", 1<<30, 37); err == nil || len(err.Error()) > 150 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("unknown container: %v", err)
	}
	for _, capacity := range []int64{0, -1, math.MinInt64} {
		if _, _, err := OOMScoreAdj(burstableOf("64Mi"), "app", capacity, 37); err == nil {
			t.Errorf("capacity %d is no error", capacity)
		}
	}
}

func TestOOMScoreAdjProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		request := rapid.Int64().Draw(t, "request")
		capacity := rapid.Int64Range(1, math.MaxInt64).Draw(t, "capacity")
		pod := burstableOf("1")
		pod.Status.QOSClass = corev1.PodQOSBurstable
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(request, resource.BinarySI)
		got, _, err := OOMScoreAdj(pod, "app", capacity, 37)
		if err != nil || got < 3 || got > 999 {
			t.Fatalf("%d, %v", got, err)
		}
		if request > 0 && request <= math.MaxInt64/1000 {
			if want := min(max(1000-1000*request/capacity, 3), 999); int64(got) != want {
				t.Fatalf("%d, want %d", got, want)
			}
		}
	})
}
