package render

import (
	"strconv"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostSizes is how many instance types of a pool are named.
const mostSizes = 4

// capacity writes how many nodes each NodePool has against what its pods need
// at least, and what makes each bound.
func (p *page) capacity(pools []report.NodePoolCapacity) {
	const width = len("needs") + gap
	for _, pool := range pools {
		p.section("NODES OF "+Escape(pool.NodePool), "has "+strconv.Itoa(pool.Nodes)+", needs at least "+strconv.Itoa(pool.Needed))
		p.labelled(2, "has", width, p.palette.plain, poolHas(pool))
		for i, f := range pool.Floors {
			label := ""
			if i == 0 {
				label = "needs"
			}
			what := f.By
			if f.Of != "" {
				what += " of " + f.Of
			}
			p.labelled(2, label, width, p.palette.plain, strconv.Itoa(f.Nodes)+" for "+what+": "+f.Arithmetic)
		}
		if len(pool.Floors) > 0 {
			p.prose(2, p.palette.faint, "The least by requests, beside DaemonSet and static pods, if these pods stay on these nodes. Nodes of another size may do with fewer.")
		}
	}
}

func poolHas(pool report.NodePoolCapacity) string {
	has := counted(pool.Nodes, "node")
	if sizes := sizes(pool.Sizes); sizes != "" {
		has = sizes
	}
	pods := counted(pool.Pods, "pod")
	if pool.Pods == 0 {
		pods = "no pod"
	}
	has += "; " + pods + " on them would have to go elsewhere"
	if pool.Leaving > 0 {
		has += "; " + counted(pool.Leaving, "more node") + " leaving"
	}
	if pool.Starting > 0 {
		has += "; " + counted(pool.Starting, "more node") + " starting"
	}
	return has
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func sizes(all []report.NodeSize) string {
	parts := make([]string, 0, mostSizes+1)
	for i, s := range all {
		if i == mostSizes {
			parts = append(parts, "and "+counted(len(all)-i, "other type"))
			break
		}
		name := s.InstanceType
		if name == "" {
			name = "of no known type"
		}
		parts = append(parts, strconv.Itoa(s.Nodes)+" "+name)
	}
	return strings.Join(parts, ", ")
}
