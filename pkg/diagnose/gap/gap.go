// Package gap collects what was wanted and could not be had, for the gaps of a
// report.
package gap

import (
	"errors"
	"io/fs"
	"sort"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Log holds each gap once, by what was wanted. Its zero value is empty.
type Log struct {
	byWanted map[string]report.Gap
}

// Miss notes that wanted (a path in the bundle, or an API field) could not be
// used. A file known not to exist on the node is knowledge, not a gap; use
// Lack where its absence narrows the verdict all the same.
func (g *Log) Miss(wanted string, err error, costs, fix string) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	reason := snapshot.Reason(err)
	var gap *snapshot.GapError
	switch {
	case errors.As(err, &gap):
		if gap.Detail != "" {
			reason += ": " + gap.Detail
		}
	case !errors.Is(err, snapshot.ErrNotCollected):
		reason += ": " + err.Error()
	}
	g.Lack(wanted, reason, costs, fix)
}

// Lack notes a gap whose reason is already in words.
func (g *Log) Lack(wanted, reason, costs, fix string) {
	if g.byWanted == nil {
		g.byWanted = map[string]report.Gap{}
	}
	if _, known := g.byWanted[wanted]; !known {
		g.byWanted[wanted] = report.Gap{Wanted: wanted, Reason: reason, Costs: costs, Fix: fix}
	}
}

// List returns the gaps in the order of what was wanted.
func (g *Log) List() []report.Gap {
	out := make([]report.Gap, 0, len(g.byWanted))
	for _, gap := range g.byWanted {
		out = append(out, gap)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Wanted < out[j].Wanted })
	return out
}
