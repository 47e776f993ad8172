package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// config is two NUMA nodes of four 2-thread cores and 16 GiB each, the first core and 1 GiB of node 0 reserved.
func config(t testing.TB, policy, scope string) Config {
	t.Helper()
	var cpus []topology.CPU
	for id := range 16 {
		cpus = append(cpus, topology.CPU{ID: id, Core: id / 2, Socket: id / 8, NUMANode: id / 8})
	}
	machine, err := topology.New(cpus, []topology.NUMANode{{ID: 0, MemTotal: 16 << 30}, {ID: 1, MemTotal: 16 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := alloc.RulesFor("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	gi := corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	return Config{
		Topology: machine, Rules: r,
		Reservation: corev1.ResourceList{"cpu": resource.MustParse("1100m"), "memory": resource.MustParse("1Gi")},
		Kubelet: kubeletconfig.Config{
			CPUManagerPolicy: "static", MemoryManagerPolicy: "Static", ReservedMemory: []kubeletconfig.MemoryReservation{{Limits: gi}},
			TopologyManagerPolicy: policy, TopologyManagerScope: scope,
		},
	}
}

func pod(uid, cpu, memory string) Pod {
	l := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	p := &corev1.Pod{}
	p.UID = types.UID(uid)
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: l, Limits: l}}}
	return Pod{Pod: p}
}

func mustStart(t testing.TB, c Config) *Node {
	t.Helper()
	n, err := Start(c, State{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAdmit(t *testing.T) {
	n := mustStart(t, config(t, "single-numa-node", "container"))
	for _, tc := range []struct {
		pod             Pod
		cpus            string
		reason, message string
	}{
		{pod("a", "6", "4Gi"), "2-7", "", ""},
		{pod("b", "4", "4Gi"), "8-11", "", ""},
		{pod("c", "5", "1Gi"), "", "TopologyAffinityError", "Resources cannot be allocated with Topology locality"},
		{pod("d", "1500m", "1Gi"), "0-1,12-15", "", ""},
		{pod("e", "2", "20Gi"), "", "UnexpectedAdmissionError", "Allocate failed due to [memorymanager] failed to find NUMA nodes to extend the current topology hint, which is unexpected"},
	} {
		uid := string(tc.pod.UID)
		got, err := n.Admit(tc.pod, nil)
		if err != nil || got.Admit != (tc.reason == "") || got.Reason != tc.reason || got.Message != tc.message {
			t.Errorf("%s: %+v, %v", uid, got, err)
		}
		if cpus, _ := n.CPU.Get(uid, "c"); tc.cpus != "" && cpus.String() != tc.cpus {
			t.Errorf("%s: CPUs %s; want %s", uid, cpus, tc.cpus)
		}
	}
	n.Remove("a")
	if err := n.Collect(); err != nil {
		t.Fatal(err)
	}
	if got := n.CPU.State.Default.String(); got != "0-7,12-15" {
		t.Errorf("default set %s", got)
	}
	if table := n.Memory.State.Nodes[0].Tables[0]; table.Reserved != 1<<30 {
		t.Errorf("node 0: %+v", table)
	}
}

// A trace tells the run, and does not change it.
func TestTrace(t *testing.T) {
	for _, policy := range []string{"none", "best-effort", "restricted", "single-numa-node"} {
		for _, scope := range []string{"container", "pod"} {
			plain, traced := mustStart(t, config(t, policy, scope)), mustStart(t, config(t, policy, scope))
			for i := range 12 {
				p := pod(fmt.Sprint(i), fmt.Sprint(1+i%5), fmt.Sprintf("%dGi", 1+i%7))
				var tr trace.Trace
				a, errA := plain.Admit(p, nil)
				b, errB := traced.Admit(p, &tr)
				if d := cmp.Diff(a, b); d != "" || errA != nil || errB != nil {
					t.Fatalf("%s %s, pod %d: %v, %v\n%s", policy, scope, i, errA, errB, d)
				}
				var offered, merged, allocated int
				for _, s := range tr.Steps {
					switch {
					case s.Hints != nil:
						offered++
					case s.Merge != nil:
						merged++
						if s.Merge.Admit == (b.Reason == "TopologyAffinityError") {
							t.Errorf("%s: verdict %v, then %+v", policy, s.Merge.Admit, b)
						}
					case s.Allocate != nil:
						allocated++
					}
				}
				if want := policy != "none"; (offered == 3) != want || (merged == 1) != want || (allocated == 1) == (b.Reason == "TopologyAffinityError") {
					t.Errorf("%s %s: %d offers, %d merges, %d allocations, %+v", policy, scope, offered, merged, allocated, b)
				}
			}
			if d := cmp.Diff(plain.State(), traced.State()); d != "" {
				t.Errorf("%s %s:\n%s", policy, scope, d)
			}
		}
	}
}

func TestRestart(t *testing.T) {
	n := mustStart(t, config(t, "best-effort", "pod"))
	for i := range 3 {
		if got, err := n.Admit(pod(fmt.Sprint(i), "3", "6Gi"), nil); err != nil || !got.Admit {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
	before := n.State()
	again, err := n.Restart(n.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range again.Pods() {
		if got, err := again.Admit(p, nil); err != nil || !got.Admit {
			t.Errorf("%s: %+v, %v", p.UID, got, err)
		}
	}
	if d := cmp.Diff(before, again.State()); d != "" {
		t.Errorf("after a restart:\n%s", d)
	}

	c := n.config
	c.Kubelet.CPUManagerPolicy = "none"
	_, err = n.Restart(c)
	var start *StartError
	if !errors.As(err, &start) || start.Stage != CPUManagerStart || MayStart(err) {
		t.Errorf("another policy: %v", err)
	}
	c = config(t, "best-effort", "pod")
	c.Topology.NUMANodes[1].MemTotal++
	if _, err = n.Restart(c); !errors.As(err, &start) || start.Stage != MemoryManagerStart {
		t.Errorf("more memory: %v", err)
	}
}

func TestCrash(t *testing.T) {
	n := mustStart(t, config(t, "restricted", "pod"))
	p := pod("a", "2", "1Gi")
	p.Spec.Containers[0].Resources.Requests["hugepages-1Gi"] = resource.MustParse("1Gi")
	p.Spec.Containers[0].Resources.Limits["hugepages-1Gi"] = resource.MustParse("1Gi")
	var crash *hint.Crash
	if _, err := n.Admit(p, nil); !errors.As(err, &crash) {
		t.Errorf("huge pages that no node has: %v", err)
	}
}

// A state that no start accepts can be in use all the same.
func TestResume(t *testing.T) {
	c := config(t, "best-effort", "container")
	n := mustStart(t, c)
	if _, err := n.Admit(pod("a", "2", "1Gi"), nil); err != nil {
		t.Fatal(err)
	}
	s := n.State()
	s.CPU.Default.Remove(0) // reserved
	if _, err := Start(c, s); MayStart(err) {
		t.Fatal("started")
	}
	again, err := Resume(c, s, n.Pods()...)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Admit(pod("b", "2", "1Gi"), nil); err != nil || !got.Admit {
		t.Errorf("%+v, %v", got, err)
	}
	if want := s.CPU.Default.Size() - 2; again.CPU.State.Default.Size() != want {
		t.Errorf("%s are shared", again.CPU.State.Default)
	}
	s.CPUPolicy = "none"
	if _, err := Resume(c, s); MayStart(err) {
		t.Error("resumed under another policy")
	}
}

// Kubelet 1.36 writes another form with PodLevelResourceManagers, which it cannot read without.
func TestRestartWithAnotherForm(t *testing.T) {
	gate := func(c Config, on bool) Config {
		c.Kubelet.FeatureGates = map[string]bool{"PodLevelResourceManagers": on}
		c.Rules = c.Rules.With(c.Kubelet)
		return c
	}
	for _, tc := range []struct {
		version  string
		admit    bool // while the gate is on
		from, to bool
		want     error
	}{
		{"v1.36.3", false, true, false, checkpoint.ErrCorrupt},
		{"v1.36.3", false, true, true, nil},
		{"v1.36.3", true, false, true, nil},
		{"v1.37.2", true, true, false, nil},
	} {
		c := config(t, "none", "container")
		var err error
		if c.Rules, _, err = alloc.RulesFor(tc.version); err != nil {
			t.Fatal(err)
		}
		n := mustStart(t, gate(c, tc.from))
		if tc.admit {
			if _, err := n.Admit(pod("a", "2", "1Gi"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := n.Restart(gate(c, tc.to)); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}

	// What is read in form 2 stays so until something changes.
	c := config(t, "none", "container")
	c.Rules, _, _ = alloc.RulesFor("v1.36.3")
	n := mustStart(t, gate(c, false))
	for range 2 {
		again, err := n.Restart(gate(c, true))
		if err != nil {
			t.Fatal(err)
		}
		if n, err = again.Restart(gate(c, false)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ = n.Restart(gate(c, true)); n == nil {
		t.Fatal("no start")
	}
	if _, err := n.Admit(pod("a", "2", "1Gi"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Restart(gate(c, false)); !errors.Is(err, errNotForm1) {
		t.Errorf("after a change: %v", err)
	}
}
