package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostNames bounds the pods and nodes that a line names.
const mostNames = 8

// Selection writes the reports of a selection: how many pods it has, of each
// verdict the first report whole and the others by name, and what is not
// explained.
func Selection(w io.Writer, list report.List, s Style) error {
	p := page{style: s, palette: newPalette(s.Color)}
	sel := list.Selection
	parts := []part{{Escape(sel.Of), p.palette.strong}, {countOf(sel.Pods, "pod"), p.palette.plain}}
	if sel.Partial {
		parts = append(parts, part{"there may be more: the bundle holds a part of the pods", p.palette.plain})
	}
	switch {
	case len(sel.NotExplained) > 0:
		parts = append(parts, part{fmt.Sprintf("explained: the %d that look worst to the API server", sel.Explained), p.palette.plain})
	case sel.Explained < sel.Pods:
		parts = append(parts, part{fmt.Sprintf("explained: %d", sel.Explained), p.palette.plain})
	}
	p.heading("", 2, parts)
	next := 0
	for i, v := range sel.Verdicts {
		if next >= len(list.Items) {
			break
		}
		p.blank()
		if i > 0 {
			p.rule()
		}
		p.report(list.Items[next])
		next += max(len(v.Pods), 1)
		if len(v.Pods) > 1 {
			p.blank()
			p.prose(0, p.palette.strong, same(v.Pods[1:]))
		}
	}
	if len(sel.NotExplained) > 0 {
		p.blank()
		p.rule()
		p.prose(0, p.palette.plain, notExplained(sel.NotExplained))
	}
	p.gaps(sel.Gaps)
	return p.flush(w)
}

func (p *page) rule() {
	p.line(0, p.palette.faint, strings.Repeat(p.style.rule(), ruleWidth(p.style.Width)))
}

// same tells of further pods with a verdict.
func same(pods []report.Metadata) string {
	var names, nodes []string
	for _, pod := range pods {
		name := pod.Name
		if pod.Namespace != "" {
			name = pod.Namespace + "/" + name
		}
		names = append(names, name)
		if pod.Node != "" && !slices.Contains(nodes, pod.Node) {
			nodes = append(nodes, pod.Node)
		}
	}
	text := countOf(len(pods), "more pod") + ": the same"
	switch len(nodes) {
	case 0:
	case 1:
		text += ", on node " + nodes[0]
	default:
		text += ", on nodes " + firstOf(nodes)
	}
	return text + ": " + firstOf(names)
}

func notExplained(states []report.PodState) string {
	total := 0
	var parts []string
	for _, s := range states {
		total += s.Pods
		parts = append(parts, fmt.Sprintf("%d %s", s.Pods, s.State))
	}
	return countOf(total, "more pod") + " not explained, see --max-pods: " + strings.Join(parts, ", ")
}

// firstOf are the first of many names.
func firstOf(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
