package node

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// lost tells of each offered hint that names other nodes than the merged one why it is not that (topologymanager/policy.go, compare).
func lost(lists [][]hint.Hint, best hint.Hint) []trace.Lost {
	var out []trace.Lost
	for i, list := range lists {
		for _, h := range list {
			if h.Aligned && h.Mask != best.Mask {
				out = append(out, trace.Lost{List: i, Hint: h, Why: whyLost(lists, i, h, best)})
			}
		}
	}
	return out
}

func whyLost(lists [][]hint.Hint, from int, h, best hint.Hint) trace.Loss {
	agreed := true // every list prefers these nodes, or has no preference
	for i, list := range lists {
		common, same := false, false
		for _, other := range list {
			common = common || !other.Aligned || other.Mask&h.Mask != 0
			same = same || other.Preferred && (!other.Aligned || other.Mask == h.Mask)
		}
		if i != from && !common {
			return trace.NoCommonNode
		}
		agreed = agreed && same
	}
	switch {
	case best.Preferred && !h.Preferred:
		return trace.NotPreferred
	case best.Preferred && !agreed:
		return trace.NotAgreed
	case best.Preferred:
		return trace.Beaten
	}
	return trace.NonePreferred
}
