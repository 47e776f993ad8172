package topologymanager

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

func machine(n int, distances bool) []topology.NUMANode {
	var nodes []topology.NUMANode
	for id := range n {
		node := topology.NUMANode{ID: id, HasDistances: distances}
		for other := range n {
			d := uint64(10)
			if id != other {
				d = uint64(10 + 5*((id+other)%3+1))
			}
			node.Distances = append(node.Distances, d)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func rules(t testing.TB) alloc.Rules {
	t.Helper()
	r, _, err := alloc.RulesFor("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRefuses(t *testing.T) {
	options := func(kv ...string) map[string]string { return map[string]string{kv[0]: kv[1]} }
	for _, tc := range []struct {
		nodes  []topology.NUMANode
		config Config
		want   []string
	}{
		{machine(2, true), Config{Policy: "strict"}, []string{`unknown policy: "strict"`}},
		{machine(2, true), Config{Policy: Restricted, Scope: "node"}, []string{`unknown scope: "node"`}},
		{machine(9, true), Config{Policy: Restricted, Scope: PodScope}, []string{"unsupported on machines with more than 8 NUMA Nodes"}},
		{machine(9, true), Config{Policy: Restricted, Scope: PodScope, Options: options(MaxAllowableNUMANodes, "9")}, nil},
		{machine(9, true), Config{Policy: None, Scope: "node", Options: options("x", "y")}, nil},
		{machine(2, true), Config{Policy: BestEffort, Scope: PodScope, Options: options(MaxAllowableNUMANodes, "7")},
			[]string{`the minimum value of "max-allowable-numa-nodes" should not be less than 8`}},
		{machine(2, true), Config{Policy: BestEffort, Scope: PodScope, Options: options(MaxAllowableNUMANodes, "x")},
			[]string{`unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "x": invalid syntax`}},
		{machine(2, false), Config{Policy: SingleNUMANode, Scope: PodScope, Options: options(PreferClosestNUMANodes, "true")},
			[]string{"cannot discover NUMA topology: error getting NUMA distances from cadvisor"}},
		{machine(2, true), Config{Policy: BestEffort, Scope: PodScope, Options: map[string]string{"a": "", PreferClosestNUMANodes: "ja"}},
			[]string{`unknown Topology Manager Policy option: "a"`, `bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "ja": invalid syntax`}},
	} {
		_, errs := New(tc.nodes, tc.config, rules(t))
		var got []string
		for _, err := range errs {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%+v:\n%q; want\n%q", tc.config, got, tc.want)
		}
	}
}

// foldAll is the merge without leaving anything out.
func (m *Manager) foldAll(lists [][]hint.Hint) hint.Hint {
	m.merger = merger{lists: lists, within: maxOfMin(lists)}
	var walk func(i int, chosen []hint.Hint)
	walk = func(i int, chosen []hint.Hint) {
		if i < len(lists) {
			for _, h := range lists[i] {
				walk(i+1, append(slices.Clip(chosen), h))
			}
			return
		}
		merged := hint.Hint{Mask: m.all, Aligned: true, Preferred: true}
		var first *hint.Hint
		for _, h := range chosen {
			merged.Preferred = merged.Preferred && h.Preferred
			if h.Aligned {
				merged.Mask &= h.Mask
				if first == nil {
					first = &h
				}
				merged.Preferred = merged.Preferred && h.Mask == first.Mask
			}
		}
		if merged.Mask != 0 {
			m.compare(merged)
		}
	}
	walk(0, nil)
	if !m.merger.found {
		return hint.Hint{Mask: m.all, Aligned: true}
	}
	return m.merger.best
}

func TestMergeLeavesNothingOut(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 4
		options := map[string]string{PreferClosestNUMANodes: fmt.Sprint(rapid.Bool().Draw(t, "closest"))}
		m, errs := New(machine(nodes, true), Config{Policy: BestEffort, Scope: PodScope, Options: options}, r)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		one := rapid.Custom(func(t *rapid.T) hint.Hint {
			h := hint.Hint{Preferred: rapid.Bool().Draw(t, "preferred"), Aligned: rapid.IntRange(0, 5).Draw(t, "aligned") > 0}
			if h.Aligned {
				h.Mask = hint.Mask(rapid.IntRange(0, 1<<nodes-1).Draw(t, "mask"))
			}
			return h
		})
		lists := rapid.SliceOfN(rapid.SliceOfN(one, 1, 5), 0, 4).Draw(t, "lists")
		want := m.foldAll(lists)
		got, admit, err := m.Merge(lists)
		if err != nil || !admit || got != want {
			t.Fatalf("got %+v, %v, %v; want %+v", got, admit, err, want)
		}
	})
}

func TestMergeSets(t *testing.T) {
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 4
		options := map[string]string{PreferClosestNUMANodes: fmt.Sprint(rapid.Bool().Draw(t, "closest"))}
		m, errs := New(machine(nodes, true), Config{Policy: BestEffort, Scope: PodScope, Options: options}, r)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		one := rapid.Custom(func(t *rapid.T) hint.Hint {
			h := hint.Hint{Preferred: rapid.IntRange(0, 2).Draw(t, "preferred") == 0, Aligned: rapid.IntRange(0, 5).Draw(t, "aligned") > 0}
			if h.Aligned {
				// One bit more than there are nodes.
				h.Mask = hint.Mask(rapid.IntRange(0, 1<<(nodes+1)-1).Draw(t, "mask"))
			}
			return h
		})
		lists := rapid.SliceOfN(rapid.SliceOfN(one, 1, 5), 1, 4).Draw(t, "lists")
		want := m.foldAll(lists)
		m.merger = merger{lists: lists, within: maxOfMin(lists)}
		m.mergeSets()
		if got, err := m.merged(); err != nil || got != want {
			t.Fatalf("got %+v, %v; want %+v", got, err, want)
		}
	})
}

// TestMergeOfManyNodes has 2³² choices of which none is preferred.
func TestMergeOfManyNodes(t *testing.T) {
	options := map[string]string{MaxAllowableNUMANodes: "16"}
	m, errs := New(machine(16, true), Config{Policy: Restricted, Scope: PodScope, Options: options}, rules(t))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var a, b []hint.Hint
	for mask := hint.Mask(1); mask < 1<<16; mask++ {
		a = append(a, hint.Hint{Mask: mask, Aligned: true, Preferred: mask.Count() == 1})
		if mask.Count() > 4 {
			b = append(b, hint.Hint{Mask: mask, Aligned: true, Preferred: mask.Count() == 5})
		}
	}
	best, admit, err := m.Merge([][]hint.Hint{a, b})
	if want := (hint.Hint{Mask: 0b11111, Aligned: true}); best != want || admit || err != nil {
		t.Errorf("%+v, %v, %v; want %+v, refused", best, admit, err, want)
	}
}

func TestVerdict(t *testing.T) {
	a, b := hint.Hint{Mask: 1, Aligned: true, Preferred: true}, hint.Hint{Mask: 2, Aligned: true, Preferred: true}
	both := hint.Hint{Mask: 3, Aligned: true}
	for _, tc := range []struct {
		policy string
		lists  [][]hint.Hint
		want   hint.Hint
		admit  bool
	}{
		{BestEffort, [][]hint.Hint{{a, both}, {b, both}}, hint.Hint{Mask: 1, Aligned: true}, true},
		{Restricted, [][]hint.Hint{{a, both}, {b, both}}, hint.Hint{Mask: 1, Aligned: true}, false},
		{Restricted, [][]hint.Hint{{a, b, both}, {b, both}}, b, true},
		{SingleNUMANode, [][]hint.Hint{{a, b, both}, {b, both}}, b, true},
		{SingleNUMANode, [][]hint.Hint{{both}}, hint.Hint{}, false},
		{SingleNUMANode, [][]hint.Hint{NoPreference}, hint.Hint{Preferred: true}, true},
		{Restricted, [][]hint.Hint{NoPreference}, hint.Hint{Mask: 3, Aligned: true, Preferred: true}, true},
		{Restricted, [][]hint.Hint{{}}, hint.Hint{Mask: 3, Aligned: true}, false},
	} {
		m, errs := New(machine(2, true), Config{Policy: tc.policy, Scope: ContainerScope}, rules(t))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got, admit, err := m.Merge(slices.Clone(tc.lists)); got != tc.want || admit != tc.admit || err != nil {
			t.Errorf("%s, %+v: %+v, %v, %v; want %+v, %v", tc.policy, tc.lists, got, admit, err, tc.want, tc.admit)
		}
	}
}

func TestDistancesByID(t *testing.T) {
	nodes := machine(2, true)
	nodes[1].ID = 8
	m, errs := New(nodes, Config{Policy: BestEffort, Scope: PodScope, Options: map[string]string{PreferClosestNUMANodes: "true"}}, rules(t))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	a, b := hint.Hint{Mask: 1, Aligned: true, Preferred: true}, hint.Hint{Mask: 1 << 8, Aligned: true, Preferred: true}
	_, _, err := m.Merge([][]hint.Hint{{a, b}})
	var crash *hint.Crash
	if !errors.As(err, &crash) || crash.Panic != "runtime error: index out of range [8] with length 2" {
		t.Errorf("%v", err)
	}
}
