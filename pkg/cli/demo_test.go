package cli

import (
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// TestDemosAreEnough: nothing that explaining the recordings asks for may have
// been cut from them.
func TestDemosAreEnough(t *testing.T) {
	for _, r := range demo.List() {
		s, err := demo.Open(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		var reports []report.Report
		for _, p := range r.Pods {
			got, err := diagnose.Pod(s, p.Namespace, p.Name, diagnose.Options{})
			if err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
			reports = append(reports, got)
		}
		got, err := diagnose.Node(s, r.Node, diagnose.Options{})
		if err != nil {
			t.Errorf("%s: %v", r.Node, err)
		}
		for _, r := range append(reports, got) {
			if len(r.Findings) == 0 {
				t.Errorf("%s %s: no findings", r.Kind, r.Metadata.Name)
			}
			for _, gap := range r.Gaps {
				if strings.HasPrefix(gap.Reason, "TooLarge") {
					t.Errorf("%s %s: wanted %s", r.Kind, r.Metadata.Name, gap.Wanted)
				}
			}
		}
	}
}
