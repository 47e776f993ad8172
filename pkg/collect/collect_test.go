package collect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/cadvisor"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// server is a subset of an API server over TLS: objects, field selectors, pages,
// the node proxy.
type server struct {
	*httptest.Server
	objects map[string][]map[string]any // by resource
	kubelet map[string]string           // by endpoint
	metrics map[string]string           // of pods, by name and port
	absent  map[string]bool             // resources that are not served
	// answer replaces the answer to a path; false leaves it as it is.
	answer func(w http.ResponseWriter, r *http.Request) bool
	page   int // items; 0: as many as the client wants

	mu    sync.Mutex
	used  map[string]bool // "verb resource", as RBAC names them
	bytes int
}

func newServer(t testing.TB) *server {
	s := &server{used: map[string]bool{}, objects: map[string][]map[string]any{}, kubelet: map[string]string{
		"configz":          `{"kubeletconfig":{"cpuManagerPolicy":"none","staticPodURLHeader":{"Authorization":["hush"]}}}`,
		"stats/summary":    `{"node":{"nodeName":"n1"},"pods":[]}`,
		"metrics/cadvisor": "# HELP hush\ncontainer_memory_swap{id=\"/hush\"} 1\n" + cadvisor.Periods + "{id=\"/kubepods.slice\"} 7\n",
	}}
	s.absent = map[string]bool{"nodepools": true}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	s.add("nodes", "", "n1", nil)
	s.pod("web-0", "n1")
	s.pod("other", "n1")
	s.pod("far", "n2")
	s.add("events", "shop", "web-0.1", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "web-0", "namespace": "shop"}, "reason": "Started"})
	s.add("events", "shop", "other.1", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "other", "namespace": "shop"}, "reason": "Started"})
	s.add("events", "default", "n1.1", map[string]any{"involvedObject": map[string]any{"kind": "Node", "name": "n1"}, "reason": "Rebooted"})
	return s
}

func (s *server) add(resource, namespace, name string, more map[string]any) {
	o := map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace, "uid": "uid-" + name, "managedFields": []any{map[string]any{"manager": "hush"}},
		"annotations": map[string]any{lastApplied: "hush", "kept": "yes"}}}
	for k, v := range more {
		o[k] = v
	}
	s.objects[resource] = append(s.objects[resource], o)
}

func (s *server) pod(name, node string) {
	s.add("pods", "shop", name, map[string]any{"spec": map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "app", "image": "app",
		"command":       []any{"sh", "-c", "run --token=hush -Xmx512m"},
		"env":           []any{map[string]any{"name": "PASSWORD", "value": "hush"}, map[string]any{"name": "GOMAXPROCS", "value": "4"}, map[string]any{"name": "JAVA_TOOL_OPTIONS", "value": "-Dkey=hush -XX:MaxRAMPercentage=75"}},
		"livenessProbe": map[string]any{"exec": map[string]any{"command": []any{"hush"}}, "httpGet": map[string]any{"path": "/?t=hush", "httpHeaders": []any{map[string]any{"name": "a", "value": "hush"}}}}}}},
		"status": map[string]any{"phase": "Running"}})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.used[right(r.URL.Path)] = true
	s.mu.Unlock()
	if s.answer != nil && s.answer(w, r) {
		return
	}
	inner, _ := below(r.URL.Path)
	parts := strings.Split(inner, "/")
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.37.2"}`)
	case len(parts) > 3 && parts[0] == "pods" && parts[2] == "proxy":
		fmt.Fprint(w, s.metrics[parts[1]])
	case len(parts) > 3 && parts[2] == "proxy":
		fmt.Fprint(w, s.kubelet[strings.Join(parts[3:], "/")])
	case len(parts) == 1 && s.absent[parts[0]]:
		refuse(w, http.StatusNotFound)
	case len(parts) == 1:
		s.list(w, r, parts[0], namespace)
	default:
		for _, o := range s.objects[parts[0]] {
			if meta := o["metadata"].(map[string]any); meta["name"] == parts[1] && meta["namespace"] == namespace {
				s.write(w, o)
				return
			}
		}
		refuse(w, http.StatusNotFound)
	}
}

// below is a path below its API group and version.
func below(path string) (string, bool) {
	if rest, ok := strings.CutPrefix(path, "/api/v1/"); ok {
		return rest, true
	}
	parts := strings.SplitN(path, "/", 5) // "", apis, group, version, rest
	if len(parts) < 5 || parts[1] != "apis" {
		return "", false
	}
	return parts[4], true
}

// right is what RBAC asks for a GET of a path; "" for what needs none.
func right(path string) string {
	path, ok := below(path)
	if !ok {
		return ""
	}
	parts := strings.Split(path, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 1:
		return "list " + parts[0]
	case len(parts) == 2:
		return "get " + parts[0]
	}
	return "get " + parts[0] + "/" + parts[2]
}

func (s *server) write(w http.ResponseWriter, v any) {
	data, _ := json.Marshal(v)
	n, _ := w.Write(data)
	s.mu.Lock()
	s.bytes += n
	s.mu.Unlock()
}

func (s *server) list(w http.ResponseWriter, r *http.Request, resource, namespace string) {
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	var found []any
	for _, o := range s.objects[resource] {
		meta := o["metadata"].(map[string]any)
		own, _ := meta["labels"].(map[string]string)
		set := fields.Set{}
		for _, from := range []string{"spec", "involvedObject"} {
			m, _ := o[from].(map[string]any)
			for k, v := range m {
				if text, ok := v.(string); ok {
					set[from+"."+k] = text
				}
			}
		}
		set["source"], _ = o["reportingComponent"].(string)
		if (namespace == "" || meta["namespace"] == namespace) && selector.Matches(set) && byLabel.Matches(labels.Set(own)) {
			found = append(found, o)
		}
	}
	var start int
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &start)
	end, next := len(found), ""
	if s.page > 0 && start+s.page < end {
		end = start + s.page
		next = fmt.Sprint(end)
	}
	s.write(w, map[string]any{"kind": "List", "metadata": map[string]any{"continue": next}, "items": append([]any{}, found[min(start, end):end]...)})
}

func refuse(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","message":"user \"jane\": no"}`)
}

func (s *server) client(t testing.TB) *Client {
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(s.Client(), base)
}

var web = Request{Pods: []types.NamespacedName{{Namespace: "shop", Name: "web-0"}}, Tool: "test"}

func (s *server) collect(t *testing.T, want Request) *snapshot.Snapshot {
	t.Helper()
	snap, failed, err := Collect(t.Context(), s.client(t), want)
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	return snap
}

func podNames(t *testing.T, s *snapshot.Snapshot) []string {
	t.Helper()
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}

// The pods of the node and no others, in pages, once each, without secrets.
func TestCollectPod(t *testing.T) {
	s := newServer(t)
	s.page = 1
	snap := s.collect(t, web)
	if got := podNames(t, snap); !slices.Equal(got, []string{"other", "web-0"}) {
		t.Errorf("pods %v", got)
	}
	events, err := snap.Events()
	if err != nil || len(events) != 2 || events[0].Reason != "Rebooted" || events[1].InvolvedObject.Name != "web-0" {
		t.Errorf("events %v, %v", events, err)
	}
	if m := snap.Manifest(); m.Server != "v1.37.2" || m.CapturedAt.IsZero() || time.Since(m.CapturedAt).Abs() > time.Minute {
		t.Errorf("manifest %+v", m)
	}
	var all bytes.Buffer
	for _, f := range []string{"cluster/pods.json", "cluster/nodes.json", "cluster/events.json", "nodes/n1/configz.json", "nodes/n1/stats-summary.json", "nodes/n1/metrics-cadvisor.txt", "gaps.json"} {
		data, err := snap.File(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	if strings.Contains(all.String(), "hush") {
		t.Errorf("kept what must not be kept: %s", all.String())
	}
	for _, kept := range []string{`"-Xmx512m"`, `"-XX:MaxRAMPercentage=75"`, `"GOMAXPROCS","value":"4"`, `"PASSWORD"`, `"kept":"yes"`, cadvisor.Periods, `"cpuManagerPolicy"`, `"livenessProbe"`} {
		if !strings.Contains(all.String(), kept) {
			t.Errorf("%s is missing", kept)
		}
	}
}

// What is read of one pod does not grow with the cluster.
func TestCostDoesNotGrow(t *testing.T) {
	cost := func(others int) (int, int64) {
		s := newServer(t)
		for i := range others {
			s.add("nodes", "", fmt.Sprint("m", i), nil)
			for j := range 30 {
				s.pod(fmt.Sprintf("p%d-%d", i, j), fmt.Sprint("m", i))
			}
		}
		client := s.client(t)
		if _, failed, err := Collect(t.Context(), client, web); err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		return client.Cost()
	}
	small, smallBytes := cost(10)
	large, largeBytes := cost(1000)
	if small != 9 || large != small || largeBytes != smallBytes {
		t.Errorf("%d requests and %d bytes of 10 nodes, %d and %d of 1000", small, smallBytes, large, largeBytes)
	}
	t.Logf("%d requests, %d bytes", large, largeBytes)
}

// Each source refused in turn leaves its gap, which names the permission and not
// the user, and a report.
func TestRefusedSources(t *testing.T) {
	for _, c := range []struct{ path, gap, right string }{
		{"/api/v1/nodes/n1", "cluster/nodes.json", "get nodes"},
		{"/api/v1/pods", "nodes/n1/pods.json", "list pods of all namespaces"},
		{"/api/v1/namespaces/shop/events", "cluster/events.json", "list events in namespace shop"},
		{"/api/v1/namespaces/default/events", "cluster/events.json", "list events in namespace default"},
		{"/api/v1/nodes/n1/proxy/configz", "nodes/n1/configz.json", "get nodes/proxy"},
		{"/api/v1/nodes/n1/proxy/stats/summary", "nodes/n1/stats-summary.json", "get nodes/proxy"},
		{"/api/v1/nodes/n1/proxy/metrics/cadvisor", "nodes/n1/metrics-cadvisor.txt", "get nodes/proxy"},
	} {
		t.Run(c.path, func(t *testing.T) {
			for code, reason := range map[int]string{http.StatusForbidden: snapshot.ReasonForbidden, http.StatusInternalServerError: snapshot.ReasonUnreadable} {
				s := newServer(t)
				s.answer = func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == c.path {
						refuse(w, code)
					}
					return r.URL.Path == c.path
				}
				snap := s.collect(t, web)
				gaps, _ := snap.Gaps()
				i := slices.IndexFunc(gaps, func(g snapshot.Gap) bool { return g.Path == c.gap && g.Reason == reason })
				if i < 0 {
					t.Fatalf("no gap %s %s in %+v", c.gap, reason, gaps)
				}
				if code == http.StatusForbidden && gaps[i].Detail != "needs "+c.right {
					t.Errorf("detail %q", gaps[i].Detail)
				}
				if _, err := diagnose.Pod(snap, "shop", "web-0", diagnose.Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A pod that is not there or is not to be read is an error, and so is a server
// that is gone.
func TestFailedSubjects(t *testing.T) {
	fails := func(s *server, want Request, subject, text string) {
		t.Helper()
		_, failed, err := Collect(t.Context(), s.client(t), want)
		if err != nil || failed[subject] == nil || !strings.Contains(failed[subject].Error(), text) {
			t.Errorf("%v, failed %v; want %q", err, failed, text)
		}
	}
	s := newServer(t)
	fails(s, Request{Pods: []types.NamespacedName{{Namespace: "shop", Name: "gone"}}}, "shop/gone", `pods "gone" not found in namespace "shop"`)
	fails(s, Request{Pods: []types.NamespacedName{{Namespace: "shop", Name: "web-1"}}}, "shop/web-1", `pods "web-1" not found in namespace "shop"; nearest: web-0`)
	fails(s, Request{Pods: []types.NamespacedName{{Namespace: "shop", Name: ".."}}}, "shop/..", "no name")
	fails(s, Request{Nodes: []string{"gone"}}, "gone", `nodes "gone" not found`)
	fails(s, Request{Nodes: []string{"a/b"}}, "a/b", "no name")
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, http.StatusForbidden); return true }
	fails(s, web, "shop/web-0", `needed: get pods in namespace "shop"`)
	fails(s, Request{Nodes: []string{"n1"}}, "n1", "needed: get nodes")
	s.Close()
	fails(s, web, "shop/web-0", "connection refused")
}

// 429 is obeyed; connections that break, answers without end and lists without
// an end are gaps.
func TestFaults(t *testing.T) {
	stats := func(f func(w http.ResponseWriter, n int) bool) (*server, *int) {
		s, n := newServer(t), new(int)
		s.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/stats/summary") {
				return false
			}
			*n++
			return f(w, *n)
		}
		return s, n
	}
	busy, n := stats(func(w http.ResponseWriter, n int) bool {
		if n < 3 {
			w.Header().Set("Retry-After", "0")
			refuse(w, http.StatusTooManyRequests)
		}
		return n < 3
	})
	if _, err := busy.collect(t, web).File("nodes/n1/stats-summary.json"); err != nil || *n != 3 {
		t.Errorf("after %d requests: %v", *n, err)
	}
	cutOff, _ := stats(func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"node"`)
		return true
	})
	if _, err := cutOff.collect(t, web).File("nodes/n1/stats-summary.json"); snapshot.Reason(err) != snapshot.ReasonUnreadable {
		t.Error(err)
	}
	endless := newServer(t)
	endless.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/v1/pods" {
			fmt.Fprint(w, `{"metadata":{"continue":"again"},"items":[]}`)
		}
		return r.URL.Path == "/api/v1/pods"
	}
	if err := endless.collect(t, web).Partial("nodes/n1/pods.json"); err == nil {
		t.Error("pages without an end are no gap")
	}
}

// A kubelet that does not answer costs no more than the time there is, and no
// goroutine.
func TestTimeoutAndInterrupt(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newServer(t)
	s.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/proxy/") {
			<-r.Context().Done()
			return true
		}
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	snap, failed, err := Collect(ctx, s.client(t), web)
	if err != nil || len(failed) > 0 || time.Since(start) > 3*time.Second {
		t.Fatalf("%v, %v after %s", err, failed, time.Since(start))
	}
	if _, err := snap.File("nodes/n1/configz.json"); snapshot.Reason(err) != snapshot.ReasonTimeout {
		t.Error(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, interrupt)
	if _, _, err := Collect(ctx, s.client(t), web); err == nil || err.Error() != "interrupted" {
		t.Error(err)
	}
	s.Client().CloseIdleConnections()
	s.Close()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A bundle gives the report of the live snapshot it was written from, and two
// readings of one cluster the same files.
func TestBundleGivesTheSameReport(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", "Tue, 14 Jul 2026 09:00:00 GMT")
		return false
	}
	live := s.collect(t, Request{Pods: web.Pods, Nodes: []string{"n1"}, Tool: "test"})
	var archive, again bytes.Buffer
	if err := cmp.Or(live.WriteArchive(&archive), s.collect(t, Request{Pods: web.Pods, Nodes: []string{"n1"}, Tool: "test"}).WriteArchive(&again)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("two readings differ")
	}
	reopened, err := snapshot.ReadArchive(&archive)
	if err != nil {
		t.Fatal(err)
	}
	var reports [2][]byte
	for i, snap := range []*snapshot.Snapshot{live, reopened} {
		pod, err := diagnose.Pod(snap, "shop", "web-0", diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		node, err := diagnose.Node(snap, "n1", diagnose.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reports[i], _ = json.Marshal([]any{pod, node})
	}
	if !bytes.Equal(reports[0], reports[1]) {
		t.Errorf("live:\n%s\nbundle:\n%s", reports[0], reports[1])
	}
}
