package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodes are questions about a node.
func nodesFamily() family {
	weight, well := "node-reservation-weight-only@ proven", "node-healthy@ proven"
	f := family{name: "node", codes: []report.Code{
		report.NodeReservationByWeight, report.NodeHealthy, report.EvidenceMissing, report.CgroupV1Unsupported, report.CPUFilesDifferFromSpec,
		report.MemoryFilesDifferFromSpec, report.KubeletCheckpointInvalid, report.CPUSetDrift,
	}, cases: []ruleCase{
		{name: "as recorded", on: throttledPod, want: []string{weight, well}, text: []string{"235 / (235 + 100) = 70.1 %", "5798891520"}},
		{name: "another weight of system.slice", on: throttledPod, edit: func(b *bundle) {
			for k := range 2 {
				b.files[b.file(k, "/system.slice", "cpu.weight")] = "300\n"
			}
		}, want: []string{weight, well}, text: []string{"235 / (235 + 300) = 43.9 %"}},
		{name: "the weight of system.slice not read", on: throttledPod, edit: func(b *bundle) {
			for k := range 2 {
				delete(b.files, b.file(k, "/system.slice", "cpu.weight"))
			}
			delete(b.files, "gaps.json")
		}, want: []string{"node-reservation-weight-only@ likely", well}},
		{name: "a quota on all pods", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "cpu.max", "600000 100000") }, want: []string{"cpu-files-differ-from-spec@ proven"}},
		{name: "a quota on all pods, so not by weight only", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "cpu.max", "600000 100000") }, loose: true, not: []string{weight}},
		{name: "another weight of all pods", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "cpu.weight", "313") }, want: []string{weight, "cpu-files-differ-from-spec@ proven"},
			text: []string{"8000m − 2000m reserved = 6000m"}},
		{name: "the weight of the whole machine, reservations not enforced", on: throttledPod, edit: func(b *bundle) {
			b.config(map[string]any{"enforceNodeAllocatable": []string{}})
			b.put(kubepodsGroup, "cpu.weight", "313")
			b.put(kubepodsGroup, "memory.max", "6230904832")
		}, want: []string{weight, well}},
		{name: "another memory limit of all pods", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "memory.max", "6230904832") }, want: []string{weight, "memory-files-differ-from-spec@ proven"}},
		{name: "no memory limit of all pods", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "memory.max", "max") }, want: []string{weight, "memory-files-differ-from-spec@ proven"}},
		{name: "files of all pods that cannot be parsed", on: throttledPod, edit: func(b *bundle) { b.put(kubepodsGroup, "memory.max", "\x00\x00") }, loose: true, not: []string{"memory-files-differ-from-spec@ proven"}},
		{name: "the files of all pods not read", on: throttledPod, edit: func(b *bundle) {
			b.drop(kubepodsGroup, "memory.max", "cpu.weight", "cpu.max")
			delete(b.files, "gaps.json")
		}, want: []string{well}, lacks: []string{"the limits of all pods"}},
		{name: "a reservation that cannot be read", on: throttledPod, edit: func(b *bundle) { b.config(map[string]any{"kubeReserved": map[string]string{"memory": "much"}}) },
			want: []string{weight}, lacks: []string{"the limits of all pods against"}},
		{name: "cpusets written by another", on: exclusivePod, edit: func(b *bundle) { b.put("app", "cpuset.cpus", "2") }, want: []string{weight, "cpuset-drift@app proven"}},
		{name: "a corrupt checkpoint", on: exclusivePod, edit: func(b *bundle) { spoilChecksum(b, "cpu_manager_state") }, want: []string{weight, "kubelet-checkpoint-invalid@ proven"}},
		{name: "cgroup v1", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/cpu,cpuacct/cpu.shares"] = "1024\n"
		}, want: []string{"cgroup-v1-unsupported@ proven"}},
		{name: "its checkpoints only", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.nodes, b.events = nil, nil
			b.forget("nodes/smt2/configz.json")
		}, want: []string{well}, lacks: []string{"the limits of all pods"}},
		{name: "its object only", on: throttledPod, edit: onlyAPI, want: []string{"evidence-missing@ proven"}},
		{name: "a checkpoint without a checksum", on: throttledPod, edit: func(b *bundle) {
			file := b.root("var/lib/kubelet/cpu_manager_state")
			head, _, _ := strings.Cut(b.files[file], `,"checksum"`)
			b.files[file] = head + "}"
		}, want: []string{weight, well}, lacks: []string{`"source":"node:/var/lib/kubelet/cpu_manager_state","field":"policyName","value":"static","means":"checksum verified"`}},
	}}
	for i := range f.cases {
		f.cases[i].node = true
	}
	return f
}

// evidence are pods of which little is known, or which never ran.
func evidenceFamily() family {
	missing := "evidence-missing@ proven"
	reject := recorded("smt2-k612/bundle", "shop", "reject-smt")
	return family{name: "evidence", codes: []report.Code{report.EvidenceMissing, report.RefusalUnexplained, report.CrashLoopBackOff, report.MemoryHealthy, report.CPUNotThrottled}, cases: []ruleCase{
		{name: "the API alone", on: throttledPod, edit: onlyAPI, want: []string{missing}, text: []string{"neither healthy nor ill", "node smt2"}},
		{name: "its place known, its cgroups not", on: throttledPod, edit: (*bundle).forgetTree, want: []string{missing}},
		{name: "one pod and nothing else", on: throttledPod, edit: func(b *bundle) {
			onlyAPI(b)
			b.nodes, b.events = nil, nil
		}, want: []string{missing}},
		{name: "a pod without a node", on: throttledPod, edit: func(b *bundle) {
			b.pod().Spec.NodeName, b.pod().Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}, want: []string{missing}, text: []string{"not assigned to a node"}},
		{name: "a pod that ended well", on: throttledPod, edit: func(b *bundle) {
			onlyAPI(b)
			b.pod().Status.Phase = corev1.PodSucceeded
			b.status("app").State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
		}, want: []string{missing}, text: []string{"phase Succeeded"}},
		{name: "a node of cgroup v1 says so instead", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/cpu,cpuacct/cpu.shares"] = "1024\n"
		}, want: nil},
		{name: "everything known", on: exclusivePod, want: []string{"cpu-not-throttled@app proven", "memory-healthy@ proven"}},

		{name: "refused at admission", on: reject, want: nil},
		{name: "refused for want of CPUs", on: reject, edit: func(b *bundle) {
			b.pod().Status.Reason, b.pod().Status.Message = "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000, used: 3000, capacity: 6000"
		}, want: nil},
		{name: "evicted", on: reject, edit: withEviction, want: nil},
		{name: "past its deadline before it started", on: reject, edit: func(b *bundle) {
			b.pod().Status.Reason, b.pod().Status.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
		}, want: []string{missing}},
		{name: "ended after it ran", on: throttledPod, edit: func(b *bundle) {
			onlyAPI(b)
			b.pod().Status.Phase, b.pod().Status.Reason = corev1.PodFailed, "Terminated"
			b.pod().Status.Message = "Pod was terminated in response to imminent node shutdown."
			b.status("app").State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 143}}
		}, want: []string{missing}},

		{name: "in back-off", on: oomPod, want: []string{"crash-loop-backoff@app proven"}, text: []string{"waits 5m0s after its end at 2026-11-30T07:00:05Z", "was due at 2026-11-30T07:05:05Z"}},
		{name: "in back-off, the next start to come", on: podLimitPod, want: []string{"crash-loop-backoff@b proven"}, text: []string{"is due at 2026-11-30T07:08:57Z"}},
		{name: "in back-off, a hostile message", on: oomPod, edit: func(b *bundle) {
			b.status("app").State.Waiting.Message = "back-off 99999999999999999999h\x1b[2J restarting\x00 <script>" + strings.Repeat("9", 200)
		}, want: []string{"crash-loop-backoff@app likely"}, text: []string{"does not say for how long"}},
		{name: "in back-off, a delay below zero", on: oomPod, edit: func(b *bundle) {
			b.status("app").State.Waiting.Message = "back-off -5m0s restarting failed container=app"
		}, want: []string{"crash-loop-backoff@app likely"}},
		{name: "in back-off, no end known", on: oomPod, edit: func(b *bundle) { b.status("app").LastTerminationState = corev1.ContainerState{} }, want: []string{"crash-loop-backoff@app likely"}},
		{name: "in back-off, the end without a time", on: oomPod, edit: func(b *bundle) { b.end("app").FinishedAt.Reset() }, want: []string{"crash-loop-backoff@app likely"}, lacks: []string{"0001-01-01"}},
		{name: "waiting for its image", on: oomPod, edit: func(b *bundle) {
			b.status("app").State.Waiting.Reason, b.status("app").State.Waiting.Message = "ImagePullBackOff", "Back-off pulling image"
		}, want: nil},
		{name: "running again", on: oomPod, edit: func(b *bundle) {
			b.status("app").State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, want: nil},
	}}
}
