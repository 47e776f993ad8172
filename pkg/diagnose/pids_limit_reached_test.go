package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// pids makes the pids controller of a group say what is given; the counters
// grow by refused between the samples.
func (b *bundle) pids(who, max string, current, peak, events, local, refused int64) {
	b.t.Helper()
	b.put(who, "pids.max", max)
	b.put(who, "pids.current", fmt.Sprint(current))
	b.put(who, "pids.peak", fmt.Sprint(peak))
	for i, k := range b.samples() {
		grown := int64(i) * refused
		b.putAt(k, who, "pids.events", fmt.Sprintf("max %d", events+grown*min(events, 1)))
		b.putAt(k, who, "pids.events.local", fmt.Sprintf("max %d", local+grown*min(local, 1)))
	}
}

// olderKernel takes away what 6.1 does not have.
func (b *bundle) olderKernel(groups ...string) {
	for _, who := range groups {
		b.drop(who, "pids.events.local")
	}
}

func pidsFamily() family {
	pod, app := "pids-limit-reached@ proven", "pids-limit-reached@app proven"
	groups := []string{"app", podGroup, qosGroup, kubepodsGroup}
	// atPod is the pod at its podPidsLimit of 100, as 6.12 counts it.
	atPod := func(b *bundle) {
		b.config(map[string]any{"podPidsLimit": 100})
		b.pids("app", "7119", 92, 93, 0, 0, 0)
		b.pids(podGroup, "100", 99, 100, 1500, 1500, 32)
		b.pids(qosGroup, "max", 190, 200, 1500, 0, 32)
		b.pids(kubepodsGroup, "47466", 300, 310, 1500, 0, 32)
	}
	edit := func(edits ...func(*bundle)) func(*bundle) {
		return func(b *bundle) {
			for _, e := range edits {
				e(b)
			}
		}
	}
	kernelLimit := func(tasks, pidMax string) func(*bundle) {
		return func(b *bundle) {
			b.files[b.root("proc/loadavg")] = "1.36 3.49 4.53 2/" + tasks + " 3715089\n"
			b.files[b.root("proc/sys/kernel/pid_max")] = pidMax + "\n"
			b.files[b.root("proc/sys/kernel/threads-max")] = "47466\n"
		}
	}
	return family{name: "processes", codes: []report.Code{report.PIDsLimitReached, report.MemoryHealthy}, cases: []ruleCase{
		{name: "as recorded", on: throttledPod, want: []string{"memory-healthy@ proven"}},
		{name: "the pod's limit", on: throttledPod, edit: atPod, want: []string{pod}, text: []string{"pids.max 100", "1532 forks were refused, 32 of them in the sample", "the most at once was 100", "podPidsLimit of the kubelet"}},
		{name: "the pod's limit, none in the sample", on: throttledPod, edit: edit(atPod, func(b *bundle) { b.pids(podGroup, "100", 40, 100, 1500, 1500, 0) }), want: []string{pod}, text: []string{"none of them in the sample", "now it has 40"}},
		{name: "the pod's limit, one reading", on: throttledPod, edit: edit(atPod, (*bundle).oneReading), want: []string{pod}, text: []string{"since its cgroup was made"}},
		{name: "the pod's limit on 6.1, counted where the process forks", on: throttledPod, edit: edit(atPod, func(b *bundle) {
			b.pids("app", "7119", 92, 93, 1500, 0, 32)
			b.pids(podGroup, "100", 99, 100, 0, 0, 0)
			b.pids(kubepodsGroup, "47466", 300, 310, 0, 0, 0)
			b.olderKernel(groups...)
		}), want: []string{pod}, text: []string{"pids.max 100", "1532 forks were refused", "counted at container app"}},
		{name: "the container's limit", on: throttledPod, edit: func(b *bundle) {
			b.pids("app", "50", 50, 50, 3, 3, 0)
			b.pids(podGroup, "max", 57, 57, 3, 0, 0)
		}, want: []string{app}, text: []string{"DefaultTasksMax", "3 forks were refused"}},
		{name: "the container's limit on 6.1", on: throttledPod, edit: func(b *bundle) {
			b.pids("app", "50", 20, 50, 3, 0, 0)
			b.pids(podGroup, "max", 27, 57, 0, 0, 0)
			b.olderKernel(groups...)
		}, want: []string{app}},
		{name: "without a peak it is likely the least limit", on: throttledPod, edit: edit(atPod, func(b *bundle) {
			b.pids("app", "7119", 30, 93, 5, 0, 0)
			b.pids(podGroup, "100", 37, 100, 0, 0, 0)
			b.olderKernel(groups...)
			for _, who := range groups {
				b.drop(who, "pids.peak")
			}
		}), want: []string{"pids-limit-reached@ likely"}},
		{name: "full now, and no counter says more", on: throttledPod, edit: edit(atPod, func(b *bundle) {
			b.pids(podGroup, "100", 100, 100, 0, 0, 0)
			b.drop(podGroup, "pids.events", "pids.events.local")
		}), want: []string{"pids-limit-reached@ likely"}, text: []string{"the next fork is refused"}},
		{name: "was full once, and nothing was refused", on: throttledPod, edit: func(b *bundle) { b.pids(podGroup, "100", 40, 100, 0, 0, 0) }, want: []string{"memory-healthy@ proven"}},
		{name: "near the limit", on: throttledPod, edit: func(b *bundle) { b.pids(podGroup, "100", 99, 99, 0, 0, 0) }, want: []string{"memory-healthy@ proven"}},
		{name: "all pods' limit, in the sample", on: throttledPod, edit: func(b *bundle) { b.pids(kubepodsGroup, "47466", 47400, 47466, 9, 9, 5) }, want: []string{"pids-limit-reached@ likely"}, text: []string{"all pods below it share it"}},
		{name: "all pods' limit, long ago", on: throttledPod, edit: func(b *bundle) { b.pids(kubepodsGroup, "47466", 300, 47466, 9, 9, 0) }, want: []string{"memory-healthy@ proven"}},
		{name: "refused in a group that is gone", on: throttledPod, edit: func(b *bundle) { b.pids(podGroup, "max", 12, 60, 9, 0, 0) }, want: []string{app}, text: []string{"9 forks were refused in a container of the pod that is gone"}},
		{name: "refused in a container that is gone, by the kernel log", on: throttledPod, edit: func(b *bundle) {
			b.files["nodes/"+b.node+"/kernel.log"] = "[ 4000.000000] cgroup: fork rejected by pids controller in " + b.dir(podGroup) + "/cri-containerd-" + strings.Repeat("0", 64) + ".scope\n"
		}, want: []string{"pids-limit-reached@ likely"}, text: []string{"fork rejected by pids controller"}},
		{name: "refused in another pod, by the kernel log", on: throttledPod, edit: func(b *bundle) {
			b.files["nodes/"+b.node+"/kernel.log"] = "[ 4000.000000] cgroup: fork rejected by pids controller in /kubepods.slice/kubepods-pod00000000_0000_0000_0000_000000000000.slice\n"
		}, want: []string{"memory-healthy@ proven"}},
		{name: "crun's group below the container", on: throttledPod, edit: edit(atPod, func(b *bundle) {
			b.pids("app", "7119", 92, 93, 0, 0, 0)
			b.pids(podGroup, "100", 99, 100, 0, 0, 0)
			b.pids(kubepodsGroup, "47466", 300, 310, 0, 0, 0)
			b.olderKernel(groups...)
			b.nested("app", "container", map[string]string{"pids.max": "max\n", "pids.current": "92\n", "pids.peak": "93\n", "pids.events": "max 7\n"})
		}), want: []string{pod}, text: []string{"7 forks were refused"}},
		{name: "the kernel's limit", on: throttledPod, edit: kernelLimit("32700", "32768"), want: []string{"pids-limit-reached@ likely"}, text: []string{"32700 / 32768"}},
		{name: "below the kernel's limit", on: throttledPod, edit: kernelLimit("12000", "32768"), want: []string{"memory-healthy@ proven"}},
		{name: "a pod that has ended", on: throttledPod, edit: edit(atPod, func(b *bundle) { b.pod().Status.Phase = "Failed" }), want: nil},
		{name: "the node: all pods' limit", on: throttledPod, node: true, edit: func(b *bundle) { b.pids(kubepodsGroup, "47466", 300, 47466, 9, 9, 0) }, want: []string{pod}, text: []string{"9 forks were refused"}},
		{name: "the node: full now", on: throttledPod, node: true, edit: func(b *bundle) { b.pids(kubepodsGroup, "47466", 47466, 47466, 0, 0, 0) }, want: []string{"pids-limit-reached@ likely"}},
		{name: "the node: the kernel's limit", on: throttledPod, node: true, edit: kernelLimit("47466", "4194304"), want: []string{"pids-limit-reached@ likely"}},
		{name: "the node: one pod's limit", on: throttledPod, node: true, edit: atPod, want: nil},
	}}
}

// A loadavg or a limit that is no such thing is no limit met.
func TestKernelPIDsOfBrokenFiles(t *testing.T) {
	for _, loadavg := range []string{"", "\n", "0 0 0 5 1\n", "0 0 0 2/x 1\n", "0 0 0 2/-5 1\n", "0 0 0 2/99999999999999999999 1\n", "0 0 0\n", "\x00"} {
		b := throttledPod(t)
		b.files[b.root("proc/loadavg")] = loadavg
		b.files[b.root("proc/sys/kernel/pid_max")] = "1\n"
		for _, f := range b.explain(Options{}).Findings {
			if f.Code == report.PIDsLimitReached {
				t.Errorf("%q: %s", loadavg, f.Summary)
			}
		}
	}
}
