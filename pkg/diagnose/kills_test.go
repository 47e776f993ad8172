package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// oomStatus are the codes that say how a kill and a container's status go
// together.
func oomStatusFamily() family {
	limit, group := "container-memory-limit-oom@app proven", "oom-group-kill@app proven"
	stale, child := "oom-reason-stale@app proven", "oom-victim-child@app proven"
	return family{name: "OOM and status", codes: []report.Code{report.OOMReasonStale, report.OOMVictimChild, report.OOMGroupKill, report.ContainerMemoryLimitOOM, report.OOMCauseUnproven, report.Exit137NotOOM, report.MemoryHealthy}, cases: []ruleCase{
		{name: "OOMKilled with exit code 137", on: oomPod, want: []string{limit, group}, text: []string{"oom_kill 32 − oom_group_kill 16 = 16 processes"}},
		{name: "OOMKilled with exit code 1", on: oomPod, edit: withEnd("app", reasonOOMKilled, 1), want: []string{limit, group, stale}, text: []string{"exit code 1 at 2026-11-30T07:00:05Z"}},
		{name: "OOMKilled with exit code 0", on: oomPod, edit: withEnd("app", reasonOOMKilled, 0), want: []string{limit, group, stale}},
		{name: "exit code 1 without the reason", on: oomPod, edit: inOrder(withoutLog, withPodEvents(nil, nil), withEnd("app", "Error", 1)), want: nil},
		{name: "OOMKilled with exit code 1 and nothing else known", on: oomPod, edit: inOrder(onlyAPI, withEnd("app", reasonOOMKilled, 1)), want: []string{"oom-cause-unproven@app proven", stale}},

		{name: "a child died", on: childPod, want: []string{limit, child}, text: []string{"2 processes were OOM-killed"}},
		{name: "a child died, the reason unknown to the status, no log", on: childPod, edit: withoutLog, want: []string{limit, child}},
		{name: "the container died and runs again", on: childPod, edit: func(b *bundle) { b.memEvents("app", nil, nil) }, want: []string{limit}},
		{name: "a child died in a container that ended later", on: childPod, edit: func(b *bundle) {
			s := b.status("app")
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reasonOOMKilled, ExitCode: 0, ContainerID: s.ContainerID, FinishedAt: b.pod().CreationTimestamp}}
		}, want: []string{limit, stale}},
		{name: "a child died in a group of the application's", on: childPod, edit: inOrder(withoutLog, withNestedJob(counted{"oom": 2, "oom_kill": 2}, counted{"oom": 2, "oom_kill": 2}, "67108864")), want: nil},

		{name: "a whole container died", on: oomGroupPod, want: []string{limit, group}, text: []string{"16 group kills in 25 OOMs, counted as 82 kills"}},
		{name: "single processes died", on: oomGroupPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 25, "oom_kill": 82}, counted{"oom": 25})), want: []string{limit}},
		{name: "a kernel that does not count group kills", on: oomGroupPod, edit: inOrder(withoutLog, func(b *bundle) {
			for k := range 2 {
				b.files[b.file(k, b.dir(podGroup), "memory.events")] = "low 0\nhigh 0\nmax 610\noom 25\noom_kill 82\n"
			}
		}), want: []string{limit}},
	}}
}

// probed puts the kubelet's event of a failed probe at a moment of the
// container's last run, counted from its end.
func withProbe(kind string, before time.Duration) func(*bundle) {
	return func(b *bundle) {
		b.events = nil
		b.event("Killing", "app", "Container app failed "+kind+" probe, will be restarted", b.end("app").FinishedAt.Add(-before))
		b.event("Unhealthy", "app", strings.ToUpper(kind[:1])+kind[1:]+" probe failed: HTTP probe failed with statuscode: 500", b.end("app").FinishedAt.Add(-before))
	}
}

// exits are ends by SIGKILL.
func exitsFamily() family {
	proven, likely := "exit-137-not-oom@app proven", "exit-137-not-oom@app likely"
	limit := "container-memory-limit-oom@app proven"
	noEvents := func(b *bundle) { b.events = []corev1.Event{} }
	// earlier is a log of the whole run, with a kill of an earlier container.
	earlier := func(more string) func(*bundle) {
		return func(b *bundle) {
			log := b.block("pod-6.12", strings.Repeat("0f", 32))
			b.kernelLog("[    1.000000] Linux version 6.12\n", log, more, "[ 4200.000000] eth0: link up\n")
		}
	}
	bare := "Out of memory: Killed process 4711 (server) total-vm:1329244kB, anon-rss:69596kB, file-rss:0kB, shmem-rss:1548kB, UID:0 pgtables:216kB oom_score_adj:985\n"
	return family{name: "SIGKILL", codes: []report.Code{
		report.Exit137NotOOM, report.ContainerMemoryLimitOOM, report.PodMemoryLimitOOM, report.NodeOOM, report.OOMCauseUnproven, report.OOMReasonStale, report.MemoryHealthy,
	}, cases: []ruleCase{
		{name: "a liveness probe, whose event is of an earlier run", on: sigkillPod, want: []string{likely}, text: []string{"its liveness probe failed", "earlier runs"}},
		{name: "a liveness probe in this run", on: sigkillPod, edit: withProbe("liveness", 20*time.Second), want: []string{proven}, text: []string{"its liveness probe failed"}, lacks: []string{"earlier runs"}},
		{name: "a startup probe in this run", on: sigkillPod, edit: withProbe("startup", 20*time.Second), want: []string{proven}, text: []string{"its startup probe failed"}},
		{name: "a readiness probe, which kills nobody", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			b.event("Unhealthy", "app", "Readiness probe failed: HTTP probe failed with statuscode: 503", b.end("app").FinishedAt.Add(-10*time.Second))
		}, want: []string{proven}, text: []string{"who sent the signal is not in the data"}, lacks: []string{"probe failed, SIGTERM"}},
		{name: "the probe of another container", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			b.event("Killing", "proxy", "Container proxy failed liveness probe, will be restarted", b.end("app").FinishedAt.Add(-10*time.Second))
		}, want: []string{proven}, text: []string{"who sent the signal is not in the data"}},
		{name: "the grace period ran out", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			b.event("Killing", "app", "Stopping container app", b.end("app").FinishedAt.Add(-12*time.Second))
			b.pod().Spec.TerminationGracePeriodSeconds = new(int64)
			*b.pod().Spec.TerminationGracePeriodSeconds = 10
		}, want: []string{proven}, text: []string{"told to stop at 2026-11-30T07:02:00Z", "grace period of 10 s", "12s later"}},
		{name: "an eviction", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			withEviction(b)
			b.status("app").State = corev1.ContainerState{Terminated: b.end("app")}
		}, want: []string{proven}, text: []string{"the kubelet evicted the pod", "Threshold quantity: 100Mi"}},
		{name: "an eviction, the pod's cgroup gone", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			withEviction(b)
			b.status("app").State = corev1.ContainerState{Terminated: b.end("app")}
			onlyAPI(b)
		}, want: []string{likely}},
		{name: "an unknown sender", on: sigkillPod, edit: noEvents, want: []string{proven}, text: []string{"who sent the signal is not in the data", `"value":"0"`}},
		{name: "an unknown sender, and nothing else known", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			onlyAPI(b)
		}, want: nil},
		{name: "an exit without a time", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			b.end("app").FinishedAt.Reset()
		}, want: []string{proven}, lacks: []string{"0001-01-01"}},
		{name: "a lost status", on: sigkillPod, edit: withEnd("app", "ContainerStatusUnknown", 137), want: nil},
		{name: "exit code 143", on: sigkillPod, edit: withEnd("app", "Error", 143), want: nil},
		{name: "the log has the kill of this very container", on: sigkillPod, edit: func(b *bundle) {
			withPodEvents(counted{"oom": 1, "oom_kill": 2, "oom_group_kill": 1}, counted{"oom": 1})(b)
			b.kernelLog(b.block("pod-6.12", b.endedID("app")))
		}, want: []string{limit}},
		{name: "the log has the kill of this very container, a probe failed too, no counters", on: sigkillPod, edit: inOrder(withProbe("liveness", 20*time.Second), func(b *bundle) {
			b.forgetTree()
			b.kernelLog(b.block("pod-6.12", b.endedID("app")))
		}), want: []string{limit}},
		{name: "kills before this exit, which the log has whole", on: sigkillPod, edit: inOrder(withProbe("liveness", 20*time.Second), withPodEvents(counted{"oom": 1, "oom_kill": 1}, counted{"oom": 1}), earlier("")),
			want: []string{limit, proven}, text: []string{"none of them of this container"}},
		{name: "kills before this exit, no log", on: sigkillPod, edit: inOrder(withoutLog, withProbe("liveness", 20*time.Second), withPodEvents(counted{"oom": 1, "oom_kill": 1}, counted{"oom": 1})),
			want: []string{limit}},
		{name: "kills before this exit, and a kill at its end without a report", on: sigkillPod, edit: inOrder(noEvents, withPodEvents(counted{"oom": 2, "oom_kill": 2}, counted{"oom": 2}), func(b *bundle) {
			// at.json says that 4113.95 s after boot it was 07:05:09.
			up := 4113.95 - time.Date(2026, 11, 30, 7, 5, 9, 0, time.UTC).Sub(b.end("app").FinishedAt.Time).Seconds()
			earlier(fmt.Sprintf("[ %.6f] Memory cgroup out of memory%s", up, strings.TrimPrefix(bare, "Out of memory")))(b)
		}), loose: true, not: []string{proven}},
		{name: "a neighbour's kills", on: sidecarPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 3, "oom_kill": 3}, nil), func(b *bundle) {
			at := b.status("app").State.Running.StartedAt
			b.status("app").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137, StartedAt: metav1.NewTime(at.Add(-time.Minute)), FinishedAt: at, ContainerID: "containerd://" + strings.Repeat("0a", 32)}
			b.status("proxy").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, StartedAt: metav1.NewTime(at.Add(-time.Minute)), FinishedAt: at, ContainerID: "containerd://" + strings.Repeat("0b", 32)}
			b.event("Killing", "app", "Container app failed liveness probe, will be restarted", at.Add(-20*time.Second))
		}), loose: true, not: []string{limit}},
		{name: "a deletion long after the exit", on: sigkillPod, edit: func(b *bundle) {
			noEvents(b)
			at := metav1.NewTime(b.end("app").FinishedAt.Add(time.Hour))
			b.pod().DeletionTimestamp = &at
		}, want: []string{proven}, lacks: []string{"is being deleted"}},
		{name: "a child's OOM kill an hour before a probe's kill", on: sigkillPod, edit: inOrder(withProbe("liveness", 20*time.Second), oldKill("app")),
			want: []string{limit, proven}, text: []string{"before its end", "was killed 20s later"}},
		{name: "a child's OOM kill an hour before the end, which is reported as OOMKilled", on: sigkillPod, edit: inOrder(noEvents, withEnd("app", "OOMKilled", 137), oldKill("app")),
			want: []string{limit, "oom-reason-stale@app likely", likely}, lacks: []string{"the last exit was at"}},
		{name: "a deadline", on: sigkillPod, edit: inOrder(noEvents, onlyAPI, func(b *bundle) {
			b.pod().Status.Phase, b.pod().Status.Reason = corev1.PodFailed, "DeadlineExceeded"
		}), want: []string{likely}, text: []string{"activeDeadlineSeconds ran out"}},
		{name: "a node that was shut down", on: sigkillPod, edit: inOrder(noEvents, onlyAPI, func(b *bundle) {
			b.pod().Status.Phase, b.pod().Status.Reason = corev1.PodFailed, "Terminated"
			b.pod().Status.Message = "Pod was terminated in response to imminent node shutdown."
		}), want: []string{likely}, text: []string{"the node was shut down"}},
	}}
}

// oldKill has the kernel log hold an OOM kill of the very container that ended,
// an hour before its end.
func oldKill(name string) func(*bundle) {
	return func(b *bundle) {
		b.end(name).StartedAt = metav1.NewTime(time.Date(2026, 11, 30, 5, 57, 0, 0, time.UTC))
		b.kernelLog(b.block("pod-6.12", b.endedID(name)))
		withPodEvents(counted{"oom": 1, "oom_kill": 1}, counted{"oom": 1})(b)
	}
}

// evicted makes the pod one that the kubelet has evicted.
func withEviction(b *bundle) {
	b.pod().Status.Phase, b.pod().Status.Reason = corev1.PodFailed, "Evicted"
	b.pod().Status.Message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 93Mi. "
}
