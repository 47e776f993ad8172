package cpumanager

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// machineOf makes sockets of cores of threads, each socket a NUMA node. The siblings of a core are half the CPUs apart, or neighbours.
func machineOf(t testing.TB, sockets, cores, threads int, neighbours bool) *topology.Topology {
	t.Helper()
	var cpus []topology.CPU
	var nodes []topology.NUMANode
	for s := range sockets {
		nodes = append(nodes, topology.NUMANode{ID: s})
		for c := range cores {
			for th := range threads {
				id := th*sockets*cores + s*cores + c
				if neighbours {
					id = (s*cores+c)*threads + th
				}
				cpus = append(cpus, topology.CPU{ID: id, Core: c, Socket: s, NUMANode: s})
			}
		}
	}
	m, err := topology.New(cpus, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func start(t testing.TB, m *topology.Topology, reserved string, milli int64, options ...string) *Manager {
	t.Helper()
	r, _, err := alloc.RulesFor("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	r = r.With(kubeletconfig.Config{FeatureGates: map[string]bool{"CPUManagerPolicyAlphaOptions": true}})
	set, err := cpuset.Parse(reserved)
	if err != nil {
		t.Fatal(err)
	}
	if !set.IsEmpty() {
		milli = int64(set.Size()) * 1000
	}
	c := Config{Policy: "static", Options: map[string]string{}, ReservedCPUs: set, ReservedMilli: milli, HasReserved: true}
	for _, o := range options {
		c.Options[o] = "true"
	}
	manager, errs := New(m, c, r)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if errs := manager.Start(State{}); len(errs) > 0 {
		t.Fatal(errs)
	}
	return manager
}

func add(m *Manager, uid string, n int) (cpuset.Set, error) {
	p := &alloc.PodRequests{UID: uid, Containers: []alloc.ContainerRequests{{Name: "c", CPUs: n}}}
	err := m.Allocate(p, &p.Containers[0], hint.Hint{}, nil)
	set, _ := m.Get(uid, "c")
	return set, err
}

func TestReserved(t *testing.T) {
	for _, tc := range []struct {
		neighbours bool
		options    []string
		want       string
	}{
		{false, nil, "0,8"},
		{false, []string{DistributeAcrossCores}, "0-1"},
		{false, []string{DistributeAcrossNUMA}, "0,8"},
		{true, nil, "0-1"},
		{true, []string{DistributeAcrossCores}, "0-1"},
	} {
		if got := start(t, machineOf(t, 2, 4, 2, tc.neighbours), "", 1500, tc.options...).Reserved.String(); got != tc.want {
			t.Errorf("%v, %v: %s; want %s", tc.neighbours, tc.options, got, tc.want)
		}
	}
}

// An average of one thread per core makes the kubelet hand out a reserved CPU.
func TestHybridCores(t *testing.T) {
	var cpus []topology.CPU
	for id, core := range []int{0, 0, 1, 1, 2, 3, 4, 5} {
		cpus = append(cpus, topology.CPU{ID: id, Core: core})
	}
	machine, err := topology.New(cpus, []topology.NUMANode{{}})
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, machine, "0", 0)
	if set, err := add(m, "a", 2); set.String() != "0-1" || err != nil {
		t.Errorf("%s, %v", set, err)
	}
	if m.State.Default.String() != "2-7" {
		t.Errorf("default set %s", m.State.Default)
	}
	errs := m.validate()
	if len(errs) != 1 || errs[0].Error() != `not all reserved cpus: "0" are present in defaultCpuSet: "2-7"` {
		t.Errorf("next start: %v", errs)
	}
}

func TestWouldHang(t *testing.T) {
	var cpus []topology.CPU
	var nodes []topology.NUMANode
	for id := range 24 {
		cpus = append(cpus, topology.CPU{ID: id, Core: id / 2, NUMANode: id / 6})
	}
	for id := range 4 {
		nodes = append(nodes, topology.NUMANode{ID: id})
	}
	machine, err := topology.New(cpus, nodes)
	if err != nil {
		t.Fatal(err)
	}
	m := start(t, machine, "0,6,12-13,18-21", 0, FullPCPUsOnly, DistributeAcrossNUMA)
	if _, err := add(m, "a", 14); !errors.Is(err, hint.ErrWouldHang) {
		t.Errorf("%v", err)
	}
}

func TestAllocationProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		machine := machineOf(t, rapid.IntRange(1, 4).Draw(rt, "sockets"), rapid.IntRange(1, 6).Draw(rt, "cores"), 2, rapid.Bool().Draw(rt, "neighbours"))
		options := rapid.SampledFrom([][]string{
			nil, {DistributeAcrossCores}, {DistributeAcrossNUMA}, {PreferAlignUncoreCache}, {AlignBySocket}, {StrictCPUReservation},
		}).Draw(rt, "options")
		m := start(t, machine, "", 1000, options...)
		all := m.State.Default
		held := map[string]cpuset.Set{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			uid := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "uid")
			if _, ok := held[uid]; ok {
				m.Remove(uid, "c")
				delete(held, uid)
				continue
			}
			n := rapid.IntRange(1, 8).Draw(rt, "n")
			free := m.State.Default.Difference(m.Reserved).Size()
			set, err := add(m, uid, n)
			if (err == nil) != (n <= free) {
				rt.Fatalf("%d of %d free: %v", n, free, err)
			}
			if err == nil {
				if set.Size() != n {
					rt.Fatalf("%d CPUs: %s", n, set)
				}
				held[uid] = set
			}
		}
		left := all
		for uid, set := range held {
			if !set.IsSubsetOf(left) || !set.Intersection(m.Reserved).IsEmpty() {
				rt.Fatalf("%s has %s, of %s", uid, set, left)
			}
			left = left.Difference(set)
		}
		if m.State.Default != left {
			rt.Fatalf("default %s; want %s", m.State.Default, left)
		}
	})
}

func TestTraceOfAllocation(t *testing.T) {
	m := start(t, machineOf(t, 2, 4, 2, true), "0-1", 0)
	var tr trace.Trace
	set, err := m.allocate(11, hint.Hint{}, cpuset.Set{}, &tr)
	if err != nil {
		t.Fatal(err)
	}
	var taken cpuset.Set
	var levels []trace.Level
	for _, s := range tr.Steps {
		taken = taken.Union(s.Take.CPUs)
		levels = append(levels, s.Take.Level)
	}
	if taken != set || len(levels) != 3 || levels[0] != trace.NUMANode || levels[1] != trace.Core || levels[2] != trace.SingleCPU {
		t.Errorf("%s by %v; got %s", taken, levels, set)
	}
}

func TestPackedAllocatesNothing(t *testing.T) {
	m := start(t, machineOf(t, 2, 16, 2, false), "0", 0)
	available := m.State.Default
	if n := testing.AllocsPerRun(50, func() { _, _ = m.acc.packed(available, 21, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
