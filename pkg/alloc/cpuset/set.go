// Package cpuset is a set of logical CPU ids as a plain value: comparable with ==, copied by assignment, and without a heap
// allocation in any operation on sets. The kubelet and the kernel write such sets as lists ("0-3,8"), see [Parse].
package cpuset

import (
	"iter"
	"math/bits"
	"strconv"
)

// MaxCPUs is the number of CPU ids that a Set can hold: 0 to MaxCPUs-1.
const MaxCPUs = 2048

const wordBits = 64

// Set is a set of CPU ids between 0 and MaxCPUs-1. The zero value is the empty set; two sets are equal if == says so.
type Set [MaxCPUs / wordBits]uint64

// Of returns the set of the given ids. Ids that a Set cannot hold are left out: where ids come from outside, use Add or Parse.
func Of(ids ...int) Set {
	var s Set
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

// Add puts id into the set and reports whether a Set can hold it.
func (s *Set) Add(id int) bool {
	if uint(id) >= MaxCPUs {
		return false
	}
	s[id/wordBits] |= 1 << (id % wordBits)
	return true
}

// Remove takes id out of the set.
func (s *Set) Remove(id int) {
	if uint(id) < MaxCPUs {
		s[id/wordBits] &^= 1 << (id % wordBits)
	}
}

// Contains reports whether id is in the set.
func (s Set) Contains(id int) bool {
	return uint(id) < MaxCPUs && s[id/wordBits]&(1<<(id%wordBits)) != 0
}

// Size returns the number of ids in the set.
func (s Set) Size() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// IsEmpty reports whether the set has no id.
func (s Set) IsEmpty() bool { return s == Set{} }

// Union returns the ids that are in s or in o.
func (s Set) Union(o Set) Set {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// Intersection returns the ids that are in s and in o.
func (s Set) Intersection(o Set) Set {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

// Difference returns the ids that are in s and not in o.
func (s Set) Difference(o Set) Set {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

// IsSubsetOf reports whether every id of s is in o.
func (s Set) IsSubsetOf(o Set) bool {
	for i := range s {
		if s[i]&^o[i] != 0 {
			return false
		}
	}
	return true
}

// First returns the lowest id; ok is false for the empty set.
func (s Set) First() (id int, ok bool) { return s.Next(-1) }

// Next returns the lowest id above after; ok is false if there is none.
func (s Set) Next(after int) (id int, ok bool) {
	if after >= MaxCPUs-1 {
		return 0, false
	}
	from := max(after, -1) + 1
	word := s[from/wordBits] >> (from % wordBits) << (from % wordBits)
	for i := from / wordBits; ; word = s[i] {
		if word != 0 {
			return i*wordBits + bits.TrailingZeros64(word), true
		}
		if i++; i == len(s) {
			return 0, false
		}
	}
}

// All yields the ids in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// List returns the ids in ascending order; nil for the empty set.
func (s Set) List() []int {
	n := s.Size()
	if n == 0 {
		return nil
	}
	ids := make([]int, 0, n)
	for id := range s.All() {
		ids = append(ids, id)
	}
	return ids
}

// String returns the set as the kubelet and the kernel write it: ascending, neighbours merged to ranges, the empty set as "".
func (s Set) String() string {
	var buf []byte
	for id, ok := s.First(); ok; id, ok = s.Next(id) {
		if len(buf) > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(buf, int64(id), 10)
		last := id
		for s.Contains(last + 1) {
			last++
		}
		if last > id {
			buf = append(buf, '-')
			buf = strconv.AppendInt(buf, int64(last), 10)
		}
		id = last
	}
	return string(buf)
}
