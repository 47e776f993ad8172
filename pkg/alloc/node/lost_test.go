package node

import (
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

func TestLost(t *testing.T) {
	on := func(mask hint.Mask, preferred bool) hint.Hint {
		return hint.Hint{Mask: mask, Aligned: true, Preferred: preferred}
	}
	cpu := []hint.Hint{on(0b01, true), on(0b10, true), on(0b11, false)}
	for name, c := range map[string]struct {
		other []hint.Hint
		best  hint.Hint
		want  map[hint.Mask]trace.Loss // of the hints of cpu
	}{
		"narrower wins":     {[]hint.Hint{{Preferred: true}}, on(0b01, true), map[hint.Mask]trace.Loss{0b10: trace.Beaten, 0b11: trace.NotPreferred}},
		"memory on node 1":  {[]hint.Hint{on(0b10, true)}, on(0b10, true), map[hint.Mask]trace.Loss{0b01: trace.NoCommonNode, 0b11: trace.NotPreferred}},
		"memory prefers 1":  {[]hint.Hint{on(0b10, true), on(0b11, false)}, on(0b10, true), map[hint.Mask]trace.Loss{0b01: trace.NotAgreed, 0b11: trace.NotPreferred}},
		"nothing preferred": {[]hint.Hint{on(0b11, false)}, on(0b01, false), map[hint.Mask]trace.Loss{0b10: trace.NonePreferred, 0b11: trace.NonePreferred}},
	} {
		got := map[hint.Mask]trace.Loss{}
		for _, l := range lost([][]hint.Hint{cpu, c.other}, c.best) {
			if l.List == 0 {
				got[l.Hint.Mask] = l.Why
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
		}
		for mask, why := range c.want {
			if got[mask] != why {
				t.Errorf("%s: %b: %q, want %q", name, mask, got[mask], why)
			}
		}
	}
}
