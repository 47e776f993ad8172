package node

import (
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// maxLost bounds what a merge tells: a node of twenty NUMA nodes has a million hints.
const maxLost = 1024

// offer is what a list of hints comes to.
type offer struct {
	union     hint.Mask
	any       bool               // it has a hint without nodes
	anyNode   bool               // such a hint is preferred
	preferred map[hint.Mask]bool // nodes of preferred hints
}

// lost tells of each offered hint that names other nodes than the merged one why it is not that (topologymanager/policy.go, compare).
func lost(lists [][]hint.Hint, best hint.Hint) []trace.Lost {
	offers := make([]offer, len(lists))
	for i, list := range lists {
		offers[i].preferred = map[hint.Mask]bool{}
		for _, h := range list {
			switch {
			case !h.Aligned:
				offers[i].any, offers[i].anyNode = true, offers[i].anyNode || h.Preferred
			default:
				offers[i].union |= h.Mask
				if h.Preferred {
					offers[i].preferred[h.Mask] = true
				}
			}
		}
	}
	var out []trace.Lost
	for i, list := range lists {
		for _, h := range list {
			if len(out) == maxLost {
				return out
			}
			if h.Aligned && h.Mask != best.Mask {
				out = append(out, trace.Lost{List: i, Hint: h, Why: whyLost(offers, i, h, best)})
			}
		}
	}
	return out
}

func whyLost(offers []offer, from int, h, best hint.Hint) trace.Loss {
	agreed := true // every list prefers these nodes, or has no preference
	for i, o := range offers {
		if i != from && !o.any && o.union&h.Mask == 0 {
			return trace.NoCommonNode
		}
		agreed = agreed && (o.anyNode || o.preferred[h.Mask])
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
