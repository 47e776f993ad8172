package diagnose

import "testing"

// A least amount of one byte over a round one reads as more than that.
func TestLeastBytes(t *testing.T) {
	for b, want := range map[uint64]string{512 << 20: "512Mi", 512<<20 + 1: "more than 512Mi", 512<<20 + 4096: "536875008 bytes"} {
		if got := leastBytes(b); got != want {
			t.Errorf("%d: got %q, want %q", b, got, want)
		}
	}
}
