package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// machine is sockets of NUMA nodes of cores.
func machine(t testing.TB, sockets, nodes, cores, threads int) node.Config {
	t.Helper()
	var cpus []topology.CPU
	var memory []topology.NUMANode
	for n := range sockets * nodes {
		memory = append(memory, topology.NUMANode{ID: n, MemTotal: 16 << 30})
		for c := range cores {
			for range threads {
				cpus = append(cpus, topology.CPU{ID: len(cpus), Core: n*cores + c, Socket: n / nodes, NUMANode: n})
			}
		}
	}
	topo, err := topology.New(cpus, memory)
	if err != nil {
		t.Fatal(err)
	}
	rules, _, err := alloc.RulesFor("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	gi := resource.MustParse("1Gi")
	return node.Config{Topology: topo, Rules: rules,
		Reservation: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": gi},
		Kubelet: kubeletconfig.Config{CPUManagerPolicy: "static", MemoryManagerPolicy: "Static", TopologyManagerPolicy: "none", TopologyManagerScope: "container",
			ReservedMemory: []kubeletconfig.MemoryReservation{{Limits: corev1.ResourceList{"memory": gi}}}}}
}

// pod is a Guaranteed one that came in that minute; init 0 is no init container.
func pod(name string, minute, init, cpus int, memory string) Pod {
	at := time.Date(2026, 11, 30, 8, minute, 0, 0, time.UTC)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(at)}}
	resources := func(n int) corev1.ResourceRequirements {
		l := corev1.ResourceList{"cpu": *resource.NewQuantity(int64(n), resource.DecimalSI), "memory": resource.MustParse(memory)}
		return corev1.ResourceRequirements{Requests: l, Limits: l}
	}
	if init > 0 {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: resources(init)}}
	}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: resources(cpus)}}
	return Pod{Pod: node.Pod{Pod: p}, Admitted: at}
}

// live runs a node: pods come in their order, gone ones leave at once after the next has come.
func live(t testing.TB, c node.Config, pods []Pod, gone map[string]bool) Input {
	t.Helper()
	n, err := node.Start(c, node.State{})
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Config: c}
	last := ""
	for _, p := range pods {
		result, err := n.Admit(p.Pod, nil)
		if err != nil {
			t.Fatal(err)
		}
		n.Remove(last)
		last = ""
		switch uid := string(p.UID); {
		case !result.Admit:
		case gone[uid]:
			last = uid
		default:
			if err := n.Started(uid, "c"); err != nil {
				t.Fatal(err)
			}
			in.Active = append(in.Active, p)
		}
	}
	n.Remove(last)
	if err := n.Collect(); err != nil {
		t.Fatal(err)
	}
	in.Recorded = n.State()
	return in
}

func explain(t testing.TB, in Input) Explanation {
	t.Helper()
	e, err := Explain(in)
	if err != nil {
		t.Fatal(err)
	}
	if e.Runs > MaxRuns {
		t.Errorf("%d runs", e.Runs)
	}
	return e
}

// Whatever the options: what came about from the pods that are there follows from them, and what came about with others is never said to
// be impossible.
func TestExplainLives(t *testing.T) {
	options := []map[string]string{nil, {"full-pcpus-only": "true"}, {"distribute-cpus-across-numa": "true"}, {"strict-cpu-reservation": "true"},
		{"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"}, {"prefer-align-cpus-by-uncorecache": "true"}}
	policies := []string{"none", "best-effort", "restricted", "single-numa-node"}
	found, unknown := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := machine(t, 1+r.IntN(2), 1+r.IntN(2), 2+r.IntN(5), 1+r.IntN(2))
		c.Kubelet.CPUManagerPolicyOptions = options[r.IntN(len(options))]
		c.Kubelet.TopologyManagerPolicy = policies[r.IntN(len(policies))]
		c.Kubelet.TopologyManagerScope = []string{"container", "pod"}[r.IntN(2)]
		c.Reservation["cpu"] = resource.MustParse([]string{"1", "2"}[r.IntN(2)])
		var pods []Pod
		for i := range 2 + r.IntN(6) {
			pods = append(pods, pod(fmt.Sprintf("p%d", i), i, r.IntN(2)*(1+r.IntN(3)), 1+r.IntN(4), fmt.Sprintf("%dMi", 100+r.IntN(9000))))
		}
		if e := explain(t, live(t, c, pods, nil)); !e.All(Follows, Nothing) {
			t.Errorf("seed %d: nobody left, and not all follow: %+v", seed, e.Steps)
		}
		gone := map[string]bool{}
		for i := range pods {
			gone[string(pods[i].UID)] = r.IntN(3) == 0
		}
		e := explain(t, live(t, c, pods, gone))
		for _, s := range e.Steps {
			switch s.Verdict {
			case Never:
				t.Errorf("seed %d: %s cannot be, it says: %s", seed, s.Pod.UID, s.Why)
			case NotFound:
				unknown++
				if s.Exhausted && s.HeldMemory == nil && c.Kubelet.TopologyManagerPolicy == "none" {
					t.Errorf("seed %d: %s is said to follow from no CPUs of others", seed, s.Pod.UID)
				}
			case NeedsHeld:
				found++
				if s.Trace == nil || s.Held.IsEmpty() && len(s.HeldMemory) == 0 {
					t.Errorf("seed %d: %+v", seed, s)
				}
			}
		}
	}
	t.Logf("%d placements needed others that were found, %d were not found", found, unknown)
	if found < 20 || unknown*10 > found {
		t.Errorf("%d found, %d not", found, unknown)
	}
}

func TestOrderOfOneMoment(t *testing.T) {
	c := machine(t, 1, 1, 8, 2)
	pods := []Pod{pod("z", 1, 0, 2, "1Gi"), pod("y", 1, 0, 4, "1Gi"), pod("x", 1, 0, 1, "1Gi"), pod("w", 1, 0, 3, "1Gi")}
	e := explain(t, live(t, c, pods, nil))
	if !e.All(Follows) {
		t.Errorf("%+v", e.Steps)
	}
	if got := e.Steps[0].Pod.UID; got != "z" {
		t.Errorf("first %s", got)
	}
}

// Created in one order, admitted in another: the kubelet's own time counts.
func TestOrderOfAdmission(t *testing.T) {
	c := machine(t, 1, 1, 8, 2)
	a, b := pod("a", 1, 0, 2, "1Gi"), pod("b", 2, 0, 4, "1Gi")
	a.CreationTimestamp = metav1.NewTime(b.Admitted.Add(time.Hour))
	in := live(t, c, []Pod{a, b}, nil)
	if e := explain(t, in); e.Order != ByAdmission || !e.All(Follows) {
		t.Errorf("%s: %+v", e.Order, e.Steps)
	}
	for i := range in.Active {
		in.Active[i].Admitted = time.Time{}
	}
	if e := explain(t, in); e.Order != ByCreation || e.All(Follows) {
		t.Errorf("without it: %s: %+v", e.Order, e.Steps)
	}
}

func TestHeldMemory(t *testing.T) {
	c := machine(t, 2, 1, 4, 1)
	c.Kubelet.TopologyManagerPolicy = "single-numa-node"
	// The first takes node 0's memory, so that the second must go to node 1.
	pods := []Pod{pod("gone", 1, 0, 1, "10Gi"), pod("stays", 2, 0, 1, "8Gi")}
	e := explain(t, live(t, c, pods, map[string]bool{"gone": true}))
	s, _ := e.Step("stays")
	if s.Verdict != NeedsHeld {
		t.Fatalf("%+v", s)
	}
	if s.Held.IsEmpty() {
		if b := s.HeldMemory; len(b) != 1 || b[0].Nodes != 1 || b[0].Size > 10<<30 {
			t.Errorf("memory %+v", b)
		}
	}
}

func TestFewest(t *testing.T) {
	c := machine(t, 1, 1, 8, 2)
	e := explain(t, live(t, c, []Pod{pod("g1", 1, 0, 4, "1Gi"), pod("s", 2, 0, 2, "1Gi")}, map[string]bool{"g1": true}))
	s, _ := e.Step("s")
	if s.Verdict != NeedsHeld || s.Held != cpuset.Of(2, 3, 4, 5) || !s.Fewest || !s.Only {
		t.Errorf("%+v", s)
	}
}

// On a machine of 256 cores the bound holds.
func TestBound(t *testing.T) {
	c := machine(t, 2, 4, 32, 2)
	c.Kubelet.MemoryManagerPolicy = "None"
	var pods []Pod
	gone := map[string]bool{}
	for i := range 60 {
		p := pod(fmt.Sprintf("p%02d", i), i, 0, 2+2*(i%7), "1Gi")
		gone[string(p.UID)] = i%3 == 0
		pods = append(pods, p)
	}
	in := live(t, c, pods, gone)
	// The oldest record is turned into one that nothing gives.
	uid := string(in.Active[0].UID)
	size := in.Recorded.CPU.Entries[uid]["c"].Size()
	var odd cpuset.Set
	for id := 101; odd.Size() < size; id += 2 {
		odd.Add(id)
	}
	in.Recorded.CPU.Entries[uid]["c"] = odd
	start := time.Now()
	e := explain(t, in)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("%d runs took %s", e.Runs, took)
	}
	t.Logf("%d runs", e.Runs)
}

// The more sets of NUMA nodes a run goes through, the fewer runs there are.
func TestAffordableRuns(t *testing.T) {
	for nodes, want := range map[int]int{1: MaxRuns, 11: MaxRuns, 12: MaxRuns / 2, 16: 312, 20: 19, 64: 1} {
		if got := affordableRuns(nodes); got != want {
			t.Errorf("%d NUMA nodes: %d; want %d", nodes, got, want)
		}
	}
}
