package cgroup

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func factorOf(f float64) *float64 { return &f }

// memoryTexts picks the protections and memory.high out of a list.
func memoryTexts(files []FileValues) map[string]string {
	texts := map[string]string{}
	for _, f := range files {
		switch f.File {
		case "memory.min", "memory.low", "memory.high":
			texts[f.File] = f.Accept[0].Text
		}
	}
	return texts
}

func TestMemoryQoS(t *testing.T) {
	memory := func(q string) corev1.ResourceList { return resourceList("memory", q) }
	full := resourceList("cpu", "1", "memory", "512Mi")
	guaranteed := podOf(containerOf("app", full, full))
	burstable := podOf(containerOf("app", memory("200Mi"), memory("700Mi")))
	unlimited := podOf(containerOf("app", memory("200Mi"), nil))
	bestEffort := podOf(containerOf("app", nil, nil))
	podLevel := podOf(containerOf("app", memory("200Mi"), nil), containerOf("b", nil, nil))
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Requests: memory("300Mi"), Limits: memory("800Mi")}

	const (
		mi200, mi300, mi450, mi512 = "209715200", "314572800", "471859200", "536870912"
		half                       = 0.5
	)
	type texts = map[string]string
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		minor     int
		off       bool
		tiered    bool
		factor    *float64
		container texts
		slice     texts
	}{
		"off, 1.36":  {pod: burstable, minor: 36, off: true, container: texts{}, slice: texts{}},
		"off, 1.37":  {pod: burstable, minor: 37, off: true, container: texts{"memory.high": "max"}, slice: texts{}},
		"on, 1.35":   {pod: burstable, minor: 35, container: texts{"memory.min": mi200, "memory.high": "681574400"}, slice: texts{"memory.min": mi200}},
		"half, 1.34": {pod: burstable, minor: 34, factor: factorOf(half), container: texts{"memory.min": mi200, "memory.high": mi450}, slice: texts{"memory.min": mi200}},
		"none, 1.36": {pod: burstable, minor: 36, container: texts{"memory.min": "0", "memory.low": "0", "memory.high": "681574400"}, slice: texts{}},
		"none, 1.37": {pod: burstable, minor: 37, container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{}},
		"half, 1.37": {pod: burstable, minor: 37, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0", "memory.high": mi450}, slice: texts{}},
		"policy of 1.36 at 1.35": {pod: burstable, minor: 35, tiered: true, factor: factorOf(half),
			container: texts{"memory.min": mi200, "memory.high": mi450}, slice: texts{"memory.min": mi200}},
		"tiered burstable, 1.37":  {pod: burstable, minor: 37, tiered: true, container: texts{"memory.low": mi200}, slice: texts{"memory.low": mi200}},
		"tiered guaranteed, 1.36": {pod: guaranteed, minor: 36, tiered: true, container: texts{"memory.min": mi512}, slice: texts{"memory.min": mi512}},
		"tiered best effort":      {pod: bestEffort, minor: 37, tiered: true, container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{}},
		"guaranteed has no high":  {pod: guaranteed, minor: 35, container: texts{"memory.min": mi512}, slice: texts{"memory.min": mi512}},
		// 200Mi + (4Gi − 200Mi) × 0.5 of the node.
		"no limit, 1.36":           {pod: unlimited, minor: 36, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0", "memory.high": "2252341248"}, slice: texts{}},
		"best effort, 1.36":        {pod: bestEffort, minor: 36, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{}},
		"best effort, 1.37":        {pod: bestEffort, minor: 37, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0", "memory.high": "2147483648"}, slice: texts{}},
		"pod level, 1.37":          {pod: podLevel, minor: 37, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{"memory.high": "576716800"}},
		"pod level, 1.36":          {pod: podLevel, minor: 36, factor: factorOf(half), container: texts{"memory.min": "0", "memory.low": "0", "memory.high": "2252341248"}, slice: texts{}},
		"pod level, tiered":        {pod: podLevel, minor: 37, tiered: true, container: texts{"memory.low": mi200}, slice: texts{"memory.low": mi300}},
		"impossible factor":        {pod: burstable, minor: 37, factor: factorOf(math.NaN()), container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{}},
		"factor above the maximum": {pod: burstable, minor: 37, factor: factorOf(1.5), container: texts{"memory.min": "0", "memory.low": "0"}, slice: texts{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletAt(c.minor)
			s.MemoryQoS, s.TieredReservation, s.MemoryThrottlingFactor = !c.off, c.tiered, c.factor
			s.CapacityMemory, s.ReservableMemory = 5<<30, 4<<30
			if diff := cmp.Diff(c.container, memoryTexts(containerValues(t, c.pod, "app", Desired, s))); diff != "" {
				t.Errorf("container:\n%s", diff)
			}
			if diff := cmp.Diff(c.slice, memoryTexts(PodValues(c.pod, Desired, s))); diff != "" {
				t.Errorf("slice:\n%s", diff)
			}
		})
	}
}

func TestMemoryHighArithmetic(t *testing.T) {
	s := kubeletAt(37)
	s.MemoryQoS, s.MemoryThrottlingFactor = true, factorOf(0.9)
	pod := podOf(containerOf("app", resourceList("memory", "100M"), resourceList("memory", "200M")))
	wantFile(t, containerValues(t, pod, "app", Desired, s), "memory.high", Value{
		Text: "189997056", Rule: "memoryThrottlingFactor of the limit",
		Arithmetic: "100000000 + (200000000 − 100000000) × 0.9 = 190000000 bytes; down to pages of 4096 bytes = 189997056",
	})
}

func TestNodeMemoryQoS(t *testing.T) {
	full := resourceList("cpu", "1", "memory", "512Mi")
	pods := []*corev1.Pod{
		podOf(containerOf("g", full, full)),
		podOf(containerOf("b", resourceList("memory", "256Mi"), nil)),
		podOf(containerOf("none", nil, nil)),
	}
	const sum, burstable = "805306368", "268435456"
	type texts = map[string]string
	for name, c := range map[string]struct {
		minor               int
		on, tiered          bool
		kubepods, burstable texts
	}{
		"1.34 off":    {34, false, false, texts{}, texts{}},
		"1.35 on":     {35, true, false, texts{"memory.min": sum}, texts{"memory.min": burstable}},
		"1.36 off":    {36, false, true, texts{}, texts{}},
		"1.36 none":   {36, true, false, texts{"memory.min": "0"}, texts{"memory.low": "0"}},
		"1.36 tiered": {36, true, true, texts{"memory.min": sum}, texts{"memory.low": burstable}},
		"1.37 off":    {37, false, true, texts{"memory.min": "0", "memory.low": "0"}, texts{"memory.low": "0"}},
		"1.37 none":   {37, true, false, texts{"memory.min": "0", "memory.low": "0"}, texts{"memory.low": "0"}},
		"1.37 tiered": {37, true, true, texts{"memory.min": sum, "memory.low": burstable}, texts{"memory.low": burstable}},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubeletAt(c.minor)
			s.MemoryQoS, s.TieredReservation = c.on, c.tiered
			got := NodeValues(NodeResources{}, pods, Desired, s)
			if diff := cmp.Diff(c.kubepods, memoryTexts(got.Kubepods)); diff != "" {
				t.Errorf("kubepods:\n%s", diff)
			}
			if diff := cmp.Diff(c.burstable, memoryTexts(got.Burstable)); diff != "" {
				t.Errorf("burstable:\n%s", diff)
			}
			if diff := cmp.Diff(texts{}, memoryTexts(got.BestEffort)); diff != "" {
				t.Errorf("besteffort:\n%s", diff)
			}
		})
	}
}
