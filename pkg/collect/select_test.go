package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// selection is of workloads in the namespace shop, in command's form.
func selection(args ...string) *workload.Selection {
	sel := &workload.Selection{Namespace: "shop", Most: 10}
	for _, arg := range args {
		kind, name, _ := strings.Cut(arg, "/")
		k, _ := workload.KindOf(kind)
		sel.Workloads = append(sel.Workloads, workload.Ref{Kind: k, Namespace: "shop", Name: name})
	}
	return sel
}

// owned adds an object that a workload controls.
func (s *server) owned(resource, name, kind, owner string, set map[string]string, more map[string]any) {
	group := "apps/v1"
	if kind == "Job" {
		group = "batch/v1"
	}
	s.add(resource, "shop", name, more)
	meta := s.objects[resource][len(s.objects[resource])-1]["metadata"].(map[string]any)
	meta["labels"] = set
	if owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": group, "kind": kind, "name": owner, "uid": "uid-" + owner, "controller": true}}
	}
}

func onNode(node string, restarts int) map[string]any {
	return map[string]any{"spec": map[string]any{"nodeName": node}, "status": map[string]any{"phase": "Running",
		"conditions":        []any{map[string]any{"type": "Ready", "status": "True"}},
		"containerStatuses": []any{map[string]any{"name": "app", "restartCount": restarts}}}}
}

// workloadServer has a workload of each kind in the namespace shop. The pods of
// deploy/web have the labels of two that are not its own.
func workloadServer(t *testing.T) *server {
	s := newServer(t)
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	spec := func(name string) map[string]any {
		return map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": app(name)}, "template": map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{lastApplied: "hush"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "args": []any{"--token=hush"}}}}}}}
	}
	s.owned("deployments", "web", "", "", nil, spec("web"))
	s.owned("deployments", "web-api", "", "", nil, spec("api"))
	s.owned("replicasets", "web-1", "Deployment", "web", app("web"), spec("web"))
	s.owned("replicasets", "web-2", "Deployment", "web", app("web"), spec("web"))
	s.owned("replicasets", "stray", "", "", app("web"), spec("web"))
	s.owned("pods", "web-1-a", "ReplicaSet", "web-1", app("web"), onNode("n1", 0))
	s.owned("pods", "web-2-b", "ReplicaSet", "web-2", app("web"), onNode("n2", 5))
	s.owned("pods", "web-2-c", "ReplicaSet", "web-2", app("web"), onNode("", 0))
	s.owned("pods", "stray-x", "ReplicaSet", "stray", app("web"), onNode("n1", 9))
	s.owned("pods", "web-bare", "", "", app("web"), onNode("n1", 9))
	for kind, name := range map[string]string{"StatefulSet": "db", "DaemonSet": "agent", "Job": "import"} {
		s.owned(strings.ToLower(kind)+"s", name, "", "", nil, spec(name))
		s.owned("pods", name+"-0", kind, name, app(name), onNode("n1", 0))
	}
	s.add("nodes", "", "n2", nil)
	return s
}

// The pods are found by who controls them; those chosen are read from their
// nodes, the worst first, and no other node is asked.
func TestSelectWorkload(t *testing.T) {
	for _, c := range []struct {
		args  []string
		most  int
		pods  []string // in the order of Select
		nodes []string
	}{
		{[]string{"deploy/web"}, 10, []string{"web-2-b", "web-1-a", "web-2-c"}, []string{"n1", "n2"}},
		{[]string{"deploy/web"}, 1, []string{"web-2-b", "web-1-a", "web-2-c"}, []string{"n2"}},
		{[]string{"rs/web-2"}, 10, []string{"web-2-b", "web-2-c"}, []string{"n2"}},
		{[]string{"sts/db"}, 10, []string{"db-0"}, []string{"n1"}},
		{[]string{"ds/agent", "job/import"}, 10, []string{"agent-0", "import-0"}, []string{"n1"}},
		{[]string{"deploy/web", "rs/web-2"}, 10, []string{"web-2-b", "web-1-a", "web-2-c"}, []string{"n1", "n2"}},
	} {
		for _, page := range []int{0, 1} {
			s := workloadServer(t)
			s.page = page
			sel := selection(c.args...)
			sel.Most = c.most
			snap := s.collect(t, Request{Select: sel})
			found, err := diagnose.Select(snap, *sel)
			var names []string
			for _, p := range found.Pods {
				names = append(names, p.Name)
			}
			if err != nil || !slices.Equal(names, c.pods) {
				t.Errorf("%v, pages of %d: %q, %v", c.args, page, names, err)
			}
			if got := snap.NodeNames(); !slices.Equal(got, c.nodes) {
				t.Errorf("%v, at most %d: nodes %q", c.args, c.most, got)
			}
			var archive bytes.Buffer
			if err := snap.WriteArchive(&archive); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{"deployments", "replicasets", "statefulsets", "jobs"} {
				if data, err := snap.File("cluster/" + f + ".json"); err == nil && bytes.Contains(data, []byte("hush")) {
					t.Errorf("%s: kept what must not be kept: %s", f, data)
				}
			}
		}
	}
}

// A workload costs its own requests, and the pods that are chosen theirs.
func TestSelectCost(t *testing.T) {
	cost := func(others int) (int, int64) {
		s := workloadServer(t)
		for i := range others {
			s.pod(fmt.Sprint("p", i), "n3") // without the labels
		}
		sel := selection("deploy/web")
		sel.Most = 1
		client := s.client(t)
		if _, failed, err := Collect(t.Context(), client, Request{Select: sel}); err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		return client.Cost()
	}
	// version; deployment, its ReplicaSets, its pods; events of the pod; node, its
	// events, its pods, configz, stats/summary, metrics/cadvisor
	requests, size := cost(0)
	more, moreSize := cost(5000)
	if requests != 11 || more != requests || moreSize != size {
		t.Errorf("%d requests and %d bytes, beside 5000 pods %d and %d", requests, size, more, moreSize)
	}
}

func TestSelectLabels(t *testing.T) {
	app, err := labels.Parse("app in (web,db)")
	if err != nil {
		t.Fatal(err)
	}
	s := workloadServer(t)
	sel := &workload.Selection{Namespace: "shop", Labels: app, Most: 2}
	snap := s.collect(t, Request{Select: sel})
	found, err := diagnose.Select(snap, *sel)
	pods := found.Pods
	if err != nil || len(pods) != 6 || pods[0].Name != "stray-x" || pods[1].Name != "web-bare" {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	all := &workload.Selection{Most: 1}
	if found, err := diagnose.Select(s.collect(t, Request{Select: all}), *all); err != nil || len(found.Pods) != len(s.objects["pods"]) {
		t.Errorf("%d pods of all namespaces, %v", len(found.Pods), err)
	}
}

// Of very many pods a bounded number is held, the worst, and the rest is said to
// be left out.
func TestSelectVeryMany(t *testing.T) {
	s := newServer(t)
	const many = 3000
	for i := range many {
		s.owned("pods", fmt.Sprintf("p%05d", i), "", "", nil, onNode("n3", i))
	}
	s.page = 500
	s.add("nodes", "", "n3", nil)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.RawQuery, "spec.nodeName") {
			s.write(w, map[string]any{"items": []any{}})
			return true
		}
		return false
	}
	all := &workload.Selection{Most: 3}
	snap := s.collect(t, Request{Select: all})
	found, err := diagnose.Select(snap, *all)
	pods, gaps := found.Pods, found.Gaps
	if err != nil || len(pods) != mostKept || pods[0].Name != "far" || pods[mostKept-1].Name != fmt.Sprintf("p%05d", many-mostKept+3) {
		t.Errorf("%d pods, the first %s, the last %s, %v", len(pods), pods[0].Name, pods[len(pods)-1].Name, err)
	}
	if !found.Partial || len(gaps) != 1 || !strings.Contains(gaps[0].Reason, "2503 of 3003 pods") {
		t.Errorf("%t, %+v", found.Partial, gaps)
	}
}

func TestSelectFails(t *testing.T) {
	nothing := func(resource string) map[string]any {
		return map[string]any{"spec": map[string]any{"replicas": 0}, "status": map[string]any{}}
	}
	for _, c := range []struct {
		name   string
		sel    *workload.Selection
		edit   func(*server)
		failed string
		want   string
	}{
		{"not there", selection("deploy/wbe"), nil, "deployment shop/wbe", `deployments.apps "wbe" not found in namespace "shop"; nearest: web`},
		{"no pods", selection("deploy/idle"), func(s *server) { s.owned("deployments", "idle", "", "", nil, nothing("deployments")) }, "deployment shop/idle", "deployment shop/idle has no pods; its spec.replicas is 0"},
		{"forbidden", selection("deploy/web"), refusing("/deployments/web"), "deployment shop/web", `needed: get deployments.apps in namespace "shop"`},
		{"its sets forbidden", selection("deploy/web"), refusing("/replicasets"), "deployment shop/web", `needed: list replicasets.apps in namespace "shop"`},
		{"its pods forbidden", selection("sts/db"), refusing("/shop/pods"), "statefulset shop/db", `needed: list pods in namespace "shop"`},
		{"no answer of a workload", selection("job/import"), func(s *server) {
			s.answer = func(w http.ResponseWriter, r *http.Request) bool {
				fmt.Fprint(w, `{"metadata":{}}`)
				return true
			}
		}, "job shop/import", "the answer is no Job"},
		{"no name", selection("deploy/.."), nil, "deployment shop/..", "no name"},
		{"all pods forbidden", &workload.Selection{Most: 1}, refusing("/pods"), "", "needed: list pods of all namespaces"},
		{"no such labels", &workload.Selection{Namespace: "shop", Labels: labels.SelectorFromSet(labels.Set{"app": "wbe"}), Most: 1}, nil, "", `there are no pods with app=wbe of namespace "shop"; label app is there with web`},
		{"no pods at all", &workload.Selection{Namespace: "empty", Most: 1}, nil, "", `there are no pods of namespace "empty"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := workloadServer(t)
			if c.edit != nil {
				c.edit(s)
			}
			_, failed, err := Collect(t.Context(), s.client(t), Request{Select: c.sel})
			if c.failed != "" {
				if err != nil {
					t.Fatal(err)
				}
				err = failed[c.failed]
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, failed %v", err, failed)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Collect(ctx, workloadServer(t).client(t), Request{Select: selection("deploy/web")}); !errors.Is(err, errInterrupted) {
		t.Error(err)
	}
}

func refusing(suffix string) func(*server) {
	return func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, suffix) {
				refuse(w, http.StatusForbidden)
			}
			return strings.HasSuffix(r.URL.Path, suffix)
		}
	}
}

// Whatever a server answers to a list of pods, no panic and no endless list.
func TestSelectOddAnswers(t *testing.T) {
	for _, answer := range []string{``, `null`, `{"items":[null]}`, `{"items":[7]}`, `{"items":[{}]}`, `{"items":[{"metadata":{"name":"../x"}}]}`,
		`{"metadata":{"continue":"again"},"items":[]}`, `{"items":[{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":"../n"}}]}`} {
		s := newServer(t)
		s.answer = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/api/v1/pods" {
				fmt.Fprint(w, answer)
			}
			return r.URL.Path == "/api/v1/pods"
		}
		snap, _, err := Collect(t.Context(), s.client(t), Request{Select: &workload.Selection{Most: 1}})
		if err == nil {
			if _, err := snap.Pods(); err != nil && snapshot.Reason(err) == "" {
				t.Errorf("%s: %v", answer, err)
			}
		}
	}
}
