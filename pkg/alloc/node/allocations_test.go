package node

import "testing"

// Neither going through the sets of NUMA nodes nor merging the hints takes memory.
func TestHintsTakeNoMemory(t *testing.T) {
	for _, policy := range []string{"best-effort", "restricted", "single-numa-node"} {
		n := mustStart(t, config(t, policy, "container"))
		if _, err := n.Admit(pod("a", "3", "2Gi"), nil); err != nil {
			t.Fatal(err)
		}
		a := n.activate(pod("b", "4", "4Gi"))
		merge := func() {
			if _, _, err := n.merge(a, &a.requests.Containers[0], nil); err != nil {
				t.Fatal(err)
			}
		}
		merge()
		if allocs := testing.AllocsPerRun(100, merge); allocs != 0 {
			t.Errorf("%s: %v allocations", policy, allocs)
		}
	}
}
