package diagnose

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// wants makes the spec of container app ask for other CPU and memory, requests
// and limits alike in the ratio that they had; "" leaves an amount.
func wants(cpu, memory string) func(*bundle) {
	return func(b *bundle) {
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				b.container("app").Resources.Requests[name] = resource.MustParse(text)
				b.container("app").Resources.Limits[name] = resource.MustParse(text)
			}
		}
	}
}

func withPodCondition(kind corev1.PodConditionType, reason, message string) func(*bundle) {
	return func(b *bundle) {
		b.pod().Status.Conditions = append(b.pod().Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func resizesFamily() family {
	infeasible, pending := []string{"resize-infeasible@app proven"}, []string{"resize-pending@app proven"}
	with := func(edits ...func(*bundle)) func(*bundle) {
		return func(b *bundle) {
			for _, e := range edits {
				e(b)
			}
		}
	}
	refused := func(message string) func(*bundle) { return withPodCondition("PodResizePending", "Infeasible", message) }
	deferred := func(message string) func(*bundle) { return withPodCondition("PodResizePending", "Deferred", message) }
	const static = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	return family{name: "resizes", codes: []report.Code{report.ResizeInfeasible, report.ResizePending}, cases: []ruleCase{
		{name: "none", on: exclusivePod, want: nil},
		{name: "done", on: resizedPod, want: nil},
		{name: "CPU under the static policy", on: exclusivePod, edit: with(wants("4", ""), refused(static)), want: infeasible,
			text:  []string{"cpu from 2 to 4", "was allocated: 2 CPU", `"field":"featureGates.InPlacePodVerticalScalingExclusiveCPUs","value":"not set"`, `"field":"cpuManagerPolicy","value":"static"`, `CPU Manager policy \"static\"`},
			lacks: []string{"2-5"}},
		{name: "in the words of an older kubelet", on: exclusivePod, edit: with(wants("4", ""), refused("Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy")), want: infeasible, text: []string{"the CPU Manager's static policy"}},
		{name: "memory under the Static policy", on: exclusivePod, edit: with(wants("", "512Mi"), refused(`Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`)), want: infeasible,
			text: []string{"memory from 256Mi to 512Mi", "InPlacePodVerticalScalingExclusiveMemory"}},
		{name: "CPU under a policy that the configuration no longer has", on: exclusivePod, edit: with(wants("4", ""), refused(static), func(b *bundle) { b.config(map[string]any{"cpuManagerPolicy": "none"}) }), want: []string{"resize-infeasible@app likely"},
			text: []string{"cpuManagerPolicy is none", "decides anew"}},
		{name: "memory under a policy that the configuration no longer has", on: exclusivePod, edit: with(wants("", "512Mi"), refused(`Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"`), func(b *bundle) { b.config(map[string]any{"memoryManagerPolicy": "None"}) }),
			want: []string{"resize-infeasible@app likely"}, text: []string{"memoryManagerPolicy is None"}},
		{name: "a gate that the configuration sets", on: exclusivePod, edit: with(wants("4", ""), refused(static), func(b *bundle) {
			b.config(map[string]any{"featureGates": map[string]bool{"InPlacePodVerticalScalingExclusiveCPUs": false}})
		}), want: infeasible, text: []string{`"field":"featureGates.InPlacePodVerticalScalingExclusiveCPUs","value":"false"`}},
		{name: "a static pod", on: resizedPod, edit: with(wants("200m", ""), refused("In-place resize of static-pods is not supported")), want: infeasible, text: []string{"manifest"}},
		{name: "swap", on: resizedPod, edit: with(wants("", "64Mi"), refused("In-place resize of containers with swap is not supported.")), want: infeasible, text: []string{"RestartContainer"}},
		{name: "a gate that is off", on: resizedPod, edit: with(wants("200m", ""), refused("InPlacePodVerticalScaling is disabled")), want: infeasible, text: []string{"gate InPlacePodVerticalScaling is off"}},
		{name: "more than the node has, kubelet 1.35", on: resizedPod, edit: with(wants("12", ""), refused("Node didn't have enough capacity: cpu, requested: 12000, capacity: 6000")), want: infeasible, text: []string{"ask for 12 CPU", "6 CPU", `12000 \u003e 6000`, "(cpu requests from 50m to 12, cpu limits from 150m to 12)"}},
		{name: "more memory than the node has", on: resizedPod, edit: with(wants("", "9Gi"), refused("Node didn't have enough capacity: memory, requested: 9663676416, capacity: 5798891520")), want: infeasible, text: []string{"9Gi (9663676416 bytes)", "5.4Gi"}},
		{name: "more than the node has, kubelet 1.36 on", on: resizedPod, edit: with(wants("12", ""), deferred("Node didn't have enough resource: cpu, requested: 12000, used: 2290, capacity: 6000")), want: infeasible, text: []string{"no waiting helps"}},
		{name: "words that are not known", on: resizedPod, edit: with(wants("200m", ""), refused("The moon is in the wrong house")), want: infeasible, text: []string{"the wrong house"}},
		{name: "taken back", on: exclusivePod, edit: refused(static), want: []string{"resize-infeasible@ likely"}, text: []string{"taken back"}},
		{name: "the condition is False", on: exclusivePod, edit: with(refused(static), func(b *bundle) {
			conditions := b.pod().Status.Conditions
			conditions[len(conditions)-1].Status = corev1.ConditionFalse
		}), want: nil},
		{name: "about an older spec", on: exclusivePod, edit: with(wants("4", ""), refused(static), func(b *bundle) {
			b.pod().Generation = 4
			conditions := b.pod().Status.Conditions
			conditions[len(conditions)-1].ObservedGeneration = 3
		}), want: infeasible, text: []string{"generation 3"}},
		{name: "a pod that has ended", on: exclusivePod, edit: with(wants("4", ""), refused(static), func(b *bundle) { b.pod().Status.Phase = corev1.PodFailed }), want: nil},

		{name: "no room now", on: resizedPod, edit: with(wants("2", ""), deferred("Node didn't have enough resource: cpu, requested: 2000, used: 4290, capacity: 6000")), want: pending, text: []string{"waits (Deferred)", `2000 + 4290 = 6290 \u003e 6000`, "4.29 CPU"}},
		{name: "on its way, the cgroups behind", on: resizedPod, edit: with(withPodCondition("PodResizeInProgress", "", ""), func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = resource.MustParse("200m")
			b.container("app").Resources.Requests[corev1.ResourceCPU] = resource.MustParse("50m")
			b.status("app").AllocatedResources[corev1.ResourceCPU] = resource.MustParse("50m")
			b.put(podGroup, "cpu.max", "20000 100000")
		}), want: pending, text: []string{`cpu.max of container app is \"15000 100000\" and should be \"20000 100000\"`}, lacks: []string{"cpu.max of the pod's cgroup is"}},
		{name: "on its way, the cgroups have followed", on: resizedPod, edit: withPodCondition("PodResizeInProgress", "", ""), want: []string{"resize-pending@ proven"}, text: []string{"every cgroup file"}},
		{name: "on its way, no cgroups", on: resizedPod, edit: with(withPodCondition("PodResizeInProgress", "", ""), (*bundle).forgetTree), want: []string{"resize-pending@ likely"}},
		{name: "failed", on: resizedPod, edit: withPodCondition("PodResizeInProgress", "Error", `cannot decrease memory limits: attempting to set container "app" memory limit (4194304) below current usage (4878336)`), want: []string{"resize-pending@ proven"},
			text: []string{"granted and failed", "below current usage (4878336)", "page cache too"}},
		{name: "one on its way, the next waits", on: resizedPod, edit: with(wants("2", ""), withPodCondition("PodResizeInProgress", "", ""), deferred("Node didn't have enough resource: cpu, requested: 2000, used: 4290, capacity: 6000")),
			want: []string{"resize-pending@app proven", "resize-pending@ proven"}},
		{name: "not looked at yet", on: resizedPod, edit: with(wants("200m", ""), func(b *bundle) { b.pod().Generation = 9; b.pod().Status.ObservedGeneration = 8 }), want: []string{"resize-pending@app likely"}, text: []string{"status.observedGeneration"}},
		{name: "a limit that systemd rounds is no resize", on: resizedPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = resource.MustParse("145m")
			b.status("app").Resources.Limits[corev1.ResourceCPU] = resource.MustParse("150m")
		}, want: nil},
	}}
}
