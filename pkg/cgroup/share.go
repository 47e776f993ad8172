package cgroup

// Share is the part of its parent's CPU time that a group of the given weight
// is sure of while it and the siblings want more than there is: weight over the
// sum of all weights. Groups compete with their siblings only, so that the part
// of a whole tree is the product over its levels (kernel, cgroup-v2: cpu.weight).
//
// A weight of 0 is what a group with cpu.idle shows: it runs where no sibling
// with a weight wants to. Alone among the wanting a group has all, 1.
func Share(weight uint64, siblings ...uint64) float64 {
	if len(siblings) == 0 {
		return 1
	}
	sum := float64(weight)
	for _, s := range siblings {
		sum += float64(s)
	}
	if sum == 0 {
		return 1 / float64(len(siblings)+1)
	}
	return float64(weight) / sum
}
