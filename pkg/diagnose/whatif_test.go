package diagnose

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// newPod is a pod of one container "app" with these limits.
func newPod(limits corev1.ResourceList) Template {
	return Template{Source: "file:pod.yaml", Pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Limits: limits}}}},
	}}
}

func cpuAndMemory(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func ask(t *testing.T, s *snapshot.Snapshot, pod Template, node string, set ...string) report.Report {
	t.Helper()
	settings, err := ParseSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	r, err := WhatIf(s, pod, []string{node}, WhatIfOptions{Set: settings})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.WhatIf) != 1 || len(r.Findings) == 0 {
		t.Fatalf("%+v", r)
	}
	return r
}

// A pod that is gone, finished or refused counts neither for the managers nor
// for the fit check.
func TestWhatIfCollects(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	pod := newPod(cpuAndMemory("2", "64Mi"))
	b.nodes[0].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("100")
	if got := *ask(t, b.open(), pod, "smt2").WhatIf[0].Containers[0].CPUs; got != "4-5" {
		t.Errorf("beside excl-a: %s", got)
	}
	b.pod().Status.Phase = corev1.PodFailed
	r := ask(t, b.open(), pod, "smt2")
	if got := *r.WhatIf[0].Containers[0].CPUs; got != "2-3" {
		t.Errorf("after excl-a: %s", got)
	}
	if got := r.Findings[0].Arithmetic; !strings.Contains(got, "cpu: 0 + 2 = 2 ≤ 100") {
		t.Errorf("its requests still count: %s", got)
	}
}

// The fit check's reasons beside those of sums, each from a change of the node
// or of the pod.
func TestWhatIfFitCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		node   func(*corev1.Node)
		pod    func(*corev1.Pod)
		reason string
	}{
		{name: "room", reason: ""},
		{name: "memory", node: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("32Mi") }, reason: "OutOfmemory"},
		{name: "pods", node: func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0") }, reason: "OutOfpods"},
		{name: "disk", pod: func(p *corev1.Pod) { limitTo(p, corev1.ResourceEphemeralStorage, "1Ei") }, reason: "OutOfephemeral-storage"},
		{name: "device", node: func(n *corev1.Node) { n.Status.Allocatable["example.com/nic"] = resource.MustParse("1") },
			pod: func(p *corev1.Pod) { limitTo(p, "example.com/nic", "2") }, reason: "OutOfexample.com/nic"},
		{name: "device of the cluster", pod: func(p *corev1.Pod) { limitTo(p, "example.com/licence", "2") }, reason: ""},
		{name: "selector", pod: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }, reason: "NodeAffinity"},
		{name: "taint", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoExecute}}
		}, reason: "TaintToleration"},
		{name: "taint that is tolerated", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoExecute}}
		},
			pod: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }, reason: ""},
		{name: "taint for the scheduler", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "out", Effect: corev1.TaintEffectNoSchedule}}
		}, reason: ""},
		{name: "not ready", node: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
		}, reason: ""},
		{name: "disk pressure", node: func(n *corev1.Node) { condition(n, corev1.NodeDiskPressure) }, reason: "Evicted"},
		{name: "memory pressure", node: func(n *corev1.Node) { condition(n, corev1.NodeMemoryPressure) }, reason: ""},
		{name: "memory pressure, BestEffort", node: func(n *corev1.Node) { condition(n, corev1.NodeMemoryPressure) },
			pod: func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }, reason: "Evicted"},
		{name: "disk pressure, critical", node: func(n *corev1.Node) { condition(n, corev1.NodeDiskPressure) },
			pod: func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, reason: ""},
		{name: "Windows", pod: func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, reason: "PodOSNotSupported"},
		{name: "port", node: func(*corev1.Node) {}, pod: func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }, reason: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := recorded("smt2-k612/bundle", "shop", "frac")(t)
			pod := newPod(cpuAndMemory("100m", "64Mi"))
			if c.node != nil {
				c.node(b.object())
			}
			if c.pod != nil {
				c.pod(pod.Pod)
			}
			r := ask(t, b.open(), pod, "smt2")
			if got := r.WhatIf[0].Reason; got != c.reason || *r.WhatIf[0].Admitted != (c.reason == "") {
				t.Errorf("%q, want %q: %s", got, c.reason, r.Findings[0].Summary)
			}
		})
	}
	b := recorded("smt2-k612/bundle", "shop", "frac")(t)
	port := []corev1.ContainerPort{{HostPort: 80}}
	b.pod().Spec.Containers[0].Ports = port
	pod := newPod(cpuAndMemory("100m", "64Mi"))
	pod.Spec.Containers[0].Ports = port
	if got := ask(t, b.open(), pod, "smt2").WhatIf[0].Reason; got != "NodePorts" {
		t.Errorf("a port in use: %q", got)
	}
}

func limitTo(p *corev1.Pod, name corev1.ResourceName, amount string) {
	p.Spec.Containers[0].Resources.Limits[name] = resource.MustParse(amount)
}

func condition(n *corev1.Node, name corev1.NodeConditionType) {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == name {
			n.Status.Conditions[i].Status = corev1.ConditionTrue
		}
	}
}

// A state that the next start refuses does not stop the kubelet that runs; one
// that does not run cannot be asked.
func TestWhatIfOnABadState(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.config(map[string]any{"reservedSystemCPUs": "0,7", "cpuManagerPolicyOptions": map[string]any{"strict-cpu-reservation": "true"}})
	r := ask(t, b.open(), newPod(cpuAndMemory("1", "64Mi")), "smt2")
	if f := r.Findings[0]; f.Code != report.WouldBeAdmittedNow || f.Confidence != report.Likely {
		t.Errorf("%s %s: %s", f.Code, f.Confidence, f.Summary)
	}
	for i := range b.object().Status.Conditions {
		b.object().Status.Conditions[i].Status = corev1.ConditionFalse
	}
	r = ask(t, b.open(), newPod(cpuAndMemory("1", "64Mi")), "smt2")
	if r.Findings[0].Code != report.KubeletCheckpointInvalid || *r.WhatIf[0].Admitted || !strings.Contains(r.WhatIf[0].Message, "some of strictly reserved cpus") {
		t.Errorf("%s: %+v", r.Findings[0].Code, r.WhatIf[0])
	}
}

// Without a list of pods nothing is taken as gone.
func TestWhatIfWithoutPods(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.pods = nil
	r := ask(t, b.open(), newPod(cpuAndMemory("2", "64Mi")), "smt2")
	if got, f := *r.WhatIf[0].Containers[0].CPUs, r.Findings[0]; got != "6-7" || f.Confidence != report.Likely {
		t.Errorf("%s %s %s", got, f.Confidence, f.Summary)
	}
}

// On unlike cores the kubelet's average hands out what is not free: cores 0-1 and
// 2-3 of two threads, 4 to 7 of one; 0 is reserved, and 0-1 is what it gives.
func TestWhatIfOnUnlikeCores(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.forget("nodes/smt2/root/sys/devices/system/cpu")
	b.forget("nodes/smt2/root/sys/devices/system/node")
	b.files["nodes/smt2/lscpu.txt"] = "# CPU,Core,Socket,Node\n0,0,0,0\n1,0,0,0\n2,1,0,0\n3,1,0,0\n4,2,0,0\n5,3,0,0\n6,4,0,0\n7,5,0,0\n"
	b.files[b.root(cpuStatePath)] = `{"policyName":"static","defaultCpuSet":"0-7","checksum":0}`
	b.pod().Status.Phase = corev1.PodFailed
	delete(b.files, b.root(memoryStatePath))
	b.config(map[string]any{"reservedSystemCPUs": "0", "cpuManagerPolicyOptions": map[string]any{}, "memoryManagerPolicy": "None", "topologyManagerPolicy": "none"})
	r := ask(t, b.open(), newPod(cpuAndMemory("2", "64Mi")), "smt2")
	var codes []report.Code
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	if !slices.Equal(codes, []report.Code{report.UnevenCoreAverages, report.WouldBeAdmittedNow}) || *r.WhatIf[0].Containers[0].CPUs != "0-1" ||
		!strings.Contains(r.Findings[1].Summary, "of these 0 are reserved or another container's") {
		t.Errorf("%v %+v", codes, r.WhatIf[0])
	}
}

// What is not known narrows the answer and is named.
func TestWhatIfGaps(t *testing.T) {
	pod := newPod(cpuAndMemory("2", "64Mi"))
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	b.nodes = nil
	r := ask(t, b.open(), pod, "smt2")
	if r.Findings[0].Confidence == report.Proven || len(r.Gaps) == 0 {
		t.Errorf("no node object: %s", r.Findings[0].Confidence)
	}
	for _, file := range []string{"nodes/smt2/configz.json", "nodes/smt2/root/var/lib/kubelet/cpu_manager_state", "nodes/smt2/root/sys/devices/system/cpu/cpu0/topology/core_id"} {
		b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
		delete(b.files, "gaps.json")
		if strings.HasSuffix(file, "core_id") {
			b.forget("nodes/smt2/root/sys/devices/system/cpu")
			delete(b.files, "nodes/smt2/lscpu.txt")
		} else {
			delete(b.files, file)
		}
		r := ask(t, b.open(), pod, "smt2")
		if w := r.WhatIf[0]; w.Admitted != nil || r.Findings[0].Code != report.EvidenceMissing || len(r.Gaps) == 0 {
			t.Errorf("without %s: %+v %s", file, w.Admitted, r.Findings[0].Summary)
		}
	}
	unknown := newPod(cpuAndMemory("2", "64Mi"))
	limitTo(unknown.Pod, "example.com/nic", "1")
	b = recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	r = ask(t, b.open(), unknown, "smt2")
	if f := r.Findings[0]; f.Confidence != report.Likely {
		t.Errorf("devices without NUMA nodes: %s %s", f.Code, f.Confidence)
	}
}

// Settings are taken as a start of the kubelet would take them.
func TestWhatIfSettings(t *testing.T) {
	s := openTestBundle(t, "testdata/cases/smt2-k612/bundle.tar.gz")
	pod := newPod(cpuAndMemory("1", "64Mi"))
	for _, c := range []struct {
		set      []string
		admitted bool
		text     string
		removed  int
	}{
		{[]string{"kubeletVersion=1.36"}, false, "SMTAlignmentError", 0},
		{[]string{"cpuManagerPolicyOptions.full-pcpus-only="}, true, "gets CPUs 6", 0},
		{[]string{"cpuManagerPolicy=none", "cpuManagerPolicyOptions.full-pcpus-only="}, true, "shares CPUs", 1},
		{[]string{"cpuManagerPolicy=none"}, false, "would not start", 0},
		{[]string{"memoryManagerPolicy=None", "cpuManagerPolicyOptions.full-pcpus-only=false"}, true, "gets CPUs", 1},
		{[]string{"reservedSystemCPUs=0,2", "cpuManagerPolicyOptions.full-pcpus-only=false"}, true, "gets CPUs", 1},
		{[]string{"reservedSystemCPUs=0,99"}, false, "would not start", 0},
		{[]string{"cpuManagerPolicyOptions.distribute-cpus-across-cores=true"}, false, "would not start", 0},
		{[]string{"topologyManagerPolicy=sideways"}, false, "would not start", 0},
		{[]string{"kubeReserved.memory=1Gi"}, false, "would not start", 0}, // reservedMemory no longer adds up
	} {
		r := ask(t, s, pod, "smt2", c.set...)
		w, f := r.WhatIf[0], r.Findings[len(r.Findings)-1]
		removed := 0
		if w.Readmitted != nil {
			removed = len(w.Readmitted.CheckpointsRemoved)
		}
		if w.Admitted == nil || *w.Admitted != c.admitted || !strings.Contains(f.Summary, c.text) || removed != c.removed || f.Confidence == report.Proven {
			t.Errorf("%s: admitted %v, %d removed, %s %s", c.set, *w.Admitted, removed, f.Confidence, f.Summary)
		}
	}
}

// Several nodes are one report, and their names are checked.
func TestWhatIfNodes(t *testing.T) {
	b := recorded("smt2-k612/bundle", "shop", "excl-a")(t)
	other := *b.object().DeepCopy()
	other.Name, other.Labels = "bare", map[string]string{"pool": "x"}
	b.nodes = append(b.nodes, other)
	s := b.open()
	r, err := WhatIf(s, newPod(cpuAndMemory("2", "64Mi")), []string{"smt2", "bare"}, WhatIfOptions{})
	if err != nil || len(r.WhatIf) != 2 || r.WhatIf[0].Admitted == nil || r.WhatIf[1].Admitted != nil || r.Metadata.Node != "" {
		t.Errorf("%+v, %v", r.WhatIf, err)
	}
	var missing *NotFoundError
	if _, err = WhatIf(s, newPod(cpuAndMemory("2", "64Mi")), []string{"n9"}, WhatIfOptions{}); !errors.As(err, &missing) {
		t.Error(err)
	}
	if names, err := SelectNodes(s, "pool=x"); err != nil || !slices.Equal(names, []string{"bare"}) {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := SelectNodes(s, "=="); err == nil {
		t.Error("a bad selector")
	}
}

// Every change that is named was found by running it: applied, it is admitted.
func TestWhatIfNearest(t *testing.T) {
	for _, c := range []struct {
		dir, file, node string
		want            []string
	}{
		{"25-topology-error-runaway-replicaset", "rs-5.yaml", "node-a", []string{"cpu 4 instead of 5 for container app", "the end of pod shop/x-1", "the end of pod shop/x-2", "setting topologyManagerPolicy=best-effort and a restart of the kubelet"}},
		{"11-reserved-ignored-in-min-affinity", "cpu-104.yaml", "node-a", []string{"cpu 113 instead of 104 for container trainer", "setting topologyManagerPolicy=best-effort and a restart of the kubelet"}},
		{"21-numa-group-blocks-second-pod", "db-85.yaml", "node-a", []string{"memory 85404Mi instead of 85Gi for container db", "the end of pod shop/db-1"}},
		{"02-smt-odd-and-half-reserved-core", "p1.yaml", "node-a", []string{"cpu 999m instead of 1 for container app, which is no whole number and shares CPUs", "setting cpuManagerPolicyOptions.full-pcpus-only=false and a restart of the kubelet"}},
	} {
		s := openTestBundle(t, "testdata/cases/"+c.dir+"/bundle.tar.gz")
		data, err := os.ReadFile("testdata/cases/" + c.dir + "/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := Templates(data, "file:"+c.file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range ask(t, s, pods[0], c.node).WhatIf[0].Nearest {
			got = append(got, n.Change)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %s: %q", c.dir, c.file, got)
		}
	}
}

// No pod and no setting makes it panic, and every refusal has its code.
func TestWhatIfOfAnything(t *testing.T) {
	bundles := []struct {
		s    *snapshot.Snapshot
		node string
	}{}
	for dir, node := range map[string]string{"smt2-k612": "smt2", "numa4-k61": "numa4", "12-restricted-fragmented": "node-a"} {
		bundles = append(bundles, struct {
			s    *snapshot.Snapshot
			node string
		}{openTestBundle(t, "testdata/cases/"+dir+"/bundle.tar.gz"), node})
	}
	slices.SortFunc(bundles, func(a, b struct {
		s    *snapshot.Snapshot
		node string
	}) int {
		return strings.Compare(a.node, b.node)
	})
	settings := []string{"topologyManagerPolicy=none", "topologyManagerPolicy=best-effort", "topologyManagerPolicy=restricted", "topologyManagerPolicy=single-numa-node",
		"topologyManagerScope=pod", "topologyManagerScope=container", "cpuManagerPolicyOptions.full-pcpus-only=true", "cpuManagerPolicyOptions.distribute-cpus-across-numa=true",
		"cpuManagerPolicyOptions.strict-cpu-reservation=true", "cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache=true", "kubeletVersion=1.34", "kubeletVersion=1.35",
		"featureGates.CPUManagerPolicyAlphaOptions=true", "cpuManagerPolicyOptions.align-by-socket=true", "featureGates.PodLevelResourceManagers=true", "reservedSystemCPUs=1,3", "memoryManagerPolicy=None"}
	rapid.Check(t, func(rt *rapid.T) {
		on := rapid.SampledFrom(bundles).Draw(rt, "bundle")
		container := func(name string) corev1.Container {
			l := cpuAndMemory(rapid.SampledFrom([]string{"0", "300m", "1", "2", "3", "4", "7", "9223372036854775807", "1e30"}).Draw(rt, name),
				rapid.SampledFrom([]string{"0", "64Mi", "600Mi", "2Gi", "9E", "1e30"}).Draw(rt, name+" memory"))
			if rapid.Bool().Draw(rt, name+" huge") {
				l["hugepages-2Mi"] = resource.MustParse("4Mi")
			}
			return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: l}}
		}
		pod := newPod(nil)
		pod.Spec.Containers = []corev1.Container{container("app")}
		if rapid.Bool().Draw(rt, "two") {
			pod.Spec.Containers = append(pod.Spec.Containers, container("more"))
		}
		if rapid.Bool().Draw(rt, "init") {
			pod.Spec.InitContainers = []corev1.Container{container("init")}
			if always := corev1.ContainerRestartPolicyAlways; rapid.Bool().Draw(rt, "sidecar") {
				pod.Spec.InitContainers[0].RestartPolicy = &always
			}
		}
		if rapid.IntRange(0, 3).Draw(rt, "pod level") == 0 {
			pod.Spec.Resources = &corev1.ResourceRequirements{Limits: cpuAndMemory("2", "1Gi")}
		}
		set, err := ParseSettings(rapid.SliceOfNDistinct(rapid.SampledFrom(settings), 0, 3, rapid.ID[string]).Draw(rt, "set"))
		if err != nil {
			rt.Fatal(err)
		}
		r, err := WhatIf(on.s, pod, []string{on.node}, WhatIfOptions{Set: set})
		if err != nil {
			rt.Fatal(err)
		}
		w := r.WhatIf[0]
		if w.Admitted == nil {
			rt.Fatalf("no answer: %s", r.Findings[0].Summary)
		}
		for _, f := range r.Findings {
			if (f.Code == report.WouldBeAdmittedNow) != *w.Admitted || f.Code == report.RefusalUnexplained {
				rt.Fatalf("admitted %v with %s: %s", *w.Admitted, f.Code, f.Summary)
			}
		}
		if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), "%!") || len(data) > 100_000 {
			rt.Fatalf("%d bytes, %v: %.2000s", len(data), err, data)
		}
	})
}
