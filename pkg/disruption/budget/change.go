package budget

import (
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// ranges are how far ahead a change of a pool is looked for, one after the other; maxWindows bounds how many windows the next one may
// hold by what the last one held.
var ranges = []time.Duration{day, 8 * day, 64 * day, horizon}

const maxWindows = 200_000

// NextChange returns the first moment after now at which what is allowed for the reason changes, for a pool of total nodes that
// stays as it is. ok is false where it never does, or not within the search: nine years, but days where short windows follow each
// other without ever changing what all of them together allow.
func (p Pool) NextChange(reason karpenter.Reason, total int, now time.Time) (at time.Time, ok bool) {
	if p.hasScheduleError() {
		return time.Time{}, false
	}
	now = now.UTC()
	for i, ahead := range ranges {
		tracks := p.tracks(reason, total, now, now.Add(ahead))
		windows := countWindows(tracks)
		if at, ok := firstChange(tracks, now, now.Add(ahead)); ok {
			return at, true
		}
		if i+1 < len(ranges) && windows*int(ranges[i+1]/ahead) > maxWindows {
			break
		}
	}
	return time.Time{}, false
}

func firstChange(tracks []track, now, end time.Time) (at time.Time, ok bool) {
	var least allowed
	at = least.set(tracks, now, end)
	for present := least.value; at.Before(end); {
		next := least.set(tracks, at, end)
		if least.value != present {
			return at, true
		}
		at = next
	}
	return time.Time{}, false
}

func countWindows(tracks []track) int {
	n := 0
	for i := range tracks {
		n += len(tracks[i].open)
	}
	return n
}

// concerns reports whether the budget has a say in what is allowed for the reason: one that cannot be evaluated closes every reason.
func (b *Budget) concerns(reason karpenter.Reason) bool {
	return b.AppliesTo(reason) || b.NodesError() != nil
}

func (p Pool) hasScheduleError() bool {
	for i := range p.Budgets {
		if p.Budgets[i].err != nil {
			return true
		}
	}
	return false
}
