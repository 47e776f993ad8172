package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// TestBundleByHand: what docs/bundle.md has a person take from the API server, the kubelet's configz through it included, gives the
// findings that the same files of the recording give.
func TestBundleByHand(t *testing.T) {
	configz, err := proxied(t.Context(), live.admin, recording, standin.Configz)
	if err != nil {
		t.Fatal(err)
	}
	taken, recorded := map[string][]byte{"nodes/" + recording + "/configz.json": configz}, map[string][]byte{}
	for path, resource := range map[string]string{"cluster/nodes.json": "nodes", "cluster/pods.json": "pods", "cluster/events.json": "events"} {
		request := live.admin.CoreV1().RESTClient().Get().Resource(resource).SetHeader("Accept", "application/json")
		if taken[path], err = request.DoRaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		if recorded[path], err = live.recorded.File(path); err != nil {
			t.Fatal(err)
		}
	}
	recorded["nodes/"+recording+"/configz.json"] = configz
	manifest, err := live.recorded.File("bundle.json")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"explain", "pod", "-n", live.pods[0].Namespace, "-o", "json"}
	for i := range live.pods {
		args = append(args, live.pods[i].Name)
	}
	reports := func(files map[string][]byte) []report {
		dir := t.TempDir()
		files["bundle.json"] = manifest
		for name, data := range files {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, errs, err := live.noderes(t, "", append(args, "--from", dir)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		return mustJSON[struct{ Items []report }](t, out).Items
	}
	want, got := reports(recorded), reports(taken)
	if len(got) != len(live.pods) || len(want) != len(got) {
		t.Fatalf("%d reports, from the recording %d, of %d pods", len(got), len(want), len(live.pods))
	}
	codes := map[string]bool{}
	for i := range want {
		for _, f := range want[i].Findings {
			codes[f.Code] = true
		}
		w, g := spell(t, want[i].Findings), spell(t, got[i].Findings)
		for recorded, present := range live.uids {
			g = strings.ReplaceAll(g, string(present), string(recorded))
		}
		if w != g {
			t.Errorf("%s: from the recording\n%s\nfrom the cluster\n%s", want[i].Metadata.Name, w, g)
		}
	}
	for _, code := range []string{"crash-loop-backoff", "smt-alignment-refused", "exit-137-not-oom"} {
		if !codes[code] {
			t.Errorf("no %s, so little was compared: %v", code, codes)
		}
	}
}

// A report is what the tests read of the plugin's.
type report struct {
	Metadata struct{ Name string }
	Findings []finding
}

type finding struct {
	Code string
	rest json.RawMessage
}

func (f *finding) UnmarshalJSON(data []byte) error {
	f.rest = append(f.rest, data...)
	var head struct{ Code string }
	err := json.Unmarshal(data, &head)
	f.Code = head.Code
	return err
}

// spell is a finding a line, whole.
func spell(t *testing.T, findings []finding) string {
	t.Helper()
	var b strings.Builder
	for _, f := range findings {
		b.Write(f.rest)
		b.WriteByte('\n')
	}
	return b.String()
}
