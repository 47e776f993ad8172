package cpumanager

// combinations walks the k-combinations of n positions in lexicographic order.
type combinations struct {
	n  int
	at []int8 // ascending positions
}

func (c *combinations) first(n, k int) bool {
	if k < 1 || k > n {
		return false
	}
	c.n, c.at = n, c.at[:0]
	for i := range k {
		c.at = append(c.at, int8(i))
	}
	return true
}

func (c *combinations) next() bool {
	k := len(c.at)
	i := k - 1
	for ; i >= 0 && int(c.at[i]) == c.n-k+i; i-- {
	}
	if i < 0 {
		return false
	}
	c.at[i]++
	for i++; i < k; i++ {
		c.at[i] = c.at[i-1] + 1
	}
	return true
}

// kept is a combination that the kubelet keeps as a view of the buffer that the walk goes on to write in (kubelet ≤ 1.37). The
// buffer is a slice that grew by append, so those of a walk share it down to the last length at which it was copied to a larger one.
type kept struct {
	set bool
	at  []int8
}

func (k *kept) keep(at []int8) { k.set, k.at = true, append(k.at[:0], at...) }

func (k *kept) drop() { k.set, k.at = false, k.at[:0] }

// overwrite is to be called for each combination of the walk that k was kept from, when it is generated.
func (k *kept) overwrite(at []int8) {
	if !k.set {
		return
	}
	own := ownPrefix(len(at))
	for i := range own {
		if k.at[i] != at[i] {
			return
		}
	}
	copy(k.at[own:], at[own:])
}

// ownPrefix is the length at which append last made a new array on the way to a slice of that size: capacities are 1, 2, 4, 8, 16 ...
func ownPrefix(size int) int {
	if size <= 2 {
		return size
	}
	capacity := 2
	for capacity*2 < size {
		capacity *= 2
	}
	return capacity + 1
}
