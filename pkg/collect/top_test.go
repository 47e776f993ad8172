package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/diagnose"
)

// series is what a kubelet says of a container, at a second.
func series(pod, uid string, second int, cpu float64) string {
	return fmt.Sprintf("# TYPE container_cpu_usage_seconds_total counter\ncontainer_cpu_usage_seconds_total{container=\"\",id=\"/kubepods/pod%s\",name=\"\",namespace=\"shop\",pod=%q} %g %d\nhush{} 1\n", uid, pod, cpu, second*1000)
}

// A reading asks the API server for the pods and each of their kubelets for what
// changes; what does not, only the first asks for.
func TestTopReads(t *testing.T) {
	s := newServer(t)
	s.kubelet["metrics/cadvisor"] = series("web-0", "uid-web-0", 10, 1)
	var asked []string
	s.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		asked = append(asked, r.URL.RequestURI())
		return false
	}
	top := NewTop(s.client(t), TopRequest{Namespace: "shop", MostNodes: 50})
	var use diagnose.Usage
	for n, want := range []int{7, 5, 5} { // a list; of two nodes configz, then no more; stats/summary, metrics/cadvisor
		asked = nil
		s.kubelet["metrics/cadvisor"] = series("web-0", "uid-web-0", 10*(n+1), float64(n)*5)
		reading, err := top.Read(t.Context(), time.Now())
		if err != nil || len(reading.Failed) > 0 || reading.NodesLeft != 0 {
			t.Fatal(reading, err)
		}
		slices.Sort(asked)
		if len(asked) != want {
			t.Errorf("reading %d: %q", n, asked)
		}
		if !slices.Contains(asked, "/api/v1/nodes/n1/proxy/stats/summary?only_cpu_and_memory=true") {
			t.Errorf("the summary is asked for whole: %q", asked)
		}
		data, err := reading.Snapshot.File("nodes/n1/metrics-cadvisor.txt")
		if err != nil || strings.Contains(string(data), "hush") || strings.Contains(string(data), "#") {
			t.Errorf("kept of the metrics: %s, %v", data, err)
		}
		pods, err := reading.Snapshot.File("cluster/pods.json")
		if err != nil || strings.Contains(string(pods), "hush") || strings.Contains(string(pods), "PASSWORD") {
			t.Errorf("kept of the pods: %s, %v", pods, err)
		}
		use = diagnose.ReadUsage(reading.Snapshot, use)
		table, err := diagnose.TopPods(reading.Snapshot, diagnose.TopOptions{Names: []string{"web-0"}, Usage: use})
		if err != nil || len(table.Pods) != 1 {
			t.Fatal(table, err)
		}
		cpu := table.Pods[0].CPU.Used
		if n == 0 && cpu != nil || n > 0 && (cpu == nil || *cpu != 0.5) {
			t.Errorf("reading %d: CPU %v", n, cpu)
		}
	}
}

// Which pods and nodes a table is of.
func TestTopSubjects(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  TopRequest
		pods  []string
		nodes []string
		left  int
	}{
		{"all", TopRequest{MostNodes: 9}, []string{"far", "other", "web-0"}, []string{"n1", "n2"}, 0},
		{"of a node", TopRequest{Node: "n2", MostNodes: 9}, []string{"far"}, []string{"n2"}, 0},
		{"of no namespace", TopRequest{Namespace: "empty", MostNodes: 9}, nil, nil, 0},
		{"by name", TopRequest{Namespace: "shop", Names: []string{"far"}, MostNodes: 9}, []string{"far"}, []string{"n2"}, 0},
		{"one kubelet, that of most pods", TopRequest{MostNodes: 1}, []string{"far", "other", "web-0"}, []string{"n1"}, 1},
		{"nodes", TopRequest{OfNodes: true, MostNodes: 9}, []string{"far", "other", "web-0"}, []string{"n1", "n2"}, 0},
		{"some nodes", TopRequest{OfNodes: true, MostNodes: 1}, []string{"other", "web-0"}, []string{"n1"}, 1},
		{"nodes by name", TopRequest{OfNodes: true, Names: []string{"n2", "n2"}, MostNodes: 9}, []string{"far"}, []string{"n2"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			s.kubelet["metrics/cadvisor"] = series("web-0", "uid-web-0", 10, 1)
			s.page = 2
			s.add("nodes", "", "n2", nil)
			s.add("pods", "shop", "done", map[string]any{"spec": map[string]any{"nodeName": "n3"}, "status": map[string]any{"phase": "Succeeded"}})
			s.add("pods", "shop", "waits", map[string]any{"spec": map[string]any{}, "status": map[string]any{"phase": "Pending"}})
			reading, err := NewTop(s.client(t), c.want).Read(t.Context(), time.Now())
			if err != nil || len(reading.Failed) > 0 || reading.NodesLeft != c.left {
				t.Fatalf("%+v, %v", reading, err)
			}
			if got := podNames(t, reading.Snapshot); !slices.Equal(got, c.pods) {
				t.Errorf("pods %q", got)
			}
			var asked []string
			for _, name := range reading.Snapshot.NodeNames() {
				if _, err := reading.Snapshot.File("nodes/" + name + "/configz.json"); err == nil {
					asked = append(asked, name)
				}
			}
			if !slices.Equal(asked, c.nodes) {
				t.Errorf("kubelets of %q", asked)
			}
		})
	}
}

func TestTopFails(t *testing.T) {
	s := newServer(t)
	s.kubelet["metrics/cadvisor"] = series("web-0", "uid-web-0", 10, 1)
	read := func(want TopRequest) (TopReading, error) {
		want.MostNodes = 9
		return NewTop(s.client(t), want).Read(t.Context(), time.Now())
	}
	if r, err := read(TopRequest{Namespace: "shop", Names: []string{"gone", "web-0", ".."}}); err != nil || len(r.Failed) != 2 || r.Failed["gone"].Error() != `pods "gone" not found in namespace "shop"` || !slices.Equal(podNames(t, r.Snapshot), []string{"web-0"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := read(TopRequest{OfNodes: true, Names: []string{"gone", "n1"}}); err != nil || len(r.Failed) != 1 || r.Failed["gone"].Error() != `nodes "gone" not found` {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := read(TopRequest{Node: "gone"}); err == nil || err.Error() != `nodes "gone" not found` {
		t.Error(err)
	}
	refusing("/proxy/metrics/cadvisor")(s)
	r, err := read(TopRequest{Namespace: "shop"})
	if got := KubeletGaps(r.Snapshot); err != nil || got != "node n1 and 1 more: Forbidden: needs get nodes/proxy" {
		t.Errorf("%q, %v", got, err)
	}
	s.answer = nil
	if r, err = read(TopRequest{Namespace: "shop"}); err != nil || KubeletGaps(r.Snapshot) != "" {
		t.Errorf("%q, %v", KubeletGaps(r.Snapshot), err)
	}
	s.kubelet["metrics/cadvisor"] = "hush{} 1\n"
	if r, err = read(TopRequest{Namespace: "shop"}); err != nil || !strings.Contains(KubeletGaps(r.Snapshot), "no series of cAdvisor's") {
		t.Errorf("%q, %v", KubeletGaps(r.Snapshot), err)
	}
	refusing("/pods")(s)
	if _, err := read(TopRequest{Namespace: "shop"}); err == nil || !strings.Contains(err.Error(), `needed: list pods in namespace "shop"`) {
		t.Error(err)
	}
	refusing("/nodes")(s)
	if _, err := read(TopRequest{OfNodes: true}); err == nil || !strings.Contains(err.Error(), "needed: list nodes") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewTop(s.client(t), TopRequest{MostNodes: 1}).Read(ctx, time.Now()); !errors.Is(err, errInterrupted) {
		t.Error(err)
	}
}

// A node that is gone leaves nothing behind.
func TestTopForgets(t *testing.T) {
	s := newServer(t)
	s.kubelet["metrics/cadvisor"] = series("web-0", "uid-web-0", 10, 1)
	top := NewTop(s.client(t), TopRequest{MostNodes: 9})
	for n, want := range []int{2, 1} {
		if _, err := top.Read(t.Context(), time.Now()); err != nil || len(top.once) != want {
			t.Errorf("reading %d: %d answers are kept, %v", n, len(top.once), err)
		}
		s.objects["pods"] = slices.DeleteFunc(s.objects["pods"], func(o map[string]any) bool { return o["metadata"].(map[string]any)["name"] == "far" })
	}
}
