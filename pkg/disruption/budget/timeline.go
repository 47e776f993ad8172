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
	edges := p.edges(reason, from, to)
	var out []Segment
	for i, start := range edges {
		allowance := p.Allowed(reason, total, start)
		end := to
		if i+1 < len(edges) {
			end = edges[i+1]
		}
		if n := len(out); n > 0 && out[n-1].same(allowance) {
			out[n-1].To = end
			continue
		}
		out = append(out, Segment{Window{start, end}, allowance})
	}
	return out
}

// edges returns from and the moments after it, before to, at which a budget for the reason opens or closes.
func (p Pool) edges(reason karpenter.Reason, from, to time.Time) []time.Time {
	edges := []time.Time{from}
	for i := range p.Budgets {
		b := &p.Budgets[i]
		if b.schedule == nil || !b.concerns(reason) {
			continue
		}
		b.windows(from, to, func(w Window) bool {
			edges = append(edges, w.From)
			if w.To.Before(to) {
				edges = append(edges, w.To)
			}
			return true
		})
	}
	slices.SortFunc(edges, time.Time.Compare)
	return slices.CompactFunc(edges, time.Time.Equal)
}

func (a Allowance) same(b Allowance) bool {
	return a.Allowed == b.Allowed && slices.Equal(a.DecidedBy, b.DecidedBy)
}
