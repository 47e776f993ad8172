package topologymanager

import "github.com/noderes/kubectl-noderes/pkg/alloc/hint"

const (
	// manyChoices is the number of choices from which on they are not walked one by one.
	manyChoices = 1 << 20
	// maxSets is the number of nodes up to which there is room to note every set of them.
	maxSets = 20
)

// many reports whether there are that many choices of one hint from each list.
func many(lists [][]hint.Hint) bool {
	n := 1
	for _, list := range lists {
		if n *= max(1, len(list)); n >= manyChoices {
			return true
		}
	}
	return false
}

// orderFree reports whether the order of the choices cannot matter: it does where the kubelet can crash on a distance that is not there.
func (m *Manager) orderFree() bool {
	if !m.closest {
		return true
	}
	last := m.all
	for last&(last-1) != 0 {
		last &= last - 1
	}
	for rest := m.all; rest != 0; rest &= rest - 1 {
		if len(m.distances[rest.Lowest()]) <= last.Lowest() {
			return false
		}
	}
	return true
}

// mergeSets comes to what the walk of all choices comes to, in n·2ⁿ steps for n nodes: first the preferred choices, whose hints name one
// and the same set; where there is none, every set that some choice has in common.
func (m *Manager) mergeSets() {
	if m.preferredSets(); m.merger.found {
		return
	}
	common := make([]uint64, 1<<m.all.Count())
	common[len(common)-1] = 1
	for _, list := range m.merger.lists {
		meet(common, m.sets(list))
	}
	for place := 1; place < len(common); place++ {
		if common[place] != 0 {
			m.compare(hint.Hint{Mask: m.maskAt(place), Aligned: true})
		}
	}
}

// preferredSets compares the sets for which every list has a preferred hint: of that set, or of none in particular.
func (m *Manager) preferredSets() {
	lists := map[hint.Mask]int{} // by set: how many have a hint of it and none without a set
	choosy := 0
	for _, list := range m.merger.lists {
		anySet := false
		for _, h := range list {
			anySet = anySet || h.Preferred && !h.Aligned
		}
		if !anySet {
			choosy++
		}
		mine := map[hint.Mask]bool{}
		for _, h := range list {
			if h.Preferred && h.Aligned && !mine[h.Mask] {
				mine[h.Mask] = true
				if anySet {
					lists[h.Mask] += 0
				} else {
					lists[h.Mask]++
				}
			}
		}
	}
	if choosy == 0 {
		m.compare(hint.Hint{Mask: m.all, Aligned: true, Preferred: true})
	}
	for mask, n := range lists {
		if n == choosy && mask&m.all != 0 {
			m.compare(hint.Hint{Mask: mask & m.all, Aligned: true, Preferred: true})
		}
	}
}

// sets notes the hints' sets by their place; a hint without one stands for all nodes.
func (m *Manager) sets(list []hint.Hint) []uint64 {
	out := make([]uint64, 1<<m.all.Count())
	for _, h := range list {
		place := len(out) - 1
		if h.Aligned {
			place = m.placeOf(h.Mask)
		}
		out[place] = 1
	}
	return out
}

// placeOf numbers the sets of the nodes that there are; maskAt is the set of a number.
func (m *Manager) placeOf(mask hint.Mask) int {
	place, bit := 0, 1
	for rest := m.all; rest != 0; rest &= rest - 1 {
		if mask.Has(rest.Lowest()) {
			place |= bit
		}
		bit <<= 1
	}
	return place
}

func (m *Manager) maskAt(place int) hint.Mask {
	var mask hint.Mask
	for rest := m.all; rest != 0; rest &= rest - 1 {
		if place&1 != 0 {
			mask |= rest & -rest
		}
		place >>= 1
	}
	return mask
}

// meet leaves in a the intersections of a set of a with one of b. How many pairs have at least certain nodes in common is the product of
// how many sets of each have them; from these sums those that have just them in common follow (at most 2⁴⁰ pairs, so that none overflows).
func meet(a, b []uint64) {
	addSupersets(a)
	addSupersets(b)
	for i := range a {
		a[i] *= b[i]
	}
	for bit := 1; bit < len(a); bit <<= 1 {
		for i := range a {
			if i&bit == 0 {
				a[i] -= a[i|bit]
			}
		}
	}
	for i := range a {
		a[i] = min(a[i], 1)
	}
}

func addSupersets(a []uint64) {
	for bit := 1; bit < len(a); bit <<= 1 {
		for i := range a {
			if i&bit == 0 {
				a[i] += a[i|bit]
			}
		}
	}
}
