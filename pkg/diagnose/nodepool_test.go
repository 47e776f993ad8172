package diagnose

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Node groups of the Cluster Autoscaler are asked for by name beside NodePools,
// and without them.
func TestNodeGroupReports(t *testing.T) {
	const (
		pools  = `{"apiVersion":"karpenter.sh/v1","kind":"NodePoolList","items":[{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},"spec":{"template":{"spec":{}}}}]}`
		status = "autoscalerStatus: Running\nnodeGroups: [{name: workers, health: {cloudProviderTarget: 3, minSize: 3}}]\n"
		runs   = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"ca","namespace":"kube-system"},"spec":{"containers":[{"name":"cluster-autoscaler","image":"cluster-autoscaler:v1.36.1"}]}}]}`
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		names []string
		// wrong is in the error of both questions.
		wrong, wrongNames string
	}{
		{"groups alone", map[string]string{"cluster-autoscaler-status.yaml": status}, []string{"workers"}, "", ""},
		{"groups and pools", map[string]string{"cluster-autoscaler-status.yaml": status, "nodepools.karpenter.sh.json": pools}, []string{"default", "workers"}, "", ""},
		{"pools alone", map[string]string{"nodepools.karpenter.sh.json": pools}, []string{"default"}, `"workers" not found`, ""},
		{"an autoscaler without a status", map[string]string{"pods.json": runs}, nil, "a Cluster Autoscaler runs (pods/kube-system/ca)", "a Cluster Autoscaler runs (pods/kube-system/ca)"},
		{"neither", nil, nil, "not collected", "not collected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := fstest.MapFS{"bundle.json": {Data: []byte(`{"formatVersion":1,"capturedAt":"2026-07-14T09:00:00Z"}`)}}
			for name, text := range c.files {
				files["cluster/"+name] = &fstest.MapFile{Data: []byte(text)}
			}
			s, err := snapshot.FromFS(files)
			if err != nil {
				t.Fatal(err)
			}
			names, err := NodePools(s)
			if !slices.Equal(names, c.names) || (err != nil) != (c.wrongNames != "") || err != nil && !strings.Contains(err.Error(), c.wrongNames) {
				t.Errorf("names %q, %v", names, err)
			}
			for kind, ask := range map[report.Kind]func(*snapshot.Snapshot, string, Options) (report.Report, error){report.NodePoolReport: NodePool, report.BudgetReport: Budgets} {
				r, err := ask(s, "workers", Options{})
				if c.wrong != "" {
					if err == nil || !strings.Contains(err.Error(), c.wrong) {
						t.Errorf("%s: %v, want %q", kind, err, c.wrong)
					}
					continue
				}
				if err != nil || r.Kind != kind || len(r.Findings) != 1 || r.Findings[0].Code != report.CAMinSize || r.Versions.Karpenter != "" {
					t.Errorf("%s: %+v, %v", kind, r, err)
				}
				var missing *NotFoundError
				if _, err := ask(s, "none", Options{}); !errors.As(err, &missing) || !slices.Equal(missing.Known, c.names) {
					t.Errorf("%s: a name that is not there: %v", kind, err)
				}
			}
		})
	}
}
