package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// The recorded sample lasts 30.92 s.
const sampleUsec = 30_920_000

// uses makes a group hold anon, file and shmem, and of kernel memory 1Mi, all
// of its page cache inactive.
func (b *bundle) uses(who string, anon, file, shmem int64) {
	b.t.Helper()
	b.put(who, "memory.current", fmt.Sprint(anon+file+1<<20))
	b.set(who, "memory.stat", map[string]int64{"anon": anon, "file": file, "shmem": shmem, "kernel": 1 << 20, "sock": 0,
		"inactive_file": file - shmem, "active_file": 0, "unevictable": 0, "slab_reclaimable": 0})
}

// stalls makes memory.pressure say that tasks waited in percent of the sample,
// or where there is no second one of the last 10 s.
func (b *bundle) stalls(who string, some, full int64) {
	b.t.Helper()
	for i, k := range b.samples() {
		text := ""
		for _, l := range []struct {
			kind    string
			percent int64
		}{{"some", some}, {"full", full}} {
			text += fmt.Sprintf("%s avg10=%d.00 avg60=0.00 avg300=0.00 total=%d\n", l.kind, l.percent, 7+int64(i)*l.percent*sampleUsec/100)
		}
		b.putAt(k, who, "memory.pressure", strings.TrimSuffix(text, "\n"))
	}
}

// counts makes an event of a group, local and in the tree, start at from and
// grow by by.
func (b *bundle) counts(who, key string, from, by int64) {
	b.t.Helper()
	for i, k := range b.samples() {
		for _, file := range []string{"memory.events", "memory.events.local"} {
			b.setAt(k, who, file, map[string]int64{key: from + int64(i)*by})
		}
	}
}

// refaults makes pages that were taken back be needed again.
func (b *bundle) refaults(who string, file, anon int64) {
	b.t.Helper()
	for i, k := range b.samples() {
		b.setAt(k, who, "memory.stat", map[string]int64{"workingset_refault_file": 100_000 + int64(i)*file, "workingset_refault_anon": int64(i) * anon})
	}
}

// swaps gives a container of the bundle swap, of a node that has free of 2Gi.
func (b *bundle) swaps(who, max string, used, free int64) {
	b.t.Helper()
	b.put(who, "memory.swap.max", max)
	b.put(who, "memory.swap.current", fmt.Sprint(used))
	b.files[b.root("proc/meminfo")] = fmt.Sprintf("MemTotal:        6084868 kB\nSwapTotal:       2097152 kB\nSwapFree:        %d kB\n", free>>10)
}

// throttledHigh is container app at its memory.high of 96Mi: request 64Mi, limit
// 128Mi, factor 0.5. What it holds is its heap.
func throttledHigh(b *bundle) {
	b.config(map[string]any{"memoryThrottlingFactor": 0.5})
	b.put("app", "memory.high", "100663296")
	b.uses("app", 95<<20, 0, 0)
	b.uses(podGroup, 97<<20, 0, 0)
	b.counts("app", "high", 5000, 4321)
	b.stalls("app", 90, 80)
}

// thrashes is container app whose limit is full of cache that it needs.
func thrashes(b *bundle) {
	b.uses("app", 20<<20, 106<<20, 0)
	b.uses(podGroup, 22<<20, 104<<20, 0)
	b.counts("app", "max", 700, 1234)
	b.refaults("app", 50_000, 0)
	b.stalls("app", 30, 12)
}

func memoryPressureFamily() family {
	high, near, thrash, well := "memory-high-throttled@app proven", "memory-near-limit@app proven", "memory-reclaim-thrash@app proven", "memory-healthy@ proven"
	after := func(first func(*bundle), then func(*bundle)) func(*bundle) {
		return func(b *bundle) {
			first(b)
			then(b)
		}
	}
	heap := func(anon int64) func(*bundle) {
		return func(b *bundle) {
			b.uses("app", anon, 0, 0)
			b.uses(podGroup, anon, 0, 0)
		}
	}
	return family{name: "memory pressure", codes: []report.Code{report.MemoryHighThrottled, report.MemoryNearLimit, report.MemoryReclaimThrash, report.MemoryHealthy}, cases: []ruleCase{
		{name: "at memory.high with nothing to take", on: cachePod, edit: throttledHigh, want: []string{high},
			text: []string{"memory.high of 96Mi (100663296 bytes)", "9321 times", "4321 of them in the sample", "67108864 + (134217728 − 67108864) × 0.5 = 100663296", "67108864 + (100663296 − 67108864) / 0.5 = 134217728", `"field":"memoryThrottlingFactor","value":"0.5"`}},
		{name: "at memory.high, one reading", on: cachePod, edit: after(throttledHigh, (*bundle).oneReading), want: []string{high}, text: []string{"90 % of the last 10 s"}},
		{name: "at memory.high, one reading, no PSI", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.oneReading()
			b.drop("app", "memory.pressure")
		}), want: []string{"memory-high-throttled@app likely"}},
		{name: "at memory.high, the cgroup's other figures not read", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.oneReading()
			b.drop("app", "memory.pressure", "memory.stat")
		}), want: []string{"memory-high-throttled@app possible"}},
		{name: "at memory.high without memory.events.local", on: cachePod, edit: after(throttledHigh, func(b *bundle) { b.drop("app", "memory.events.local") }), want: []string{high}},
		{name: "page cache above memory.high", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.uses("app", 5<<20, 90<<20, 0)
			b.stalls("app", 0, 0)
		}), want: nil},
		{name: "page cache above memory.high, no PSI", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.uses("app", 5<<20, 90<<20, 0)
			b.drop("app", "memory.pressure")
		}), want: nil},
		{name: "memory.high met in the past", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.uses("app", 20<<20, 0, 0)
			b.counts("app", "high", 5000, 0)
		}), want: nil},
		{name: "memory.high never met", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.uses("app", 20<<20, 0, 0)
			b.uses(podGroup, 22<<20, 0, 0)
			b.counts("app", "high", 0, 0)
			b.stalls("app", 0, 0)
		}), want: []string{well}},
		{name: "waiting for memory, but not at memory.high", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.uses("app", 20<<20, 0, 0)
			b.counts("app", "high", 0, 0)
		}), want: []string{well}},
		{name: "swap left to take the heap", on: cachePod, edit: after(throttledHigh, func(b *bundle) {
			b.swaps("app", "67108864", 0, 2<<30)
			b.drop("app", "memory.pressure")
		}), want: nil},
		{name: "memory.high of a kubelet that is no more", on: cachePod, edit: func(b *bundle) {
			// 67108864 + 67108864 × 0.9, down to a page; 1.37 writes none.
			throttledHigh(b)
			b.config(map[string]any{"memoryThrottlingFactor": nil})
			b.put("app", "memory.high", "127504384")
			b.uses("app", 121<<20, 0, 0)
			b.uses(podGroup, 122<<20, 0, 0)
		}, want: []string{high}, text: []string{"0.9, the default up to 1.36", "Recreate the pod"}},
		{name: "memory.high that no kubelet wrote", on: cachePod, edit: after(throttledHigh, func(b *bundle) { b.config(map[string]any{"memoryThrottlingFactor": 0.7}) }),
			want: []string{high}, text: []string{"MemoryHigh"}},
		{name: "memory.high of the pod", on: podLevelPod, edit: func(b *bundle) {
			b.put(podGroup, "memory.high", "100663296")
			b.uses(podGroup, 95<<20, 0, 0)
			b.counts(podGroup, "high", 5, 10)
			b.stalls(podGroup, 50, 50)
		}, want: []string{"memory-high-throttled@ proven"}},

		{name: "heap near the limit", on: cachePod, edit: heap(120 << 20), want: []string{near}, text: []string{"121Mi (126877696 bytes)", "94.5 %", "anon 125829120 + shmem 0 + (kernel 1048576 − slab_reclaimable 0) + sock 0 = 126877696"}},
		{name: "heap near the limit, one reading", on: cachePod, edit: after(heap(120<<20), (*bundle).oneReading), want: []string{near}},
		{name: "heap below nine tenths", on: cachePod, edit: heap(113 << 20), want: nil},
		{name: "heap below eight tenths", on: cachePod, edit: heap(100 << 20), want: []string{well}},
		{name: "tmpfs near the limit", on: cachePod, edit: func(b *bundle) {
			b.uses("app", 20<<20, 98<<20, 98<<20)
			b.uses(podGroup, 22<<20, 98<<20, 98<<20)
		}, want: []string{near}},
		{name: "page cache near the limit", on: cachePod, want: []string{well}, text: []string{"kubectl top shows 10.43Mi", "working set"}},
		{name: "heap near the limit, which was met with an OOM", on: cachePod, edit: after(heap(120<<20), func(b *bundle) {
			b.counts("app", "oom", 1, 0)
			b.counts("app", "oom_kill", 1, 0)
			b.counts(podGroup, "oom", 1, 0)
			b.counts(podGroup, "oom_kill", 1, 0)
		}), want: nil},
		{name: "heap near the limit, with swap to go to", on: cachePod, edit: after(heap(120<<20), func(b *bundle) { b.swaps("app", "67108864", 0, 2<<30) }), want: nil},
		{name: "heap near the limit, its swap full", on: cachePod, edit: after(heap(120<<20), func(b *bundle) { b.swaps("app", "67108864", 67108864, 1<<30) }), want: []string{near}},
		{name: "heap near the limit, the node's swap full", on: cachePod, edit: after(heap(120<<20), func(b *bundle) { b.swaps("app", "67108864", 0, 0) }), want: []string{near}},
		{name: "memory.stat not read", on: cachePod, edit: after(heap(120<<20), func(b *bundle) {
			b.drop("app", "memory.stat")
			b.drop(podGroup, "memory.stat")
		}), want: nil},
		{name: "a memory.stat of few keys", on: cachePod, edit: after(heap(120<<20), func(b *bundle) {
			b.put("app", "memory.stat", "anon 125829120\nfile 40960\nshmem 0\nkernel 4000000")
			b.drop(podGroup, "memory.stat")
		}), want: []string{near}, text: []string{"at least 120Mi"}},
		{name: "two containers near the limit of their pod", on: podLevelPod, edit: func(b *bundle) {
			b.uses("a", 90<<20, 0, 0)
			b.uses("b", 90<<20, 0, 0)
			b.uses(podGroup, 182<<20, 0, 0)
		}, want: []string{"memory-near-limit@ proven"}},
		{name: "tmpfs of a container that is gone fills the pod", on: cachePod, edit: func(b *bundle) {
			b.uses("app", 5<<20, 0, 0)
			b.uses(podGroup, 6<<20, 118<<20, 118<<20)
		}, want: []string{near}, text: []string{"The pod's cgroup holds"}},
		{name: "no limit", on: recorded("smt2-k612/bundle", "shop", "besteffort"), want: []string{well}},
		{name: "a Java machine whose heap is too large", on: cachePod, edit: after(heap(120<<20), func(b *bundle) {
			b.container("app").Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Dpassword=hunter2 -Xmx100m"}}
		}), want: []string{near}, text: []string{"leaves 28Mi for metaspace", `"value":"-Xmx100m"`}},

		{name: "a limit too small for its cache", on: cachePod, edit: thrashes, want: []string{thrash}, text: []string{"1234 times", "50000 pages × 4096 bytes", "30 % of the sample"}},
		{name: "counted at the pod's group alone", on: cachePod, edit: after(thrashes, func(b *bundle) {
			b.counts("app", "max", 0, 0)
			b.counts(podGroup, "max", 700, 1234)
			b.refaults(podGroup, 50_000, 0)
			b.stalls(podGroup, 30, 12)
		}), want: []string{thrash}},
		{name: "cache that is read once", on: cachePod, edit: after(thrashes, func(b *bundle) { b.refaults("app", 0, 0) }), want: []string{well}},
		{name: "refaults that cost no time", on: cachePod, edit: after(thrashes, func(b *bundle) { b.stalls("app", 0, 0) }), want: []string{well}},
		{name: "refaults, but not for its limit", on: cachePod, edit: after(thrashes, func(b *bundle) { b.counts("app", "max", 700, 0) }), want: []string{well}},
		{name: "an OOM in the sample", on: cachePod, edit: after(thrashes, func(b *bundle) { b.counts("app", "oom", 0, 1) }), want: nil},
		{name: "a limit too small for its cache, no PSI", on: cachePod, edit: after(thrashes, func(b *bundle) { b.drop("app", "memory.pressure") }), want: []string{"memory-reclaim-thrash@app likely"}},
		{name: "a few refaults, no PSI", on: cachePod, edit: after(thrashes, func(b *bundle) {
			b.drop("app", "memory.pressure")
			b.refaults("app", 50, 0)
		}), want: []string{well}},
		{name: "a limit too small for its cache, one reading", on: cachePod, edit: after(thrashes, (*bundle).oneReading), want: []string{"memory-reclaim-thrash@app likely"}, text: []string{"of the last 10 s"}},
		{name: "heap that travels to swap and back", on: cachePod, edit: after(thrashes, func(b *bundle) {
			b.uses("app", 120<<20, 6<<20, 0)
			b.uses(podGroup, 122<<20, 4<<20, 0)
			b.swaps("app", "67108864", 50<<20, 1<<30)
			b.refaults("app", 10, 40_000)
		}), want: []string{thrash}, text: []string{"swapped memory"}},
	}}
}

func swapFamily() family {
	limited := "swap-limited@app proven"
	// 67108864 / 6230904832 × 2147483648, request of the node's memory.
	given := func(b *bundle) {
		b.config(map[string]any{"memorySwap": map[string]any{"swapBehavior": "LimitedSwap"}})
		b.swaps("app", "23126016", 4<<20, 2<<30)
	}
	return family{name: "swap", codes: []report.Code{report.SwapLimited}, cases: []ruleCase{
		{name: "in proportion to the request", on: cachePod, edit: given, want: []string{limited}, text: []string{"(23126016 bytes)", "67108864 / 6230904832 × 2147483648", "4Mi there"}},
		{name: "the limit of swap met", on: cachePod, edit: func(b *bundle) {
			given(b)
			b.put("app", "memory.swap.events", "high 0\nmax 17\nfail 17")
		}, want: []string{limited}, text: []string{"17 times the limit kept a page in memory"}},
		{name: "NoSwap", on: cachePod, want: nil},
		{name: "LimitedSwap, but its request is its limit", on: cachePod, edit: func(b *bundle) {
			given(b)
			b.container("app").Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
			b.status("app").AllocatedResources[corev1.ResourceMemory] = resource.MustParse("128Mi")
			b.status("app").Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
			b.put("app", "memory.swap.max", "0")
		}, want: nil},
		{name: "a container older than the setting", on: cachePod, edit: func(b *bundle) {
			given(b)
			b.put("app", "memory.swap.max", "0")
		}, want: []string{"swap-limited@app likely"}, text: []string{"gives 23126016"}},
		{name: "the node's swap not known", on: cachePod, edit: func(b *bundle) {
			given(b)
			delete(b.files, b.root("proc/meminfo"))
		}, want: []string{"swap-limited@app likely"}},
		{name: "a limit of swap where the kubelet gives none", on: cachePod, edit: func(b *bundle) { b.swaps("app", "23126016", 0, 2<<30) }, want: []string{"swap-limited@app likely"}},
		{name: "no limit of swap at all", on: cachePod, edit: func(b *bundle) { b.swaps("app", "max", 0, 2<<30) }, want: nil},
		{name: "no swap controller", on: cachePod, edit: func(b *bundle) { b.drop("app", "memory.swap.max") }, want: nil},
	}}
}
