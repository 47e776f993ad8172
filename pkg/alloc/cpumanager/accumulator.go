package cpumanager

import (
	"errors"
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// accumulator takes CPUs one group after the other (cpumanager/cpu_assignment.go). Its slices are kept from one use to the next.
type accumulator struct {
	m      *machine
	spread bool
	trace  *trace.Trace // nil: off

	avail  cpuset.Set // CPUs that can still be taken: the kubelet's details
	left   int        // their number
	need   int        // below 0 where a group was taken twice
	result cpuset.Set

	// Available CPUs by place of the group, and for NUMA nodes by socket and by uncore cache.
	inNUMA, inSocket, inCore, inUncore []int16
	socketOfNUMA, uncoreOfNUMA         []int16 // [numa*len(sockets)+socket], [numa*len(uncores)+uncore]

	numas, sockets, cores, uncores, free, singles []int16
}

func newAccumulator(m *machine) *accumulator {
	return &accumulator{
		m:            m,
		inNUMA:       make([]int16, len(m.numas)),
		inSocket:     make([]int16, len(m.sockets)),
		inCore:       make([]int16, len(m.cores)),
		inUncore:     make([]int16, len(m.uncores)),
		socketOfNUMA: make([]int16, len(m.numas)*len(m.sockets)),
		uncoreOfNUMA: make([]int16, len(m.numas)*len(m.uncores)),
	}
}

// reset starts anew with CPUs available and the number needed.
func (a *accumulator) reset(available cpuset.Set, need int) {
	a.avail, a.need, a.result, a.left = available.Intersection(a.m.all), need, cpuset.Set{}, 0
	clear(a.inNUMA)
	clear(a.inSocket)
	clear(a.inCore)
	clear(a.inUncore)
	clear(a.socketOfNUMA)
	clear(a.uncoreOfNUMA)
	for id := range a.avail.All() {
		a.count(a.m.placed[id], 1)
	}
}

func (a *accumulator) count(place, by int16) {
	c := a.m.cpus[place]
	a.left += int(by)
	a.inNUMA[c.numa] += by
	a.inSocket[c.socket] += by
	a.inCore[c.core] += by
	a.inUncore[c.uncore] += by
	a.socketOfNUMA[int(c.numa)*len(a.m.sockets)+int(c.socket)] += by
	a.uncoreOfNUMA[int(c.numa)*len(a.m.uncores)+int(c.uncore)] += by
}

// takeGroup takes all CPUs of a group, those too that are not available: that is how the kubelet hands out CPUs twice where its
// averages mislead it.
func (a *accumulator) takeGroup(level trace.Level, g *group) {
	for _, place := range g.cpus {
		a.takeCPU(place)
	}
	a.need -= len(g.cpus)
	if a.trace != nil {
		a.trace.Add(trace.Step{Take: &trace.Take{Level: level, ID: g.id, CPUs: g.set}})
	}
}

func (a *accumulator) takeCPU(place int16) {
	id := int(a.m.cpus[place].id)
	a.result.Add(id)
	if a.avail.Contains(id) {
		a.avail.Remove(id)
		a.count(place, -1)
	}
}

func (a *accumulator) satisfied() bool { return a.need < 1 }

// sortByCount orders places by available CPUs, and by id where these are equal. The lists are short or nearly sorted.
func sortByCount(places, count []int16) {
	for i := 1; i < len(places); i++ {
		for j := i; j > 0; j-- {
			p, q := places[j-1], places[j]
			if count[p] < count[q] || count[p] == count[q] && p <= q {
				break
			}
			places[j-1], places[j] = q, p
		}
	}
}

// appendSorted appends the places for which has is positive, in the order of sortByCount.
func appendSorted(to, places, has, count []int16) []int16 {
	from := len(to)
	for _, p := range places {
		if has[p] > 0 {
			to = append(to, p)
		}
	}
	sortByCount(to[from:], count)
	return to
}

func appendAllSorted(to, count []int16) []int16 {
	from := len(to)
	for p := range count {
		if count[p] > 0 {
			to = append(to, int16(p))
		}
	}
	sortByCount(to[from:], count)
	return to
}

func (a *accumulator) sortedNUMAs() []int16 {
	a.numas = a.numas[:0]
	if a.m.numaFirst {
		a.numas = appendAllSorted(a.numas, a.inNUMA)
		return a.numas
	}
	for _, s := range a.sortedSockets() {
		from := len(a.numas)
		for _, n := range a.m.sockets[s].numas {
			if a.socketOfNUMA[int(n)*len(a.m.sockets)+int(s)] > 0 {
				a.numas = append(a.numas, n)
			}
		}
		sortByCount(a.numas[from:], a.inNUMA)
	}
	return a.numas
}

func (a *accumulator) sortedSockets() []int16 {
	a.sockets = a.sockets[:0]
	if !a.m.numaFirst {
		a.sockets = appendAllSorted(a.sockets, a.inSocket)
		return a.sockets
	}
	for _, n := range a.sortedNUMAs() {
		of := a.socketOfNUMA[int(n)*len(a.m.sockets):][:len(a.m.sockets)]
		a.sockets = appendSorted(a.sockets, a.m.numas[n].sockets, of, a.inSocket)
	}
	return a.sockets
}

func (a *accumulator) sortedCores() []int16 {
	a.cores = a.cores[:0]
	if a.m.numaFirst {
		for _, s := range a.sortedSockets() {
			a.cores = appendSorted(a.cores, a.m.sockets[s].cores, a.inCore, a.inCore)
		}
		return a.cores
	}
	for _, n := range a.sortedNUMAs() {
		a.cores = appendSorted(a.cores, a.m.numas[n].cores, a.inCore, a.inCore)
	}
	return a.cores
}

// sortedUncores has an uncore cache once for each NUMA node that it spans.
func (a *accumulator) sortedUncores(to []int16) []int16 {
	to = to[:0]
	for _, n := range a.sortedNUMAs() {
		of := a.uncoreOfNUMA[int(n)*len(a.m.uncores):][:len(a.m.uncores)]
		to = appendSorted(to, a.m.numas[n].uncores, of, a.inUncore)
	}
	return to
}

func (a *accumulator) sortedCPUs() []int16 {
	a.singles = a.singles[:0]
	if a.spread {
		for _, s := range a.sortedSockets() {
			a.appendAvailable(a.m.sockets[s].cpus)
		}
		return a.singles
	}
	for _, c := range a.sortedCores() {
		a.appendAvailable(a.m.cores[c].cpus)
	}
	return a.singles
}

func (a *accumulator) appendAvailable(places []int16) {
	for _, p := range places {
		if a.avail.Contains(int(a.m.cpus[p].id)) {
			a.singles = append(a.singles, p)
		}
	}
}

// takeFull takes every group that is free and fits. Which are free is told before the first is taken. size is the number of CPUs by
// which a group counts as free, 0 for its own.
func (a *accumulator) takeFull(level trace.Level, sorted []int16, groups []group, count []int16, size int) {
	a.free = a.free[:0]
	for _, p := range sorted {
		full := size
		if full == 0 {
			full = len(groups[p].cpus)
		}
		if int(count[p]) == full {
			a.free = append(a.free, p)
		}
	}
	for _, p := range a.free {
		if a.need >= len(groups[p].cpus) {
			a.takeGroup(level, &groups[p])
		}
	}
}

func (a *accumulator) takeFullNUMAs() {
	a.takeFull(trace.NUMANode, a.sortedNUMAs(), a.m.numas, a.inNUMA, 0)
}

func (a *accumulator) takeFullSockets() {
	if a.m.perSocket > 0 {
		a.takeFull(trace.Socket, a.sortedSockets(), a.m.sockets, a.inSocket, a.m.perSocket)
	}
}

func (a *accumulator) takeFullCores() {
	if a.m.perCore > 0 {
		a.takeFull(trace.Core, a.sortedCores(), a.m.cores, a.inCore, a.m.perCore)
	}
}

func (a *accumulator) takeUncores() error {
	var order [64]int16
	list := a.sortedUncores(order[:0])
	for _, u := range list {
		if a.need >= a.m.perUncore {
			a.uncores = a.sortedUncores(a.uncores)
			a.takeFull(trace.UncoreCache, a.uncores, a.m.uncores, a.inUncore, 0)
		}
		if a.satisfied() {
			return nil
		}
		if err := a.takePartOf(u); err != nil || a.satisfied() {
			return err
		}
	}
	return nil
}

// takePartOf takes just as many CPUs as are needed from an uncore cache, or none.
func (a *accumulator) takePartOf(u int16) error {
	if a.m.perCore == 0 {
		return errDivide
	}
	cores := (a.need + a.m.perCore - 1) / a.m.perCore
	a.singles = a.singles[:0]
	for _, c := range a.m.uncores[u].cores {
		if cores == 0 {
			break
		}
		if !a.coreIn(c, u) {
			continue
		}
		cores--
		a.appendAvailable(a.m.cores[c].cpus)
	}
	cpus := a.singles
	if a.need%2 != 0 && a.m.perCore > 1 && len(cpus) > a.need {
		highest := 0
		for i, p := range cpus {
			if p > cpus[highest] {
				highest = i
			}
		}
		cpus = append(cpus[:highest], cpus[highest+1:]...)
	}
	if len(cpus) != a.need {
		return nil
	}
	var taken cpuset.Set
	for _, p := range cpus {
		taken.Add(int(a.m.cpus[p].id))
		a.takeCPU(p)
	}
	a.need = 0
	if a.trace != nil {
		a.trace.Add(trace.Step{Take: &trace.Take{Level: trace.PartialUncore, ID: a.m.uncores[u].id, CPUs: taken}})
	}
	return nil
}

// coreIn reports whether a core has an available CPU with that uncore cache.
func (a *accumulator) coreIn(core, uncore int16) bool {
	for _, p := range a.m.cores[core].cpus {
		if c := &a.m.cpus[p]; c.uncore == uncore && a.avail.Contains(int(c.id)) {
			return true
		}
	}
	return false
}

func (a *accumulator) takeSingles() {
	for _, p := range a.sortedCPUs() {
		a.takeCPU(p)
		a.need--
		if a.trace != nil {
			id := int(a.m.cpus[p].id)
			a.trace.Add(trace.Step{Take: &trace.Take{Level: trace.SingleCPU, ID: id, CPUs: cpuset.Of(id)}})
		}
		if a.satisfied() {
			return
		}
	}
}

// packed is takeByTopologyNUMAPacked.
func (a *accumulator) packed(available cpuset.Set, n int, byUncore bool) (cpuset.Set, error) {
	if n < 1 {
		return cpuset.Set{}, nil
	}
	a.reset(available, n)
	if n > a.left {
		return cpuset.Set{}, notEnough(n, available)
	}
	if a.m.numaFirst {
		a.takeFullNUMAs()
	} else {
		a.takeFullSockets()
	}
	if a.satisfied() {
		return a.result, nil
	}
	if a.m.numaFirst {
		a.takeFullSockets()
	} else {
		a.takeFullNUMAs()
	}
	if a.satisfied() {
		return a.result, nil
	}
	if byUncore {
		if err := a.takeUncores(); err != nil {
			return cpuset.Set{}, err
		}
		if a.satisfied() {
			return a.result, nil
		}
	}
	if !a.spread {
		a.takeFullCores()
		if a.satisfied() {
			return a.result, nil
		}
	}
	a.takeSingles()
	if a.satisfied() {
		return a.result, nil
	}
	return cpuset.Set{}, errFailed
}

var errFailed = errors.New("failed to allocate cpus")

func notEnough(n int, available cpuset.Set) error {
	return fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, available.Size())
}
