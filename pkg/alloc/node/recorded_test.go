package node_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/test/scenario"
)

// The recordings are scenarios with what the kubelet's own managers made of them: -record of the modules test/kubelet,
// test/kubelet-1.36 and so on.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/kubelet-*.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayRecording(t, file)
		})
	}
}

func replayRecording(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n, differ := 0, 0
	for dec := json.NewDecoder(bufio.NewReader(z)); ; n++ {
		var line struct {
			In  scenario.Scenario
			Out scenario.Output
		}
		if err := dec.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		possible := scenario.Run(&line.In).Possible(line.Out)
		if slices.ContainsFunc(possible, func(o scenario.Output) bool { return cmp.Equal(line.Out, o.Shortened()) }) {
			continue
		}
		if differ++; differ <= 3 {
			t.Errorf("%s (-kubelet +replay):\n%s", line.In.ID, cmp.Diff(line.Out, possible[0].Shortened()))
		}
	}
	if n < 1000 || differ > 0 {
		t.Errorf("%d of %d scenarios differ", differ, n)
	}
}
