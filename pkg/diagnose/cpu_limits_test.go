package diagnose

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func cpuFloorFamily() family {
	below := "cpu-limit-below-floor@app proven"
	limit := func(cpu, cpuMax string) func(*bundle) {
		return func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceCPU] = resource.MustParse(cpu)
			for _, who := range []string{"app", podGroup} {
				b.put(who, "cpu.max", cpuMax)
			}
		}
	}
	return family{name: "the floor of limits", codes: []report.Code{report.CPULimitBelowFloor}, cases: []ruleCase{
		{name: "50m", on: throttledPod, want: nil},
		{name: "10m", on: throttledPod, edit: limit("10m", "1000 100000"), want: nil},
		{name: "9m", on: throttledPod, edit: limit("9m", "1000 100000"), want: []string{below}, text: []string{"9m × 100000 µs / 1000 = 900 µs, at least 1000 µs", "acts as 10m", "0.01 CPU"}},
		{name: "1m", on: throttledPod, edit: limit("1m", "1000 100000"), want: []string{below}},
		{name: "100m at a period of 5 ms", on: throttledPod, edit: limit("100m", "1000 5000"), want: []string{below}, text: []string{"acts as 200m"}},
		{name: "200m at a period of 5 ms", on: throttledPod, edit: limit("200m", "1000 5000"), want: nil},
		{name: "a quota that is not the limit's", on: throttledPod, edit: limit("5m", "5000 100000"), want: nil},
		{name: "no quota", on: throttledPod, edit: limit("5m", "max 100000"), want: nil},
		{name: "cpu.max was not read", on: throttledPod, edit: func(b *bundle) {
			limit("5m", "1000 100000")(b)
			b.drop("app", "cpu.max")
		}, want: []string{"cpu-limit-below-floor@app likely"}},
		{name: "no cgroup, no configuration", on: throttledPod, edit: func(b *bundle) {
			limit("5m", "1000 100000")(b)
			b.forgetTree()
			b.forget("nodes/smt2/configz.json")
		}, want: []string{"cpu-limit-below-floor@app likely"}},
		{name: "cpuCFSQuota off", on: throttledPod, edit: func(b *bundle) {
			limit("5m", "1000 100000")(b)
			b.config(map[string]any{"cpuCFSQuota": false})
		}, want: nil},
		{name: "an ended pod", on: throttledPod, edit: func(b *bundle) {
			limit("5m", "1000 100000")(b)
			b.pod().Status.Phase = corev1.PodFailed
		}, want: nil},
		{name: "a pod-level limit", on: podLevelPod, edit: func(b *bundle) {
			b.pod().Spec.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("4m")
			b.put(podGroup, "cpu.max", "1000 100000")
		}, want: []string{"cpu-limit-below-floor@ proven"}},
	}}
}

// started sets when a container began to run, before the first sample.
func started(name string, before time.Duration) func(*bundle) {
	return func(b *bundle) {
		first := b.open().Node(b.node).Samples()[0].Time
		b.status(name).State.Running.StartedAt = metav1.NewTime(first.Add(-before))
	}
}

func initFamily() family {
	history := "cpu-throttle-history-only@app proven"
	young := func(before time.Duration, from, by cpuCounts) func(*bundle) {
		return func(b *bundle) {
			both(from, by)(b)
			b.inherits("app", 0)
			started("app", before)(b)
		}
	}
	spent := cpuCounts{400, 300, 28_000_000, 2_000_000}
	quiet := cpuCounts{300, 0, 0, 600_000}
	// setup ran for 20 s at the pod's quota of 40 ms; all that stands is idle.
	gone := func(b *bundle) {
		b.cpu(podGroup, cpuCounts{700, 600, 40_000_000, 26_000_000}, cpuCounts{})
		for _, who := range []string{"app", "proxy"} {
			b.cpu(who, cpuCounts{20, 0, 0, 300_000}, cpuCounts{})
		}
	}
	return family{name: "throttled at the start", codes: []report.Code{report.CPUInitThrottled, report.CPUThrottleHistoryOnly}, cases: []ruleCase{
		{name: "throttled in its first minute", on: throttledPod, edit: young(time.Minute, spent, quiet), want: []string{"cpu-init-throttled@app proven"},
			text: []string{"300 of 400 periods (75 %) of its first 1m", "none of 300 periods since"}},
		{name: "throttled in its first five minutes", on: throttledPod, edit: young(5*time.Minute, spent, quiet), want: []string{history}},
		{name: "idle since", on: throttledPod, edit: young(time.Minute, spent, cpuCounts{}), want: []string{history}},
		{name: "9 periods since", on: throttledPod, edit: young(time.Minute, spent, cpuCounts{9, 0, 0, 10_000}), want: []string{history}},
		{name: "one period cut short since", on: throttledPod, edit: young(time.Minute, spent, cpuCounts{300, 1, 1000, 600_000}), want: []string{history}},
		{name: "a start after the sample", on: throttledPod, edit: young(-time.Minute, spent, quiet), want: []string{history}},
		{name: "throttled still", on: throttledPod, edit: young(time.Minute, spent, busy), want: nil},

		{name: "an init container that spent the pod's quota", on: sidecarPod, edit: gone, want: []string{"cpu-init-throttled@setup proven"},
			text: []string{"init container setup", "at least"}},
		{name: "init container and sandbox shared it", on: sidecarPod, want: []string{history, "cpu-throttle-history-only@proxy proven"}},
		{name: "the containers that stand may have spent it", on: sidecarPod, edit: func(b *bundle) {
			gone(b)
			b.cpu("app", cpuCounts{700, 0, 0, 24_000_000}, cpuCounts{})
		}, want: nil},
		{name: "a container restarted", on: sidecarPod, edit: func(b *bundle) {
			gone(b)
			b.status("app").RestartCount = 1
		}, want: nil},
		{name: "a pod without init containers", on: sidecarPod, edit: func(b *bundle) {
			gone(b)
			b.pod().Spec.InitContainers = slices.DeleteFunc(b.pod().Spec.InitContainers, func(k corev1.Container) bool { return k.Name == "setup" })
		}, want: nil},
		{name: "no counters of a container that stands", on: sidecarPod, edit: func(b *bundle) {
			gone(b)
			b.drop("app", "cpu.stat")
		}, want: nil},
		{name: "an init container that dies again and again", on: recorded("smt2-k612/bundle", "shop", "oom-init"), want: []string{"cpu-init-throttled@migrate proven"}, text: []string{"554 periods"}},
		{name: "an init container that runs", on: sidecarPod, edit: func(b *bundle) {
			b.stand("setup", "app")
			b.status("setup").State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			b.cpu("setup", cpuCounts{}, cpuCounts{300, 290, 20_000_000, 9_000_000})
		}, want: []string{"cpu-init-throttled@setup proven"}, text: []string{"290 of 300 periods"}},
	}}
}

func kernelFamily() family {
	bug, burst, quota := "kernel-quota-bug@app ", "cpu-quota-burst-throttled@app ", "cpu-quota-throttled@app "
	on := func(kernel string, by cpuCounts) func(*bundle) {
		return func(b *bundle) {
			b.object().Status.NodeInfo.KernelVersion = kernel
			both(cpuCounts{}, by)(b)
		}
	}
	half := cpuCounts{300, 120, 8_400_000, 750_000}
	most := cpuCounts{300, 120, 8_400_000, 1_300_000}
	return family{name: "the kernel's quota bug", codes: []report.Code{report.KernelQuotaBug, report.CPUQuotaThrottled, report.CPUQuotaBurstThrottled}, cases: []ruleCase{
		{name: "4.18.20", on: throttledPod, edit: on("4.18.20", half), want: []string{bug + "likely", burst + "likely"}, text: []string{"4.18.20", "50 % of its quota"}},
		{name: "5.3.8-custom", on: throttledPod, edit: on("5.3.8-custom", half), want: []string{bug + "likely", burst + "likely"}},
		{name: "5.3.9", on: throttledPod, edit: on("5.3.9", half), want: []string{burst + "proven"}},
		{name: "4.19.84", on: throttledPod, edit: on("4.19.84", half), want: []string{burst + "proven"}},
		{name: "5.4.0-1103-aws", on: throttledPod, edit: on("5.4.0-1103-aws", half), want: []string{burst + "proven"}},
		{name: "6.12", on: throttledPod, edit: on("6.12.95+deb12-amd64", half), want: []string{burst + "proven"}},
		{name: "a distribution's 4.18", on: throttledPod, edit: on("4.18.0-305.el8.x86_64", half), want: []string{bug + "possible", burst + "likely"}, text: []string{"unless the distribution has patched it"}},
		{name: "4.18.20, 87 % of the quota used", on: throttledPod, edit: on("4.18.20", most), want: []string{burst + "proven"}},
		{name: "4.18.20, all of the quota used", on: throttledPod, edit: on("4.18.20", busy), want: []string{quota + "proven"}},
		{name: "4.18.20, every period cut short with half of the quota used", on: throttledPod, edit: on("4.18.20", cpuCounts{300, 300, 8_400_000, 750_000}), want: []string{bug + "likely", quota + "likely"}},
		{name: "4.18.20, one reading", on: throttledPod, edit: func(b *bundle) {
			on("4.18.20", half)(b)
			b.oneReading()
		}, want: []string{bug + "possible", burst + "likely"}},
		{name: "4.18.20, not throttled", on: throttledPod, edit: on("4.18.20", cpuCounts{300, 1, 1000, 750_000}), want: nil},
		{name: "no version in the API, one in /proc/version", on: throttledPod, edit: func(b *bundle) {
			on("", half)(b)
			b.files[b.root("proc/version")] = "Linux version 4.18.20 (builder@host) #1 SMP\n"
		}, want: []string{bug + "likely", burst + "likely"}},
		{name: "no version at all", on: throttledPod, edit: func(b *bundle) {
			on("", half)(b)
			delete(b.files, b.root("proc/version"))
		}, want: []string{burst + "proven"}},
	}}
}

// adviceFamily looks at what a throttled container is told to do.
func adviceFamily() family {
	burst, quota := "cpu-quota-burst-throttled@app proven", "cpu-quota-throttled@app proven"
	half := both(young, cpuCounts{300, 120, 8_400_000, 750_000})
	process := func(name string) func(*bundle) {
		return func(b *bundle) {
			half(b)
			b.put("app", "pids.current", "20")
			file := b.root("proc/4242/")
			b.files[file+"status"] = "Name:\t" + name + "\nTgid:\t4242\nPid:\t4242\nThreads:\t20\n"
			b.files[file+"cgroup"] = "0::" + b.dir("app") + "\n"
		}
	}
	cases := []ruleCase{
		// (5000 µs that ran + 70 ms that stood still) / 100 ms
		{name: "below the quota", on: throttledPod, edit: half, want: []string{burst},
			text: []string{"Raise limits.cpu of container app to 1 CPU.", "under 1 % of the periods", "(5000 µs that ran + 70 ms that stood still) / 100000 µs = 0.75 CPU", "no more than 1 thread at once"}},
		{name: "at the quota", on: throttledPod, want: []string{quota}, text: []string{"to at least 0.075 CPU, then measure again"}, lacks: []string{"under 1 %"}},
		{name: "three CPUs stand still", on: throttledPod, edit: func(b *bundle) {
			both(young, cpuCounts{300, 100, 29_500_000, 750_000})(b)
		}, want: []string{burst}, text: []string{"to 3 CPU.", "no more than 3 CPUs' worth of threads"}},
		{name: "three CPUs stand still, two threads", on: throttledPod, edit: func(b *bundle) {
			both(young, cpuCounts{300, 100, 29_500_000, 750_000})(b)
			b.put("app", "pids.current", "2")
		}, want: []string{burst}, text: []string{"to 2 CPU.", "there are no more threads or CPUs", "its 2 threads running at once"}},
		{name: "one thread", on: throttledPod, edit: func(b *bundle) {
			half(b)
			b.put("app", "pids.current", "1")
		}, want: []string{burst}, text: []string{"to 1 CPU."}, lacks: []string{"Or run no more"}},
		{name: "few periods", on: throttledPod, edit: both(young, cpuCounts{60, 24, 1_680_000, 150_000}), want: []string{burst}, text: []string{"It rests on 60 periods, of which one is more than 1 %"}},
		{name: "a limit between two CPUs", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				b.put(who, "cpu.max", "150000 100000")
			}
			both(young, cpuCounts{300, 120, 24_000_000, 22_500_000})(b)
		}, want: []string{burst}, text: []string{"no more than 1 thread at once", "round it up to 2"}},
		{name: "both meters of one limit", on: throttledPod, want: []string{quota}, text: []string{"two controllers in series", "container app 300 of 300 periods, 104.72 ms each", "the pod's cgroup 305 of 305 periods, 67.78 ms each"}},
		{name: "the pod's meter stands still", on: throttledPod, edit: func(b *bundle) { b.cpu(podGroup, young, cpuCounts{}) }, want: []string{quota}, lacks: []string{"in series"}},
		{name: "what waiting counts", on: throttledPod, want: []string{quota}, text: []string{"cpu.stat.local", "PSI full", "PSI some", "not the wait of one thread"}},
		{name: "no PSI", on: throttledPod, edit: func(b *bundle) { b.drop("app", "cpu.pressure") }, want: []string{quota}, text: []string{"without PSI a thread's wait is only bounded: at most 98.75 ms"}},
		{name: "stranded slices", on: throttledPod, edit: both(young, cpuCounts{300, 120, 8_400_000, 900_000}), want: []string{burst}, text: []string{"each CPU that goes idle may keep 1 ms of it, up to 4 ms on 4 CPUs"}},
		{name: "too much left to be stranded", on: throttledPod, edit: both(young, cpuCounts{300, 120, 8_400_000, 150_000}), want: []string{burst}, lacks: []string{"may keep 1 ms"}},
		{name: "burst", on: throttledPod, edit: func(b *bundle) { b.put("app", "cpu.max.burst", "5000") }, want: []string{quota}, text: []string{"cpu.max.burst"}},
		{name: "no burst", on: throttledPod, want: []string{quota}, lacks: []string{"cpu.max.burst"}},
		{name: "the kernel has scaled the period", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				b.put(who, "cpu.max", "1000 2000")
			}
			both(young, cpuCounts{300, 300, 500_000, 300_000})(b)
			b.kernelLog("[   12.500000] cfs_period_timer[cpu3]: period too short, scaling up (new cfs_period_us = 2000, cfs_quota_us = 1000)\n")
		}, want: []string{quota}, text: []string{"the kernel has doubled the period", "new cfs_period_us = 2000"}},
		{name: "the kernel has scaled another period", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				b.put(who, "cpu.max", "1000 2000")
			}
			both(young, cpuCounts{300, 300, 500_000, 300_000})(b)
			b.kernelLog("[   12.500000] cfs_period_timer[cpu3]: period too short, scaling up (new cfs_period_us = 4000, cfs_quota_us = 1000)\n")
		}, want: []string{quota}, lacks: []string{"the kernel has doubled"}},
		{name: "no usage_usec", on: throttledPod, edit: func(b *bundle) {
			for _, who := range []string{"app", podGroup} {
				for k := range 2 {
					file := b.file(k, b.dir(who), "cpu.stat")
					b.files[file] = strings.Replace(b.files[file], "usage_usec", "usage_other", 1)
				}
			}
		}, want: []string{quota}, lacks: []string{"0 % of the quota", "under 1 %"}},
		{name: "GOMAXPROCS in the spec", on: throttledPod, edit: func(b *bundle) {
			half(b)
			b.container("app").Env = []corev1.EnvVar{{Name: "GOMAXPROCS", Value: "3"}, {Name: "SECRET", Value: "hidden"}}
		}, want: []string{burst}, text: []string{"GOMAXPROCS=1 (from Go", "with its 3 threads running at once", "env[GOMAXPROCS]", `the spec sets GOMAXPROCS to \"3\"`}, lacks: []string{"hidden"}},
		{name: "an option in JAVA_TOOL_OPTIONS", on: throttledPod, edit: func(b *bundle) {
			process("java")(b)
			b.container("app").Env = []corev1.EnvVar{{Name: "JAVA_TOOL_OPTIONS", Value: "-Dpassword=hidden -XX:ActiveProcessorCount=16"}}
		}, want: []string{burst}, text: []string{"-XX:ActiveProcessorCount=1 ", `the spec sets \"-XX:ActiveProcessorCount=16\"`}, lacks: []string{"hidden"}},
		{name: "GOMAXPROCS from the limit", on: throttledPod, edit: func(b *bundle) {
			half(b)
			b.container("app").Env = []corev1.EnvVar{{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}
		}, want: []string{burst}, text: []string{"from limits.cpu"}},
	}
	for comm, knob := range map[string]string{
		"java": "-XX:ActiveProcessorCount=1", "node": "UV_THREADPOOL_SIZE", "python3.12": "OMP_NUM_THREADS=1", "gunicorn": "OMP_NUM_THREADS=1",
		"nginx": "worker_processes 1", "dotnet": "DOTNET_PROCESSOR_COUNT=1", "php-fpm": "pm.max_children", "puma": "WEB_CONCURRENCY", "server": "GOMAXPROCS=1 for a Go program",
	} {
		cases = append(cases, ruleCase{name: "the process " + comm, on: throttledPod, edit: process(comm), want: []string{burst}, text: []string{knob, "20 threads"}})
	}
	return family{name: "advice", codes: []report.Code{report.CPUQuotaThrottled, report.CPUQuotaBurstThrottled}, cases: cases}
}
