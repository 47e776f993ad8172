package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var resizedPod = recorded("smt2-k612/bundle", "shop", "resized") // from 100m to 150m in place

// cpuLimit makes container app's CPU limit another one, in spec and status.
func withCPULimit(b *bundle, limit string) {
	b.container("app").Resources.Limits[corev1.ResourceCPU] = amounts("cpu", limit)[corev1.ResourceCPU]
	b.status("app").Resources.Limits[corev1.ResourceCPU] = amounts("cpu", limit)[corev1.ResourceCPU]
}

// quotas makes the limit 125m, and cpu.max of the container and of the pod's
// group what is given.
func withQuotas(app, pod string) func(*bundle) {
	return func(b *bundle) {
		withCPULimit(b, "125m")
		b.put("app", "cpu.max", app)
		b.put(podGroup, "cpu.max", pod)
	}
}

func withKubelet(version string, edit func(*bundle)) func(*bundle) {
	return func(b *bundle) {
		edit(b)
		b.object().Status.NodeInfo.KubeletVersion = version
	}
}

func cpuFilesFamily() family {
	app, pod := "cpu-files-differ-from-spec@app proven", "cpu-files-differ-from-spec@ proven"
	period := func(max string) func(*bundle) {
		return func(b *bundle) {
			b.config(map[string]any{"cpuCFSQuotaPeriod": "50ms"})
			b.put("app", "cpu.max", max)
			b.put(podGroup, "cpu.max", max)
		}
	}
	return family{name: "CPU files", codes: []report.Code{report.CPUFilesDifferFromSpec, report.CPUWeightFormulasDiffer}, cases: []ruleCase{
		{name: "as recorded", on: throttledPod, want: nil},
		{name: "125m rounded up to 1 %", on: throttledPod, edit: withQuotas("13000 100000", "13000 100000"), want: nil},
		{name: "125m exact", on: throttledPod, edit: withQuotas("12500 100000", "12500 100000"), want: nil},
		{name: "125m rounded in one group, exact in the other", on: throttledPod, edit: withQuotas("13000 100000", "12500 100000"), want: nil},
		{name: "125m rounded down", on: throttledPod, edit: withQuotas("12000 100000", "13000 100000"), want: []string{app}, text: []string{"12000 100000", "13000", "12500"}},
		{name: "another quota on the pod", on: throttledPod, edit: withQuotas("13000 100000", "12000 100000"), want: []string{pod}},
		{name: "no quota at all", on: throttledPod, edit: withQuotas("max 100000", "max 100000"), want: []string{app, pod}},
		{name: "kubelet 1.34, exact", on: throttledPod, edit: withKubelet("v1.34.4", withQuotas("13000 100000", "12500 100000")), want: nil},
		{name: "kubelet 1.34, rounded by systemd", on: throttledPod, edit: withKubelet("v1.34.4", withQuotas("13000 100000", "13000 100000")), want: nil},
		{name: "kubelet 1.34, rounded down", on: throttledPod, edit: withKubelet("v1.34.4", withQuotas("13000 100000", "12000 100000")), want: []string{pod}},
		{name: "driver cgroupfs, exact", on: throttledPod, edit: func(b *bundle) {
			withQuotas("12500 100000", "12500 100000")(b)
			b.useCgroupfs()
		}, want: nil},
		{name: "driver cgroupfs, which does not round", on: throttledPod, edit: func(b *bundle) {
			withQuotas("13000 100000", "12500 100000")(b)
			b.useCgroupfs()
		}, want: []string{app}},
		{name: "5m acts as 10m", on: throttledPod, edit: func(b *bundle) {
			withCPULimit(b, "5m")
			b.put("app", "cpu.max", "1000 100000")
			b.put(podGroup, "cpu.max", "1000 100000")
		}, want: nil},
		{name: "cpuCFSQuota is false", on: throttledPod, edit: func(b *bundle) {
			b.config(map[string]any{"cpuCFSQuota": false})
			b.put("app", "cpu.max", "max 100000")
			b.put(podGroup, "cpu.max", "max 100000")
		}, want: nil},
		{name: "cpuCFSQuota is false, the pod has a quota", on: throttledPod, edit: func(b *bundle) { b.config(map[string]any{"cpuCFSQuota": false}) }, want: []string{app, pod}},
		{name: "a period of 50 ms", on: throttledPod, edit: period("2500 50000"), want: nil},
		{name: "a period of 50 ms, and files of 100 ms", on: throttledPod, edit: period("5000 100000"), want: []string{app, pod}},
		{name: "a period of 50 ms that only the files tell of", on: throttledPod, edit: func(b *bundle) {
			period("2500 50000")(b)
			b.forget("nodes/smt2/configz.json")
		}, loose: true, not: []string{app, pod}},
		{name: "the runtime's period where the container has no limit", on: recorded("numa4-k61/bundle", "mill", "nolimit"), edit: func(b *bundle) {
			b.config(map[string]any{"cpuCFSQuotaPeriod": "50ms"})
			b.put("app", "cpu.max", "max 50000")
		}, want: nil},
		{name: "a quota where the container has no limit", on: recorded("numa4-k61/bundle", "mill", "nolimit"), edit: func(b *bundle) { b.put("app", "cpu.max", "100000 100000") }, want: []string{app}},
		{name: "a quota where the pod has no limit", on: recorded("numa4-k61/bundle", "mill", "nolimit"), edit: func(b *bundle) { b.put(podGroup, "cpu.max", "100000 100000") }, want: []string{pod}},
		{name: "a resize that has come through", on: resizedPod, want: nil},
		{name: "a resize that the runtime has not seen", on: resizedPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = amounts("cpu", "300m")[corev1.ResourceCPU]
		}, want: nil},
		{name: "a resize half done", on: resizedPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = amounts("cpu", "300m")[corev1.ResourceCPU]
			b.put(podGroup, "cpu.max", "30000 100000")
		}, want: nil},
		{name: "neither the old limit nor the new one", on: resizedPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = amounts("cpu", "300m")[corev1.ResourceCPU]
			b.put("app", "cpu.max", "20000 100000")
		}, want: []string{app}},
		{name: "a request whose resize was admitted and not done", on: resizedPod, edit: func(b *bundle) {
			for _, l := range []corev1.ResourceList{b.container("app").Resources.Requests, b.status("app").AllocatedResources} {
				l[corev1.ResourceCPU] = amounts("cpu", "100m")[corev1.ResourceCPU]
			}
			b.status("app").Resources.Requests[corev1.ResourceCPU] = amounts("cpu", "50m")[corev1.ResourceCPU]
		}, want: nil},
		{name: "exclusive CPUs, no quota", on: exclusivePod, want: nil},
		{name: "exclusive CPUs with the quota of their limit", on: exclusivePod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "200000 100000")
			b.put(podGroup, "cpu.max", "200000 100000")
		}, want: nil},
		{name: "exclusive CPUs with another quota", on: exclusivePod, edit: func(b *bundle) { b.put("app", "cpu.max", "150000 100000") }, want: []string{app}},
		{name: "exclusive CPUs, the checkpoint not collected", on: exclusivePod, edit: func(b *bundle) { b.forget(b.root("var/lib/kubelet/cpu_manager_state")) }, loose: true, not: []string{app, pod}},
		{name: "the weight of the linear formula", on: throttledPod, edit: func(b *bundle) { b.put("app", "cpu.weight", "1") }, want: nil},
		{name: "the weight of neither formula", on: throttledPod, edit: func(b *bundle) { b.put("app", "cpu.weight", "7") }, want: []string{app}, text: []string{`\"4\"`, `\"1\"`}},
		{name: "the quadratic weight on the pod's group", on: throttledPod, edit: func(b *bundle) { b.put(podGroup, "cpu.weight", "4") }, want: []string{pod}},
		{name: "text of no meaning", on: throttledPod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "5000")
			b.put(podGroup, "cpu.weight", "\x00\x1b[31m")
		}, want: nil},
		{name: "an empty file", on: throttledPod, edit: func(b *bundle) { b.put("app", "cpu.max", "") }, want: nil},

		{name: "one container by the linear formula, one by the quadratic", on: sidecarPod, edit: func(b *bundle) { b.put("app", "cpu.weight", "12") },
			want: []string{"cpu-weight-formulas-differ@ proven"}, text: []string{"app linear", "proxy quadratic"}},
		{name: "all by the quadratic formula", on: sidecarPod, want: nil},
		{name: "all by the linear formula", on: sidecarPod, edit: func(b *bundle) {
			b.put("app", "cpu.weight", "12")
			b.put("proxy", "cpu.weight", "4")
		}, want: nil},
		{name: "one by the quadratic formula, one whose weight is the same by both", on: sidecarPod, edit: func(b *bundle) {
			b.container("proxy").Resources.Requests[corev1.ResourceCPU] = amounts("cpu", "2m")[corev1.ResourceCPU]
			b.put("proxy", "cpu.weight", "1")
		}, want: nil},
		{name: "one by the quadratic formula, one by none", on: sidecarPod, edit: func(b *bundle) { b.put("app", "cpu.weight", "33") }, want: []string{app}},
		{name: "one by the linear formula, the other's not known", on: sidecarPod, edit: func(b *bundle) {
			b.put("app", "cpu.weight", "12")
			b.put("proxy", "cpu.weight", "")
		}, want: nil},
	}}
}

func memoryFilesFamily() family {
	app, pod := "memory-files-differ-from-spec@app proven", "memory-files-differ-from-spec@ proven"
	decimal := func(limit, max string) func(*bundle) {
		return func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceMemory] = amounts("memory", limit)[corev1.ResourceMemory]
			b.status("app").Resources.Limits[corev1.ResourceMemory] = amounts("memory", limit)[corev1.ResourceMemory]
			b.put("app", "memory.max", max)
			b.put(podGroup, "memory.max", max)
		}
	}
	return family{name: "memory files", codes: []report.Code{report.MemoryFilesDifferFromSpec}, cases: []ruleCase{
		{name: "as recorded", on: throttledPod, want: nil},
		{name: "another limit", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.max", "134217728") }, want: []string{app}, text: []string{"134217728", "67108864"}},
		{name: "no limit on the pod", on: throttledPod, edit: func(b *bundle) { b.put(podGroup, "memory.max", "max") }, want: []string{pod}},
		{name: "460M down to a page", on: throttledPod, edit: decimal("460M", "459997184"), want: nil},
		{name: "460M to the byte, as no kernel shows it", on: throttledPod, edit: decimal("460M", "460000000"), want: []string{app, pod}},
		{name: "100M down to a page of 64Ki", on: throttledPod, edit: func(b *bundle) {
			decimal("100M", "99942400")(b)
			b.object().Status.NodeInfo.Architecture = "arm64"
		}, loose: true, not: []string{app, pod}},
		{name: "a resize that the runtime has not seen", on: throttledPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceMemory] = amounts("memory", "128Mi")[corev1.ResourceMemory]
		}, want: nil},
		{name: "memory.high without a throttling factor", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.high", "60395520") }, want: []string{app}},
		{name: "memory.high of a throttling factor that was the default once", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.high", "63750144") },
			want: []string{"memory-files-differ-from-spec@app likely"}, text: []string{"0.9, the default up to 1.36"}},
		{name: "no memory.high, of a container older than the throttling factor", on: throttledPod, edit: func(b *bundle) { b.config(map[string]any{"memoryThrottlingFactor": 0.8}) },
			want: []string{"memory-files-differ-from-spec@app likely"}, text: []string{"older than the kubelet's present configuration"}},
		{name: "memory.high of a throttling factor of 0.8", on: throttledPod, edit: func(b *bundle) {
			b.config(map[string]any{"memoryThrottlingFactor": 0.8})
			b.put("app", "memory.high", "60395520")
		}, want: nil},
		{name: "memory.low by hand", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.low", "1048576") }, want: []string{app}},
		{name: "memory.low by tiered reservation", on: throttledPod, edit: func(b *bundle) {
			b.config(map[string]any{"memoryReservationPolicy": "TieredReservation"})
			b.put("app", "memory.low", "33554432")
			b.put(podGroup, "memory.low", "33554432")
		}, want: nil},
		{name: "memory.high under a kubelet without rules of its own", on: throttledPod, edit: func(b *bundle) {
			b.put("app", "memory.high", "60395520")
			b.object().Status.NodeInfo.KubeletVersion = "v1.31.1"
		}, want: nil},
		{name: "memory.oom.group off by hand", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.oom.group", "0") }, want: []string{app}},
		{name: "memory.oom.group off by singleProcessOOMKill", on: recorded("numa4-k61/bundle", "mill", "child-oom"), want: nil},
		{name: "text of no meaning", on: throttledPod, edit: func(b *bundle) { b.put("app", "memory.max", strings.Repeat("9", 40)) }, want: nil},
		{name: "a pod that has ended", on: throttledPod, edit: func(b *bundle) {
			b.pod().Status.Phase = corev1.PodSucceeded
			b.put("app", "memory.max", "134217728")
		}, want: nil},
	}}
}
