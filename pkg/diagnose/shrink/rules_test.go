package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// ruleCase is a question about node x (or another, or a pool) of a world, and
// which of some codes a right answer holds.
type ruleCase struct {
	name  string
	world *world
	node  string // x unless said
	pool  string // asked about instead of a node
	at    time.Time
	// version is Karpenter's, 1.14.3 unless said; "unknown" is none.
	version string
	want    []string
	text    []string
	lacks   []string
	gap     string // part of a gap that the answer leaves
}

// answer are the findings of some codes.
func (c ruleCase) answer(t *testing.T, codes ...report.Code) ([]report.Finding, *gap.Log) {
	t.Helper()
	o := Options{KarpenterVersion: c.version}
	switch c.version {
	case "":
		o.KarpenterVersion = "1.14.3"
	case "unknown":
		o.KarpenterVersion = ""
	}
	at, gaps := c.at, &gap.Log{}
	if at.IsZero() {
		at = now
	}
	k := Read(c.world.open(t), at, gaps, o)
	if c.pool == "" {
		name := c.node
		if name == "" {
			name = "x"
		}
		return codesOf(k.Node(name), codes...), gaps
	}
	answer, ok := k.NodePool(c.pool)
	if !ok {
		t.Fatalf("there is no pool %s", c.pool)
	}
	return codesOf(answer.Findings, codes...), gaps
}

// checkRules asks every question. Evidence and remedies must be there whatever
// the rule.
func checkRules(t *testing.T, cases []ruleCase, codes ...report.Code) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found, gaps := c.answer(t, codes...)
			slices.Sort(c.want)
			if got := spelled(found); !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			checkText(t, found, c.text, c.lacks)
			for _, f := range found {
				if !strings.HasSuffix(f.Summary, ".") || len(f.Because) == 0 {
					t.Errorf("%s has %d pieces of evidence: %s", f.Code, len(f.Because), f.Summary)
				}
				for _, e := range f.Because {
					if e.Source == "" || e.Field == "" || e.Value == "" {
						t.Errorf("%s: evidence without source, field or value: %+v", f.Code, e)
					}
				}
			}
			if c.gap != "" && !strings.Contains(fmt.Sprintf("%+v", gaps.List()), c.gap) {
				t.Errorf("no gap %q: %+v", c.gap, gaps.List())
			}
			noteData(t, found, codes...)
		})
	}
}
