package topologymanager

import "github.com/noderes/kubectl-noderes/pkg/alloc/hint"

// merger walks all choices of one hint from each list, the first list slowest (policy.go, HintMerger).
type merger struct {
	lists [][]hint.Hint
	// within is the size that the nodes of a choice that is not preferred should have: the largest of the lists' smallest.
	within int
	best   hint.Hint
	found  bool
	err    error
	walked int // choices
}

// maxWalked bounds the choices that are walked one by one. The kubelet walks all, and with so many would not come to an end.
const maxWalked = 1 << 28

// maxSeen is the number of nodes up to which it is noted which common nodes were gone on from already.
const maxSeen = 10

// seenBefore reports whether the lists from i on were already walked with these common nodes and no chance to be preferred, and notes that
// they now are. Which of two hints is better does not hang on the order in which they come, so another walk would change nothing.
func (m *Manager) seenBefore(i int, common hint.Mask) bool {
	place := 0
	for rest := common; rest != 0; rest &= rest - 1 {
		place |= 1 << m.rank[rest.Lowest()]
	}
	place += i << maxSeen
	if m.seen[place] {
		return true
	}
	m.seen[place] = true
	return false
}

func (m *Manager) merge(lists [][]hint.Hint) (hint.Hint, error) {
	m.merger = merger{lists: lists, within: maxOfMin(lists)}
	if many(lists) && m.all.Count() <= maxSets && m.orderFree() {
		m.mergeSets()
		return m.merged()
	}
	// Two lists give each pair once. Where the kubelet can crash, which choice it comes to first matters.
	m.skip = len(lists) > 2 && m.all.Count() <= maxSeen && !m.closest
	if m.skip {
		m.seen = append(m.seen[:0], make([]bool, len(lists)<<maxSeen)...)
	}
	m.choose(0, m.all, 0, false, true)
	return m.merged()
}

func (m *Manager) merged() (hint.Hint, error) {
	if m.merger.err != nil {
		return hint.Hint{}, m.merger.err
	}
	if !m.merger.found {
		return hint.Hint{Mask: m.all, Aligned: true}, nil
	}
	return m.merger.best, nil
}

func maxOfMin(lists [][]hint.Hint) int {
	most := 0
	for _, list := range lists {
		least := -1
		for i := range list {
			if n := list[i].Mask.Count(); list[i].Aligned && (least < 0 || n < least) {
				least = n
			}
		}
		most = max(most, least)
	}
	return most
}

// choose goes on from the hints chosen in the lists before i: the nodes common to them, the nodes of the first that named some, and
// whether the choice can still be preferred. Choices that cannot change the result are left out: those without a common node, and
// those that are not preferred once one that is was found.
func (m *Manager) choose(i int, common, first hint.Mask, named, preferred bool) {
	if common == 0 || m.merger.err != nil || !preferred && m.merger.found && m.merger.best.Preferred {
		return
	}
	if m.merger.walked++; m.merger.walked > maxWalked {
		m.merger.err = hint.ErrWouldHang
		return
	}
	if i == len(m.merger.lists) {
		m.compare(hint.Hint{Mask: common, Aligned: true, Preferred: preferred})
		return
	}
	if i >= 2 && m.skip && !preferred && m.seenBefore(i, common) {
		return
	}
	for _, h := range m.merger.lists[i] {
		if !h.Aligned {
			m.choose(i+1, common, first, named, preferred && h.Preferred)
			continue
		}
		same := !named || h.Mask == first
		next := first
		if !named {
			next = h.Mask
		}
		m.choose(i+1, common&h.Mask, next, true, preferred && h.Preferred && same)
	}
}

// compare keeps the better of the best so far and the candidate.
func (m *Manager) compare(candidate hint.Hint) {
	best := m.merger.best
	if !m.merger.found || !best.Preferred && candidate.Preferred {
		m.merger.best, m.merger.found = candidate, true
		return
	}
	if best.Preferred && !candidate.Preferred {
		return
	}
	tie := true
	if !best.Preferred {
		b, c, within := best.Mask.Count(), candidate.Mask.Count(), m.merger.within
		switch {
		case b > within:
		case b == within:
			if c != within {
				return
			}
		case c > within:
			return
		case c == within, c > b:
			tie = false
		case c < b:
			return
		}
	}
	if !tie || candidate.Mask != best.Mask && m.better(candidate.Mask, best.Mask) {
		m.merger.best = candidate
	}
}

// better reports whether mask wins a tie over the current one, which is another.
func (m *Manager) better(mask, current hint.Mask) bool {
	if !m.closest || mask.Count() != current.Count() {
		return mask.Narrower(current)
	}
	a, b := m.average(current), m.average(mask)
	if a == b {
		return mask < current
	}
	return b < a
}

// average is the mean distance between the nodes of the mask, each to itself included. The rows hold one value for each online node,
// but are indexed by id: where ids have gaps, the kubelet crashes.
func (m *Manager) average(mask hint.Mask) float64 {
	var sum, n float64
	for a := mask; a != 0; a &= a - 1 {
		row := m.distances[a.Lowest()]
		for b := mask; b != 0; b &= b - 1 {
			to := b.Lowest()
			if to >= len(row) {
				if m.merger.err == nil {
					m.merger.err = hint.IndexOutOfRange(to, len(row))
				}
				return 0
			}
			sum += float64(row[to])
			n++
		}
	}
	return sum / n
}
