package diagnose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var freeField = regexp.MustCompile(`^machineState\[(\d+)\]\.memoryMap\[(.+)\]\.free$`)

// Evidence that names a field of a state file has that field's own value, also
// where the replay went on from another state.
func TestStateFilesAreQuoted(t *testing.T) {
	for _, dir := range []string{"02-smt-odd-and-half-reserved-core", "11-reserved-ignored-in-min-affinity", "12-restricted-fragmented", "21-numa-group-blocks-second-pod",
		"25-topology-error-runaway-replicaset", "numa4-k61", "smt2-k612"} {
		dir = filepath.Join("testdata/cases", dir)
		s := openTestBundle(t, filepath.Join(dir, "bundle.tar.gz"))
		files, _ := filepath.Glob(dir + "/expect*.json")
		quoted := 0
		for _, file := range files {
			var expect struct{ Runs []caseRun }
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &expect)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range expect.Runs {
				if run.Bundle != "bundle" || run.Args[0] == "explain" && run.Args[1] == "nodepool" {
					continue
				}
				r := run.report(t, dir, s)
				n := newNodeCase(s, s.NodeNames()[0], time.Time{})
				cpu, _ := n.cpuState()
				mem, _ := n.memState()
				for _, f := range r.Findings {
					for _, e := range f.Because {
						at := fmt.Sprintf("%s %v %s: %s = %s", dir, run.Args, f.Code, e.Field, e.Value)
						switch m := freeField.FindStringSubmatch(e.Field); {
						case strings.HasPrefix(e.Field, "free on") || strings.HasPrefix(e.Field, "defaultCpuSet "):
							t.Errorf("%s: no file has this field", at)
						case e.Field == "defaultCpuSet":
							quoted++
							if e.Value != cpu.Default.String() {
								t.Errorf("%s: the file has %s", at, cpu.Default)
							}
						case m != nil:
							quoted++
							var id int
							_, _ = fmt.Sscan(m[1], &id)
							if free := fmt.Sprint(mem.MachineState[id].MemoryMap[corev1.ResourceName(m[2])].Free); e.Value != free {
								t.Errorf("%s: the file has %s", at, free)
							}
						}
					}
				}
			}
		}
		if quoted == 0 {
			t.Errorf("%s: no evidence of the state files", dir)
		}
	}
}
