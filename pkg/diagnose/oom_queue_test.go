package diagnose

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// withProcess adds a process of a cgroup to the node's /proc, with 40 kB of page
// tables.
func withProcess(pid int, name, group string, rssKB uint64, adj string) func(*bundle) {
	return func(b *bundle) {
		if group == "app" {
			group = b.dir("app")
		}
		withMeminfo(b)
		dir := b.root(fmt.Sprintf("proc/%d/", pid))
		b.files[dir+"status"] = fmt.Sprintf("Name:\t%s\nPid:\t%d\nVmRSS:\t%d kB\nVmPTE:\t40 kB\nVmSwap:\t0 kB\n", name, pid, rssKB)
		if adj != "" {
			b.files[dir+"oom_score_adj"] = adj + "\n"
			value, _ := strconv.Atoi(adj)
			pages := uint64(smt2Memory / 4096)
			task := cgroup.OOMTask{RSS: rssKB / 4, PgtablesBytes: 40 << 10, Adj: value}
			b.files[dir+"oom_score"] = fmt.Sprintln(cgroup.OOMScore(task.Badness(pages), pages))
		}
		b.files[dir+"cgroup"] = "0::" + group + "\n"
	}
}

// noProcesses takes away the processes that were recorded.
func noProcesses(b *bundle) {
	maps.DeleteFunc(b.files, func(file, _ string) bool {
		rest, ok := strings.CutPrefix(file, b.root("proc/"))
		return ok && rest[0] >= '0' && rest[0] <= '9'
	})
}

func withMeminfo(b *bundle) {
	b.files[b.root("proc/meminfo")] = fmt.Sprintf("MemTotal:        %d kB\nSwapTotal:       0 kB\n", smt2Memory>>10)
}

// oomdLine is systemd-oomd's line about a cgroup.
func oomdLine(at time.Time, group string) string {
	return at.UTC().Format("2006-01-02T15:04:05.000000+0000") + " smt2 systemd-oomd[612]: Killed " + group +
		" due to memory pressure for /kubepods.slice being 61.56% > 60.00% for > 20s with reclaim activity\n"
}

// withOOMD puts systemd-oomd's line about the container's last run into a log.
func withOOMD(file string, group func(*bundle) string, after time.Duration) func(*bundle) {
	return func(b *bundle) {
		b.files["nodes/"+b.node+"/"+file] += oomdLine(b.end("app").FinishedAt.Add(after), group(b))
	}
}

func endedScope(b *bundle) string { return b.dir(podGroup) + "/" + b.scopeName(b.endedID("app")) }

// otherScope is the cgroup of another pod's container.
var otherScope = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(otherUID, "-", "_") + ".slice/cri-containerd-" + strings.Repeat("9", 64) + ".scope"

const hostDaemon = "/system.slice/daemon.service"

func oomQueueFamily() family {
	first := "node-oom-next@app likely"
	app := func(edits ...func(*bundle)) func(*bundle) {
		return inOrder(append([]func(*bundle){noProcesses, withMeminfo}, edits...)...)
	}
	return family{name: "the queue of the OOM killer", codes: []report.Code{
		report.NodeOOMNext,
	}, cases: []ruleCase{
		{name: "the pod's process is the first", on: throttledPod, edit: app(withProcess(500, "labtool", "app", 5876, "995"), withProcess(7, "kubelet", hostDaemon, 90000, "-999")),
			want: []string{first}, text: []string{"process 500 (labtool) of container app", "1469 + 0 + 40960 / 4096 + 995 × (1521217 / 1000) = 1514874", "1000 − 1000 × 33554432 / 6230904832 = 995"}},
		{name: "another pod's is", on: throttledPod, edit: app(withOther("hog", 0, "1"), withProcess(500, "labtool", "app", 5876, "995"), withProcess(501, "eat", otherScope, 4, "1000")), want: nil},
		{name: "a daemon without protection is, before a Guaranteed pod", on: exclusivePod, edit: app(withProcess(500, "labtool", "app", 107020, "-997"), withProcess(7, "daemon", hostDaemon, 300<<10, "0")), want: nil},
		{name: "of equals the younger one", on: throttledPod, edit: app(withOther("hog", 0, "1"), withProcess(500, "labtool", "app", 100, "995"), withProcess(400, "eat", otherScope, 100, "995")), want: []string{first}},
		{name: "never process 1, a kernel thread or one at -1000", on: throttledPod, edit: app(withProcess(1, "systemd", "/init.scope", 99999, "1000"), withProcess(8, "protected", hostDaemon, 5<<20, "-1000"),
			withProcess(500, "labtool", "app", 100, "995"), func(b *bundle) {
				b.files[b.root("proc/2/status")] = "Name:\tkthreadd\n"
				b.files[b.root("proc/2/oom_score_adj")] = "1000\n"
			}), want: []string{first}},
		{name: "no value was read", on: throttledPod, edit: app(withProcess(500, "labtool", "app", 100, "")), want: nil},
		{name: "no total was read", on: throttledPod, edit: inOrder(noProcesses, withProcess(500, "labtool", "app", 100, "995"), func(b *bundle) {
			b.forgetKnown(b.root("proc/meminfo"))
			for _, k := range b.samples() {
				b.forgetKnown(fmt.Sprintf("nodes/smt2/samples/%d/root/proc", k))
			}
		}), want: nil},
		{name: "nothing of /proc was read", on: throttledPod, edit: app(), want: nil},
		{name: "a name with escape codes", on: throttledPod, edit: app(withProcess(500, "a\x1b[2J b", "app", 100, "995")), want: []string{first}, text: []string{`a\\x1b[2J b`}},
		{name: "on the node's report, a daemon is the first", on: exclusivePod, node: true, edit: app(withProcess(500, "labtool", "app", 107020, "-997"), withProcess(7, "daemon", hostDaemon, 300<<10, "0")),
			want: []string{"node-oom-next@ likely"}, text: []string{`"kind":"Node"`, "process 7 (daemon) of the node itself", "use 50.5 ‰ + 0"}},
		{name: "on the node's report", on: throttledPod, node: true, edit: app(withProcess(500, "labtool", "app", 5876, "995")), want: []string{first}},
		{name: "on the node's report, a pod that the API does not show", on: throttledPod, node: true, edit: app(withProcess(500, "eat", otherScope, 5876, "995")), want: []string{"node-oom-next@ likely"}, text: []string{otherUID}},
		{name: "on the node's report, no process", on: throttledPod, node: true, edit: app(), want: nil},
	}}
}

func oomScoreFamily() family {
	adj := "oom-score-adj-differs@app proven"
	return family{name: "oom_score_adj", codes: []report.Code{report.OOMScoreAdjDiffers}, cases: []ruleCase{
		{name: "a lower value", on: throttledPod, edit: inOrder(noProcesses, withProcess(500, "labtool", "app", 100, "-500"), withProcess(501, "child", "app", 100, "995")), want: []string{adj},
			text: []string{"1 of 2 processes", "process 500 (labtool) has -500", "others die in its place", "= 995"}},
		{name: "a higher value", on: throttledPod, edit: withProcess(500, "renderer", "app", 100, "1000"), want: []string{adj}, text: []string{"has 1000", "the kernel kills it before others"}},
		{name: "another value, which the kernel's own figure contradicts", on: throttledPod, edit: inOrder(withProcess(500, "labtool", "app", 100, "995"), func(b *bundle) {
			b.files[b.root("proc/500/oom_score_adj")] = "-995\n"
		}), want: nil},
		{name: "another value, the kernel's own figure not read", on: throttledPod, edit: inOrder(withProcess(500, "labtool", "app", 100, "-500"), func(b *bundle) {
			delete(b.files, b.root("proc/500/oom_score"))
		}), want: []string{"oom-score-adj-differs@app likely"}},
		{name: "the kubelet's value", on: throttledPod, edit: withProcess(500, "labtool", "app", 100, "995"), want: nil},
		{name: "another value in another container", on: throttledPod, edit: withProcess(500, "labtool", otherScope, 100, "-500"), want: nil},
		{name: "another value in the sandbox", on: throttledPod, edit: func(b *bundle) {
			withProcess(500, "pause", b.dir(podGroup)+"/"+b.scopeName(strings.Repeat("8", 64)), 100, "-998")(b)
		}, want: nil},
		{name: "another value below the container", on: throttledPod, edit: func(b *bundle) { withProcess(500, "job", b.dir("app")+"/container/job", 100, "-500")(b) }, want: []string{adj}},
		{name: "another value after the spec was changed", on: throttledPod, edit: inOrder(withProcess(500, "labtool", "app", 100, "-500"), func(b *bundle) { b.pod().Generation = 2 }), want: nil},
		{name: "another value after a resize that an event tells of", on: throttledPod, edit: inOrder(withProcess(500, "labtool", "app", 100, "-500"), func(b *bundle) {
			b.pod().Generation = 0
			b.event("ResizeCompleted", "", "Pod resize completed: {}", captured)
		}), want: nil},
		{name: "another value where the capacity is not known", on: throttledPod, edit: inOrder(withProcess(500, "labtool", "app", 100, "-500"), func(b *bundle) { b.nodes = nil }), want: nil},
		{name: "another value of a Guaranteed pod", on: exclusivePod, edit: withProcess(500, "labtool", "app", 100, "0"), want: []string{adj}, text: []string{"kubelet's -997", "Guaranteed = -997"}},
	}}
}

func oomdFamily() family {
	oomd := "systemd-oomd-kill@app proven"
	return family{name: "systemd-oomd", codes: []report.Code{report.SystemdOOMDKill, report.Exit137NotOOM}, cases: []ruleCase{
		{name: "killed by systemd-oomd", on: sigkillPod, edit: inOrder(withOOMD("kernel.log", endedScope, -time.Second), func(b *bundle) { b.events = []corev1.Event{} }), want: []string{oomd},
			text: []string{"memory pressure for /kubepods.slice being 61.56%", "no memory limit of the pod was met"}},
		{name: "killed by systemd-oomd, by the kubelet's log", on: sigkillPod, edit: withOOMD("kubelet.log", endedScope, -time.Second), want: []string{oomd}, text: []string{"kubelet:log"}},
		{name: "killed by systemd-oomd, by systemd's line", on: sigkillPod, edit: func(b *bundle) {
			b.files["nodes/smt2/kernel.log"] += b.end("app").FinishedAt.UTC().Format("2006-01-02T15:04:05.000000+0000") + " smt2 systemd[1]: " + b.scopeName(b.endedID("app")) + ": systemd-oomd killed 5 process(es) in this unit.\n"
		}, want: []string{oomd}},
		{name: "killed by systemd-oomd, the whole pod", on: sigkillPod, edit: withOOMD("kernel.log", func(b *bundle) string { return b.dir(podGroup) }, -time.Second), want: []string{"systemd-oomd-kill@ likely"}},
		{name: "killed by systemd-oomd, the kernel killed too", on: sigkillPod, edit: inOrder(withoutLog, withOOMD("kernel.log", endedScope, -time.Second), withPodEvents(counted{"oom": 1, "oom_kill": 2}, counted{"oom": 1})),
			want: []string{"systemd-oomd-kill@app likely"}},
		{name: "systemd-oomd killed another pod", on: sigkillPod, edit: withOOMD("kernel.log", func(*bundle) string { return otherScope }, -time.Second), want: []string{"exit-137-not-oom@app likely"}},
		{name: "systemd-oomd killed on another machine", on: throttledPod, edit: func(b *bundle) {
			b.files["nodes/smt2/kernel.log"] = oomdLine(captured, otherScope) + oomdLine(captured, "/kubepods.slice")
		}, want: nil},
		{name: "somebody who says he is systemd-oomd", on: sigkillPod, edit: func(b *bundle) {
			b.files["nodes/smt2/kernel.log"] += strings.Replace(oomdLine(b.end("app").FinishedAt.Time, endedScope(b)), "systemd-oomd[612]:", "app[7]: systemd-oomd[612]:", 1)
		}, want: []string{"exit-137-not-oom@app likely"}},
	}}
}

// withKill makes the kernel log one report of a kill in a pod.
func withKill(name string, change func(*bundle, string) string) func(*bundle) {
	return func(b *bundle) { b.kernelLog(change(b, b.block(name, b.endedID("app")))) }
}

func asItIs(_ *bundle, s string) string { return s }

// systemOOM is the kubelet's event about a process.
func systemOOMEvent(pid int) func(*bundle) {
	return func(b *bundle) {
		b.events = append(b.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "smt2.oom", Namespace: "default"}, LastTimestamp: metav1.NewTime(captured),
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "smt2"}, Reason: "SystemOOM", Message: fmt.Sprintf("System OOM encountered, victim process: eat, pid: %d", pid)})
	}
}

func nodeOOMFamily() family {
	oom, allocatable := "node-oom@ proven", "node-allocatable-oom@ proven"
	elsewhere := func(b *bundle, s string) string {
		return strings.ReplaceAll(s, strings.TrimSuffix(b.dir(podGroup)[strings.LastIndex(b.dir(podGroup), "pod"):], ".slice"), "pod"+strings.ReplaceAll(otherUID, "-", "_"))
	}
	toKubepods := func(b *bundle, s string) string {
		return strings.ReplaceAll(s, "oom_memcg="+b.dir(podGroup), "oom_memcg=/kubepods.slice")
	}
	return family{name: "a node out of memory", codes: []report.Code{report.NodeOOM, report.NodeAllocatableOOM}, cases: []ruleCase{
		{name: "a global kill of a pod that is known", on: oomPod, node: true, edit: withKill("global-6.12", asItIs), want: []string{oom},
			text: []string{"process 333 (eat) of container app of pod shop/oom", "RAM 262014 − reserved 14154 + swap 0 kB / 4 = 247860", "222560 + 0 + 1863680 / 4096 + 1000 × (247860 / 1000) = 470015"}},
		{name: "a global kill of a pod of another machine", on: oomPod, node: true, edit: withKill("global-6.12", elsewhere), want: nil},
		{name: "a global kill of a pod that is gone, which an event names", on: oomPod, node: true, edit: inOrder(withKill("global-6.12", elsewhere), systemOOMEvent(333)), want: []string{oom}, text: []string{otherUID}},
		{name: "an event of another process", on: oomPod, node: true, edit: inOrder(withKill("global-6.12", elsewhere), systemOOMEvent(334)), want: []string{"node-oom@ likely"}, lacks: []string{otherUID}},
		{name: "an event alone", on: oomPod, node: true, edit: inOrder(withoutLog, systemOOMEvent(333)), want: []string{"node-oom@ likely"}},
		{name: "kills at the limits of pods", on: oomPod, node: true, want: nil},
		{name: "a kill for cpuset.mems", on: oomPod, node: true, edit: withKill("cpuset-6.12", asItIs), want: nil},
		{name: "a kill at the limit of all pods", on: oomPod, node: true, edit: withKill("pod-6.12", toKubepods), want: []string{allocatable}, text: []string{"the limit that was met", "6084868Ki − kubeReserved 412Mi = 5798891520"}},
		{name: "the counter of all pods", on: oomPod, node: true, edit: func(b *bundle) { b.memEvents(kubepodsGroup, counted{"oom": 105}, counted{"oom": 2}) }, want: []string{allocatable}, text: []string{`"value":"2"`}},
		{name: "the counter of a QoS class", on: oomPod, node: true, edit: func(b *bundle) { b.memEvents(qosGroup, counted{"oom": 105}, counted{"oom": 2}) }, want: []string{allocatable}, text: []string{"kubepods-burstable.slice"}},
		{name: "why this victim, on the pod's report", on: oomPod, edit: onlyLog("global-6.12"), want: []string{"node-oom@app proven"}, text: []string{"the only one it could kill", "247860"}},
		{name: "why this victim of two, on the pod's report", on: oomPod, edit: withKill("global-6.12", func(_ *bundle, s string) string {
			row := "[  116.456130] [    333]     0   333   707177   222560   222173        0       387  1863680        0          1000 eat\n"
			return strings.Replace(s, row, "[  116.456129] [    200]     0   200   907177   240000   240000        0         0  1863680        0          -997 big one\n"+row, 1)
		}), want: []string{"node-oom@app proven"}, text: []string{"the highest badness of 2", "used more, but has oom_score_adj -997", "use 899.8 ‰ + 1000"}},
		{name: "a table that does not bear out the victim", on: oomPod, edit: withKill("global-6.12", func(_ *bundle, s string) string {
			return strings.Replace(s, "1863680        0          1000 eat\n", "1863680        0          -999 eat\n[  116.456131] [    200]     0   200   907177   240000   240000        0         0  1863680        0          0 big\n", 1)
		}), want: []string{"node-oom@app proven"}, lacks: []string{"highest badness", "points"}},
	}}
}

func reservedFamily() family {
	const file = "var/lib/kubelet/cpu_manager_state"
	noChecksum := func(set, strict, entries string) func(*bundle) {
		return func(b *bundle) {
			b.config(map[string]any{"cpuManagerPolicyOptions": map[string]string{"strict-cpu-reservation": strict}})
			b.files[b.root(file)] = `{"policyName":"static","defaultCpuSet":"` + set + `","entries":` + entries + `,"checksum":0}`
		}
	}
	here := "reserved-cpus-in-shared-pool@ proven"
	inApp := "reserved-cpus-in-shared-pool@app proven"
	return family{name: "reserved CPUs", codes: []report.Code{report.ReservedInSharedPool}, cases: []ruleCase{
		{name: "on the node's report", on: throttledPod, node: true, want: []string{here}, text: []string{"The reserved CPUs 0-1 are part of the shared pool 0-1,6-7", `"value":"not set"`}},
		{name: "half of the pool is not most of it", on: throttledPod, want: nil},
		{name: "most of the pool", on: recorded("numa4-k61/bundle", "mill", "throttled"), want: []string{inApp}, text: []string{"of which 0,4 are reserved", "only 1 CPU (5)"}},
		{name: "a container with CPUs of its own", on: recorded("numa4-k61/bundle", "mill", "one"), want: nil},
		{name: "several containers that share", on: twoAppPod, want: []string{here}, text: []string{"Containers a and b run"}},
		{name: "a pod that was refused", on: recorded("numa4-k61/bundle", "mill", "four"), want: nil},
		{name: "strict reservation", on: throttledPod, node: true, edit: noChecksum("6-7", "true", `{"x":{"c":"2-5"}}`), want: nil},
		{name: "strict reservation, and the pool has them all the same", on: throttledPod, node: true, edit: noChecksum("0-1,6-7", "true", `{"x":{"c":"2-5"}}`), want: nil},
		{name: "CPUs that the machine does not have", on: throttledPod, node: true, edit: noChecksum("0-1,6-15", "false", `{"x":{"c":"2-5"}}`), want: nil},
		{name: "the pool overlaps with an entry", on: throttledPod, node: true, edit: noChecksum("0-2,6-7", "false", `{"x":{"c":"2-5"}}`), want: nil},
		{name: "a reserved CPU is missing from the pool", on: throttledPod, node: true, edit: noChecksum("0,6-7", "false", `{"x":{"c":"1-5"}}`), want: nil},
		{name: "policy none, the checkpoint says static", on: throttledPod, node: true, edit: func(b *bundle) { b.config(map[string]any{"cpuManagerPolicy": "none"}) }, want: nil},
		{name: "what an empty pool means", on: throttledPod, node: true, want: []string{here}, text: []string{"gives them no cpuset", "default cpuset cannot be empty"}},
		{name: "a pool of nothing else", on: throttledPod, node: true, edit: noChecksum("0-1", "false", `{"x":{"c":"2-7"}}`), want: []string{here}, text: []string{"and on no others", "would be empty", `"value":"false"`}},
		{name: "no explicit reservation", on: throttledPod, node: true, edit: func(b *bundle) { b.config(map[string]any{"reservedSystemCPUs": nil}) }, want: nil},
		{name: "one reserved CPU", on: throttledPod, node: true, edit: func(b *bundle) { b.config(map[string]any{"reservedSystemCPUs": "0"}) }, want: []string{here}, text: []string{"The reserved CPU 0 is part of the shared pool", "run on it beside"}},
		{name: "policy none", on: throttledPod, node: true, edit: withPolicyNone, want: nil},
		{name: "no checkpoint", on: throttledPod, node: true, edit: func(b *bundle) { b.forgetKnown(b.root(file)) }, want: nil},
	}}
}

func backOffFamily() family {
	proven, likely := "crash-loop-backoff@app proven", "crash-loop-backoff@app likely"
	message := func(text string) func(*bundle) {
		return func(b *bundle) { b.status("app").State.Waiting.Message = text }
	}
	gates := func(period string, gates map[string]bool) func(*bundle) {
		return func(b *bundle) {
			b.config(map[string]any{"featureGates": gates, "crashLoopBackOff": map[string]string{"maxContainerRestartPeriod": period}})
		}
	}
	ended := func(restarts int32, code int32) func(*bundle) {
		return func(b *bundle) {
			end := *b.end("app")
			end.ExitCode, end.Reason = code, "Error"
			b.status("app").State = corev1.ContainerState{Terminated: &end}
			b.status("app").RestartCount = restarts
		}
	}
	return family{name: "back-off", codes: []report.Code{report.CrashLoopBackOff}, cases: []ruleCase{
		{name: "by the default", on: oomPod, want: []string{proven}, text: []string{"waits 5m0s", "doubles from 10s to at most 5m0s", "maxContainerRestartPeriod"}},
		{name: "by a shorter maximum", on: oomPod, edit: inOrder(message("back-off 40s restarting failed container=app pod=x"), gates("40s", nil)), want: []string{proven}, text: []string{"2026-11-30T07:00:05Z + 40s = 2026-11-30T07:00:45Z", "from 10s to at most 40s"}},
		{name: "by the reduced decay", on: oomPod, edit: inOrder(message("back-off 16s restarting failed container=app pod=x"), gates("5m", map[string]bool{"ReduceDefaultCrashLoopBackOffDecay": true})),
			want: []string{proven}, text: []string{"from 1s to at most 5m0s", "ReduceDefaultCrashLoopBackOffDecay"}, lacks: []string{"not a step"}},
		{name: "by the reduced decay of 1.34", on: oomPod, edit: inOrder(message("back-off 32s restarting failed container=app pod=x"), withKubelet("v1.34.4", func(b *bundle) {
			b.config(map[string]any{"featureGates": map[string]bool{"ReduceDefaultCrashLoopBackOffDecay": true}})
		})), want: []string{proven}, text: []string{"from 1s to at most 1m0s"}},
		{name: "the gate of the maximum off", on: oomPod, edit: gates("40s", map[string]bool{"KubeletCrashLoopBackOffMax": false}), want: []string{proven}, text: []string{"not in force", "at most 5m0s"}},
		{name: "a delay of other settings", on: oomPod, edit: message("back-off 7s restarting failed container=app pod=x"), want: []string{proven}, text: []string{"not a step from 10s to 5m0s"}},
		{name: "no configuration", on: oomPod, edit: func(b *bundle) { b.forget("nodes/smt2/configz.json") }, want: []string{proven}, text: []string{"the configuration was not read"}},
		{name: "the message names no delay", on: oomPod, edit: message(""), want: []string{likely}, text: []string{"does not say for how long", "5m0s after 15 restarts"}},
		{name: "an init container", on: initPod, want: []string{"crash-loop-backoff@migrate proven"}, text: []string{"Init container migrate"}},
		{name: "a start that failed", on: tmpfsPod, want: []string{proven}, text: []string{"StartError, exit code 128"}},
		{name: "a pod that is being evicted", on: oomPod, edit: withTry(lowOnMemory, time.Minute), want: []string{proven}, text: []string{"it starts nothing in it"}},
		{name: "a pod that was evicted", on: oomPod, edit: withStatus(lowOnMemory), want: nil},
		{name: "ended and not yet said to wait", on: oomPod, edit: ended(3, 1), want: []string{likely}, text: []string{"40s after 3 restarts", "2026-11-30T07:00:45Z"}},
		{name: "ended after a long run", on: oomPod, edit: inOrder(ended(3, 1), func(b *bundle) {
			t := b.status("app").State.Terminated
			t.StartedAt = metav1.NewTime(t.FinishedAt.Add(-11 * time.Minute))
		}), want: []string{likely}, text: []string{"0s after 3 restarts"}},
		{name: "ended for the first time", on: oomPod, edit: ended(0, 1), want: nil},
		{name: "ended and not to be restarted", on: oomPod, edit: inOrder(ended(3, 0), func(b *bundle) { b.pod().Spec.RestartPolicy = corev1.RestartPolicyOnFailure }), want: nil},
		{name: "ended, and a rule of its own restarts it", on: oomPod, edit: inOrder(ended(3, 42), func(b *bundle) {
			b.pod().Spec.RestartPolicy = corev1.RestartPolicyNever
			b.container("app").RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "Restart", ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: []int32{7, 42}}}}
		}), want: []string{likely}, text: []string{"Restart on exit codes In [7 42]"}},
		{name: "ended, the pod is being deleted", on: oomPod, edit: inOrder(ended(3, 1), func(b *bundle) { b.pod().DeletionTimestamp = &metav1.Time{Time: captured} }), want: nil},
		{name: "running", on: throttledPod, want: nil},
	}}
}
