package diagnose

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Recorded pods with OOM kills.
var (
	oomPod      = recorded("smt2-k612/bundle", "shop", "oom")       // one container, 128Mi, in back-off: its cgroup is gone
	oomGroupPod = recorded("smt2-k612/bundle", "shop", "oom-group") // the same with children
	podLimitPod = recorded("smt2-k612/bundle", "shop", "oom-pod")   // a and b under a pod-level limit of 160Mi
	initPod     = recorded("smt2-k612/bundle", "shop", "oom-init")  // init container migrate, 64Mi; app, 64Mi
	tmpfsPod    = recorded("smt2-k612/bundle", "shop", "oom-tmpfs") // cannot start: 59 of 64Mi are tmpfs
	childPod    = recorded("numa4-k61/bundle", "mill", "child-oom") // two children killed, the container lives on
	sigkillPod  = recorded("smt2-k612/bundle", "shop", "sigkill")   // exit 137 after a liveness probe, no OOM
)

// counted are keys of memory.events.
type counted map[string]int64

// noLog takes the kernel log away.
func withoutLog(b *bundle) { b.forget("nodes/" + b.node + "/kernel.log") }

// logOnly leaves of the node its kernel log and its configuration.
func onlyLog(blocks ...string) func(*bundle) {
	return func(b *bundle) {
		b.forgetTree()
		var text []string
		for _, name := range blocks {
			text = append(text, b.block(name, b.endedID("app")))
		}
		b.kernelLog(text...)
	}
}

// apiOnly leaves nothing of the node but its object.
func onlyAPI(b *bundle) { b.forget("nodes") }

// ended makes a container's last exit another one.
func withEnd(name, reason string, code int32) func(*bundle) {
	return func(b *bundle) { b.end(name).Reason, b.end(name).ExitCode = reason, code }
}

// each applies edits in their order.
func inOrder(edits ...func(*bundle)) func(*bundle) {
	return func(b *bundle) {
		for _, edit := range edits {
			edit(b)
		}
	}
}

// podCounts makes the memory events of the pod's group what is given.
func withPodEvents(tree, local counted) func(*bundle) {
	return func(b *bundle) { b.memEvents(podGroup, tree, local) }
}

var oomLimitCodes = []report.Code{
	report.ContainerMemoryLimitOOM, report.PodMemoryLimitOOM, report.NodeAllocatableOOM, report.NodeOOM, report.NUMAConstrainedOOM,
	report.NestedCgroupOOM, report.InitContainerOOM, report.OOMCauseUnproven, report.ContainerStartOOM, report.MemoryHealthy,
}

// oomLimits tells apart which limit an OOM met.
func oomLimitsFamily() family {
	container := "container-memory-limit-oom@app proven"
	unproven := "oom-cause-unproven@app proven"
	sidecarDied := func(b *bundle) {
		b.status("proxy").LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: reasonOOMKilled, ExitCode: 137, ContainerID: "containerd://" + strings.Repeat("ab", 32), FinishedAt: b.status("proxy").State.Running.StartedAt,
		}
	}
	return family{name: "OOM limits", codes: oomLimitCodes, cases: []ruleCase{
		{name: "the container's own oom counter", on: childPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 4, "oom_kill": 2}, nil), func(b *bundle) {
			b.memEvents("app", counted{"oom": 4, "oom_kill": 2}, counted{"oom": 4, "oom_kill": 2})
		}), want: []string{container}, text: []string{"128Mi (134217728 bytes)", "memory.events.local"}},
		{name: "the pod's oom counter, one container with the pod's limit", on: oomPod, edit: withoutLog, want: []string{container}, text: []string{"16 OOMs and 32 kills"}},
		{name: "the same with a log", on: oomPod, want: []string{container}},
		{name: "the kernel log alone, the pod's cgroup named", on: oomPod, edit: inOrder(onlyLog("pod-6.12"), withEnd("app", "Error", 137)), want: []string{container},
			text: []string{"the runtime missed the kill"}},
		{name: "the kernel log alone, the container's cgroup named", on: oomPod, edit: onlyLog("container-6.1"), want: []string{container}},
		{name: "no memory.events.local, one container with the pod's limit", on: oomPod, edit: inOrder(withoutLog, func(b *bundle) { b.drop(podGroup, "memory.events.local") }), want: []string{container}},
		{name: "no memory.events.local, no limit of the pod", on: oomPod, edit: inOrder(withoutLog, func(b *bundle) {
			b.drop(podGroup, "memory.events.local")
			b.put(podGroup, "memory.max", "max")
		}), want: []string{container}},
		{name: "no memory.events.local, a pod of two", on: podLimitPod, edit: inOrder(withoutLog, func(b *bundle) {
			b.drop(podGroup, "memory.events.local")
			delete(b.files, "gaps.json")
		}), want: []string{"container-memory-limit-oom@a likely", "container-memory-limit-oom@b likely"}},
		{name: "the counts are of containers that are gone", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 16, "oom_kill": 32}, nil)), want: []string{container}},

		{name: "a pod-level limit, two containers", on: podLimitPod, want: []string{"pod-memory-limit-oom@a proven", "pod-memory-limit-oom@b proven"}, text: []string{"160Mi (167772160 bytes)"}},
		{name: "a pod-level limit by the counters", on: podLimitPod, edit: withoutLog, want: []string{"pod-memory-limit-oom@a proven", "pod-memory-limit-oom@b proven"}},
		{name: "the sum of app and sidecar", on: sidecarPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 2, "oom_kill": 2}, counted{"oom": 2}), sidecarDied),
			want: []string{"pod-memory-limit-oom@proxy proven"}},
		{name: "the sidecar's own limit", on: sidecarPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 2, "oom_kill": 2}, nil), sidecarDied),
			want: []string{"container-memory-limit-oom@proxy proven"}},
		{name: "a pod-level limit, and other OOMs at limits below it", on: podLimitPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 5, "oom_kill": 5}, counted{"oom": 1})),
			loose: true, not: []string{"pod-memory-limit-oom@a proven", "pod-memory-limit-oom@b proven"}},
		{name: "all OOMs were of a container that still stands, and it lost nothing", on: podLimitPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 2, "oom_kill": 1}, nil), func(b *bundle) {
			b.memEvents("a", counted{"oom": 2}, counted{"oom": 2})
			b.status("a").LastTerminationState = corev1.ContainerState{}
		}), loose: true, not: []string{"container-memory-limit-oom@b proven"}},
		{name: "a limit that is raised and not yet admitted", on: oomPod, edit: func(b *bundle) {
			b.container("app").Resources.Limits[corev1.ResourceMemory] = amounts("memory", "256Mi")[corev1.ResourceMemory]
			b.pod().Status.Conditions = append(b.pod().Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred})
			b.status("app").Resources = &corev1.ResourceRequirements{Limits: amounts("cpu", "500m", "memory", "128Mi"), Requests: amounts("cpu", "10m", "memory", "64Mi")}
			b.status("app").AllocatedResources = amounts("cpu", "10m", "memory", "64Mi")
		}, want: []string{container}},

		{name: "an oom at the pod's cgroup, which has no limit", on: oomPod, edit: inOrder(withoutLog, func(b *bundle) { b.put(podGroup, "memory.max", "max") }), loose: true, not: []string{"pod-memory-limit-oom@app proven"}},

		{name: "the limit of all pods, by its counter", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom_kill": 2}, nil), func(b *bundle) {
			b.memEvents(kubepodsGroup, counted{"oom": 105, "oom_kill": 225}, counted{"oom": 1})
		}), want: []string{"node-allocatable-oom@app likely"}, text: []string{"5798891520"}},
		{name: "the limit of the QoS slice, by its counter", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom_kill": 2}, nil), func(b *bundle) {
			b.memEvents(qosGroup, counted{"oom": 105, "oom_kill": 225}, counted{"oom": 1})
		}), want: []string{"node-allocatable-oom@app likely"}},
		{name: "the limit of all pods, by the log", on: oomPod, edit: func(b *bundle) {
			b.kernelLog(strings.ReplaceAll(b.block("pod-6.12", b.endedID("app")), "oom_memcg="+b.dir(podGroup), "oom_memcg=/kubepods.slice"))
		}, want: []string{"node-allocatable-oom@app proven"}},
		{name: "the limit of a node that is itself a container, by the log", on: oomPod, edit: inOrder(onlyLog("pod-6.12"), func(b *bundle) {
			log := "nodes/" + b.node + "/kernel.log"
			b.files[log] = strings.ReplaceAll(b.files[log], "oom_memcg="+b.dir(podGroup), "oom_memcg=/docker/0123abc")
			b.files[log] = strings.ReplaceAll(b.files[log], "task_memcg=/kubepods.slice", "task_memcg=/docker/0123abc/kubepods.slice")
		}), want: []string{"node-oom@app proven"}},
		{name: "the limit of a node that is itself a container, by its counter", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom_kill": 2}, nil), func(b *bundle) {
			for file, text := range maps.Clone(b.files) {
				if strings.Contains(file, "/sys/fs/cgroup/kubepods.slice/") {
					delete(b.files, file)
					b.files[strings.Replace(file, "/sys/fs/cgroup/", "/sys/fs/cgroup/docker/", 1)] = text
				}
			}
			for k := range 2 {
				b.files[b.file(k, "/docker", "memory.events.local")] = "oom 1\noom_kill 0\n"
				b.files[b.file(k, "/docker", "memory.events")] = "oom 1\noom_kill 2\n"
			}
		}), want: []string{"node-oom@app likely"}},

		{name: "a global OOM, by the log", on: oomPod, edit: onlyLog("global-6.12"), want: []string{"node-oom@app proven"}},
		{name: "a global OOM, by the log beside the counters of others", on: oomPod, edit: func(b *bundle) { b.kernelLog(b.block("global-6.12", b.endedID("app"))) }, want: []string{"node-oom@app proven"}},
		{name: "kills without an OOM at any level, and the event SystemOOM", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom_kill": 2}, nil), func(b *bundle) {
			b.events = append(b.events, corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: "smt2.1", Namespace: "default"},
				InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "smt2"}, Reason: "SystemOOM", Message: "System OOM encountered, victim process: eat, pid: 333",
			})
		}), want: []string{"node-oom@app likely"}, text: []string{"victim process: eat"}},
		{name: "kills without an OOM at any level", on: oomPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom_kill": 2}, nil)), want: []string{"node-oom@app likely"}},
		{name: "SystemOOM without a kill in the pod", on: throttledPod, edit: func(b *bundle) {
			b.events = append(b.events, corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "smt2"}, Reason: "SystemOOM", Message: "System OOM encountered, victim process: eat, pid: 333"})
		}, want: []string{"memory-healthy@ proven"}},
		{name: "a global OOM of an init container", on: initPod, edit: func(b *bundle) { b.kernelLog(b.block("global-6.12", b.endedID("migrate"))) }, want: []string{"node-oom@migrate proven"}},

		{name: "cpuset.mems", on: oomPod, edit: onlyLog("cpuset-6.12"), want: []string{"numa-constrained-oom@app proven"}, text: []string{"only NUMA node 1 was allowed (cpuset.mems)"}},
		{name: "a memory policy", on: oomPod, edit: onlyLog("mempolicy-6.1"), want: []string{"numa-constrained-oom@app proven"}, text: []string{"only NUMA node 1 was allowed (memory policy)"}},

		{name: "a group that the application made", on: childPod, edit: inOrder(withoutLog, withNestedJob(counted{"oom": 3, "oom_kill": 2}, counted{"oom": 3, "oom_kill": 2}, "67108864")),
			want: []string{"nested-cgroup-oom@app proven"}, text: []string{`\"job\"`, "64Mi (67108864 bytes)"}},
		{name: "a group that the application made, killed at the container's limit", on: childPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 3, "oom_kill": 2}, nil), func(b *bundle) {
			withNestedJob(counted{"oom_kill": 2}, counted{"oom_kill": 2}, "max")(b)
			b.memEvents("app", counted{"oom": 3, "oom_kill": 2}, counted{"oom": 3})
		}), want: []string{container}},
		{name: "the group of crun", on: childPod, edit: inOrder(withoutLog, withPodEvents(counted{"oom": 3, "oom_kill": 2}, nil), func(b *bundle) {
			b.memEvents("app", counted{"oom": 3, "oom_kill": 2}, counted{"oom": 3})
			b.nested("app", "container", map[string]string{"memory.max": "max\n", "memory.events": "oom 0\noom_kill 2\n", "memory.events.local": "oom 0\noom_kill 2\n"})
		}), want: []string{container}},
		{name: "a group that the application made, by the log alone", on: oomPod, edit: inOrder(onlyLog("container-6.1"), func(b *bundle) {
			log := "nodes/" + b.node + "/kernel.log"
			b.files[log] = strings.ReplaceAll(b.files[log], ".scope,task_memcg", ".scope/job,task_memcg")
			b.files[log] = strings.ReplaceAll(b.files[log], ".scope,task=", ".scope/job,task=")
		}), want: []string{"nested-cgroup-oom@app proven"}},

		{name: "the status alone", on: oomPod, edit: onlyAPI, want: []string{unproven}},
		{name: "the status and a log that begins later", on: oomPod, edit: inOrder(onlyLog(), func(b *bundle) { b.kernelLog("[ 4100.000000] eth0: link up\n") }), want: []string{unproven}},
		{name: "the pod's cgroup was made anew", on: oomPod, edit: inOrder(withoutLog, withPodEvents(nil, nil)), want: []string{unproven}},
		{name: "the pod's memory.events cannot be read", on: oomPod, edit: inOrder(withoutLog, func(b *bundle) {
			b.put(podGroup, "memory.events", "garbage")
			b.put(podGroup, "memory.events.local", "garbage")
		}), want: []string{unproven}},
		{name: "no sign of an OOM", on: throttledPod, want: []string{"memory-healthy@ proven"}},

		{name: "an init container at its own limit", on: initPod, want: []string{"init-container-oom@migrate proven"}, text: []string{"at its own memory limit of 64Mi (67108864 bytes)"}},
		{name: "an init container beside a sidecar that was started before it", on: initPod, edit: func(b *bundle) {
			always := corev1.ContainerRestartPolicyAlways
			proxy := corev1.Container{Name: "proxy", RestartPolicy: &always, Resources: *b.container("app").Resources.DeepCopy()}
			b.pod().Spec.InitContainers = append([]corev1.Container{proxy}, b.pod().Spec.InitContainers...)
		}, want: []string{"init-container-oom@migrate proven"}, text: []string{"at the pod's memory limit of 64Mi"}},
		{name: "an init container before a sidecar that was not started", on: initPod, edit: func(b *bundle) {
			always := corev1.ContainerRestartPolicyAlways
			proxy := corev1.Container{Name: "proxy", RestartPolicy: &always, Resources: *b.container("app").Resources.DeepCopy()}
			b.pod().Spec.InitContainers = append(b.pod().Spec.InitContainers, proxy)
		}, want: []string{"init-container-oom@migrate proven"}, text: []string{"at its own memory limit of 64Mi"}},
		{name: "an init container at its own limit, by the counters", on: initPod, edit: inOrder(withoutLog, withEnd("migrate", reasonOOMKilled, 137)), want: []string{"init-container-oom@migrate proven"}},

		{name: "a volume outlives the container", on: tmpfsPod, want: []string{"container-start-oom@app proven"}, text: []string{"58.61Mi (61456384 bytes)", "sizeLimit 200Mi"}},
		{name: "a start that failed for another reason", on: tmpfsPod, edit: inOrder(withoutLog, withPodEvents(nil, nil)), want: nil},
		{name: "a start that the runtime calls an OOM, nothing left behind", on: tmpfsPod, edit: inOrder(onlyAPI, func(b *bundle) {
			b.end("app").Message = "failed to create containerd task: runc create failed: container init was OOM-killed (memory limit too low?): unknown"
		}), want: []string{"container-start-oom@app likely"}, text: []string{"too small for a start"}},
		{name: "a SystemOOM at the end, no counters", on: oomPod, edit: inOrder(onlyAPI, func(b *bundle) {
			at := b.end("app").FinishedAt
			b.events = append(b.events, corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "smt2.2", Namespace: "default"}, LastTimestamp: at,
				InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "smt2"}, Reason: "SystemOOM", Message: "System OOM encountered, victim process: eat, pid: 333"})
		}), want: []string{"node-oom@app likely"}},
		{name: "the limit was resized after the kill", on: oomPod, edit: func(b *bundle) {
			b.put(podGroup, "memory.max", "268435456")
		}, want: []string{container}, text: []string{"own memory limit of 128Mi (134217728 bytes)"}},
		{name: "a start that failed with room to spare", on: tmpfsPod, edit: inOrder(withoutLog, func(b *bundle) {
			b.put(podGroup, "memory.current", "2097152")
			b.set(podGroup, "memory.stat", map[string]int64{"anon": 200_000, "file": 0, "shmem": 0})
			b.end("app").Message = `exec: "server": executable file not found in $PATH: unknown`
		}), loose: true, not: []string{"container-start-oom@app likely", "container-start-oom@app proven"}},

		{name: "a container that two restarts ago cannot be told from its neighbour", on: podLimitPod, edit: func(b *bundle) {
			b.forgetTree()
			b.kernelLog(b.block("pod-6.12", strings.Repeat("0f", 32)))
			for _, name := range []string{"a", "b"} {
				withEnd(name, "Error", 1)(b)
			}
		}, loose: true, want: []string{"pod-memory-limit-oom@ proven"}},
	}}
}

// nestedJob makes a group "job" inside container app and lets all groups above
// count its events.
func withNestedJob(tree, local counted, limit string) func(*bundle) {
	return func(b *bundle) {
		text := func(c counted) string {
			return withKeys(b.t, "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n", c)
		}
		b.nested("app", "job", map[string]string{"memory.max": limit + "\n", "memory.events": text(tree), "memory.events.local": text(local)})
		b.memEvents("app", tree, nil)
		b.memEvents(podGroup, tree, nil)
	}
}
