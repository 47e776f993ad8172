package cli

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// liveCluster serves one pod on one node over TLS, to whom the kubeconfig's
// token shows; it gives the path of the kubeconfig. Extra answers replace ours.
func liveCluster(t *testing.T, extra map[string]string) string {
	t.Helper()
	const pod = `{"metadata":{"name":"web-0","namespace":"shop","uid":"u1"},"spec":{"nodeName":"n1","containers":[{"name":"app","image":"app"}]},
		"status":{"phase":"Running","containerStatuses":[{"name":"app","restartCount":3,"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-07-14T08:59:00Z"}}}]}}`
	answers := map[string]string{
		"/version":                             `{"gitVersion":"v1.37.2"}`,
		"/api/v1/namespaces/shop/pods/web-0":   pod,
		"/api/v1/nodes/n1":                     `{"metadata":{"name":"n1","uid":"n-1"},"status":{"nodeInfo":{"kubeletVersion":"v1.37.2"},"capacity":{"cpu":"4","memory":"8Gi"},"allocatable":{"cpu":"4","memory":"8Gi"}}}`,
		"/api/v1/pods":                         `{"kind":"PodList","metadata":{},"items":[` + pod + `]}`,
		"/api/v1/namespaces/shop/events":       `{"metadata":{},"items":[]}`,
		"/api/v1/namespaces/default/events":    `{"metadata":{},"items":[]}`,
		"/api/v1/nodes/n1/proxy/configz":       `{"kubeletconfig":{"cpuManagerPolicy":"none","memoryManagerPolicy":"None"}}`,
		"/api/v1/nodes/n1/proxy/stats/summary": `{"node":{"nodeName":"n1"},"pods":[]}`,
	}
	for path, answer := range extra {
		answers[path] = answer
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Tue, 14 Jul 2026 09:00:00 GMT")
		answer, ok := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer sesame" || answer == "403":
			w.WriteHeader(http.StatusForbidden)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	config := filepath.Join(t.TempDir(), "config")
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, config, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"k","cluster":{"server":%q,"certificate-authority":%q}}],
		"users":[{"name":"u","user":{"token":"sesame"}},{"name":"nobody","user":{}}],
		"contexts":[{"name":"c","context":{"cluster":"k","user":"u","namespace":"shop"}},{"name":"elsewhere","context":{"cluster":"k","user":"u","namespace":"other"}}]}`, server.URL, authority))
	return config
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, want int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := Main(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}); got != want {
		t.Fatalf("%v: status %d, want %d: %s", args, got, want, e.String())
	}
	return o.String(), e.String()
}

// The live report and that of the collected bundle are the same bytes.
func TestLiveIsWhatTheBundleTells(t *testing.T) {
	config := liveCluster(t, nil)
	bundle := filepath.Join(t.TempDir(), "b.tar.gz")
	_, note := run(t, ExitReport, "collect", "pod/web-0", "node/n1", "-o", bundle, "--kubeconfig", config)
	if !strings.Contains(note, "with 8 requests") {
		t.Errorf("note %q", note)
	}
	if entries, err := os.ReadDir(filepath.Dir(bundle)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, c := range [][]string{{"explain", "pod", "web-0"}, {"explain", "pod/web-0"}, {"explain", "node", "n1"}, {"explain", "node/n1"}, {"placement", "n1"}} {
		for _, format := range []string{"text", "json"} {
			args := append(append([]string{}, c...), "-o", format)
			live, errOut := run(t, ExitReport, append(args, "--kubeconfig", config)...)
			from, _ := run(t, ExitReport, append(args, "--from", bundle)...)
			if live != from || errOut != "" || !strings.Contains(live, "n1") {
				t.Errorf("%v: %s\nlive:\n%s\nfrom:\n%s", args, errOut, live, from)
			}
		}
	}
}

// The namespace is that of the flag, else of the context; a pod that is not
// there does not keep the others from being explained.
func TestLiveNamespaceAndErrors(t *testing.T) {
	config := liveCluster(t, nil)
	const code = "-o=jsonpath={.items[0].findings[0].code}"
	for _, c := range []struct {
		args     []string
		status   int
		out, err string
	}{
		{[]string{"explain", "pod", "web-0", "gone", code}, ExitError, "oom-cause-unproven", `error: pods "gone" not found in namespace "shop"`},
		{[]string{"explain", "pod", "web-0", "-n", "shop", "--context", "elsewhere", "-o=jsonpath={.metadata.node}"}, ExitReport, "n1", ""},
		{[]string{"explain", "pod", "web-0", "--context", "elsewhere"}, ExitError, "", `pods "web-0" not found in namespace "other"`},
		{[]string{"explain", "pod", "web-0", "--user", "nobody"}, ExitError, "", `get pods in namespace "shop"`},
		{[]string{"explain", "pod", "web-0", "--context", "none"}, ExitError, "", "context was not found for specified context: none"},
		{[]string{"explain", "pod", "web-0", "--timeout", "-1s"}, ExitError, "", "no time to read in"},
		{[]string{"explain", "node", "n2"}, ExitError, "", `nodes "n2" not found`},
		{[]string{"explain", "nodepool", "p"}, ExitError, "", "--from"},
		{[]string{"collect", "pod/web-0"}, ExitError, "", "-o FILE"},
		{[]string{"collect", "-o", "x"}, ExitError, "", "name the nodes or pods"},
		{[]string{"collect", "deploy/web", "-o", "x"}, ExitError, "", "neither NODE"},
		{[]string{"collect", "pod/gone", "-o", filepath.Join(t.TempDir(), "x")}, ExitError, "", `pods "gone" not found`},
		{[]string{"collect", "pod/web-0", "-o", filepath.Join(t.TempDir(), "no", "x")}, ExitError, "", "no such file"},
	} {
		out, errOut := run(t, c.status, append(c.args, "--kubeconfig", config)...)
		if !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(errOut, c.err) {
			t.Errorf("%v: %q, %q", c.args, out, errOut)
		}
	}
}

// --from reads the bundle and no kubeconfig, not even a broken one.
func TestFromReadsNoKubeconfig(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "config")
	write(t, broken, "{")
	run(t, ExitReport, "explain", "pod", "oom", "-n", "shop", "--from", "demo", "--kubeconfig", broken)
}

// What is refused stands in the report with the permission that would give it.
func TestLiveGapNamesThePermission(t *testing.T) {
	config := liveCluster(t, map[string]string{"/api/v1/nodes/n1/proxy/configz": "403", "/api/v1/pods": "403"})
	out, _ := run(t, ExitReport, "explain", "pod", "web-0", "--kubeconfig", config)
	for _, want := range []string{"Forbidden: needs get nodes/proxy", "Forbidden: needs list pods of all namespaces", "nodes/n1/pods.json"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
