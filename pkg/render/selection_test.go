package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Each verdict is told once, the other pods that have it by name, and no list of
// names is endless.
func TestSelection(t *testing.T) {
	var list report.List
	pods := func(n int, prefix string) (out []report.Metadata) {
		for i := range n {
			m := report.Metadata{Namespace: "shop", Name: fmt.Sprint(prefix, i), Node: fmt.Sprint("n", i%12)}
			out = append(out, m)
			list.Items = append(list.Items, report.Report{Kind: report.PodReport, Metadata: m})
		}
		return out
	}
	list.Selection = &report.Selection{Of: "deployment shop/w\x1b[31m", Pods: 46, Explained: 14,
		Verdicts:     []report.Verdict{{Pods: pods(1, "dead-")}, {Pods: pods(2, "slow-")}, {Pods: pods(11, "fine-")}},
		NotExplained: []report.PodState{{State: "OOM\x1b[2J", Pods: 2}, {State: "Running", Pods: 30}},
		Gaps:         []report.Gap{{Wanted: "cluster/pods.json", Reason: "TooLarge: 7 left out"}}}
	text := func(width int) string {
		var b strings.Builder
		if err := Selection(&b, list, Style{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := text(0)
	for _, want := range []string{
		`46 pods · explained: the 14 that look worst to the API server`,
		"\n1 more pod: the same, on node n1: shop/slow-1\n",
		"\n10 more pods: the same, on nodes n1, n2, n3, n4, n5, n6, n7, n8 and 2 more: shop/fine-1, shop/fine-2, shop/fine-3, shop/fine-4, shop/fine-5, shop/fine-6, shop/fine-7, shop/fine-8 and 2 more\n",
		"\n32 more pods not explained, see --max-pods: 2 OOM", "30 Running\n", "TooLarge: 7 left out",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "No findings."); n != 3 {
		t.Errorf("%d reports of 3 verdicts", n)
	}
	if strings.Contains(got, "\x1b") || strings.Contains(got, "pod shop/slow-1") {
		t.Errorf("%q", got)
	}
	for line := range strings.Lines(text(60)) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 60 && !strings.HasPrefix(line, "─") {
			t.Errorf("too long: %q", line)
		}
	}

	list.Selection = &report.Selection{Of: "deployment web", Pods: 1, Explained: 1, Partial: true, Verdicts: []report.Verdict{{Pods: pods(1, "x")}}}
	list.Items = list.Items[len(list.Items)-1:]
	if got := text(0); !strings.HasPrefix(got, "deployment web · 1 pod · there may be more: the bundle holds a part of the pods\n\npod shop/x0 on n0\n") {
		t.Errorf("%q", got)
	}
}
