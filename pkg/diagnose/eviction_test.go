package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// captured is when the recorded node smt2 was read.
var captured = time.Date(2026, 11, 30, 7, 7, 47, 0, time.UTC)

const lowOnMemory = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 93Mi. "

// withStatus makes the pod one that the kubelet has evicted, with a message.
func withStatus(message string) func(*bundle) {
	return func(b *bundle) {
		b.pod().Status.Phase, b.pod().Status.Reason, b.pod().Status.Message = corev1.PodFailed, "Evicted", message
	}
}

// withTry adds the kubelet's event of an eviction, some time before the bundle
// was made; annotations in pairs.
func withTry(message string, before time.Duration, annotations ...string) func(*bundle) {
	return func(b *bundle) {
		b.event("Evicted", "", message, captured.Add(-before))
		e := &b.events[len(b.events)-1]
		e.Annotations = map[string]string{}
		for i := 0; i+1 < len(annotations); i += 2 {
			e.Annotations[annotations[i]] = annotations[i+1]
		}
	}
}

// withCondition gives the node a condition that is true.
func withCondition(kind corev1.NodeConditionType) func(*bundle) {
	return func(b *bundle) {
		o := b.object()
		for i := range o.Status.Conditions {
			if o.Status.Conditions[i].Type == kind {
				o.Status.Conditions[i].Status = corev1.ConditionTrue
			}
		}
	}
}

// withVolume gives the pod an emptyDir volume that container app mounts.
func withVolume(name, limit string) func(*bundle) {
	return func(b *bundle) {
		q := amounts("x", limit)["x"]
		b.pod().Spec.Volumes = append(b.pod().Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}})
		b.container("app").VolumeMounts = append(b.container("app").VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/scratch"})
	}
}

// smt2Memory is all memory of the recorded node smt2, in bytes.
const smt2Memory = 6084868 << 10

// withAvailable makes memory.available of the node an amount, by its files.
func withAvailable(amount int64) func(*bundle) {
	return func(b *bundle) {
		b.files[b.root("proc/meminfo")] = fmt.Sprintf("MemTotal:        %d kB\nSwapTotal:       0 kB\n", smt2Memory>>10)
		for _, k := range b.samples() {
			b.files[b.file(k, "/", "memory.stat")] = withKeys(b.t, b.files[b.file(k, "/", "memory.stat")],
				map[string]int64{"anon": smt2Memory - amount, "file": 1 << 20, "inactive_file": 1 << 20})
		}
	}
}

// withOther adds another pod to the node: a container app that runs, of which
// the kubelet's summary says how much it uses.
func withOther(name string, priority int32, request string) func(*bundle) {
	return func(b *bundle) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: "00000000-0000-4000-8000-00000000000" + "9"}}
		p.Spec.NodeName, p.Spec.Priority = b.node, &priority
		p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: amounts("memory", request)}}}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://" + strings.Repeat("9", 64)}}}
		b.pods = append(b.pods, p)
	}
}

// withSummary is the kubelet's summary: what memory is available on the node, and
// the working set of pods by UID.
func withSummary(available int64, pods ...string) func(*bundle) {
	return func(b *bundle) {
		var list []string
		for i := 0; i+1 < len(pods); i += 2 {
			uid := pods[i]
			if uid == "" {
				uid = string(b.pod().UID)
			}
			list = append(list, fmt.Sprintf(`{"podRef":{"name":"x","namespace":"shop","uid":%q},"memory":{"workingSetBytes":%s},
				"containers":[{"name":"app","rootfs":{"usedBytes":%s},"logs":{"usedBytes":0}}],"process_stats":{"process_count":%s}}`, uid, pods[i+1], pods[i+1], pods[i+1]))
		}
		b.files["nodes/"+b.node+"/stats-summary.json"] = fmt.Sprintf(`{"node":{"memory":{"availableBytes":%d,"workingSetBytes":%d},
			"fs":{"availableBytes":90,"capacityBytes":1000,"inodesFree":900,"inodes":1000},"rlimit":{"maxpid":1000,"curproc":100}},"pods":[%s]}`,
			available, smt2Memory-available, strings.Join(list, ","))
	}
}

const otherUID = "00000000-0000-4000-8000-000000000009"

func evictionsFamily() family {
	pressure, local := "evicted-node-pressure@ proven", "evicted-local-storage@ proven"
	unfinished, next := "eviction-unfinished@ proven", "eviction-next@ likely"
	none := []string(nil)
	low := withAvailable(93 << 20)
	// The disk of withSummary is short as well; where memory is asked about it is not.
	noDisk := func(b *bundle) {
		b.config(map[string]any{"evictionHard": map[string]string{"memory.available": "100Mi"}})
	}
	return family{name: "evictions", codes: []report.Code{
		report.EvictedNodePressure, report.EvictedLocalStorage, report.EvictionUnfinished, report.EvictionNext,
	}, cases: []ruleCase{
		{name: "evicted for memory", on: oomPod, edit: withStatus(lowOnMemory), want: []string{pressure},
			text: []string{"available 93Mi, below the threshold of 100Mi", "evictionHard[memory.available]", "a hard threshold"}},
		{name: "evicted for memory, with who used how much", on: oomPod, edit: inOrder(
			withStatus(lowOnMemory+"Container app was using 500Mi, request is 100Mi, has larger consumption of memory. "),
			withTry(lowOnMemory, time.Minute, "starved_resource", "memory", "offending_containers", "app", "offending_containers_usage", "500Mi")),
			want: []string{pressure}, text: []string{"2026-11-30T07:06:47Z", "container app used 500Mi of a request of 100Mi", "offending_containers_usage", "pods above their request go first"}},
		{name: "evicted for memory, without statistics", on: oomPod, edit: inOrder(withStatus(lowOnMemory), withTry(lowOnMemory, time.Minute)),
			want: []string{pressure}, text: []string{"no statistics of the pod"}},
		{name: "evicted for memory, below its request", on: oomPod, edit: inOrder(withStatus(lowOnMemory), withTry(lowOnMemory, time.Minute, "starved_resource", "memory")),
			want: []string{pressure}, text: []string{"none of its containers was above its request"}, lacks: []string{"no statistics"}},
		{name: "evicted for memory, ranked in the kubelet's log", on: oomPod, edit: inOrder(withStatus(lowOnMemory), withTry(lowOnMemory, time.Minute), func(b *bundle) {
			b.files["nodes/smt2/kubelet.log"] = strings.Join([]string{
				`2026-11-30T06:00:00.100000+0000 smt2 kubelet[1]: I1130 06:00:00.1 1 eviction_manager.go:427] "Eviction manager: pods ranked for eviction" pods=["shop/oom"]`,
				`2026-11-30T07:06:46.100000+0000 smt2 kubelet[1]: I1130 07:06:46.1 1 eviction_manager.go:427] "Eviction manager: pods ranked for eviction" pods=["shop/hog","shop/oom","shop/burst"]`,
				`2026-11-30T07:06:46.200000+0000 smt2 kubelet[1]: "Eviction manager: pods ranked for eviction" pods=["shop/oom`,
			}, "\n")
		}), want: []string{pressure}, text: []string{"ranked it 2 of 3", "shop/hog, shop/oom, shop/burst"}},
		{name: "evicted at a soft threshold", on: oomPod, edit: inOrder(withStatus("The node was low on resource: memory. Threshold quantity: 1Gi, available: 1000Mi. "), func(b *bundle) {
			b.config(map[string]any{"evictionSoft": map[string]string{"memory.available": "1Gi"}, "evictionSoftGracePeriod": map[string]string{"memory.available": "1m30s"}})
		}), want: []string{pressure}, text: []string{"a soft threshold: met for 1m30s"}},
		{name: "evicted for disk, the threshold a percentage", on: oomPod, edit: withStatus("The node was low on resource: ephemeral-storage. Threshold quantity: 25725992, available: 20Mi. Container app was using 1Gi, request is 0, has larger consumption of ephemeral-storage. "),
			want: []string{pressure}, text: []string{"evictionHard[nodefs.available]", `"value":"1%"`, "container app used 1Gi of a request of 0"}},
		{name: "evicted for inodes", on: oomPod, edit: withStatus("The node was low on resource: inodes. "), want: []string{pressure}, text: []string{"low on inodes"}},
		{name: "refused for a condition", on: recorded("smt2-k612/bundle", "shop", "reject-smt"), edit: withStatus("Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. "),
			want: []string{pressure}, text: []string{"refused the pod at admission", "MemoryPressure and DiskPressure"}},
		{name: "evicted for a reason of its own", on: oomPod, edit: withStatus("somebody said so\x1b[2J"), want: []string{"evicted-node-pressure@ likely"}},
		{name: "failed for another reason", on: oomPod, edit: inOrder(withStatus(lowOnMemory), func(b *bundle) { b.pod().Status.Reason = "Terminated" }), want: none},

		{name: "an emptyDir volume over its limit", on: oomPod, edit: inOrder(withStatus(`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `), withVolume("scratch", "1Gi")),
			want: []string{local}, text: []string{`volume \"scratch\" held more than its sizeLimit of 1Gi`, "written by app", "neither the node's disk nor memory was short"}},
		{name: "an emptyDir volume that the spec no longer has", on: oomPod, edit: withStatus(`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `), want: []string{local}},
		{name: "a container over its limit", on: oomPod, edit: inOrder(withStatus(`Container app exceeded its local ephemeral storage limit "2Gi". `), func(b *bundle) {
			b.container("app").Resources.Limits["ephemeral-storage"] = amounts("x", "2Gi")["x"]
		}), want: []string{"evicted-local-storage@app proven"}, text: []string{"limits.ephemeral-storage of 2Gi", "its writable layer and its logs"}},
		{name: "the pod over the sum of its limits", on: podLimitPod, edit: inOrder(withStatus("Pod ephemeral local storage usage exceeds the total limit of containers 3Gi. "), func(b *bundle) {
			b.container("a").Resources.Limits = amounts("ephemeral-storage", "1Gi")
			b.container("b").Resources.Limits = amounts("ephemeral-storage", "2Gi")
		}), want: []string{local}, text: []string{"3Gi together", "1Gi, 2Gi → 3Gi"}},

		{name: "an attempt that got nowhere", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			b.event("ExceededGracePeriod", "", "Container runtime did not kill the pod within specified grace period.", captured.Add(-5*time.Minute+10*time.Second))
		}), want: []string{unfinished}, text: []string{"5m0s later it is not evicted", "ExceededGracePeriod", "no statistics of the pod", "frees no more than that"}},
		{name: "an attempt that got nowhere, no other event", on: oomPod, edit: withTry(lowOnMemory, 5*time.Minute), want: []string{unfinished}, lacks: []string{"ExceededGracePeriod)"}},
		{name: "an attempt on a node that is not Ready", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			for i := range b.object().Status.Conditions {
				if c := &b.object().Status.Conditions[i]; c.Type == corev1.NodeReady {
					c.Status = corev1.ConditionUnknown
				}
			}
		}), want: []string{"eviction-unfinished@ likely"}},
		{name: "an attempt without a time", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			e := &b.events[len(b.events)-1]
			e.FirstTimestamp, e.LastTimestamp = metav1.Time{}, metav1.Time{}
		}), want: []string{unfinished}, lacks: []string{"0001"}},
		{name: "an attempt under way", on: oomPod, edit: withTry(lowOnMemory, 20*time.Second), want: []string{"eviction-unfinished@ likely"}, text: []string{"still under way"}},
		{name: "an attempt under way for too long", on: oomPod, edit: withTry(lowOnMemory, 31*time.Second), want: []string{unfinished}},
		{name: "an attempt for a volume", on: oomPod, edit: withTry(`Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". `, 5*time.Minute), want: []string{unfinished}, text: []string{"sizeLimit of 1Gi"}},
		{name: "an attempt, and the container started again since", on: exclusivePod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			b.status("app").State.Running.StartedAt = metav1.NewTime(captured.Add(-time.Minute))
		}), want: []string{unfinished}, text: []string{"the kubelet gave it up"}},
		{name: "a grace period exceeded before", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			b.event("ExceededGracePeriod", "", "Container runtime did not kill the pod within specified grace period.", captured.Add(-time.Hour))
		}), want: []string{unfinished}, lacks: []string{"(ExceededGracePeriod)"}},
		{name: "an attempt on an earlier pod of the name", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			b.events[len(b.events)-1].InvolvedObject.UID = "other"
		}), want: none},
		{name: "somebody else's event Evicted", on: oomPod, edit: withTry("Evicted pod: Underutilized", 5*time.Minute), want: none},
		{name: "an attempt on a pod that has ended otherwise", on: oomPod, edit: inOrder(withTry(lowOnMemory, 5*time.Minute), func(b *bundle) { b.pod().Status.Phase = corev1.PodSucceeded }), want: none},
		{name: "a deletion by a taint", on: oomPod, edit: func(b *bundle) {
			b.event("TaintManagerEviction", "", "Marking for deletion Pod shop/oom", captured.Add(-time.Minute))
		}, want: none},
		{name: "on the node's report: evicted and attempted", on: oomPod, node: true, edit: inOrder(withOther("gone", 0, "1"), withTry(lowOnMemory, 5*time.Minute), func(b *bundle) {
			b.pods[1].Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: lowOnMemory}
		}), want: []string{pressure, unfinished}, text: []string{"evicted 1 pod", "shop/gone"}},

		{name: "below the threshold, by the node's files", on: throttledPod, edit: low, want: []string{next},
			text: []string{"memory.available is 93Mi, 7Mi below the hard threshold of 100Mi", "The kubelet evicts this pod next", "− (anon 6133387264 + file 1048576 − inactive_file 1048576) = 97517568"}},
		{name: "near the threshold", on: throttledPod, edit: withAvailable(300 << 20), want: []string{next}, text: []string{"300Mi, 200Mi above the hard threshold of 100Mi", "would evict"}},
		{name: "far from the threshold", on: throttledPod, edit: withAvailable(1 << 30), want: none},
		{name: "no threshold for memory", on: throttledPod, edit: inOrder(low, func(b *bundle) {
			b.config(map[string]any{"evictionHard": map[string]string{"nodefs.available": "1%"}})
		}), want: none},
		{name: "a threshold that cannot be read", on: throttledPod, edit: inOrder(low, func(b *bundle) {
			b.config(map[string]any{"evictionHard": map[string]string{"memory.available": "lots"}})
		}), want: none},
		{name: "a soft threshold", on: throttledPod, edit: inOrder(withAvailable(900<<20), func(b *bundle) {
			b.config(map[string]any{"evictionSoft": map[string]string{"memory.available": "1Gi"}, "evictionSoftGracePeriod": map[string]string{"memory.available": "2m"}, "evictionMinimumReclaim": map[string]string{"memory.available": "500Mi"}})
		}), want: []string{next}, text: []string{"124Mi below the soft threshold of 1Gi", "would evict", "met for 2m0s", "once met"}},
		{name: "all pods near their limit", on: throttledPod, edit: inOrder(withAvailable(2<<30), func(b *bundle) {
			b.put(kubepodsGroup, "memory.current", "5798891520")
			b.set(kubepodsGroup, "memory.stat", map[string]int64{"inactive_file": 0})
		}), want: []string{next}, text: []string{"allocatableMemory.available is 0 bytes"}},
		{name: "no configuration", on: throttledPod, edit: inOrder(low, func(b *bundle) { b.forgetKnown("nodes/smt2/configz.json") }), want: none},
		{name: "by the kubelet's summary", on: throttledPod, edit: inOrder(noDisk, withSummary(93<<20, "", "99999999")), want: []string{next}, text: []string{"kubelet:/stats/summary", "97517568", "uses 95.37Mi"}},
		{name: "another pod goes first: further above its request", on: throttledPod, edit: inOrder(noDisk, withOther("hog", 0, "1"), withSummary(93<<20, "", "99999999", otherUID, "199999999")), want: none},
		{name: "another pod goes first: it has no statistics", on: throttledPod, edit: inOrder(noDisk, withOther("hog", 1000, "1Gi"), withSummary(93<<20, "", "99999999")), want: none},
		{name: "another pod has the higher priority", on: throttledPod, edit: inOrder(noDisk, withOther("hog", 1000, "1"), withSummary(93<<20, "", "99999999", otherUID, "199999999")), want: []string{next}, text: []string{"place 2: pod shop/hog uses", "(priority 1000)"}},
		{name: "another pod stays below its request", on: throttledPod, edit: inOrder(noDisk, withOther("hog", -5, "1Gi"), withSummary(93<<20, "", "99999999", otherUID, "199999999")), want: []string{next}},
		{name: "another pod is critical", on: throttledPod, edit: inOrder(noDisk, withOther("hog", 2000000000, "1"), func(b *bundle) { b.pod().Spec.Priority = new(int32); *b.pod().Spec.Priority = 2000000001 - 2 },
			withSummary(93<<20, otherUID, "199999999", "", "99999999")), want: []string{next}},
		{name: "the pod itself is critical", on: throttledPod, edit: inOrder(noDisk, func(b *bundle) { b.pod().Spec.Priority = new(int32); *b.pod().Spec.Priority = 2000000000 }, withSummary(93<<20, "", "99999999")), want: none},
		{name: "short of disk", on: throttledPod, edit: inOrder(func(b *bundle) {
			b.config(map[string]any{"evictionHard": map[string]string{"nodefs.available": "10%"}})
		}, withSummary(4<<30, "", "70")), want: []string{next}, text: []string{"nodefs.available is 90 bytes, 10 bytes below the hard threshold of 100"}},
		{name: "short of processes", on: throttledPod, edit: inOrder(func(b *bundle) {
			b.config(map[string]any{"evictionHard": map[string]string{"pid.available": "95%"}})
		}, withSummary(4<<30, "", "70")), want: []string{next}, text: []string{"pid.available is 900 processes, 49 processes below the hard threshold of 949", "70 processes"}},
		{name: "a summary that is none", on: throttledPod, edit: inOrder(low, func(b *bundle) { b.files["nodes/smt2/stats-summary.json"] = "<html>" }), want: []string{next}},
		{name: "on the node's report", on: throttledPod, node: true, edit: inOrder(noDisk, withOther("hog", 0, "1"), withSummary(93<<20, "", "99999999", otherUID, "199999999")), want: []string{next}, text: []string{`"name":"hog"`, "first of 2 pods"}},
		{name: "on the node's report, the use of another pod not read", on: throttledPod, node: true, edit: inOrder(withOther("hog", 0, "1"), low, func(b *bundle) { delete(b.files, "gaps.json") }), want: []string{"eviction-next@ possible"}},
		{name: "on the node's report, not all its pods known", on: throttledPod, node: true, edit: inOrder(withOther("hog", 0, "1"), low, func(b *bundle) {
			b.files["gaps.json"] = `[{"path":"nodes/smt2/pods.json","reason":"Forbidden","detail":"needs list pods"}]`
		}), want: none},
		{name: "on the node's report, pods of other nodes not known", on: throttledPod, node: true, edit: inOrder(withOther("hog", 0, "1"), low, func(b *bundle) {
			b.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused","detail":"only those of the node"}]`
		}), want: []string{next}},
		{name: "on the node's report, the condition alone", on: throttledPod, node: true, edit: inOrder(onlyAPI, withCondition(corev1.NodeMemoryPressure)), want: []string{next}, text: []string{"cannot be told", `"kind":"Node"`}},
		{name: "on the node's report, a condition that is over by the figures", on: throttledPod, node: true, edit: inOrder(withAvailable(2<<30), withCondition(corev1.NodeMemoryPressure)), want: none},
		{name: "on the node's report, all well", on: throttledPod, node: true, edit: withAvailable(2 << 30), want: none},
	}}
}
