package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	outputBegin = "<!-- output of `explain pod oom -n shop --from demo`, the first finding; made by `make update-golden` -->\n```\n"
	outputEnd   = "```\n<!-- end of output -->\n"
)

// TestReadmeOutput keeps the README's sample what the command prints.
func TestReadmeOutput(t *testing.T) {
	s, err := demo.Open("smt2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := diagnose.Pod(s, "shop", "oom", diagnose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Findings, r.Placement, r.Resources, r.Gaps = r.Findings[:1], nil, nil, nil
	var out bytes.Buffer
	if err := render.Text(&out, []report.Report{r}, render.Style{Width: 100, Unicode: true}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), outputBegin)
	got, after, okEnd := strings.Cut(rest, outputEnd)
	if !ok || !okEnd {
		t.Fatalf("no section between %q and %q", outputBegin, outputEnd)
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+outputBegin+out.String()+outputEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(out.String(), got); diff != "" {
		t.Errorf("the README's sample is not the output (-want +got):\n%s", diff)
	}
}
