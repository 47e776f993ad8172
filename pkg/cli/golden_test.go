package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// recordedNodes are bundles of real kubelets, whole: what a pod's report must
// say is in the cases beside them, what it looks like is golden here.
const recordedNodes = "../diagnose/testdata/cases"

// TestGolden explains the pods of recorded nodes, from the archive to the bytes
// on standard output.
func TestGolden(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	for _, node := range []struct {
		dir, bundle, namespace, name string
		pods, json                   []string
	}{
		{dir: "smt2-k612", bundle: "bundle", namespace: "shop", name: "smt2",
			pods: []string{"oom", "oom-group", "oom-init", "oom-pod", "oom-tmpfs", "sigkill", "throttled", "frac", "podlevel", "resized",
				"excl-a", "excl-b", "sidecar", "cache", "burst", "besteffort", "reject-smt"},
			json: []string{"oom", "throttled", "excl-a", "oom-tmpfs"}},
		{dir: "numa4-k61", bundle: "bundle", namespace: "mill", name: "numa4",
			pods: []string{"wide", "one", "huge", "two-app", "child-oom", "oom", "throttled", "starved", "nolimit"},
			json: []string{"wide", "child-oom"}},
		{dir: "numa4-k61", bundle: "bundle-evicting", namespace: "mill", name: "numa4", pods: []string{"oom", "hog"}},
	} {
		from := filepath.Join(recordedNodes, node.dir, node.bundle+".tar.gz")
		golden := filepath.Join("testdata/golden", node.dir+"-"+node.bundle)
		for _, pod := range node.pods {
			compareGolden(t, filepath.Join(golden, pod+".txt"), "explain", "pod", pod, "-n", node.namespace, "--from", from)
		}
		for _, pod := range node.json {
			compareGolden(t, filepath.Join(golden, pod+".json"), "explain", "pod", pod, "-n", node.namespace, "--from", from, "-o", "json")
		}
		compareGolden(t, filepath.Join(golden, "node.txt"), "explain", "node", node.name, "--from", from)
		compareGolden(t, filepath.Join(golden, "placement.txt"), "placement", node.name, "--from", from)
	}
}

func compareGolden(t *testing.T, file string, args ...string) {
	t.Helper()
	t.Run(strings.TrimPrefix(file, "testdata/golden/"), func(t *testing.T) {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}); code != ExitReport || errOut.Len() > 0 {
			t.Fatalf("exit %d: %s", code, errOut.String())
		}
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, out.Bytes()) {
			t.Errorf("differs from %s; first difference:\n%s", file, firstDifference(string(want), out.String()))
		}
	})
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "(end)", "(end)"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return "- " + x + "\n+ " + y
		}
	}
	return ""
}
