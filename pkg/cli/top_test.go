package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestTopGolden(t *testing.T) {
	for _, dir := range []string{"smt2-k612", "numa4-k61"} {
		from := filepath.Join(recordedNodes, dir, "bundle.tar.gz")
		golden := filepath.Join("testdata/golden", dir+"-bundle")
		compareGolden(t, filepath.Join(golden, "top-pods.txt"), "top", "pods", "--from", from)
		compareGolden(t, filepath.Join(golden, "top-containers.txt"), "top", "pods", "--containers", "--from", from)
		compareGolden(t, filepath.Join(golden, "top-nodes.txt"), "top", "nodes", "--from", from)
		compareGolden(t, filepath.Join(golden, "top-pods.json"), "top", "pods", "throttled", "oom", "debug", "-o", "json", "--from", from)
		compareGolden(t, filepath.Join(golden, "top-nodes.json"), "top", "nodes", "-o", "json", "--from", from)
	}
}

// topOf is the JSON document of a table.
func topOf(t *testing.T, args ...string) report.Top {
	t.Helper()
	var out, errOut bytes.Buffer
	args = append(append([]string{"top"}, args...), "-o", "json")
	if code := Main(t.Context(), args, genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}); code != ExitReport || errOut.Len() > 0 {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	var top report.Top
	if err := json.Unmarshal(out.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	return top
}

// Of a recorded node the first row by each column is known.
func TestTopFirstRows(t *testing.T) {
	s, err := demo.Open(demo.Default)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{
		"throttled": "frac", "wait": "throttled", "cpu": "frac", "memory": "cache", "memory%": "cache", "nonreclaimable": "oom-tmpfs",
		"oom": "oom-group", "cpus": "excl-a", "name": "besteffort",
	}
	for _, column := range diagnose.TopPodColumns() {
		top, err := diagnose.TopPods(s, diagnose.TopOptions{SortBy: column})
		if err != nil || top.SortBy != column || len(top.Pods) == 0 {
			t.Fatalf("by %s: by %s, %d rows, %v", column, top.SortBy, len(top.Pods), err)
		}
		if top.Pods[0].Name != first[column] {
			t.Errorf("by %s: first %s, want %q", column, top.Pods[0].Name, first[column])
		}
	}
	for _, column := range diagnose.TopNodeColumns() {
		if top, err := diagnose.TopNodes(s, diagnose.TopOptions{SortBy: column}); err != nil || top.SortBy != column || len(top.Nodes) != 1 {
			t.Errorf("nodes by %s: %+v, %v", column, top, err)
		}
	}
}

// Nothing that the tables need may have been cut from the embedded recordings.
func TestTopOfDemos(t *testing.T) {
	for _, r := range demo.List() {
		top := topOf(t, "nodes", "--from", "demo/"+r.Name)
		n := top.Nodes[0]
		if n.CPU.Used == nil || n.Pressure.CPU == nil || n.Pressure.Memory == nil || n.Pressure.IO == nil || n.Memory.Available == nil ||
			n.OOMKills == nil || n.Pods == nil || n.Exclusive == nil || n.Shared == nil {
			t.Errorf("%s: not all is known: %+v", r.Name, n)
		}
		pods := topOf(t, "pods", "--from", "demo/"+r.Name)
		for _, p := range pods.Pods {
			if p.CPU.Used == nil || p.CPU.Throttled == nil || p.CPU.Waiting == nil || p.Memory.Current == nil || p.Memory.NonReclaimable == nil || p.OOMKills == nil || p.CPUs == nil {
				t.Errorf("%s %s: not all is known: %+v", r.Name, p.Name, p)
			}
		}
		for _, gap := range append(top.Gaps, pods.Gaps...) {
			if strings.HasPrefix(gap.Reason, "TooLarge") {
				t.Errorf("%s: wanted %s", r.Name, gap.Wanted)
			}
		}
	}
}
