package cli

import (
	"path/filepath"
	"testing"
)

// TestWhatIfGolden asks recorded nodes about pods, from the file to the bytes on
// standard output.
func TestWhatIfGolden(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, q := range []struct{ dir, node, file string }{
		{"smt2-k612", "smt2", "whatif-four"},
		{"smt2-k612", "smt2", "whatif-memory"},
		{"numa4-k61", "numa4", "whatif-one"},
		{"21-numa-group-blocks-second-pod", "node-a", "db-85"},
		{"11-reserved-ignored-in-min-affinity", "node-a", "cpu-104"},
	} {
		t.Run(q.dir+"/"+q.file, func(t *testing.T) {
			golden, err := filepath.Abs(filepath.Join("testdata/golden", "whatif-"+q.dir, q.file+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(filepath.Join(recordedNodes, q.dir)) // the file's name stands in the report
			compareGolden(t, golden, "whatif", "-f", q.file+".yaml", "--node", q.node, "--from", "bundle.tar.gz")
		})
	}
}
