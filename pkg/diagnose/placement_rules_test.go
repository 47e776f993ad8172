package diagnose

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A cpuRow is a CPU's core, NUMA node and last level cache; sockets are nodes.
type cpuRow struct{ core, node, cache int }

// adjacent are CPUs of cores with so many threads, which have adjacent numbers.
func adjacent(cpus, threads, perNode, perCache int) []cpuRow {
	var rows []cpuRow
	for id := range cpus {
		rows = append(rows, cpuRow{id / threads, id / perNode, id / perCache})
	}
	return rows
}

// apart are CPUs of 2-thread cores whose siblings are half the machine apart.
func apart(cpus int) []cpuRow {
	var rows []cpuRow
	for id := range cpus {
		rows = append(rows, cpuRow{id % (cpus / 2), 0, 0})
	}
	return rows
}

// hybrid has two cores of two threads and four of one.
func hybrid() []cpuRow {
	rows := adjacent(8, 1, 8, 8)
	for id, core := range []int{0, 0, 1, 1, 2, 3, 4, 5} {
		rows[id].core = core
	}
	return rows
}

// onMachine is a node of that machine with these pods; the first is asked about.
// entries are the CPU Manager's, by pod and container; the pool is the rest.
func onMachine(rows []cpuRow, config map[string]any, pool string, entries map[string]map[string]string, pods ...corev1.Pod) func(testing.TB) *bundle {
	return func(t testing.TB) *bundle {
		b := &bundle{t: t, files: map[string]string{}, node: "n1", pods: pods, events: []corev1.Event{}}
		b.files["bundle.json"] = `{"formatVersion":1,"capturedAt":"2026-11-30T10:00:00Z"}`
		table := "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n"
		for id, r := range rows {
			table += fmt.Sprintf("%d,%d,%d,%d,,%d,%d,%d,%d\n", id, r.core, r.node, r.node, r.core, r.core, r.core, r.cache)
		}
		b.files["nodes/n1/lscpu.txt"] = table
		settings := map[string]any{"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", "memoryManagerPolicy": "None", "topologyManagerPolicy": "none", "topologyManagerScope": "container"}
		for k, v := range config {
			settings[k] = v
		}
		configz, _ := json.Marshal(map[string]any{"kubeletconfig": settings})
		b.files["nodes/n1/configz.json"] = string(configz)
		state, _ := json.Marshal(map[string]any{"policyName": "static", "defaultCpuSet": pool, "entries": entries})
		b.files[b.root("var/lib/kubelet/cpu_manager_state")] = string(state)
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		node.Status.NodeInfo.KubeletVersion = "v1.37.2"
		node.Status.Capacity = amounts("cpu", fmt.Sprint(len(rows)), "memory", "16Gi")
		node.Status.Allocatable = amounts("cpu", fmt.Sprint(len(rows)-1), "memory", "16Gi")
		b.nodes = []corev1.Node{node}
		return b
	}
}

// whole is a Guaranteed pod that came in that minute; its UID is its name.
func whole(name string, minute int, cpus string) corev1.Pod {
	at := metav1.NewTime(time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC))
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: at}}
	r := corev1.ResourceRequirements{Requests: amounts("cpu", cpus, "memory", "64Mi"), Limits: amounts("cpu", cpus, "memory", "64Mi")}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Name: "app", Resources: r}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSGuaranteed, StartTime: &at,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}}
	return p
}

// withInit gives a pod an init container that is done.
func withInit(p corev1.Pod, cpus string) corev1.Pod {
	r := corev1.ResourceRequirements{Requests: amounts("cpu", cpus, "memory", "64Mi"), Limits: amounts("cpu", cpus, "memory", "64Mi")}
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: r}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: *p.Status.StartTime, FinishedAt: *p.Status.StartTime}}}}
	return p
}

// twoApps adds an app container b that asks for so many CPUs.
func twoApps(p corev1.Pod, cpus string) corev1.Pod {
	r := corev1.ResourceRequirements{Requests: amounts("cpu", cpus, "memory", "64Mi"), Limits: amounts("cpu", cpus, "memory", "64Mi")}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b", Resources: r})
	return p
}

func holds(of ...string) map[string]map[string]string {
	entries := map[string]map[string]string{}
	for _, o := range of {
		f := strings.Fields(o)
		if entries[f[0]] == nil {
			entries[f[0]] = map[string]string{}
		}
		entries[f[0]][f[1]] = f[2]
	}
	return entries
}

func withOptions(of ...string) map[string]any {
	list := map[string]string{}
	for _, o := range of {
		list[o] = "true"
	}
	return map[string]any{"cpuManagerPolicyOptions": list}
}

func setsFamily() family {
	two := adjacent(8, 2, 4, 4)
	withGPU := func(node int) func(*bundle) {
		return func(b *bundle) {
			b.files["nodes/n1/podresources.json"] = fmt.Sprintf(`{"list":{"pod_resources":[{"name":"a","namespace":"ns","containers":[{"name":"app",
				"devices":[{"resource_name":"x.com/gpu","device_ids":["g7"],"topology":{"nodes":[{"ID":%d}]}}]}]}]}}`, node)
		}
	}
	booked := func(nodes string) func(*bundle) {
		return func(b *bundle) {
			b.files[b.root("var/lib/kubelet/memory_manager_state")] = `{"policyName":"Static","machineState":{},"entries":{"a":{"app":[{"numaAffinity":` + nodes + `,"type":"memory","size":67108864}]}}}`
		}
	}
	isolated := func(cpus string) func(*bundle) {
		return func(b *bundle) { b.files[b.root("sys/devices/system/cpu/isolated")] = cpus + "\n" }
	}
	return family{name: "sets", codes: []report.Code{report.SMTSiblingShared, report.IsolatedCPUsInSet, report.NUMASplit, report.UncoreCacheSplit,
		report.NUMAAligned, report.DeviceNUMAMismatch, report.MemoryRemote, report.InitContainerHoldsCPUs}, cases: []ruleCase{
		{name: "a core on one node", on: onMachine(two, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), want: []string{"numa-aligned@app proven"}, text: []string{"node 0"}},
		{name: "one thread, the pool has the other", on: onMachine(apart(8), nil, "0,2-7", holds("a app 1"), whole("a", 1, "1")),
			want: []string{"smt-sibling-shared@app proven"}, text: []string{"owns CPU 1", "(5)", "the shared pool (on 5)"}},
		{name: "one thread, another pod has the other", on: onMachine(apart(8), nil, "0,2-4,6-7", holds("a app 1", "b app 5"), whole("a", 1, "1"), whole("b", 2, "1")),
			want: []string{"smt-sibling-shared@app proven"}, text: []string{"container app of pod ns/b (on 5)"}},
		{name: "whole cores far apart in number", on: onMachine(apart(8), nil, "0,2-4,6-7", holds("a app 1,5"), whole("a", 1, "2")), want: nil},
		{name: "no SMT", on: onMachine(adjacent(8, 1, 8, 8), nil, "0,2-7", holds("a app 1"), whole("a", 1, "1")), want: nil},
		{name: "two nodes where one would do", on: onMachine(two, nil, "0-1,3,5-7", holds("a app 2,4"), whole("a", 1, "2")),
			want: []string{"numa-split@app proven", "smt-sibling-shared@app proven"}, text: []string{"2 on node 0 and 4 on node 1", "the policy none does not insist"}},
		{name: "two nodes under a policy that refuses them", on: onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1,3,5-7", holds("a app 2,4"), whole("a", 1, "2")),
			want: []string{"numa-split@app proven", "smt-sibling-shared@app proven"}, text: []string{"placed before the policy or the state changed", "Make the pod anew"}, lacks: []string{"does not insist", "Set topologyManagerPolicy"}},
		{name: "more than a node has under a policy that refuses it", on: onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1", holds("a app 2-7"), whole("a", 1, "6")),
			want: []string{"numa-split@app proven"}, text: []string{"more than 4 to give", "placed before the policy or the state changed"}},
		{name: "two nodes that restricted lets through", on: onMachine(two, map[string]any{"topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"}, "0", holds("z app 4-5", "a app 2-3,6-7", "a b 1"), twoApps(whole("a", 2, "4"), "1"), whole("z", 1, "2")),
			want: []string{"numa-split@app proven"}, loose: true, text: []string{"the policy restricted admits the pod all the same"}},
		{name: "single threads under full-pcpus-only", on: onMachine(apart(8), withOptions("full-pcpus-only"), "0,2-7", holds("a app 1"), whole("a", 1, "1")),
			want: []string{"smt-sibling-shared@app proven"}, text: []string{"full-pcpus-only=true is set", "Make the pod anew"}, lacks: []string{"Set the CPU Manager's option"}},
		{name: "memory kept to another node", on: onMachine(two, map[string]any{"memoryManagerPolicy": "Static"}, "0-3,6-7", holds("a app 4-5"), whole("a", 1, "2")), edit: booked("[0]"),
			want: []string{"memory-remote@app proven"}, text: []string{"on NUMA node 0 and kept to it, but its CPUs 4-5 are on NUMA node 1", "Set topologyManagerPolicy"}},
		{name: "memory kept to another node too", on: onMachine(two, map[string]any{"memoryManagerPolicy": "Static"}, "0-3,6-7", holds("a app 4-5"), whole("a", 1, "2")), edit: booked("[0,1]"), want: nil},
		{name: "memory kept to the node", on: onMachine(two, map[string]any{"memoryManagerPolicy": "Static"}, "0-3,6-7", holds("a app 4-5"), whole("a", 1, "2")), edit: booked("[1]"), want: []string{"numa-aligned@app proven"}},
		{name: "more than a node has", on: onMachine(two, nil, "0-1", holds("a app 2-7"), whole("a", 1, "6")), want: []string{"numa-split@app proven"}, text: []string{"more than 4 to give"}},
		{name: "two caches where one would do", on: onMachine(adjacent(16, 1, 16, 4), nil, "0-1,6-15", holds("a app 2-5"), whole("a", 1, "4")),
			want: []string{"uncore-cache-split@app proven"}, text: []string{"2 last level caches where 1", "2-3 of 0-3 and 4-5 of 4-7"}},
		{name: "two caches for what one cannot hold", on: onMachine(adjacent(16, 1, 16, 4), nil, "0-3,12-15", holds("a app 4-11"), whole("a", 1, "8")), want: nil},
		{name: "its GPU on the other node", on: onMachine(two, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), edit: withGPU(1),
			want: []string{"device-numa-mismatch@app proven"}, text: []string{"g7"}},
		{name: "its GPU on its node", on: onMachine(two, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), edit: withGPU(0), want: []string{"numa-aligned@app proven"}},
		{name: "isolated CPUs", on: onMachine(apart(8), nil, "0,3-4,7", holds("a app 1-2,5-6"), whole("a", 1, "4")), edit: isolated("1-3,5-7"),
			want: []string{"isolated-cpus-in-set@app proven"}, text: []string{"isolates 1-2,5-6"}},
		{name: "isolated CPUs by the command line alone", on: onMachine(apart(8), nil, "0,3-4,7", holds("a app 1-2,5-6"), whole("a", 1, "4")), edit: func(b *bundle) {
			b.files[b.root("proc/cmdline")] = "quiet isolcpus=domain,managed_irq,1-3,5-7\n"
		}, want: []string{"isolated-cpus-in-set@app proven"}, text: []string{"isolates 1-2,5-6", "domain,managed_irq,1-3,5-7"}},
		{name: "CPUs isolated from the tick only", on: onMachine(apart(8), nil, "0,3-4,7", holds("a app 1-2,5-6"), whole("a", 1, "4")), edit: func(b *bundle) {
			b.files[b.root("proc/cmdline")] = "isolcpus=nohz,1-3,5-7\n"
		}, want: nil},
		{name: "isolated CPUs of others", on: onMachine(apart(8), nil, "0,3-4,7", holds("a app 1-2,5-6"), whole("a", 1, "4")), edit: isolated("3,7"), want: nil},
		{name: "no isolated CPUs", on: onMachine(apart(8), nil, "0,3-4,7", holds("a app 1-2,5-6"), whole("a", 1, "4")), edit: isolated(""), want: nil},
		{name: "isolated CPUs in the pool", on: onMachine(apart(8), nil, "0-7", nil, whole("a", 1, "500m")), edit: isolated("3,7"), want: []string{"isolated-cpus-in-set@app proven"}, text: []string{"shared pool 0-7"}},

		{name: "an init container's CPU that nobody took over", on: onMachine(apart(8), nil, "0,2-3,6-7", holds("a init 4", "a app 1,5"), withInit(whole("a", 1, "2"), "1")),
			want: []string{"init-container-holds-cpus@init proven"}, text: []string{"4 of init containers − 1,5 of the others = 4"}},
		{name: "an init container's CPU that was taken over", on: onMachine(apart(8), nil, "0,3-5,7", holds("a init 2", "a app 2,6"), withInit(whole("a", 1, "2"), "1")), want: nil},
		{name: "an init container's CPU, its status is not known", on: onMachine(apart(8), nil, "0,2-3,6-7", holds("a init 4", "a app 1,5"), withInit(whole("a", 1, "2"), "1")), edit: func(b *bundle) {
			b.pod().Status.InitContainerStatuses = nil
		}, want: []string{"init-container-holds-cpus@init proven", "smt-sibling-shared@init proven"}},
		{name: "an init container that still runs", on: onMachine(apart(8), nil, "0,2-3,6-7", holds("a init 4", "a app 1,5"), withInit(whole("a", 1, "2"), "1")), edit: func(b *bundle) {
			b.pod().Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, want: []string{"smt-sibling-shared@init proven"}},
		{name: "an init container's CPU, asked about the node", node: true, on: onMachine(apart(8), nil, "0,2-3,6-7", holds("a init 4", "a app 1,5"), withInit(whole("a", 1, "2"), "1")),
			want: []string{"init-container-holds-cpus@init proven"}},
		{name: "an init container's CPU, asked about a pod that was refused", on: onMachine(apart(8), nil, "0,2-3,6-7", holds("b init 4", "b app 1,5"), refused("a"), withInit(whole("b", 1, "2"), "1")),
			want: []string{"init-container-holds-cpus@init proven"}, text: []string{"pod ns/b"}},
	}}
}

func refused(name string) corev1.Pod {
	p := whole(name, 30, "5")
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", StartTime: p.Status.StartTime,
		Message: "Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=5, available=4, which is unexpected"}
	return p
}

func machinesFamily() family {
	return family{name: "machines", codes: []report.Code{report.ReservedSplitsCore, report.UnevenCoreAverages}, cases: []ruleCase{
		{name: "half a core reserved", node: true, on: onMachine(apart(8), withOptions("full-pcpus-only"), "0-7", nil, whole("a", 1, "500m")),
			want: []string{"reserved-splits-core@ proven"}, text: []string{"8 CPUs − 2 of the cores with a reserved CPU (0,4) = 6", "The reserved CPU 0 splits a core: its sibling 4"}},
		{name: "a whole core reserved", node: true, on: onMachine(apart(8), map[string]any{"reservedSystemCPUs": "0,4", "cpuManagerPolicyOptions": map[string]string{"full-pcpus-only": "true"}}, "0-7", nil, whole("a", 1, "500m")), want: nil},
		{name: "half a core reserved, single CPUs can be pinned", node: true, on: onMachine(apart(8), nil, "0-7", nil, whole("a", 1, "500m")), want: nil},
		{name: "half a core reserved by the kubelet's own choice", node: true, on: onMachine(apart(8), map[string]any{"reservedSystemCPUs": "", "kubeReserved": map[string]string{"cpu": "500m"},
			"cpuManagerPolicyOptions": map[string]string{"full-pcpus-only": "true"}}, "0-7", nil, whole("a", 1, "500m")),
			want: []string{"reserved-splits-core@ proven"}, text: []string{"picks by topology: 0", "500m"}},
		{name: "cores of unlike size", node: true, on: onMachine(hybrid(), nil, "0-7", nil, whole("a", 1, "500m")),
			want: []string{"uneven-core-averages@ proven"}, text: []string{"⌊8 CPUs / 6 cores⌋ = 1", "as soon as one is"}},
		{name: "cores of unlike size, and it has happened", node: true, on: onMachine(hybrid(), nil, "2-7", holds("a app 0-1"), whole("a", 1, "2")),
			want: []string{"uneven-core-averages@ proven"}, text: []string{"It has happened: CPU 0 is booked"}},
		{name: "cores of unlike size under policy none", node: true, on: onMachine(hybrid(), map[string]any{"cpuManagerPolicy": "none"}, "", nil, whole("a", 1, "500m")), want: nil},
	}}
}

func replaysFamily() family {
	withGPUs := func(nodes ...int) func(*bundle) {
		return func(b *bundle) {
			var list []string
			for i, node := range nodes {
				list = append(list, fmt.Sprintf(`{"resource_name":"x.com/gpu","device_ids":["g%d"],"topology":{"nodes":[{"ID":%d}]}}`, i, node))
			}
			b.files["nodes/n1/podresources.json"] = fmt.Sprintf(`{"list":{"pod_resources":[{"name":"a","namespace":"ns","containers":[{"name":"app","devices":[%s]}]}]},
				"allocatable":{"devices":[%s]}}`, list[len(list)-1], strings.Join(list, ","))
		}
	}
	eight := adjacent(8, 2, 8, 8)
	ended := func(p corev1.Pod, minute int) corev1.Pod {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: *p.Status.StartTime, FinishedAt: metav1.NewTime(time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC))}}
		return p
	}
	asks := func(p corev1.Pod, resource string) corev1.Pod {
		p.Spec.Containers[0].Resources.Limits[corev1.ResourceName(resource)] = amounts("cpu", "1")["cpu"]
		return p
	}
	older := func(b *bundle) { b.nodes[0].Status.NodeInfo.KubeletVersion = "v1.30.0" }
	return family{name: "replays", codes: []report.Code{report.PlacementReplayed, report.PlacementNeedsGonePods, report.PlacementDiffers}, cases: []ruleCase{
		{name: "the first free core", on: onMachine(eight, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), want: []string{"placement-replayed@ proven"}},
		{name: "after another", on: onMachine(eight, nil, "0-1,6-7", holds("a app 4-5", "b app 2-3"), whole("a", 2, "2"), whole("b", 1, "2")), want: []string{"placement-replayed@ proven"}, text: []string{"after the 1 pod that came before and still holds its own"}},
		{name: "of one moment, in the order that fits", on: onMachine(eight, nil, "0-1,6-7", holds("a app 4-5", "b app 2-3"), whole("a", 1, "2"), whole("b", 1, "2")), want: []string{"placement-replayed@ proven"}},
		{name: "by an older kubelet", on: onMachine(eight, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), edit: older, want: []string{"placement-replayed@ likely"}},
		{name: "another must have held the first free core", on: onMachine(eight, nil, "0-3,6-7", holds("a app 4-5"), whole("a", 1, "2")), want: []string{"placement-needs-gone-pods@ likely"},
			text: []string{"held CPUs 2-3 when it came", "it would be CPUs 2-3", "no other of this size"}},
		{name: "another must have held it, and events name it", on: onMachine(eight, nil, "0-3,6-7", holds("a app 4-5"), whole("a", 5, "2")), edit: func(b *bundle) {
			for i, name := range []string{"over", "gone", "later"} {
				at := metav1.NewTime(time.Date(2026, 11, 30, 8, 1+2*i, 30, 0, time.UTC))
				e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: "Started", FirstTimestamp: at, LastTimestamp: at, Source: corev1.EventSource{Host: "n1"},
					InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: name}}
				b.events = append(b.events, e)
			}
			end := b.events[0]
			end.Name, end.Reason = "over-end", "Killing"
			end.LastTimestamp = metav1.NewTime(end.LastTimestamp.Add(time.Minute))
			b.events = append(b.events, end)
		}, want: []string{"placement-needs-gone-pods@ likely"}, text: []string{"Events name pod ns/gone, which was there"}},
		{name: "others must have held two cores", on: onMachine(eight, nil, "0-5", holds("a app 6-7"), whole("a", 1, "2")), want: []string{"placement-needs-gone-pods@ likely"}, text: []string{"held CPUs 2-5"}},
		{name: "it came before the pod that holds the first core now", on: onMachine(eight, nil, "0-1,6-7", holds("a app 4-5", "b app 2-3"), whole("a", 1, "2"), whole("b", 2, "2")), want: []string{"placement-needs-gone-pods@ likely"}},
		{name: "the other has ended and is still listed", on: onMachine(eight, nil, "0-3,6-7", holds("a app 4-5"), whole("a", 2, "2"), ended(whole("b", 1, "2"), 3)), want: []string{"placement-replayed@ proven"}, text: []string{"ended since"}},
		{name: "the other had ended before", on: onMachine(eight, nil, "0-3,6-7", holds("a app 4-5"), whole("a", 3, "2"), ended(whole("b", 1, "2"), 2)), want: []string{"placement-needs-gone-pods@ likely"}},
		{name: "by a device whose place is not known", on: onMachine(eight, nil, "0-3,6-7", holds("a app 4-5"), asks(whole("a", 1, "2"), "x.com/gpu")), want: []string{"placement-needs-gone-pods@ possible"}},
		{name: "a device of a gone pod can have moved it", on: onMachine(adjacent(8, 1, 4, 4), map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-3,6-7", holds("a app 4-5"), asks(whole("a", 1, "2"), "x.com/gpu")),
			edit: withGPUs(0, 1), want: []string{"placement-needs-gone-pods@ likely"}, text: []string{"follows if other pods, gone since, held CPUs 1-2, or device x.com/gpu g0, when it came"}, lacks: []string{"only if"}},
		{name: "no device of a gone pod can have moved it", on: onMachine(adjacent(8, 1, 4, 4), map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1,4-7", holds("a app 2-3"), asks(whole("a", 1, "2"), "x.com/gpu")),
			edit: withGPUs(0, 1), want: []string{"placement-needs-gone-pods@ likely"}, text: []string{"held CPU 1 when it came"}},
		{name: "more than it asks for", on: onMachine(eight, nil, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "2")), want: []string{"placement-differs-from-replay@ proven"}, text: []string{"not the number"}},
		{name: "more than it asks for, by an older kubelet", on: onMachine(eight, nil, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "2")), edit: older, want: []string{"placement-differs-from-replay@ possible"}},
		{name: "CPUs for half a CPU", on: onMachine(eight, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "500m")), want: []string{"placement-differs-from-replay@ proven"}},
		{name: "threads of two cores under full-pcpus-only", on: onMachine(eight, withOptions("full-pcpus-only"), "0-2,5-7", holds("a app 3-4"), whole("a", 1, "2")), want: []string{"placement-needs-gone-pods@ likely"}},
		{name: "two nodes under single-numa-node", on: onMachine(adjacent(8, 2, 4, 4), map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1,3,5-7", holds("a app 2,4"), whole("a", 1, "2")),
			want: []string{"placement-differs-from-replay@ likely"}},
		{name: "nothing of its own", on: onMachine(eight, nil, "0-7", nil, whole("a", 1, "500m")), want: nil},
		{name: "a pod that has ended", on: onMachine(eight, nil, "0-7", nil, ended(whole("a", 1, "2"), 2)), want: nil},
		{name: "no configuration", on: onMachine(eight, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), edit: func(b *bundle) { b.forget("nodes/n1/configz.json") }, want: nil},
		{name: "a record that the kubelet refuses", on: onMachine(eight, nil, "0-5", holds("a app 2-3"), whole("a", 1, "2")), want: nil},
		{name: "asked about the node: as replayed", node: true, on: onMachine(eight, nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), want: nil},
		{name: "asked about the node: more than it asks for", node: true, on: onMachine(eight, nil, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "2")), want: []string{"placement-differs-from-replay@ proven"}},
	}}
}

func remoteFamily() family {
	anon := func(near, far int) func(*bundle) {
		return func(b *bundle) {
			b.put("app", "memory.numa_stat", fmt.Sprintf("anon N0=%d N1=%d\nfile N0=0 N1=900000000", near<<20, far<<20))
		}
	}
	return family{name: "remote", codes: []report.Code{report.MemoryRemote}, cases: []ruleCase{
		{name: "as recorded", on: exclusivePod, want: nil},
		{name: "nine tenths on the other node", on: exclusivePod, edit: anon(10, 90), want: []string{"memory-remote@app proven"}, text: []string{"90 %", "N0=10485760 and N1=94371840"}},
		{name: "a tenth", on: exclusivePod, edit: anon(180, 20), want: []string{"memory-remote@app proven"}},
		{name: "less than a tenth", on: exclusivePod, edit: anon(181, 19), want: nil},
		{name: "little", on: exclusivePod, edit: anon(1, 15), want: nil},
		{name: "page cache only", on: exclusivePod, edit: anon(50, 0), want: nil},
		{name: "shared CPUs", on: fractionPod, edit: anon(10, 90), want: nil},
	}}
}

// TestPlacement asks about whole nodes.
func TestPlacement(t *testing.T) {
	eight := adjacent(8, 2, 8, 8)
	for _, tc := range []struct {
		name string
		on   func(testing.TB) *bundle
		edit func(*bundle)
		want []string // code@subject confidence
		text string
	}{
		{name: "replayed", on: onMachine(eight, nil, "0-1,6-7", holds("a app 4-5", "b app 2-3"), whole("a", 2, "2"), whole("b", 1, "2")), want: []string{"placement-replayed@n1 proven"}, text: "the 2 pods"},
		{name: "an empty node", on: onMachine(eight, nil, "0-7", nil, whole("a", 1, "500m")), want: []string{"placement-replayed@n1 proven"}, text: "No container holds"},
		{name: "policies none", on: onMachine(eight, nil, "", nil, whole("a", 1, "2")), edit: func(b *bundle) {
			b.config(map[string]any{"cpuManagerPolicy": "none"})
			b.forget(b.root("var"))
		}, want: []string{"placement-replayed@n1 proven"}, text: "policies none"},
		{name: "one needs others", on: onMachine(eight, nil, "0-1,6-7", holds("a app 4-5", "b app 2-3"), whole("a", 1, "2"), whole("b", 2, "2")), want: []string{"placement-needs-gone-pods@n1 likely"}, text: "1 of the 2 pods"},
		{name: "one differs", on: onMachine(eight, nil, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "2")), want: []string{"placement-differs-from-replay@n1 proven"}},
		{name: "an entry of a pod that nobody lists", on: onMachine(eight, nil, "0-1,6-7", holds("a app 2-3", "x app 4-5"), whole("a", 1, "2")), want: []string{"placement-replayed@n1 likely"}, text: "entries of 1 pod besides"},
		{name: "a record that the next start refuses, and the replay gives", on: onMachine(hybrid(), nil, "2-7", holds("a app 0-1"), whole("a", 1, "2")), want: []string{"placement-replayed@n1 proven"}, text: "would refuse it"},
		{name: "no checkpoint", on: onMachine(eight, nil, "0-7", nil, whole("a", 1, "2")), edit: func(b *bundle) { b.forget(b.root("var")) }, want: []string{"evidence-missing@n1 proven"}},
		{name: "a record that the kubelet refuses", on: onMachine(eight, nil, "0-5", holds("a app 2-3"), whole("a", 1, "2")), want: []string{"evidence-missing@n1 proven"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tc.on(t)
			if tc.edit != nil {
				tc.edit(b)
			}
			r, err := Placement(b.open(), "n1", Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range malformed(r) {
				t.Error(wrong)
			}
			var got []string
			for _, f := range r.Findings {
				switch f.Code {
				case report.PlacementReplayed, report.PlacementNeedsGonePods, report.PlacementDiffers, report.EvidenceMissing:
					got = append(got, fmt.Sprintf("%s@%s %s", f.Code, f.Subject.Name, f.Confidence))
					if !strings.Contains(f.Summary, tc.text) {
						t.Errorf("summary lacks %q: %s", tc.text, f.Summary)
					}
				}
			}
			if strings.Join(got, "; ") != strings.Join(tc.want, "; ") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if _, err := Placement(onMachine(eight, nil, "0-7", nil, whole("a", 1, "2"))(t).open(), "n2", Options{}); err == nil {
		t.Error("a node that is not there: no error")
	}
}

// A node with every CPU pinned is replayed and searched in time.
func TestPlacementOfManyPods(t *testing.T) {
	rows := adjacent(512, 2, 64, 16)
	var pods []corev1.Pod
	var entries []string
	for i := range 248 {
		name := fmt.Sprintf("p%03d", i)
		// Pairs have changed places, so that every other one needs pods that are gone.
		first := 2 + 2*(i^1)
		pods, entries = append(pods, whole(name, i%60, "2")), append(entries, fmt.Sprintf("%s app %d-%d", name, first, first+1))
	}
	start := time.Now()
	r, err := Placement(onMachine(rows, nil, "0-1,498-511", holds(entries...), pods...)(t).open(), "n1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	if data, _ := json.Marshal(r); len(data) > 190_000 {
		t.Errorf("a report of %d bytes", len(data))
	}
}
