// Package hint has what the kubelet's managers tell each other about NUMA nodes: masks of nodes, and hints made of them.
package hint

import (
	"errors"
	"fmt"
	"math/bits"
)

// Mask is a set of NUMA node ids between 0 and 63 (topologymanager/bitmask).
type Mask uint64

// MaskOf returns the mask of the given ids. ok is false if one of them cannot be held.
func MaskOf(ids ...int) (m Mask, ok bool) {
	for _, id := range ids {
		if uint(id) > 63 {
			return 0, false
		}
		m |= 1 << id
	}
	return m, true
}

// Count returns the number of nodes.
func (m Mask) Count() int { return bits.OnesCount64(uint64(m)) }

// Has reports whether the node is in the mask.
func (m Mask) Has(id int) bool { return uint(id) < 64 && m&(1<<id) != 0 }

// Lowest returns the lowest node id; 64 for the empty mask. With m &= m-1 it walks the nodes.
func (m Mask) Lowest() int { return bits.TrailingZeros64(uint64(m)) }

// Narrower reports whether m has fewer nodes than o or, with as many, the lower ones (IsNarrowerThan).
func (m Mask) Narrower(o Mask) bool {
	if a, b := m.Count(), o.Count(); a != b {
		return a < b
	}
	return m < o
}

// IDs returns the node ids in ascending order; not nil even if there are none.
func (m Mask) IDs() []int {
	ids := make([]int, 0, m.Count())
	for ; m != 0; m &= m - 1 {
		ids = append(ids, m.Lowest())
	}
	return ids
}

// Hint is a set of NUMA nodes that would do, or no preference.
type Hint struct {
	Mask Mask
	// Aligned false: no preference, a nil mask in the kubelet, and Mask is 0.
	Aligned   bool
	Preferred bool
}

// Resource is what a provider of hints answers for one resource: every set of nodes that would do. No hints: none would. The resource
// for which a provider has no preference is not among its answers.
type Resource struct {
	Name  string
	Hints []Hint
}

// maxNodes bounds the nodes whose subsets are enumerated. The kubelet has no bound; with so many nodes it would take hours.
const maxNodes = 20

// ErrWouldHang is what the replay says where the kubelet's admission would not come to an end.
var ErrWouldHang = errors.New("kubelet would hang")

// Crash is what the replay says where the kubelet would panic.
type Crash struct{ Panic string }

func (c *Crash) Error() string { return "kubelet would crash: " + c.Panic }

// The panics that there are.
var (
	ErrNilPointer = &Crash{"runtime error: invalid memory address or nil pointer dereference"}
	ErrDivide     = &Crash{"runtime error: integer divide by zero"}
)

// IndexOutOfRange is the panic for an index beyond a slice.
func IndexOutOfRange(index, length int) *Crash {
	return &Crash{fmt.Sprintf("runtime error: index out of range [%d] with length %d", index, length)}
}

// Subsets returns every set of at least one of the nodes, which are ascending: by size, and inside a size in lexicographic order
// (bitmask.IterateBitMasks).
func Subsets(ids []int) ([]Mask, error) {
	if len(ids) > maxNodes {
		return nil, ErrWouldHang
	}
	if _, ok := MaskOf(ids...); !ok {
		return nil, ErrNilPointer
	}
	masks := make([]Mask, 0, 1<<len(ids)-1)
	var walk func(from, missing int, m Mask)
	walk = func(from, missing int, m Mask) {
		if missing == 0 {
			masks = append(masks, m)
			return
		}
		for i := from; i <= len(ids)-missing; i++ {
			walk(i+1, missing-1, m|1<<ids[i])
		}
	}
	for size := 1; size <= len(ids); size++ {
		walk(0, size, 0)
	}
	return masks, nil
}
