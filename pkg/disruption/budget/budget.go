package budget

import (
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Budget is one budget of a pool, its schedule parsed.
type Budget struct {
	karpenter.Budget

	schedule *Schedule // nil: always active, or err
	err      error     // what is wrong with the schedule
	length   time.Duration
}

// New prepares a budget. Whatever is wrong with it shows when it is evaluated, as with Karpenter.
func New(spec karpenter.Budget) Budget {
	b := Budget{Budget: spec}
	if spec.Duration != nil {
		b.length = spec.Duration.Duration
	}
	if spec.Schedule == nil && spec.Duration == nil {
		return b
	}
	text := ""
	if spec.Schedule != nil {
		text = *spec.Schedule
	}
	b.schedule, b.err = ParseSchedule(text)
	return b
}

// Active reports whether the budget holds at now. The error is that of its schedule.
func (b *Budget) Active(now time.Time) (bool, error) {
	switch {
	case b.err != nil:
		return false, b.err
	case b.schedule == nil:
		return true, nil
	}
	return b.schedule.covers(now, b.length), nil
}

// Allowed returns how many of total nodes the budget lets be disrupted at now: Unlimited while it is not active, and 0 with an error
// where it cannot be evaluated.
func (b *Budget) Allowed(total int, now time.Time) (int, error) {
	active, err := b.Active(now)
	if err != nil {
		return 0, err
	}
	if !active {
		return Unlimited, nil
	}
	return scaled(b.Nodes, total)
}

// AppliesTo reports whether the budget limits the reason. One without reasons limits all; one with an empty list limits none.
func (b *Budget) AppliesTo(reason karpenter.Reason) bool {
	return b.Reasons == nil || slices.Contains(b.Reasons, reason)
}

// IsInert reports that the budget limits no reason, whatever its value.
func (b *Budget) IsInert() bool { return b.Reasons != nil && len(b.Reasons) == 0 }

// ScheduleError is what is wrong with the schedule. Because of it nothing of the pool may be disrupted, for no reason.
func (b *Budget) ScheduleError() error { return b.err }

// NodesError is what is wrong with the value, which tells only while the budget is active.
func (b *Budget) NodesError() error {
	_, err := scaled(b.Nodes, 1)
	return err
}

// NeverFires reports that the schedule has no hit in any year, so that the budget is always active.
func (b *Budget) NeverFires() bool { return b.schedule != nil && b.schedule.NeverFires() }

// NeverActive reports that no hit ever opens the budget, because its windows have no length.
func (b *Budget) NeverActive() bool {
	return b.schedule != nil && !b.schedule.NeverFires() && (b.length <= 0 || b.schedule.every > b.length)
}

// horizon bounds the search for a change: beyond the eight years between two days that are furthest apart, the 29th of February 2096
// and the next.
const horizon = 9 * 366 * day

// NextChange returns the first moment after now at which the budget becomes active or inactive. ok is false where it never does.
func (b *Budget) NextChange(now time.Time) (at time.Time, ok bool) {
	b.windows(now, now.Add(horizon), func(w Window) bool {
		switch end := now.Add(horizon); {
		case w.From.After(now):
			at, ok = w.From, true
		case w.To.Before(end):
			at, ok = w.To, true
		}
		return false
	})
	return at, ok
}

// Current returns the window that is open at now. Its ends are zero where they lie further away than a search goes: a year back, nine
// years ahead. ok is false where none is open.
func (b *Budget) Current(now time.Time) (window Window, ok bool) {
	if active, _ := b.Active(now); !active {
		return Window{}, false
	}
	for _, back := range []time.Duration{day, 366 * day} {
		from := now.Add(-back)
		b.windows(from, now.Add(1), func(w Window) bool {
			window.From = w.From
			return true
		})
		if window.From.After(from) {
			break
		}
		window.From = time.Time{}
	}
	to := now.Add(horizon)
	b.windows(now, to, func(w Window) bool {
		window.To = w.To
		return false
	})
	if !window.To.Before(to) {
		window.To = time.Time{}
	}
	return window, true
}

// Windows returns the spans of [from, to) in which the budget is active, cut to that range.
func (b *Budget) Windows(from, to time.Time) []Window {
	var all []Window
	b.windows(from, to, func(w Window) bool {
		all = append(all, w)
		return true
	})
	return all
}

func (b *Budget) windows(from, to time.Time, yield func(Window) bool) {
	switch {
	case b.err != nil:
	case b.schedule != nil:
		b.schedule.windows(from, to, b.length, yield)
	case from.Before(to):
		yield(Window{from.UTC(), to.UTC()})
	}
}
