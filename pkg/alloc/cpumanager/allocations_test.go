package cpumanager

import "testing"

// What is taken and tried on the way to a set of CPUs takes no memory: a request for which many sets of NUMA nodes are tried needs no more
// than one for which it is one set.
func TestTakeTakesNoMemory(t *testing.T) {
	machine := machineOf(t, 8, 16, 2, false)
	for _, options := range [][]string{nil, {"distribute-cpus-across-numa"}, {"distribute-cpus-across-numa", "full-pcpus-only"}, {"prefer-align-cpus-by-uncorecache"}} {
		m := start(t, machine, "0,128", 0, options...)
		allocs := func(n int) float64 {
			take := func() {
				if _, err := m.take(m.State.Default, n); err != nil {
					t.Fatal(err)
				}
			}
			take()
			return testing.AllocsPerRun(20, take)
		}
		for _, n := range []int{2, 34, 78, 130, 190} {
			if got := allocs(n); got > 1 {
				t.Errorf("%v: %v allocations for %d CPUs", options, got, n)
			}
		}
	}
}
