package budget

import (
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Segment is a span of time in which a pool allows the same.
type Segment struct {
	Window
	Allowance
}

// Timeline returns what the budgets allow for a reason from one moment to another, in segments without gaps whose neighbours differ
// in value or in the budgets that decide. The number of nodes is taken to stay the same.
func (p Pool) Timeline(reason karpenter.Reason, total int, from, to time.Time) []Segment {
	if !from.Before(to) {
		return nil
	}
	from, to = from.UTC(), to.UTC()
	if p.hasScheduleError() {
		return []Segment{{Window{from, to}, p.Allowed(reason, total, from)}}
	}
	tracks := p.tracks(reason, total, from, to)
	out := make([]Segment, 0, 2*countWindows(tracks)+1)
	var least allowed
	for start := from; start.Before(to); {
		end := least.set(tracks, start, to)
		if n := len(out); n > 0 && out[n-1].Allowed == least.value && slices.Equal(out[n-1].DecidedBy, least.by) {
			out[n-1].To = end
		} else {
			allowance := Allowance{Allowed: least.value, Least: least.value, DecidedBy: slices.Clone(least.by)}
			if least.broken {
				allowance = p.Allowed(reason, total, start)
			}
			out = append(out, Segment{Window{start, end}, allowance})
		}
		start = end
	}
	return out
}

// track is one budget along a timeline.
type track struct {
	index  int
	value  int
	broken bool // the value cannot be read: while active, it closes every reason
	open   []Window
}

// tracks returns the budgets that have a say.
func (p Pool) tracks(reason karpenter.Reason, total int, from, to time.Time) []track {
	tracks := make([]track, 0, len(p.Budgets))
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.concerns(reason) {
			value, err := scaled(b.Nodes, total)
			tracks = append(tracks, track{index: i, value: value, broken: err != nil, open: b.Windows(from, to)})
		}
	}
	return tracks
}

// allowed is the least value at one moment of a timeline.
type allowed struct {
	value  int
	by     []int
	broken bool
}

// set evaluates the tracks at a moment that is not before the last one, dropping windows that have closed, and returns when the next
// one opens or closes, or the end.
func (a *allowed) set(tracks []track, at, end time.Time) time.Time {
	a.value, a.by, a.broken = Unlimited, a.by[:0], false
	for i := range tracks {
		t := &tracks[i]
		for len(t.open) > 0 && !t.open[0].To.After(at) {
			t.open = t.open[1:]
		}
		if len(t.open) == 0 {
			continue
		}
		if opens := t.open[0].From; opens.After(at) {
			if opens.Before(end) {
				end = opens
			}
			continue
		}
		if closes := t.open[0].To; closes.Before(end) {
			end = closes
		}
		a.add(t)
	}
	return end
}

func (a *allowed) add(t *track) {
	switch {
	case t.broken && !a.broken:
		a.value, a.by, a.broken = 0, append(a.by[:0], t.index), true
	case t.broken:
		a.by = append(a.by, t.index)
	case a.broken:
	case t.value < a.value:
		a.value, a.by = t.value, append(a.by[:0], t.index)
	case t.value == a.value && t.value != Unlimited:
		a.by = append(a.by, t.index)
	}
}
