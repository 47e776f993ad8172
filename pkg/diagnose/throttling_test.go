package diagnose

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Recorded pods that most cases start from.
var (
	throttledPod = recorded("smt2-k612/bundle", "shop", "throttled") // one container, limit 50m, busy
	podLevelPod  = recorded("smt2-k612/bundle", "shop", "podlevel")  // containers a (busy) and b (idle), 200m for both
	sidecarPod   = recorded("smt2-k612/bundle", "shop", "sidecar")   // app 300m, sidecar proxy 100m; both idle
	twoAppPod    = recorded("numa4-k61/bundle", "mill", "two-app")   // a (busy) and b (idle), 100m each; Linux 6.1
	exclusivePod = recorded("smt2-k612/bundle", "shop", "excl-a")    // owns CPUs 2-3
	fractionPod  = recorded("smt2-k612/bundle", "shop", "frac")      // Guaranteed, 200m, busy
)

// young are the counters of a container without a past worth speaking of.
var young = cpuCounts{periods: 1000, usageUsec: 1_000_000}

// both gives the container app and the pod's group, which repeats its limit,
// the same counters.
func both(from, by cpuCounts) func(*bundle) {
	return func(b *bundle) {
		b.cpu("app", from, by)
		b.cpu(podGroup, from, by)
	}
}

// busy is a sample of 300 periods, each cut short, with a quota of 5 ms.
var busy = cpuCounts{300, 300, 28_500_000, 1_500_000}

// throttledFrom makes a group above the container throttle in every period of
// the sample, while the container's own quota does nothing.
func throttledAt(group, cpuMax string) func(*bundle) {
	return func(b *bundle) {
		both(young, cpuCounts{300, 0, 0, 600_000})(b)
		b.put(group, "cpu.max", cpuMax)
		b.cpu(group, cpuCounts{}, cpuCounts{300, 300, 28_500_000, 1_500_000})
		b.inherits("app", 20_000_000)
	}
}

func throttlingFamily() family {
	quota := "cpu-quota-throttled@app proven"
	burst := "cpu-quota-burst-throttled@app proven"
	parent := "cpu-parent-throttled@app proven"
	history := "cpu-throttle-history-only@app proven"
	quiet := "cpu-not-throttled@app proven"
	return family{name: "throttling", codes: []report.Code{
		report.CPUQuotaOnExclusiveCPUs, report.CPUQuotaThrottled, report.CPUQuotaBurstThrottled, report.CPUParentThrottled,
		report.CPUNotThrottled, report.CPUThrottleHistoryOnly, report.CPULimitBelowNodeCPUs, report.CgroupV1Unsupported,
	}, cases: []ruleCase{
		{name: "a busy thread on 50m", on: throttledPod, want: []string{quota}, text: []string{"300 of 300 periods (100 %)", "5 ms", "at least 0.075 CPU"}},
		{name: "2 in 5 periods cut short, half of the quota used", on: throttledPod, edit: both(young, cpuCounts{300, 120, 8_400_000, 750_000}),
			want: []string{burst}, text: []string{"120 of 300 periods (40 %)", "50 % of the quota"}},
		{name: "94.9 % of the quota used", on: throttledPod, edit: both(young, cpuCounts{300, 120, 8_400_000, 1_423_500}), want: []string{burst}},
		{name: "95 % of the quota used", on: throttledPod, edit: both(young, cpuCounts{300, 120, 8_400_000, 1_425_000}), want: []string{quota}},
		{name: "half of the quota used, yet every period cut short", on: throttledPod, edit: both(young, cpuCounts{300, 300, 8_400_000, 750_000}), want: []string{quota}},
		{name: "less than 1 % of the periods", on: throttledPod, edit: both(young, cpuCounts{300, 2, 100_000, 750_000}), want: []string{quiet}, text: []string{"2 of 300 periods"}},
		{name: "1 % of the periods", on: throttledPod, edit: both(young, cpuCounts{300, 3, 100_000, 750_000}), want: []string{burst}},
		{name: "stalls of several CPUs in one period", on: throttledPod, edit: both(young, cpuCounts{300, 300, 80_000_000, 1_500_000}),
			want: []string{quota}, text: []string{"at least 3 CPUs were throttled together"}},

		{name: "50 periods", on: throttledPod, edit: both(young, cpuCounts{50, 50, 4_750_000, 250_000}), want: []string{quota}},
		{name: "49 periods", on: throttledPod, edit: both(young, cpuCounts{49, 49, 4_655_000, 245_000}), want: []string{"cpu-quota-throttled@app likely"}},
		{name: "9 periods of a young container", on: throttledPod, edit: both(cpuCounts{}, cpuCounts{9, 9, 855_000, 45_000}), want: nil},
		{name: "9 periods of an old container", on: throttledPod, edit: both(cpuCounts{20_000, 19_000, 1_800_000_000, 95_000_000}, cpuCounts{9, 9, 855_000, 45_000}), want: nil},
		{name: "a container that was idle in the sample", on: throttledPod, edit: both(young, cpuCounts{}), want: []string{quiet}},
		{name: "throttled before, idle now", on: throttledPod, edit: both(cpuCounts{20_000, 19_000, 1_800_000_000, 95_000_000}, cpuCounts{}), want: []string{history},
			text: []string{"19000 of 20000 periods (95 %)", "0 of 0 periods"}},
		{name: "throttled before, busy below the limit now", on: throttledPod, edit: both(cpuCounts{20_000, 19_000, 1_800_000_000, 95_000_000}, cpuCounts{300, 0, 0, 600_000}), want: []string{history}},
		{name: "under 1 % of its life", on: throttledPod, edit: both(cpuCounts{20_000, 190, 18_000_000, 50_000_000}, cpuCounts{300, 0, 0, 600_000}), want: []string{quiet}},
		{name: "only the pod's meter of the one limit moves", on: throttledPod, edit: func(b *bundle) {
			b.cpu("app", young, cpuCounts{300, 0, 0, 1_500_000})
			b.cpu(podGroup, young, busy)
			b.inherits("app", 28_000_000)
		}, want: []string{quota}, text: []string{"at the pod's cgroup"}},

		{name: "one reading", on: throttledPod, edit: (*bundle).oneReading, want: []string{"cpu-quota-throttled@app likely"}, text: []string{"since the container's cgroup was made"}},
		{name: "one reading of a quiet life", on: throttledPod, edit: func(b *bundle) {
			both(young, cpuCounts{})(b)
			b.oneReading()
		}, want: []string{"cpu-not-throttled@app likely"}},
		{name: "samples out of order", on: throttledPod, edit: func(b *bundle) {
			a, z := "nodes/smt2/samples/0/at.json", "nodes/smt2/samples/1/at.json"
			b.files[a], b.files[z] = b.files[z], b.files[a]
		}, want: []string{"cpu-quota-throttled@app likely"}},
		{name: "counters went down", on: throttledPod, edit: both(cpuCounts{20_000, 19_000, 1_800_000_000, 95_000_000}, cpuCounts{-19_000, -18_500, -1_790_000_000, -94_000_000}), want: nil},
		{name: "the container's counters went down", on: sidecarPod, edit: func(b *bundle) {
			b.cpu("app", cpuCounts{20_000, 19_000, 1_800_000_000, 95_000_000}, cpuCounts{-19_000, -18_500, -1_790_000_000, -94_000_000})
		}, want: []string{"cpu-throttle-history-only@proxy proven"}},
		{name: "nr_periods wraps below zero", on: throttledPod, edit: func(b *bundle) {
			both(cpuCounts{2_147_483_500, 2_147_483_500, 1_800_000_000, 95_000_000}, cpuCounts{})(b)
			for _, who := range []string{"app", podGroup} {
				b.setAt(1, who, "cpu.stat", cpuCounts{2_147_483_500 + 300 - 1<<32, 2_147_483_500 + 300 - 1<<32, 1_828_500_000, 96_500_000}.keys())
			}
		}, want: []string{quota}, text: []string{"300 of 300 periods"}},
		{name: "one reading of a wrapped nr_periods", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				b.setAt(1, who, "cpu.stat", cpuCounts{-7, -20, 1_828_500_000, 96_500_000}.keys())
			}
			b.oneReading()
		}, want: nil},
		{name: "cpu.max changed between the samples", on: throttledPod, edit: func(b *bundle) {
			b.putAt(0, "app", "cpu.max", "10000 100000")
			b.putAt(0, podGroup, "cpu.max", "10000 100000")
		}, want: nil},
		{name: "the period changed between the samples", on: throttledPod, edit: func(b *bundle) {
			b.putAt(0, "app", "cpu.max", "5000 50000")
			b.putAt(0, podGroup, "cpu.max", "5000 50000")
		}, want: nil},
		{name: "the cgroup was made between the samples", on: throttledPod, edit: func(b *bundle) {
			for file := range b.files {
				if strings.Contains(file, "samples/0/") && strings.Contains(file, b.dir(podGroup)+"/") {
					delete(b.files, file)
				}
			}
		}, want: []string{"cpu-quota-throttled@app likely"}},
		{name: "cpu.stat breaks off before nr_periods", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				for k := range 2 {
					text, _, _ := strings.Cut(b.get(k, who, "cpu.stat"), "nr_periods")
					b.files[b.file(k, b.dir(who), "cpu.stat")] = text
				}
			}
		}, loose: true, not: []string{quiet}},

		{name: "a pod-level limit above a container without one", on: podLevelPod, edit: func(b *bundle) {
			b.put("a", "cpu.max", "max 100000")
			b.put("b", "cpu.max", "max 100000")
			for _, name := range []string{"a", "b"} {
				b.cpu(name, cpuCounts{}, cpuCounts{0, 0, 0, 1})
			}
			b.inherits("a", 25_000_000)
		}, want: []string{"cpu-parent-throttled@a proven", "cpu-not-throttled@b proven"}, text: []string{"the pod's cgroup"}},
		{name: "a pod-level limit that the containers name too", on: podLevelPod, want: []string{"cpu-quota-throttled@a proven"}},
		{name: "a sidecar pod whose sum is spent by the app", on: sidecarPod, edit: func(b *bundle) {
			b.cpu("app", young, cpuCounts{300, 0, 0, 8_000_000})
			b.cpu(podGroup, young, cpuCounts{300, 280, 20_000_000, 12_000_000})
			b.inherits("app", 20_000_000)
			b.inherits("proxy", 0)
		}, want: []string{parent}, text: []string{"280 of 300 periods (93.3 %)", "proxy used 0 CPU"}},
		{name: "the sidecar waits too", on: sidecarPod, edit: func(b *bundle) {
			b.cpu("app", young, cpuCounts{300, 0, 0, 8_000_000})
			b.cpu("proxy", young, cpuCounts{300, 0, 0, 2_900_000})
			b.cpu(podGroup, young, cpuCounts{300, 280, 20_000_000, 12_000_000})
			b.inherits("app", 20_000_000)
			b.inherits("proxy", 10_000_000)
		}, want: []string{parent, "cpu-parent-throttled@proxy proven"}},
		{name: "the pod throttles, both containers idle", on: sidecarPod, edit: func(b *bundle) {
			b.cpu("app", young, cpuCounts{})
			b.cpu("proxy", young, cpuCounts{})
			b.cpu(podGroup, young, cpuCounts{300, 280, 20_000_000, 12_000_000})
			b.inherits("app", 0)
			b.inherits("proxy", 0)
		}, want: []string{quiet, "cpu-not-throttled@proxy proven"}},
		{name: "the container's own quota throttles it, the pod's too", on: twoAppPod, want: []string{"cpu-quota-throttled@a proven"}},
		{name: "no cpu.stat.local, waiting by PSI", on: twoAppPod, edit: func(b *bundle) {
			b.cpu("a", young, cpuCounts{300, 0, 0, 3_000_000})
			b.cpu("b", young, cpuCounts{})
			b.cpu(podGroup, young, cpuCounts{300, 290, 20_000_000, 3_000_000})
			b.waits("a", 10_000_000)
			b.waits("b", 0)
		}, want: []string{"cpu-parent-throttled@a likely", "cpu-not-throttled@b proven"}},
		{name: "no cpu.stat.local, no PSI", on: twoAppPod, edit: func(b *bundle) {
			b.cpu("a", young, cpuCounts{300, 0, 0, 3_000_000})
			b.cpu("b", young, cpuCounts{})
			b.cpu(podGroup, young, cpuCounts{300, 290, 20_000_000, 3_000_000})
			b.drop("a", "cpu.pressure")
			b.drop("b", "cpu.pressure")
		}, want: []string{"cpu-parent-throttled@a likely", "cpu-not-throttled@b proven"}},
		{name: "a quota on kubepods", on: throttledPod, edit: throttledAt(kubepodsGroup, "100000 100000"), want: []string{parent},
			text: []string{"cgroup /kubepods.slice,", "systemctl show -p CPUQuotaPerSecUSec -p DropInPaths kubepods.slice"}},
		{name: "a quota on the QoS slice", on: throttledPod, edit: throttledAt(qosGroup, "100000 100000"), want: []string{parent}, text: []string{"kubepods-burstable.slice"}},
		{name: "a quota on kubepods that happens to be the container's", on: throttledPod, edit: throttledAt(kubepodsGroup, "5000 100000"), want: []string{parent}},
		{name: "a quota on kubepods, the container idle", on: throttledPod, edit: func(b *bundle) {
			throttledAt(kubepodsGroup, "100000 100000")(b)
			both(young, cpuCounts{})(b)
			b.inherits("app", 0)
		}, want: []string{quiet}},
		{name: "a quota on kubepods that nobody reaches", on: throttledPod, edit: func(b *bundle) {
			throttledAt(kubepodsGroup, "700000 100000")(b)
			b.cpu(kubepodsGroup, cpuCounts{}, cpuCounts{300, 0, 0, 1_500_000})
			b.inherits("app", 0)
		}, want: []string{quiet}},

		{name: "a quota on exclusive CPUs", on: exclusivePod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "200000 100000")
			b.cpu("app", young, cpuCounts{300, 12, 40_000, 59_000_000})
		}, want: []string{"cpu-quota-on-exclusive-cpus@app proven"}, text: []string{"12 of 300 periods (4 %)"}},
		{name: "exclusive CPUs without a quota", on: exclusivePod, want: []string{quiet}},
		{name: "a quota on shared CPUs of a Guaranteed pod", on: fractionPod, want: []string{quota}},
		{name: "a quota where the checkpoint is corrupt", on: exclusivePod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "200000 100000")
			b.cpu("app", young, cpuCounts{300, 12, 40_000, 59_000_000})
			spoilChecksum(b, "cpu_manager_state")
		}, loose: true, not: []string{"cpu-quota-on-exclusive-cpus@app proven"}},

		{name: "no counters, a limit below the machine", on: throttledPod, edit: func(b *bundle) {
			b.drop("app", "cpu.stat")
			b.drop(podGroup, "cpu.stat")
		}, want: []string{"cpu-limit-below-node-cpus@app possible"}, text: []string{"5000 µs / 4 threads = 1.25 ms", "98.75 ms"}},
		{name: "no counters, a limit of the whole cpuset", on: throttledPod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "400000 100000")
			b.drop("app", "cpu.stat")
			b.drop(podGroup, "cpu.stat")
		}, want: nil},
		{name: "counters of the pod's meter only", on: throttledPod, edit: func(b *bundle) { b.drop("app", "cpu.stat") }, want: []string{quota}},
		{name: "only the container's own files, throttled", on: throttledPod, edit: func(b *bundle) { b.onlyScope("app") }, want: []string{quota}},
		{name: "only the container's own files, without a limit", on: podLevelPod, edit: func(b *bundle) {
			b.put("a", "cpu.max", "max 100000")
			b.cpu("a", cpuCounts{}, cpuCounts{0, 0, 0, 1})
			b.onlyScope("a")
		}, loose: true, not: []string{"cpu-not-throttled@a proven"}},

		{name: "cgroup v1", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/cpu,cpuacct/kubepods/burstable/pod"+string(b.pod().UID)+"/cpu.stat"] = "nr_periods 300\nnr_throttled 300\nthrottled_time 1\n"
		}, want: []string{"cgroup-v1-unsupported@ proven"}},
		{name: "the hybrid of cgroup v1 and v2", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/unified/cgroup.controllers"] = "\n"
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "1\n"
		}, want: []string{"cgroup-v1-unsupported@ proven"}, text: []string{"hybrid"}},
		{name: "cgroup v2 without the files of its root", on: throttledPod, edit: func(b *bundle) {
			for k := range 2 {
				for _, name := range []string{"cgroup.controllers", "cgroup.procs", "cgroup.stat", "cgroup.subtree_control"} {
					delete(b.files, b.file(k, "/", name))
				}
			}
		}, want: []string{quota}},
		{name: "no cgroup at all", on: throttledPod, edit: (*bundle).forgetTree, want: nil},
	}}
}

// spoilChecksum changes the checksums of a manager's checkpoint.
func spoilChecksum(b *bundle, name string) {
	file := b.root("var/lib/kubelet/" + name)
	_, rest, ok := strings.Cut(b.files[file], `"dataChecksum":`)
	if !ok {
		b.t.Fatalf("%s has no dataChecksum", name)
	}
	digits := strings.TrimRight(rest, "}\n ")
	b.files[file] = strings.Replace(b.files[file], fmt.Sprintf(`"dataChecksum":%s`, digits), `"dataChecksum":12345`, 1)
}

// Samples whose time cannot be, or whose counters fell, give no rate, and
// nothing is proven of the present by the last of them alone.
func TestImpossibleSamples(t *testing.T) {
	for name, edit := range map[string]func(*bundle){
		"a millisecond apart": func(b *bundle) {
			b.files["nodes/smt2/samples/1/at.json"] = `{"time":"2026-11-30T07:05:09.666047Z","uptimeSeconds":4083.030}`
		},
		"a second apart by both clocks": func(b *bundle) {
			b.files["nodes/smt2/samples/1/at.json"] = `{"time":"2026-11-30T07:04:39.698310Z","uptimeSeconds":4084.029}`
		},
		"counters that fell to 0": func(b *bundle) {
			for file := range b.files {
				if strings.Contains(file, "/samples/1/") && strings.HasSuffix(file, "/cpu.stat") {
					b.files[file] = "usage_usec 0\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := throttledPod(t)
			edit(b)
			for _, f := range b.explain(Options{}).Findings {
				e, _ := report.Lookup(f.Code)
				if e.Group == report.GroupCPU && (f.Confidence == report.Proven || f.Code == report.CPUNotThrottled) {
					t.Errorf("%s %s: %s", f.Code, f.Confidence, f.Summary)
				}
			}
		})
	}
}

// TestManyContainers: a report states facts once, however many containers share
// a reason.
func TestManyContainers(t *testing.T) {
	b := throttledPod(t)
	first := b.pod().Spec.Containers[0]
	for i := range 200 {
		k := *first.DeepCopy()
		k.Name = fmt.Sprintf("c%d", i)
		b.pod().Spec.Containers = append(b.pod().Spec.Containers, k)
	}
	data, err := json.Marshal(b.explain(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if perContainer := len(data) / 201; perContainer > 4000 {
		t.Errorf("%d bytes for each container", perContainer)
	}
}
