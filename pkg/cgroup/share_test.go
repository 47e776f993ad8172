package cgroup

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShare(t *testing.T) {
	for _, c := range []struct {
		weight   uint64
		siblings []uint64
		want     float64
	}{
		{100, nil, 1},
		{0, nil, 1},
		{235, []uint64{100}, 235.0 / 335},
		{1, []uint64{5, 8}, 1.0 / 14},
		{0, []uint64{100}, 0}, // cpu.idle beside a usual group
		{0, []uint64{0, 0}, 1.0 / 3},
		{math.MaxUint64, []uint64{math.MaxUint64}, 0.5},
	} {
		if got := Share(c.weight, c.siblings...); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Share(%d, %v) = %v, want %v", c.weight, c.siblings, got, c.want)
		}
	}
}

// All siblings' shares together are the whole.
func TestShareIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(0, 10000), 1, 12).Draw(t, "weights")
		sum := 0.0
		for i, w := range weights {
			others := append(append([]uint64{}, weights[:i]...), weights[i+1:]...)
			share := Share(w, others...)
			if share < 0 || share > 1 {
				t.Fatalf("share %v", share)
			}
			sum += share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares of %v make %v", weights, sum)
		}
	})
}
