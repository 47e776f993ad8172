package floor

import (
	"math"
	"slices"
)

// endless is what a node holds where that is not known.
const endless = math.MaxInt64 / 2

// Bound is a least number of nodes: the largest so many hold at least what is needed, one fewer holds less.
type Bound struct {
	Nodes             int
	Need, Held, Fewer int64
}

// Endless reports whether what is held is not known.
func (b Bound) Endless() bool { return b.Held == endless }

// Least is the least number of nodes that hold what is needed, by what each holds; what is negative counts as nothing. ok is false
// where all of them together hold less, so that the data contradict themselves.
func Least(need int64, holds []int64) (b Bound, ok bool) {
	b.Need = need
	if need <= 0 {
		return b, true
	}
	sorted := slices.Clone(holds)
	slices.SortFunc(sorted, func(x, y int64) int {
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, h := range sorted {
		b.Fewer = b.Held
		b.Held = sum(b.Held, max(h, 0))
		b.Nodes++
		if b.Held >= need {
			return b, true
		}
	}
	return b, false
}

// sum of two amounts that are not negative, endless at most.
func sum(a, b int64) int64 {
	if a >= endless-b {
		return endless
	}
	return a + b
}
