package hint

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSubsets(t *testing.T) {
	got, err := Subsets([]int{0, 1, 8})
	want := []Mask{0b1, 0b10, 1 << 8, 0b11, 1 | 1<<8, 2 | 1<<8, 3 | 1<<8}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %b, %v; want %b", got, err, want)
	}
	if got, err := Subsets(nil); len(got) != 0 || err != nil {
		t.Errorf("no nodes: %v, %v", got, err)
	}
	for _, ids := range [][]int{{0, 64}, {-1, 3}} {
		if _, err := Subsets(ids); !errors.Is(err, ErrNilPointer) {
			t.Errorf("%v: %v", ids, err)
		}
	}
	if _, err := Subsets(make([]int, maxNodes+1)); !errors.Is(err, ErrWouldHang) {
		t.Errorf("many nodes: %v", err)
	}
}

func TestMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfDistinct(rapid.IntRange(0, 63), rapid.ID).Draw(t, "ids")
		slices.Sort(ids)
		m, ok := MaskOf(ids...)
		if !ok || !slices.Equal(m.IDs(), ids) || m.Count() != len(ids) {
			t.Fatalf("%v: %b, %v", ids, m, ok)
		}
		for id := -2; id < 70; id++ {
			if m.Has(id) != slices.Contains(ids, id) {
				t.Fatalf("%v has %d: %v", ids, id, m.Has(id))
			}
		}
	})
	if !Mask(0b100).Narrower(0b11) || !Mask(0b01).Narrower(0b10) || Mask(0b10).Narrower(0b10) || Mask(0b11).Narrower(0b100) {
		t.Error("Narrower")
	}
}
