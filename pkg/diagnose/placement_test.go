package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// wholeApp makes the recorded sidecar pod one whose app would own CPUs if it
// were not for the change of its sidecar.
func wholeApp(change func(app, proxy *corev1.Container)) func(*bundle) {
	return func(b *bundle) {
		b.container("app").Resources = corev1.ResourceRequirements{Requests: amounts("cpu", "2", "memory", "64Mi"), Limits: amounts("cpu", "2", "memory", "64Mi")}
		b.status("app").AllocatedResources = amounts("cpu", "2", "memory", "64Mi")
		b.pod().Status.QOSClass = ""
		change(b.container("app"), b.container("proxy"))
	}
}

// policyNone makes the node one whose CPU Manager does nothing.
func withPolicyNone(b *bundle) {
	b.config(map[string]any{"cpuManagerPolicy": "none"})
	b.files[b.root("var/lib/kubelet/cpu_manager_state")] = `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`
}

func poolsFamily() family {
	return family{name: "pools", codes: []report.Code{
		report.ExclusiveCPUs, report.SharedNotGuaranteed, report.SharedFractionalCPU, report.SharedNoLimit, report.SharedPodLevel, report.SharedPolicyNone, report.SidecarBreaksGuaranteed,
	}, cases: []ruleCase{
		{name: "2 whole CPUs of a Guaranteed pod", on: exclusivePod, want: []string{"exclusive-cpus@app proven"}, text: []string{"CPUs 2-3 on NUMA node 0, 1 of 1 core whole", "268435456"}},
		{name: "one CPU", on: recorded("numa4-k61/bundle", "mill", "one"), want: []string{"exclusive-cpus@app proven"}, text: []string{"owns CPU 1 on NUMA node 0"}},
		{name: "CPUs of two NUMA nodes", on: recorded("numa4-k61/bundle", "mill", "wide"), want: []string{"exclusive-cpus@app proven"}, text: []string{"NUMA nodes 1,3", "4 of 4 cores whole"}},
		{name: "not Guaranteed", on: throttledPod, want: []string{"shared-pool-not-guaranteed@app proven"}, text: []string{"Burstable", "cpu: request 10m, limit 50m"}},
		{name: "BestEffort", on: recorded("smt2-k612/bundle", "shop", "besteffort"), want: []string{"shared-pool-not-guaranteed@app proven"}},
		{name: "200m of a Guaranteed pod", on: fractionPod, want: []string{"shared-pool-fractional-cpu@app proven"}, text: []string{"0-1,6-7"}},
		{name: "1500m of a Guaranteed pod", on: fractionPod, edit: func(b *bundle) {
			b.status("app").AllocatedResources = amounts("cpu", "1500m", "memory", "128Mi")
		}, want: []string{"shared-pool-fractional-cpu@app proven"}},
		{name: "pod-level resources, no CPU request", on: podLevelPod, want: []string{"shared-pool-no-limit@a proven", "shared-pool-fractional-cpu@b proven"}},
		{name: "pod-level resources, a whole CPU", on: podLevelPod, edit: func(b *bundle) {
			b.container("b").Resources.Requests = amounts("cpu", "1", "memory", "32Mi")
			b.status("b").AllocatedResources = amounts("cpu", "1", "memory", "32Mi")
		}, want: []string{"shared-pool-no-limit@a proven", "shared-pool-pod-level@b proven"}},
		{name: "pod-level resources, PodLevelResourceManagers on", on: podLevelPod, edit: func(b *bundle) {
			b.config(map[string]any{"featureGates": map[string]bool{"PodLevelResourceManagers": true}})
		}, want: []string{"shared-pool-pod-level@a proven", "shared-pool-pod-level@b proven"}, text: []string{"requests equal to its limits"}},
		{name: "policy none", on: exclusivePod, edit: withPolicyNone, want: []string{"shared-pool-policy-none@app proven"}},
		{name: "policy none of a Burstable pod", on: throttledPod, edit: withPolicyNone, want: []string{"shared-pool-policy-none@app proven"}},
		{name: "policy none by the checkpoint, no configuration", on: throttledPod, edit: func(b *bundle) {
			withPolicyNone(b)
			b.forget("nodes/smt2/configz.json")
		}, want: []string{"shared-pool-policy-none@app proven"}},
		{name: "a policy that nobody read", on: exclusivePod, edit: func(b *bundle) {
			b.forget("nodes/smt2/configz.json")
			b.forget(b.root("var"))
		}, want: nil},
		{name: "entitled, and not in the checkpoint", on: exclusivePod, edit: func(b *bundle) {
			b.files[b.root("var/lib/kubelet/cpu_manager_state")] = `{"policyName":"static","defaultCpuSet":"0-7"}`
		}, want: nil},
		{name: "a pod that has ended", on: throttledPod, edit: func(b *bundle) { b.pod().Status.Phase = corev1.PodFailed }, want: nil},
		{name: "an init container that is done", on: sidecarPod, want: []string{"shared-pool-fractional-cpu@app proven", "shared-pool-fractional-cpu@proxy proven"}},

		{name: "a sidecar without a memory limit", on: sidecarPod, edit: wholeApp(func(_, proxy *corev1.Container) { delete(proxy.Resources.Limits, corev1.ResourceMemory) }),
			want: []string{"sidecar-breaks-guaranteed@app proven", "shared-pool-not-guaranteed@app proven", "shared-pool-not-guaranteed@proxy proven"},
			text: []string{"init container proxy (memory: request 64Mi, limit none)"}},
		{name: "an init container that is done, with another request", on: sidecarPod, edit: wholeApp(func(_, _ *corev1.Container) {}), want: []string{"shared-pool-fractional-cpu@proxy proven"}},
		{name: "the init container's request is below its limit", on: sidecarPod, edit: func(b *bundle) {
			wholeApp(func(_, _ *corev1.Container) {})(b)
			b.container("setup").Resources.Requests = amounts("cpu", "100m", "memory", "96Mi")
		}, want: []string{"sidecar-breaks-guaranteed@app proven", "shared-pool-not-guaranteed@app proven", "shared-pool-not-guaranteed@proxy proven"}, text: []string{"init container setup"}},
		{name: "the app breaks it itself", on: sidecarPod, edit: wholeApp(func(app, _ *corev1.Container) { app.Resources.Requests = amounts("cpu", "2", "memory", "32Mi") }),
			want: []string{"shared-pool-not-guaranteed@app proven", "shared-pool-not-guaranteed@proxy proven"}},
		{name: "a sidecar breaks it for an app of half a CPU", on: sidecarPod, edit: wholeApp(func(app, proxy *corev1.Container) {
			app.Resources.Requests, app.Resources.Limits = amounts("cpu", "500m", "memory", "64Mi"), amounts("cpu", "500m", "memory", "64Mi")
			delete(proxy.Resources.Limits, corev1.ResourceMemory)
		}), want: []string{"shared-pool-not-guaranteed@app proven", "shared-pool-not-guaranteed@proxy proven"}},
		{name: "a sidecar breaks it where nobody owns CPUs", on: sidecarPod, edit: inOrder(withPolicyNone, wholeApp(func(_, proxy *corev1.Container) { delete(proxy.Resources.Limits, corev1.ResourceMemory) })),
			want: []string{"shared-pool-policy-none@app proven", "shared-pool-policy-none@proxy proven"}},
	}}
}

func driftFamily() family {
	proven := []string{"cpuset-drift@app proven"}
	cpus := func(set string) func(*bundle) { return func(b *bundle) { b.put("app", "cpuset.cpus", set) } }
	started := func(before time.Duration) func(*bundle) {
		return func(b *bundle) {
			b.status("app").State.Running.StartedAt = metav1.NewTime(time.Date(2026, 11, 30, 7, 5, 9, 0, time.UTC).Add(-before))
		}
	}
	effective := func(set, online string) func(*bundle) {
		return func(b *bundle) {
			b.put("app", "cpuset.cpus", "")
			b.put("app", "cpuset.cpus.effective", set)
			b.files[b.root("sys/devices/system/cpu/online")] = online + "\n"
		}
	}
	return family{name: "drift", codes: []report.Code{report.CPUSetDrift}, cases: []ruleCase{
		{name: "its own CPUs", on: exclusivePod, want: nil},
		{name: "one of its own CPUs", on: exclusivePod, edit: cpus("2"), want: proven, text: []string{"runs on CPUs 2, where the checkpoint says 2-3 (its own CPUs)"}},
		{name: "its own CPUs in another spelling", on: exclusivePod, edit: cpus("2,3"), want: nil},
		{name: "the shared pool", on: throttledPod, want: nil},
		{name: "all CPUs, where the shared pool is less", on: throttledPod, edit: cpus("0-7"), want: proven, text: []string{"0-1,6-7 (the shared pool)"}},
		{name: "an offline CPU in the effective set", on: throttledPod, edit: effective("0-1,6", "0-6"), want: nil},
		{name: "an online CPU missing from the effective set", on: throttledPod, edit: effective("0-1,6", "0-7"), want: proven},
		{name: "started 4 s before the reading", on: throttledPod, edit: inOrder(cpus("0-7"), started(4*time.Second)), want: []string{"cpuset-drift@app possible"}, text: []string{"one reconcile period of 10s"}},
		{name: "started 11 s before the reading", on: throttledPod, edit: inOrder(cpus("0-7"), started(11*time.Second)), want: proven},
		{name: "started just before a bundle without samples", on: throttledPod, edit: func(b *bundle) {
			cpus("0-7")(b)
			b.status("app").State.Running.StartedAt = metav1.NewTime(time.Date(2026, 11, 30, 7, 7, 46, 0, time.UTC))
			for file, text := range b.files {
				if rest, ok := strings.CutPrefix(file, "nodes/smt2/samples/1/"); ok {
					b.files["nodes/smt2/"+rest] = text
				}
			}
			b.forgetKnown("nodes/smt2/samples")
		}, loose: true, not: proven},
		{name: "policy none", on: throttledPod, edit: inOrder(withPolicyNone, cpus("0-7")), want: nil},
		{name: "a corrupt checkpoint", on: throttledPod, edit: func(b *bundle) {
			cpus("0-7")(b)
			spoilChecksum(b, "cpu_manager_state")
		}, want: nil},
		{name: "a container that has ended", on: throttledPod, edit: inOrder(cpus("0-7"), func(b *bundle) {
			b.status("app").State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
		}), want: nil},
		{name: "asked about the node", on: exclusivePod, edit: cpus("2"), node: true, want: proven},
		{name: "asked about the node, its own CPUs", on: exclusivePod, node: true, want: nil},
	}}
}

func checkpointsFamily() family {
	invalid := []string{"kubelet-checkpoint-invalid@ proven"}
	state := func(manager, text string) func(*bundle) {
		return func(b *bundle) { b.files[b.root("var/lib/kubelet/"+manager+"_manager_state")] = text }
	}
	cut := func(manager string) func(*bundle) {
		return func(b *bundle) {
			text := b.files[b.root("var/lib/kubelet/"+manager+"_manager_state")]
			state(manager, text[:len(text)/2])(b)
		}
	}
	f := family{name: "checkpoints", codes: []report.Code{report.KubeletCheckpointInvalid}}
	for _, node := range []bool{false, true} {
		for _, c := range []ruleCase{
			{name: "as recorded", on: exclusivePod, want: nil},
			{name: "a wrong checksum", on: exclusivePod, edit: func(b *bundle) { spoilChecksum(b, "cpu_manager_state") }, want: invalid, text: []string{"12345", "cpu_manager_state"}},
			{name: "a wrong checksum of the Memory Manager", on: exclusivePod, edit: func(b *bundle) { spoilChecksum(b, "memory_manager_state") }, want: invalid, text: []string{"memory_manager_state"}},
			{name: "both", on: exclusivePod, edit: func(b *bundle) {
				spoilChecksum(b, "cpu_manager_state")
				spoilChecksum(b, "memory_manager_state")
			}, want: append(invalid, invalid...)},
			{name: "breaks off", on: exclusivePod, edit: cut("cpu"), want: invalid},
			{name: "breaks off, the Memory Manager's", on: exclusivePod, edit: cut("memory"), want: invalid},
			{name: "empty", on: exclusivePod, edit: state("cpu", ""), want: invalid},
			{name: "not JSON", on: exclusivePod, edit: state("cpu", "\x00\x00\x00"), want: invalid},
			{name: "written under another policy", on: exclusivePod, edit: func(b *bundle) { b.config(map[string]any{"cpuManagerPolicy": "none"}) }, want: invalid,
				text: []string{`configured policy \"none\" differs from state checkpoint policy \"static\"`}},
			{name: "written under another policy of the Memory Manager", on: exclusivePod, edit: func(b *bundle) { b.config(map[string]any{"memoryManagerPolicy": "None"}) }, want: invalid,
				text: []string{`[memorymanager] configured policy \"None\" differs`}},
			{name: "written under a policy that nobody can compare", on: exclusivePod, edit: func(b *bundle) { b.forget("nodes/smt2/configz.json") }, want: nil},
			{name: "not there", on: exclusivePod, edit: func(b *bundle) { b.forgetKnown(b.root("var")) }, want: nil},
			{name: "not collected", on: exclusivePod, edit: func(b *bundle) { b.forget(b.root("var")) }, want: nil},
			{name: "forbidden", on: exclusivePod, edit: func(b *bundle) {
				b.forget(b.root("var"))
				b.files["gaps.json"] = fmt.Sprintf(`[{"path":%q,"reason":"Forbidden","detail":"nodes \"smt2\" is forbidden"}]`, b.root("var/lib/kubelet"))
			}, want: nil},
			{name: "policy none on both sides", on: exclusivePod, edit: withPolicyNone, want: nil},
		} {
			if c.node = node; node {
				c.name = "asked about the node: " + c.name
			}
			f.cases = append(f.cases, c)
		}
	}
	return f
}
