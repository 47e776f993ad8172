package budget

import "time"

// Window is a span of time; its start belongs to it and its end does not.
type Window struct {
	From, To time.Time
}

const day = 24 * time.Hour

// windows calls yield with every span of [from, to) in which a window of that length is open: in order, merged where they touch, cut
// to the range, until yield returns false. It agrees with covers at every instant, except for a schedule of nothing but the 29th of
// February in the years before a century's missing one (2097 and 2098), where covers finds no hit within five years.
func (s *Schedule) windows(from, to time.Time, length time.Duration, yield func(Window) bool) {
	from, to = from.UTC(), to.UTC()
	whole := Window{from, to}
	switch {
	case !from.Before(to):
		return
	case s.NeverFires():
		yield(whole)
		return
	case length <= 0:
		return
	case s.spec == nil:
		if s.every <= length {
			yield(whole)
		}
		return
	}
	days := daysOf(s.spec)
	pattern := days.pattern(length)
	var open Window
	for d := days.latestBefore(from, length); d.Before(to); d = d.Add(day) {
		if !days.has(d) {
			continue
		}
		for _, span := range pattern {
			next, ok := Window{d.Add(span.from), d.Add(span.to)}.cut(whole)
			switch {
			case !ok:
			case open.To.IsZero():
				open = next
			case !next.From.After(open.To):
				open.To = next.To
			default:
				if !yield(open) {
					return
				}
				open = next
			}
		}
	}
	if !open.To.IsZero() {
		yield(open)
	}
}

// latestBefore returns the day from which windows of [t, …) must be looked for: the last one before t's with hits, unless the length
// does not reach from there, and else the day of t.
func (d days) latestBefore(t time.Time, length time.Duration) time.Time {
	year, month, date := t.Date()
	today := time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
	earliest := t.Add(-length)
	for before := today.Add(-day); before.Add(day).After(earliest); before = before.Add(-day) {
		if d.has(before) {
			return before
		}
	}
	return today
}

// cut returns what of the window lies in bounds, if anything does.
func (w Window) cut(bounds Window) (Window, bool) {
	if w.From.Before(bounds.From) {
		w.From = bounds.From
	}
	if w.To.After(bounds.To) {
		w.To = bounds.To
	}
	return w, w.From.Before(w.To)
}
