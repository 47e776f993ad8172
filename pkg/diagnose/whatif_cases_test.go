package diagnose

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// whatIf answers `whatif (-f FILE | pod/NAME) --node NODE... [--set SETTING]...`.
func (run caseRun) whatIf(t *testing.T, dir string, s *snapshot.Snapshot, o Options) report.Report {
	t.Helper()
	var templates []Template
	var nodes, set []string
	for i := 1; i+1 < len(run.Args); i += 2 {
		value := run.Args[i+1]
		switch run.Args[i] {
		case "-f":
			data, err := os.ReadFile(filepath.Join(dir, value))
			if err != nil {
				t.Fatal(err)
			}
			if templates, err = Templates(data, "file:"+value); err != nil {
				t.Fatal(err)
			}
		case "--node":
			nodes = append(nodes, value)
		case "--set":
			set = append(set, value)
		default:
			t.Fatalf("arguments %q", run.Args)
		}
	}
	settings, err := ParseSettings(set)
	if err != nil || len(templates) != 1 {
		t.Fatalf("%d pods, %v", len(templates), err)
	}
	r, err := WhatIf(s, templates[0], nodes, WhatIfOptions{Options: o, Set: settings})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
