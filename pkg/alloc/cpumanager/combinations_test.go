package cpumanager

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// appendedInts walks combinations as the kubelet does, passing views of slices that grow by append.
func appendedInts(n, k int, f func([]int) bool) {
	var walk func(from, missing int, chosen []int) bool
	walk = func(from, missing int, chosen []int) bool {
		if missing == 0 {
			return f(chosen)
		}
		for i := from; i <= n-missing; i++ {
			if !walk(i+1, missing-1, append(chosen, i)) {
				return false
			}
		}
		return true
	}
	walk(0, k, []int{})
}

func TestKeptAsAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		keepAt := rapid.SliceOfN(rapid.IntRange(0, 300), 1, 3).Draw(t, "keep at")
		stopAt := rapid.IntRange(0, 300).Draw(t, "stop at")

		var want []int
		at := 0
		appendedInts(n, k, func(c []int) bool {
			if slices.Contains(keepAt, at) {
				want = c
			}
			at++
			return at <= stopAt
		})

		var got kept
		var walk combinations
		i := 0
		for ok := walk.first(n, k); ok; ok = walk.next() {
			got.overwrite(walk.at)
			if slices.Contains(keepAt, i) {
				got.keep(walk.at)
			}
			if i++; i > stopAt {
				break
			}
		}
		if i != at || got.set != (want != nil) {
			t.Fatalf("%d combinations, kept %v; want %d, %v", i, got.set, at, want != nil)
		}
		for j := range want {
			if int(got.at[j]) != want[j] {
				t.Fatalf("kept %v, the kubelet has %v", got.at, want)
			}
		}
	})
}
