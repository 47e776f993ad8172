package budget

import (
	"math"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// steps bounds the search for a change through budgets that relieve each other: a week of windows of a minute.
const steps = 7 * 24 * 60

// NextChange returns the first moment after now at which what is allowed for the reason changes, for a pool of total nodes that
// stays as it is. ok is false where it never does, or not within the search: nine years, or a week of windows that relieve each
// other every minute.
func (p Pool) NextChange(reason karpenter.Reason, total int, now time.Time) (at time.Time, ok bool) {
	if p.hasScheduleError() {
		return time.Time{}, false
	}
	present := p.Allowed(reason, total, now).Allowed
	at = now
	for range steps {
		if at, ok = p.nextLevel(reason, total, at); !ok {
			return time.Time{}, false
		}
		if p.Allowed(reason, total, at).Allowed != present {
			return at, true
		}
	}
	return time.Time{}, false
}

// nextLevel returns when a budget lower than the lowest active one opens, or when the last of the lowest has closed.
func (p Pool) nextLevel(reason karpenter.Reason, total int, now time.Time) (first time.Time, ok bool) {
	lowest := Unlimited
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.concerns(reason) {
			if active, _ := b.Active(now); active {
				lowest = min(lowest, b.level(total))
			}
		}
	}
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.concerns(reason) && b.level(total) < lowest {
			if at, opens := b.NextChange(now); opens && (!ok || at.Before(first)) {
				first, ok = at, true
			}
		}
	}
	if lowest == Unlimited {
		return first, ok
	}
	if closes, ends := p.closes(reason, total, lowest, now); ends && (!ok || closes.Before(first)) {
		return closes, true
	}
	return first, ok
}

// closes returns the first moment after now at which no budget of that level is active.
func (p Pool) closes(reason karpenter.Reason, total, level int, now time.Time) (time.Time, bool) {
	t := now
	for range steps {
		latest := t
		for i := range p.Budgets {
			b := &p.Budgets[i]
			if !b.concerns(reason) || b.level(total) != level {
				continue
			}
			if active, _ := b.Active(t); !active {
				continue
			}
			end, ok := b.NextChange(t)
			if !ok {
				return time.Time{}, false
			}
			if end.After(latest) {
				latest = end
			}
		}
		if latest.Equal(t) {
			return t, true
		}
		t = latest
	}
	return time.Time{}, false
}

// concerns reports whether the budget has a say in what is allowed for the reason: one that cannot be evaluated closes every reason.
func (b *Budget) concerns(reason karpenter.Reason) bool { return b.badNodes || b.AppliesTo(reason) }

// level orders the values of active budgets, those that close every reason first.
func (b *Budget) level(total int) int {
	value, err := scaled(b.Nodes, total)
	if err != nil {
		return math.MinInt
	}
	return value
}

func (p Pool) hasScheduleError() bool {
	for i := range p.Budgets {
		if p.Budgets[i].err != nil {
			return true
		}
	}
	return false
}
