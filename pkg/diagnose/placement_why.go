package diagnose

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// whyThese tells a container's part of a replayed admission: what each provider
// offered, what the Topology Manager made of it, and in which units the CPUs
// were taken.
func whyThese(tr *trace.Trace, container string) string {
	if tr == nil {
		return ""
	}
	var offers, parts, taken []string
	merged := ""
	for i := 0; i < len(tr.Steps); i++ {
		s := tr.Steps[i]
		switch {
		case s.Hints != nil && (s.Container == "" || s.Container == container):
			for _, r := range s.Hints.Resources {
				offers = append(offers, offerText(s.Hints.Provider, r))
			}
		case s.Merge != nil && (s.Container == "" || s.Container == container):
			merged = mergeText(s.Merge)
		case s.Spread != nil:
			taken = append(taken, spreadText(s.Spread))
		case s.Take != nil:
			same := []trace.Take{*s.Take}
			for i+1 < len(tr.Steps) && tr.Steps[i+1].Take != nil && tr.Steps[i+1].Take.Level == s.Take.Level {
				i++
				same = append(same, *tr.Steps[i].Take)
			}
			taken = append(taken, takeText(same))
		case s.Allocate != nil && s.Container == container:
			if len(offers) > 0 {
				parts = append(parts, join(offers))
			}
			if merged != "" {
				parts = append(parts, merged)
			}
			if len(taken) > 0 {
				parts = append(parts, "taken: "+strings.Join(taken, ", then "))
			}
			return strings.Join(parts, "; ")
		case s.Allocate != nil:
			taken = nil
		}
	}
	return ""
}

// offerText names the sets of NUMA nodes that would do. The preferred ones are
// the narrowest.
func offerText(provider string, r hint.Resource) string {
	name := r.Name
	if provider == "device" {
		name = "device " + name
	}
	if len(r.Hints) == 0 {
		return name + " fits no set of NUMA nodes"
	}
	const most = 6
	var preferred []string
	others := 0
	for _, h := range r.Hints {
		switch {
		case !h.Aligned:
			return name + " has no preference"
		case !h.Preferred || len(preferred) == most:
			others++
		default:
			preferred = append(preferred, idList(h.Mask.IDs()))
		}
	}
	if len(preferred) == 0 {
		return fmt.Sprintf("%s fits %s of NUMA nodes, none of them preferred", name, plural(others, "set"))
	}
	nodes := noun(len(preferred), "node")
	if strings.ContainsAny(preferred[0], ",-") {
		nodes = "nodes"
	}
	text := fmt.Sprintf("%s prefers NUMA %s %s", name, nodes, strings.Join(preferred, " or "))
	if others > 0 {
		text += fmt.Sprintf(" (%d wider or further %s would do)", others, noun(others, "set"))
	}
	return text
}

func mergeText(m *trace.Merge) string {
	if !m.Best.Aligned {
		return "merged: no NUMA node in particular"
	}
	text := fmt.Sprintf("merged: NUMA %s %s", noun(m.Best.Mask.Count(), "node"), idList(m.Best.Mask.IDs()))
	if !m.Best.Preferred {
		text += ", not preferred"
	}
	return text
}

func spreadText(s *trace.Spread) string {
	text := fmt.Sprintf("%s from each of NUMA nodes %s", plural(s.PerNode, "CPU"), idList(s.Nodes))
	if len(s.Remainder) > 0 {
		text += " and the rest from " + idList(s.Remainder)
	}
	return text
}

// takeText names units of one kind that were taken one after the other.
func takeText(same []trace.Take) string {
	var all cpuset.Set
	var sets []string
	for _, t := range same {
		all = all.Union(t.CPUs)
		sets = append(sets, t.CPUs.String())
	}
	const most = 8
	list := strings.Join(sets[:min(most, len(sets))], " ")
	if len(sets) > most {
		list = all.String()
	}
	switch same[0].Level {
	case trace.NUMANode:
		return "whole " + noun(len(same), "NUMA node") + " " + list
	case trace.Socket:
		return "whole " + noun(len(same), "socket") + " " + list
	case trace.UncoreCache:
		return "whole last level " + noun(len(same), "cache") + " " + list
	case trace.PartialUncore:
		return "part of a last level cache " + list
	case trace.Core:
		return "whole " + noun(len(same), "core") + " " + list
	}
	return "single " + noun(all.Size(), "CPU") + " " + all.String()
}
