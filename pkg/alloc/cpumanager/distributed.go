package cpumanager

import (
	"fmt"
	"math"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

var errDivide = hint.ErrDivide

const (
	// maxNUMANodes bounds the nodes whose combinations are walked.
	maxNUMANodes = 64
	// maxCombinations bounds the combinations of one search. The kubelet has no bound; with so many it would take hours.
	maxCombinations = 50_000_000
)

// distribution is the state of one search by takeByTopologyNUMADistributed. Nodes are named by their position in numas.
type distribution struct {
	a        *accumulator
	rules    *alloc.Rules
	n, group int
	bySocket bool

	numas []int16 // places, in the order in which the kubelet would fill nodes; one that spans sockets can stand twice
	nodes []int16 // each of them once
	after []int   // CPUs that stay free, by place
	local []int   // copy of after, to hand out the remainder in

	walk, subwalk combinations
	remainders    []int8 // positions of the nodes that can give from the remainder
	best          kept
	localRem      kept
	remSet        []int8 // bestRem, as positions in numas
	localSet      []int8
	balance       float64
	oneSocket     bool
	looked        int // combinations
}

// distributed takes n CPUs spread evenly over as few NUMA nodes as possible, in multiples of group.
func (d *distribution) distributed(a *accumulator, available cpuset.Set, n, group int) (cpuset.Set, error) {
	if group == 0 {
		return cpuset.Set{}, errDivide
	}
	if n%group != 0 {
		return a.packed(available, n, false)
	}
	if n < 1 {
		return cpuset.Set{}, nil
	}
	a.reset(available, n)
	if n > a.left {
		return cpuset.Set{}, notEnough(n, available)
	}
	d.a, d.n, d.group, d.looked = a, n, group, 0
	d.numas = append(d.numas[:0], a.sortedNUMAs()...)
	if len(d.numas) > maxNUMANodes {
		return cpuset.Set{}, hint.ErrWouldHang
	}
	d.nodes = d.nodes[:0]
	for p, count := range a.inNUMA {
		if count > 0 {
			d.nodes = append(d.nodes, int16(p))
		}
	}
	if len(d.after) < len(a.inNUMA) {
		d.after, d.local = make([]int, len(a.inNUMA)), make([]int, len(a.inNUMA))
	}

	groups := (len(a.m.cpus)-1)/group + 1
	perNode := (groups-1)/len(a.m.numas) + 1
	needed := (n-1)/group + 1
	from, to := (needed-1)/perNode+1, min(needed, len(d.nodes))
	for k := from; k <= to; k++ {
		if err := d.search(k); err != nil {
			return cpuset.Set{}, err
		}
		if d.best.set {
			return d.take(k)
		}
	}
	return a.packed(available, n, false)
}

// search looks at every combination of k nodes.
func (d *distribution) search(k int) error {
	d.best.drop()
	d.remSet = d.remSet[:0]
	d.balance, d.oneSocket = math.MaxFloat64, false
	for ok := d.walk.first(len(d.numas), k); ok; ok = d.walk.next() {
		combo := d.walk.at
		if d.looked++; d.looked > maxCombinations {
			return hint.ErrWouldHang
		}
		d.best.overwrite(combo)
		if d.balance == 0 && (!d.socketAware() || d.oneSocket) {
			break
		}
		if !d.fits(combo) {
			continue
		}
		balance, err := d.weigh(combo)
		if err != nil {
			return err
		}
		one := d.socketAware() && d.inOneSocket(combo)
		better := balance < d.balance
		if d.socketAware() && one != d.oneSocket {
			better = one
		}
		if better {
			d.balance, d.oneSocket = balance, one
			d.best.keep(combo)
			d.remSet = append(d.remSet[:0], d.localSet...)
		}
	}
	return nil
}

func (d *distribution) socketAware() bool { return d.bySocket && d.rules.DistributeHeedsSockets }

func (d *distribution) free(pos int8) int { return int(d.a.inNUMA[d.numas[pos]]) }

// perNode is what each node of the combination gives before the remainder. clamp: no more than the least that one of them has.
func (d *distribution) perNode(combo []int8, clamp bool) int {
	per := d.n / len(combo) / d.group * d.group
	if clamp {
		for _, p := range combo {
			per = min(per, d.free(p)/d.group*d.group)
		}
	}
	return per
}

// fits reports whether the combination has enough CPUs, in whole groups and in each node.
func (d *distribution) fits(combo []int8) bool {
	var once uint64 // positions are of at most maxNUMANodes nodes, their places of as many
	cpus, groups := 0, 0
	for _, p := range combo {
		free := d.free(p)
		groups += free / d.group
		if bit := uint64(1) << d.numas[p]; once&bit == 0 {
			once |= bit
			cpus += free
		}
	}
	if cpus < d.n || groups*d.group < d.n {
		return false
	}
	per := d.perNode(combo, d.socketAware())
	for _, p := range combo {
		if d.free(p) < per {
			return false
		}
	}
	return true
}

// weigh returns how unevenly CPUs stay free over all nodes, with the remainder handed out in the best way, which is left in localSet.
func (d *distribution) weigh(combo []int8) (float64, error) {
	for _, node := range d.nodes {
		d.after[node] = int(d.a.inNUMA[node])
	}
	per := d.perNode(combo, d.socketAware())
	for _, p := range combo {
		d.after[d.numas[p]] -= per
	}
	d.localSet = d.localSet[:0]
	remainder := d.n - per*len(combo)
	if remainder == 0 {
		return d.deviation(d.after), nil
	}
	d.remainders = d.remainders[:0]
	for _, p := range combo {
		if d.after[d.numas[p]] >= d.group {
			d.remainders = append(d.remainders, p)
		}
	}
	best := math.MaxFloat64
	for s := len(d.remainders); s >= 1; s-- {
		d.localRem.drop()
		for ok := d.subwalk.first(len(d.remainders), s); ok; ok = d.subwalk.next() {
			if d.looked++; d.looked > maxCombinations {
				return 0, hint.ErrWouldHang
			}
			d.localRem.overwrite(d.subwalk.at)
			balance, ok, err := d.handOut(remainder)
			if err != nil {
				return 0, err
			}
			if ok && balance < best {
				best = balance
				d.localRem.keep(d.subwalk.at)
			}
		}
		if d.localRem.set {
			d.localSet = d.localSet[:0]
			for _, i := range d.localRem.at {
				d.localSet = append(d.localSet, d.remainders[i])
			}
		}
	}
	return best, nil
}

// handOut gives the remainder to the nodes of the subset in turn. ok is false if they have not enough.
func (d *distribution) handOut(remainder int) (balance float64, ok bool, err error) {
	sum := 0
	for _, i := range d.subwalk.at {
		sum += d.after[d.numas[d.remainders[i]]]
	}
	if sum < remainder {
		return 0, false, nil
	}
	for _, node := range d.nodes {
		d.local[node] = d.after[node]
	}
	for remainder > 0 {
		before := remainder
		for _, i := range d.subwalk.at {
			if remainder == 0 {
				break
			}
			if node := d.numas[d.remainders[i]]; d.local[node] >= d.group {
				d.local[node] -= d.group
				remainder -= d.group
			}
		}
		if remainder == before {
			return 0, false, hint.ErrWouldHang
		}
	}
	return d.deviation(d.local), true, nil
}

// deviation is the standard deviation over all nodes, rounded as the kubelet rounds it.
func (d *distribution) deviation(free []int) float64 {
	sum := 0
	for _, node := range d.nodes {
		sum += free[node]
	}
	n := float64(len(d.nodes))
	mean := math.Round(float64(sum)/n*1000) / 1000
	var squares float64
	for _, node := range d.nodes {
		off := float64(free[node]) - mean
		squares += off * off
	}
	return math.Round(math.Sqrt(squares/n)*1000) / 1000
}

func (d *distribution) inOneSocket(combo []int8) bool {
	var sockets cpuset.Set
	for _, p := range combo {
		for _, s := range d.a.m.numas[d.numas[p]].sockets {
			sockets.Add(int(s))
		}
	}
	return sockets.Size() <= 1
}

// take takes from the nodes of the best combination, as it was when the walk ended.
func (d *distribution) take(k int) (cpuset.Set, error) {
	whole := d.a
	combo := d.best.at
	per := d.perNode(combo, d.rules.DistributeClamps)
	if whole.trace != nil {
		whole.trace.Add(trace.Step{Spread: &trace.Spread{Nodes: d.ids(combo), PerNode: per, Remainder: d.ids(d.remSet), Balance: d.balance}})
	}
	left, need := whole.avail, d.n
	var result cpuset.Set
	takeFrom := func(p int8, n int) {
		// A failure takes nothing, which the accounting below tells.
		cpus, err := whole.packed(left.Intersection(whole.m.numas[d.numas[p]].set), n, false)
		if err == nil {
			result, left = result.Union(cpus), left.Difference(cpus)
			need -= cpus.Size()
		}
	}
	for _, p := range combo {
		takeFrom(p, per)
	}
	for remainder := d.n - per*k; remainder > 0; {
		before := remainder
		for _, p := range d.remSet {
			if remainder == 0 {
				break
			}
			if left.Intersection(whole.m.numas[d.numas[p]].set).Size() < d.group {
				continue
			}
			takeFrom(p, d.group)
			remainder -= d.group
		}
		if remainder == before {
			return cpuset.Set{}, hint.ErrWouldHang
		}
	}
	switch {
	case need > 0:
		return cpuset.Set{}, fmt.Errorf("accounting error, not enough CPUs allocated, remaining: %d", need)
	case need < 0:
		return cpuset.Set{}, fmt.Errorf("accounting error, too many CPUs allocated, remaining: %d", need)
	}
	return result, nil
}

func (d *distribution) ids(positions []int8) []int {
	ids := make([]int, len(positions))
	for i, p := range positions {
		ids[i] = d.a.m.numas[d.numas[p]].id
	}
	return ids
}
