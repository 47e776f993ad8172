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
		"/version":                                `{"gitVersion":"v1.37.2"}`,
		"/api/v1/namespaces/shop/pods/web-0":      pod,
		"/api/v1/nodes/n1":                        `{"metadata":{"name":"n1","uid":"n-1"},"status":{"nodeInfo":{"kubeletVersion":"v1.37.2"},"capacity":{"cpu":"4","memory":"8Gi"},"allocatable":{"cpu":"4","memory":"8Gi"}}}`,
		"/api/v1/pods":                            `{"kind":"PodList","metadata":{},"items":[` + pod + `]}`,
		"/api/v1/namespaces/shop/events":          `{"metadata":{},"items":[]}`,
		"/api/v1/namespaces/default/events":       `{"metadata":{},"items":[]}`,
		"/api/v1/nodes/n1/proxy/configz":          `{"kubeletconfig":{"cpuManagerPolicy":"none","memoryManagerPolicy":"None"}}`,
		"/api/v1/nodes/n1/proxy/stats/summary":    `{"node":{"nodeName":"n1"},"pods":[]}`,
		"/api/v1/nodes/n1/proxy/metrics/cadvisor": "\n",
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
	_, note := run(t, ExitReport, "collect", "pod/web-0", "node/n1", "-o", bundle, "--kubeconfig", config, "--access=api")
	if !strings.Contains(note, "with 11 requests") {
		t.Errorf("note %q", note)
	}
	if entries, err := os.ReadDir(filepath.Dir(bundle)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, c := range [][]string{{"explain", "pod", "web-0"}, {"explain", "pod/web-0"}, {"explain", "node", "n1"}, {"explain", "node/n1"}, {"placement", "n1"}} {
		for _, format := range []string{"text", "json"} {
			args := append(append([]string{}, c...), "-o", format)
			live, errOut := run(t, ExitReport, append(args, "--kubeconfig", config, "--access=api")...)
			from, _ := run(t, ExitReport, append(args, "--from", bundle)...)
			if live != from || errOut != "" || !strings.Contains(live, "n1") {
				t.Errorf("%v: %s\nlive:\n%s\nfrom:\n%s", args, errOut, live, from)
			}
		}
	}
}

// Of a workload the live report and that of the collected bundle are the same,
// and those of a selector but for the remark that a bundle holds a part.
func TestLiveSelection(t *testing.T) {
	const owned = `"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","uid":"s1","controller":true}]`
	pod := func(n int) string {
		return fmt.Sprintf(`{"metadata":{"name":"web-%d","namespace":"shop","uid":"u%d",%s},"spec":{"nodeName":"n1","containers":[{"name":"app","image":"app"}]},
			"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"app","restartCount":%d,"state":{"running":{}}}]}}`, n, n, owned, n)
	}
	list := fmt.Sprintf(`{"metadata":{},"items":[%s,%s,%s]}`, pod(0), pod(1), pod(2))
	config := liveCluster(t, map[string]string{
		"/apis/apps/v1/namespaces/shop/statefulsets/web": `{"metadata":{"name":"web","namespace":"shop","uid":"s1"},"spec":{"selector":{"matchLabels":{"app":"web"}}},"status":{"replicas":3}}`,
		"/api/v1/namespaces/shop/pods":                   list, "/api/v1/pods": list,
	})
	bundle := filepath.Join(t.TempDir(), "b.tar.gz")
	run(t, ExitReport, "collect", "sts/web", "-o", bundle, "--max-pods", "2", "--kubeconfig", config)
	for _, args := range [][]string{{"sts/web"}, {"sts/web", "-o", "json"}, {"pod", "-l", "app=web", "-n", "shop", "-o", "jsonpath={.items[*].metadata.name}"}} {
		args = append([]string{"explain", "--max-pods", "2"}, args...)
		live, errOut := run(t, ExitReport, append(args, "--kubeconfig", config)...)
		from, _ := run(t, ExitReport, append(args, "--from", bundle)...)
		if live != from || errOut != "" || !strings.Contains(live, "web-1") {
			t.Errorf("%v: %s\nlive:\n%s\nfrom:\n%s", args, errOut, live, from)
		}
	}
	out, _ := run(t, ExitReport, "explain", "pod", "-A", "--max-pods", "1", "-o", "jsonpath={.items[*].metadata.name} {.selection.pods} {.selection.partial}", "--kubeconfig", config)
	if out != "web-2 3 " {
		t.Errorf("-A: %q", out)
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
		{[]string{"explain", "nodepool", "p"}, ExitError, "", "serves no nodepools.karpenter.sh"},
		{[]string{"budgets"}, ExitError, "", "serves no nodepools.karpenter.sh"},
		{[]string{"collect", "nodepool/p", "-o", "x"}, ExitError, "", "serves no nodepools.karpenter.sh"},
		{[]string{"collect", "pod/web-0"}, ExitError, "", "-o FILE"},
		{[]string{"collect", "-o", "x"}, ExitError, "", "name the nodes, pods or NodePools"},
		{[]string{"collect", "secret/web", "-o", "x"}, ExitError, "", "neither NODE"},
		{[]string{"collect", "deploy/web", "-o", "x"}, ExitError, "", `deployments.apps "web" not found in namespace "shop"`},
		{[]string{"collect", "deploy/web", "-o", "x", "--max-pods", "501"}, ExitError, "", "not from 1 to 500"},
		{[]string{"explain", "deploy/web", "--context", "elsewhere"}, ExitError, "", `deployments.apps "web" not found in namespace "other"`},
		{[]string{"explain", "pod", "-l", "app=x", "--user", "nobody"}, ExitError, "", `list pods in namespace "shop"`},
		{[]string{"explain", "pod", "web-0", "-A"}, ExitError, "", "across all namespaces"},
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

// Without the right to make a node pod the report says so; the dry run prints the
// pod and makes none; options that cannot be are refused before anything is asked.
func TestLiveNodePod(t *testing.T) {
	config := liveCluster(t, map[string]string{"/api/v1/namespaces/default/pods": "403"})
	out, _ := run(t, ExitReport, "explain", "pod", "web-0", "--kubeconfig", config)
	if !strings.Contains(out, "Forbidden: needs create pods in namespace default") {
		t.Errorf("%s", out)
	}
	t.Setenv(imageVariable, "mirror.example/busybox:1")
	for _, args := range [][]string{{"explain", "pod", "web-0"}, {"explain", "node", "n1"}, {"placement", "n1"}, {"collect", "n1", "-o", filepath.Join(t.TempDir(), "b")}} {
		out, errOut := run(t, ExitReport, append(args, "--kubeconfig", config, "--dry-run=client", "--node-pod-namespace=tools")...)
		for _, want := range []string{"#   create pods/exec", "nodeName: n1", "namespace: tools", "image: mirror.example/busybox:1"} {
			if !strings.Contains(out, want) || errOut != "" {
				t.Errorf("%v: %q is not in\n%s%s", args, want, out, errOut)
			}
		}
	}
	for flag, want := range map[string]string{
		"--access=all": "none of api, exec, node", "--sample=1500ms": "not a number of seconds", "--sample=1h": "not a number of seconds", "--sample=30s": "does not fit into --timeout=30s",
		"--node-pod-namespace=a/b": "no name of a namespace", "--dry-run=maybe": "none of none, client, server", "--node-pod-pull-policy=Often": "none of Always",
	} {
		if _, errOut := run(t, ExitError, "explain", "pod", "web-0", "--kubeconfig", config, flag); !strings.Contains(errOut, want) {
			t.Errorf("%s: %s", flag, errOut)
		}
	}
}

func TestCleanup(t *testing.T) {
	const pod = `{"metadata":{"name":"noderes-n1-run1","namespace":"default","uid":"u9","creationTimestamp":"2026-07-14T08:58:00Z",
		"labels":{"app.kubernetes.io/managed-by":"kubectl-noderes","app.kubernetes.io/component":"node-pod","noderes.dev/run-id":"run1"},
		"annotations":{"noderes.dev/purpose":"reads files of its node for kubectl noderes, and may be deleted at any time"}},"spec":{"nodeName":"n1"},"status":{"phase":"Failed"}}`
	list := `{"kind":"PodList","items":[` + pod + `,{"metadata":{"name":"web-0","labels":{"app.kubernetes.io/managed-by":"kubectl-noderes"}}}]}`
	config := liveCluster(t, map[string]string{"/api/v1/pods": list, "/api/v1/namespaces/default/pods": list, "/api/v1/namespaces/tools/pods": `{"kind":"PodList"}`, "/api/v1/namespaces/secret/pods": "403"})
	for _, scope := range []string{"-A", "--node-pod-namespace=default"} {
		if out, _ := run(t, ExitReport, "cleanup", scope, "--dry-run", "--kubeconfig", config); out != "pod default/noderes-n1-run1 on node n1, Failed for 2m (not deleted: --dry-run)\n" {
			t.Errorf("%s: %q", scope, out)
		}
		if out, _ := run(t, ExitReport, "cleanup", scope, "--kubeconfig", config); out != "pod default/noderes-n1-run1 on node n1, Failed for 2m deleted\n" {
			t.Errorf("%s: %q", scope, out)
		}
	}
	if out, errOut := run(t, ExitReport, "cleanup", "--node-pod-namespace=tools", "--kubeconfig", config); out != "" || errOut != "no pods were left behind\n" {
		t.Errorf("%q, %q", out, errOut)
	}
	if _, errOut := run(t, ExitError, "cleanup", "--node-pod-namespace=secret", "--kubeconfig", config); !strings.Contains(errOut, "list pods in namespace secret") {
		t.Errorf("%q", errOut)
	}
}
