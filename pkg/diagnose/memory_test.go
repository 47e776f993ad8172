package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

var cachePod = recorded("smt2-k612/bundle", "shop", "cache") // 96 % of 128Mi in use, nearly all page cache

// holds makes memory.stat and memory.current of a group say what is given, of
// bytes of kernel memory nothing but what is left of current.
func withStat(who string, current, anon, file, shmem int64) func(*bundle) {
	return func(b *bundle) {
		b.put(who, "memory.current", strings.TrimSpace(decimalText(current)))
		b.set(who, "memory.stat", map[string]int64{
			"anon": anon, "file": file, "shmem": shmem, "kernel": current - anon - file, "sock": 0,
			"inactive_file": file - shmem, "active_file": 0, "unevictable": 0, "slab_reclaimable": 0,
		})
	}
}

const mi = 1 << 20

func fillsFamily() family {
	codes := []report.Code{report.MemoryFilledByAnon, report.MemoryFilledByTmpfs, report.MemoryFilledByPageCache, report.MemoryFilledByKernel}
	anon, tmpfs := "memory-filled-by-anon@app proven", "memory-filled-by-tmpfs@app proven"
	cache, kernel := "memory-filled-by-page-cache@app proven", "memory-filled-by-kernel@app proven"
	// logged takes the statistics of a kernel's report for the last OOM.
	logged := func(block string, values counted) func(*bundle) {
		return func(b *bundle) {
			text := b.block(block, b.endedID("app"))
			for key, value := range values {
				before, rest, ok := strings.Cut(text, "] "+key+" ")
				if !ok {
					b.t.Fatalf("%s has no %s", block, key)
				}
				_, after, _ := strings.Cut(rest, "\n")
				text = before + "] " + key + " " + decimalText(value) + "\n" + after
			}
			b.kernelLog(text)
		}
	}
	return family{name: "what filled it", codes: codes, cases: []ruleCase{
		{name: "anon at the OOM", on: oomPod, want: []string{anon}, text: []string{"at the OOM of 2026-11-30T07:00:04Z"}},
		{name: "anon at the OOM, as another kernel's report has it", on: oomPod, edit: logged("pod-6.12", nil), want: []string{anon}, text: []string{"66953216"}},
		{name: "tmpfs at the OOM", on: oomPod, edit: logged("tmpfs-6.12", nil), want: []string{tmpfs}},
		{name: "tmpfs and anon at the OOM", on: oomPod, edit: logged("container-6.1", nil), want: []string{tmpfs}, text: []string{"41943040"}},
		{name: "page cache at the OOM", on: oomPod, edit: logged("pod-6.12", counted{"anon": 4 * mi, "file": 58 * mi}), want: []string{cache}},
		{name: "kernel memory at the OOM", on: oomPod, edit: logged("pod-6.12", counted{"anon": 20 * mi, "kernel": 44 * mi, "slab_unreclaimable": 40 * mi}), want: []string{kernel}, text: []string{"slab_unreclaimable 40Mi"}},
		{name: "sockets at the OOM", on: oomPod, edit: logged("pod-6.12", counted{"anon": 20 * mi, "sock": 44 * mi}), want: []string{kernel}, text: []string{"sock 44Mi"}},
		{name: "a global OOM, whose report has no statistics", on: oomPod, edit: onlyLog("global-6.12"), want: nil},

		{name: "anon now", on: throttledPod, edit: inOrder(withStat("app", 60*mi, 58*mi, 0, 0), withStat(podGroup, 63*mi, 58*mi, 0, 0)), want: []string{anon}, text: []string{"60817408", "now"}},
		{name: "anon now, with room left", on: throttledPod, edit: inOrder(withStat("app", 48*mi, 46*mi, 0, 0), withStat(podGroup, 50*mi, 46*mi, 0, 0)), want: nil},
		{name: "anon now, no limit", on: recorded("smt2-k612/bundle", "shop", "besteffort"), want: nil},
		{name: "tmpfs left by a container that is gone", on: tmpfsPod, want: []string{tmpfs}, text: []string{"volume c (sizeLimit 200Mi)", "61456384"}},
		{name: "a fifth of the pod's limit is tmpfs that outlived its writer", on: tmpfsPod, edit: inOrder(withoutLog, withStat(podGroup, 16*mi, 1*mi, 14*mi, 14*mi)), want: []string{tmpfs}},
		{name: "less than a fifth", on: tmpfsPod, edit: inOrder(withoutLog, withStat(podGroup, 14*mi, 1*mi, 12*mi, 12*mi)), want: nil},
		{name: "tmpfs now", on: throttledPod, edit: inOrder(withStat("app", 60*mi, 20*mi, 38*mi, 38*mi), withStat(podGroup, 63*mi, 20*mi, 38*mi, 38*mi)), want: []string{tmpfs}},
		{name: "page cache now", on: cachePod, want: []string{cache}, text: []string{"112.78Mi of 123.19Mi"}},
		{name: "page cache at 95 % of the limit", on: cachePod, edit: inOrder(withStat("app", 127*mi, 5*mi, 121*mi, 0), withStat(podGroup, 128*mi, 5*mi, 121*mi, 0)), want: []string{cache}},
		{name: "kernel memory now", on: throttledPod, edit: inOrder(withStat("app", 60*mi, 20*mi, 4*mi, 0), withStat(podGroup, 63*mi, 20*mi, 4*mi, 0)), want: []string{kernel}},
		{name: "memory.stat breaks off before shmem", on: cachePod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				for k := range 2 {
					text, _, _ := strings.Cut(b.get(k, who, "memory.stat"), "sock ")
					b.files[b.file(k, b.dir(who), "memory.stat")] = text
				}
			}
		}, loose: true, not: []string{cache}},
		{name: "amounts that do not add up to a number", on: cachePod, edit: func(b *bundle) {
			for k := range 2 {
				text := b.get(k, "app", "memory.stat")
				_, rest, _ := strings.Cut(text, "\n")
				b.files[b.file(k, b.dir("app"), "memory.stat")] = "anon 18446744073709551615\n" + rest
			}
			withStat(podGroup, 10*mi, 5*mi, 1*mi, 0)(b)
		}, want: nil},
	}}
}

// health is memory-healthy and what it must not stand beside.
func healthFamily() family {
	well := "memory-healthy@ proven"
	one := func(key string) func(*bundle) {
		return func(b *bundle) {
			b.memEvents("app", counted{key: 1}, counted{key: 1})
			b.memEvents(podGroup, counted{key: 1}, nil)
		}
	}
	return family{name: "healthy memory", codes: []report.Code{report.MemoryHealthy}, cases: []ruleCase{
		{name: "room left", on: throttledPod, want: []string{well}, text: []string{"4.71Mi (4935680 bytes) of its limit of 64Mi"}},
		{name: "full of page cache", on: cachePod, want: []string{well}},
		{name: "the limit was met and reclaim coped", on: throttledPod, edit: one("max"), want: []string{well}},
		{name: "no limit", on: recorded("smt2-k612/bundle", "shop", "besteffort"), want: []string{well}},
		{name: "memory.high made it wait", on: throttledPod, edit: one("high"), want: nil},
		{name: "memory.high of the pod made it wait", on: throttledPod, edit: withPodEvents(counted{"high": 3}, counted{"high": 3}), want: nil},
		{name: "an OOM without a kill", on: throttledPod, edit: one("oom"), want: nil},
		{name: "a kill", on: throttledPod, edit: one("oom_kill"), want: nil},
		{name: "kills of containers that are gone", on: throttledPod, edit: withPodEvents(counted{"oom": 1, "oom_kill": 1}, nil), want: nil},
		{name: "a kill that only the log has", on: throttledPod, edit: func(b *bundle) { b.kernelLog(b.block("global-6.12", strings.Repeat("0f", 32))) }, want: nil},
		{name: "near its limit", on: throttledPod, edit: withStat("app", 54*mi, 52*mi, 0, 0), want: nil},
		{name: "near its limit, of which half is tmpfs", on: throttledPod, edit: withStat("app", 60*mi, 26*mi, 26*mi, 26*mi), want: nil},
		{name: "just below 80 % of its limit", on: throttledPod, edit: withStat("app", 51*mi, 50*mi, 0, 0), want: []string{well}},
		{name: "after exit code 137", on: throttledPod, edit: func(b *bundle) {
			b.status("app").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137}
		}, want: nil},
		{name: "after exit code 1", on: throttledPod, edit: func(b *bundle) {
			b.status("app").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}
		}, want: []string{well}},
		{name: "after OOMKilled, the counters made anew", on: throttledPod, edit: func(b *bundle) {
			b.status("app").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reasonOOMKilled, ExitCode: 137}
		}, want: nil},
		{name: "two containers near the limit of their pod", on: podLevelPod, edit: inOrder(withStat("a", 92*mi, 90*mi, 0, 0), withStat("b", 92*mi, 90*mi, 0, 0), withStat(podGroup, 188*mi, 182*mi, 0, 0)), want: nil},
		{name: "tmpfs of a container that is gone fills the pod", on: throttledPod, edit: withStat(podGroup, 62*mi, 5*mi, 56*mi, 56*mi), want: nil},
		{name: "memory.events without the keys", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				b.put(who, "memory.events", "low 0\nhigh 0")
				b.put(who, "memory.events.local", "low 0\nhigh 0")
			}
		}, want: nil},
		{name: "memory.current not read", on: throttledPod, edit: func(b *bundle) { b.drop("app", "memory.current") }, want: nil},
		{name: "memory.stat not read, nearly full", on: cachePod, edit: func(b *bundle) { b.drop("app", "memory.stat") }, want: nil},
		{name: "the pod's memory.events not read", on: throttledPod, edit: func(b *bundle) { b.drop(podGroup, "memory.events", "memory.events.local") }, want: []string{well}},
		{name: "no memory.events at all", on: throttledPod, edit: func(b *bundle) {
			b.drop(podGroup, "memory.events", "memory.events.local")
			b.drop("app", "memory.events", "memory.events.local")
		}, want: nil},
	}}
}
