package cpuset

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is the set as a map, against which Set is checked.
type model map[int]bool

func (m model) list() []int {
	var ids []int
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// someIDs prefers few words, so that sets overlap and ranges form.
func someIDs() *rapid.Generator[[]int] {
	return rapid.OneOf(
		rapid.SliceOf(rapid.IntRange(0, 70)),
		rapid.SliceOf(rapid.IntRange(0, MaxCPUs-1)),
		rapid.SliceOf(rapid.SampledFrom([]int{0, 63, 64, 127, 128, MaxCPUs - 2, MaxCPUs - 1})),
	)
}

func both(t *rapid.T, label string) (Set, model) {
	ids := someIDs().Draw(t, label)
	m := model{}
	for _, id := range ids {
		m[id] = true
	}
	return Of(ids...), m
}

func TestSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, ma := both(t, "a")
		b, mb := both(t, "b")
		union, intersection, difference := model{}, model{}, model{}
		subset := true
		for id := range ma {
			union[id] = true
			if mb[id] {
				intersection[id] = true
			} else {
				difference[id] = true
				subset = false
			}
		}
		for id := range mb {
			union[id] = true
		}
		for _, c := range []struct {
			name string
			got  Set
			want model
		}{
			{"a", a, ma},
			{"union", a.Union(b), union},
			{"intersection", a.Intersection(b), intersection},
			{"difference", a.Difference(b), difference},
		} {
			if d := cmp.Diff(c.want.list(), c.got.List()); d != "" {
				t.Fatalf("%s (-want +got):\n%s", c.name, d)
			}
			if c.got.Size() != len(c.want) || c.got.IsEmpty() != (len(c.want) == 0) {
				t.Fatalf("%s: size %d, empty %v; want %d", c.name, c.got.Size(), c.got.IsEmpty(), len(c.want))
			}
		}
		if a.IsSubsetOf(b) != subset {
			t.Fatalf("IsSubsetOf = %v, want %v", a.IsSubsetOf(b), subset)
		}
		if (a == b) != slices.Equal(ma.list(), mb.list()) {
			t.Fatal("== is not equality of the sets")
		}

		id := rapid.IntRange(-3, MaxCPUs+3).Draw(t, "id")
		if a.Contains(id) != ma[id] {
			t.Fatalf("Contains(%d) = %v, want %v", id, a.Contains(id), ma[id])
		}
		wantNext, wantOK := 0, false
		for _, have := range ma.list() {
			if have > id {
				wantNext, wantOK = have, true
				break
			}
		}
		if next, ok := a.Next(id); next != wantNext || ok != wantOK {
			t.Fatalf("Next(%d) = %d, %v, want %d, %v", id, next, ok, wantNext, wantOK)
		}
		with, without := a, a
		if added := with.Add(id); added != (id >= 0 && id < MaxCPUs) {
			t.Fatalf("Add(%d) = %v", id, added)
		}
		without.Remove(id)
		if with != a.Union(Of(id)) || without != a.Difference(Of(id)) {
			t.Fatalf("Add or Remove of %d is wrong", id)
		}
	})
}

func TestStringAndParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _ := both(t, "a")
		back, err := Parse(a.String())
		if err != nil || back != a {
			t.Fatalf("Parse(%q) = %v, %v", a.String(), back, err)
		}
	})
}

func TestString(t *testing.T) {
	for _, tc := range []struct {
		ids  []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "0"},
		{[]int{3, 2}, "2-3"},
		{[]int{0, 1, 2, 4, 8, 9}, "0-2,4,8-9"},
		{[]int{62, 63, 64, 65}, "62-65"},
		{[]int{MaxCPUs - 1}, "2047"},
	} {
		if got := Of(tc.ids...).String(); got != tc.want {
			t.Errorf("Of(%v) = %q, want %q", tc.ids, got, tc.want)
		}
	}
	var all Set
	for id := range MaxCPUs {
		all.Add(id)
	}
	if got := all.String(); got != "0-2047" {
		t.Errorf("all CPUs = %q", got)
	}
}

func TestAllStops(t *testing.T) {
	var seen []int
	for id := range Of(1, 70, 200).All() {
		seen = append(seen, id)
		if id == 70 {
			break
		}
	}
	if !slices.Equal(seen, []int{1, 70}) {
		t.Errorf("seen %v", seen)
	}
}

func TestNextAtTheEnds(t *testing.T) {
	s := Of(0, MaxCPUs-1)
	for _, tc := range []struct {
		after, want int
		ok          bool
	}{{math.MinInt, 0, true}, {-1, 0, true}, {0, MaxCPUs - 1, true}, {MaxCPUs - 1, 0, false}, {math.MaxInt, 0, false}} {
		if id, ok := s.Next(tc.after); id != tc.want || ok != tc.ok {
			t.Errorf("Next(%d) = %d, %v, want %d, %v", tc.after, id, ok, tc.want, tc.ok)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	a, b := Of(1, 5, 64, 900), Of(5, 63, 64, 2047)
	sink := 0
	allocs := testing.AllocsPerRun(100, func() {
		c := a.Union(b).Difference(Of(1)).Intersection(b)
		c.Add(7)
		if c.IsSubsetOf(a) || c.Contains(9) {
			sink++
		}
		if id, ok := c.First(); ok {
			sink += id + c.Size()
		}
		for id := range c.All() {
			sink += id
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkSet(b *testing.B) {
	x, y := Of(1, 5, 64, 900), Of(5, 63, 64, 2047)
	sink := 0
	b.Run("union", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x = x.Union(y)
		}
	})
	b.Run("difference+size", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink += x.Difference(y).Size()
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for id := range x.All() {
				sink += id
			}
		}
	})
	b.Run("contains", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if x.Contains(900) {
				sink++
			}
		}
	})
}
