package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// podServer adds to a server pods that can be made and deleted, access reviews,
// and a stream.
type podServer struct {
	*server
	client *Client

	mu      sync.Mutex
	pods    map[string]*corev1.Pod
	made    []*corev1.Pod
	deleted int
	denied  []string // rights
	status  corev1.PodStatus
	events  []corev1.Event
	// refuse answers a creation.
	refuse func(w http.ResponseWriter) bool
	// late makes a pod after its creation was answered with an error.
	late bool
	// sticky pods outlive so many deletions.
	sticky int
	exec   execFunc
	target atomic.Pointer[execTarget]
}

var running = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
	{Name: nodepod.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
}}

func newPodServer(t *testing.T) *podServer { return newPodServerOf(t, newServer(t)) }

func newPodServerOf(t *testing.T, of *server) *podServer {
	s := &podServer{server: of, pods: map[string]*corev1.Pod{}, status: running}
	s.answer = s.podAnswer
	s.client = s.server.client(t)
	s.exec = func(_ context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
		_, err := io.WriteString(out, stream)
		return err
	}
	s.client.exec = func(ctx context.Context, target execTarget, in io.Reader, out, errs io.Writer) error {
		s.target.Store(&target)
		return s.exec(ctx, target, in, out, errs)
	}
	return s
}

func (s *podServer) podAnswer(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review struct {
			Kind string
			Spec struct {
				ResourceAttributes struct{ Verb, Resource, Subresource, Namespace string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		a := review.Spec.ResourceAttributes
		right := nodepod.Right{Verb: a.Verb, Resource: a.Resource, Subresource: a.Subresource}.String()
		fmt.Fprintf(w, `{"kind":%q,"status":{"allowed":%v}}`, review.Kind, !slices.Contains(s.denied, right))
	case r.Method == http.MethodPost && name == "pods":
		if s.refuse != nil && s.refuse(w) {
			return true
		}
		var pod corev1.Pod
		_ = json.NewDecoder(r.Body).Decode(&pod)
		if r.URL.Query().Get("dryRun") == "" {
			pod.UID = types.UID(fmt.Sprintf("00000000-aaaa-bbbb-cccc-%012d", len(s.made)))
			pod.CreationTimestamp = metav1.Now()
			s.made = append(s.made, &pod)
			s.pods[pod.Name] = &pod
			if s.late {
				refuse(w, http.StatusGatewayTimeout)
				return true
			}
		}
		_ = json.NewEncoder(w).Encode(pod)
	case r.Method == http.MethodGet && name == "events" && strings.Contains(r.URL.RawQuery, "involvedObject.uid"):
		_ = json.NewEncoder(w).Encode(corev1.EventList{Items: s.events})
	case r.Method == http.MethodGet && name == "pods" && r.URL.Query().Get("labelSelector") != "":
		list := corev1.PodList{}
		for _, name := range slices.Sorted(maps.Keys(s.pods)) {
			list.Items = append(list.Items, *s.pods[name])
		}
		_ = json.NewEncoder(w).Encode(list)
	case strings.HasPrefix(name, nodepod.NamePrefix):
		pod := s.pods[name]
		if pod == nil {
			refuse(w, http.StatusNotFound)
			return true
		}
		if r.Method == http.MethodDelete {
			var o metav1.DeleteOptions
			_ = json.NewDecoder(r.Body).Decode(&o)
			if o.Preconditions == nil || *o.Preconditions.UID != pod.UID || *o.GracePeriodSeconds != 0 {
				refuse(w, http.StatusConflict)
				return true
			}
			if s.deleted++; s.deleted > s.sticky {
				delete(s.pods, name)
			}
			return true
		}
		now := pod.DeepCopy()
		now.Status = s.status
		_ = json.NewEncoder(w).Encode(now)
	default:
		return false
	}
	return true
}

const stream = "noderes 1\nS 0\nT 1784030400 100\nF 4 /sys/fs/cgroup/cgroup.controllers\ncpu\n\nF 2 /proc/meminfo\nm\n\nT 1784030400 101\n" +
	"S once\nF 4 /sys/devices/system/cpu/online\n0-1\n\nF 2 /proc/meminfo\nm\n\nF 2 /var/lib/kubelet/cpu_manager_state\n{}\n" +
	"E 30 kernel.log\ndmesg: Operation not permitted\nZ\n"

func (s *podServer) read(t *testing.T, ctx context.Context, want Request) (*snapshot.Snapshot, []string) {
	t.Helper()
	var warned []string
	n := 0
	want.Access = AccessNode
	want.NodePods.Namespace, want.NodePods.Image = "default", nodepod.DefaultImage
	want.NodePods.RunID = func() string { n++; return fmt.Sprintf("run%d", n) }
	want.NodePods.Warn = func(text string) { warned = append(warned, text) }
	snap, failed, err := Collect(ctx, s.client, want)
	if err != nil || len(failed) > 0 {
		t.Fatalf("%v, %v", err, failed)
	}
	return snap, warned
}

// gone fails unless no pod is left that a run made.
func (s *podServer) gone(t *testing.T, made int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) != made || len(s.pods) > 0 {
		t.Errorf("made %d pods, left %v", len(s.made), slices.Collect(maps.Keys(s.pods)))
	}
}

func gapsOf(t *testing.T, s *snapshot.Snapshot) map[string]snapshot.Gap {
	t.Helper()
	gaps, _ := s.Gaps()
	m := map[string]snapshot.Gap{}
	for _, g := range gaps {
		m[g.Path] = g
	}
	return m
}

// A node pod is made, read in and deleted; what it tells is in the snapshot, and
// what it cannot tell has a gap with the way to it.
func TestNodePod(t *testing.T) {
	s := newPodServer(t)
	snap, warned := s.read(t, t.Context(), Request{Pods: web.Pods})
	s.gone(t, 1)
	target := s.target.Load()
	if target == nil || target.pod != s.made[0].Name || target.container != nodepod.Container || target.command[0] != "sh" ||
		!slices.Contains(target.command, string(s.made[0].UID)) {
		t.Errorf("ran %+v", target)
	}
	node := snap.Node("n1")
	for file, want := range map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpu\n", "sys/devices/system/cpu/online": "0-1\n", "var/lib/kubelet/cpu_manager_state": "{}"} {
		if data, err := node.Files().(interface {
			ReadFile(string) ([]byte, error)
		}).ReadFile(file); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	sample := node.Samples()[0]
	if !sample.HasTime || sample.Uptime != 100500*time.Millisecond || sample.Time.Unix() != 1784030400 {
		t.Errorf("sample at %v, %v", sample.Time, sample.Uptime)
	}
	for file, want := range map[string]string{
		"sys/fs/cgroup/kubepods/cpu.max":        "NotFound",
		"sys/devices/system/node/online":        "NotFound",
		"var/lib/kubelet/memory_manager_state":  "Unreadable",
		"proc/4/status":                         "Refused",
		"etc/passwd":                            "Refused",
		"sys/devices/system/cpu/cpu7/cache/xyz": "NotFound",
	} {
		if _, err := node.Files().Open(file); snapshot.Reason(err) != want {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := node.File("kernel.log"); snapshot.Reason(err) != "Forbidden" || !strings.Contains(err.Error(), "--privileged") {
		t.Errorf("kernel log: %v", err)
	}
	if len(warned) > 0 {
		t.Errorf("warned %v", warned)
	}
}

// A node pod restarts the clock of its node, so the answer about that is the one
// before: whatever decides over nodes has been read when the pod is made.
func TestNodePodComesAfterClock(t *testing.T) {
	s := newPodServerOf(t, karpenterServer(t))
	lists := []string{"nodepools", "nodeclaims", "pods", "nodes", "poddisruptionbudgets"}
	var read atomic.Int32
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		name := path.Base(r.URL.Path)
		switch {
		case r.Method == http.MethodPost && name == "pods":
			if n := int(read.Load()); n != len(lists) {
				t.Errorf("a node pod is made after %d of %d lists", n, len(lists))
			}
		case r.Method == http.MethodGet && r.URL.Query().Get("fieldSelector")+r.URL.Query().Get("labelSelector") == "" && slices.Contains(lists, name):
			time.Sleep(100 * time.Millisecond)
			read.Add(1)
		}
		return s.podAnswer(w, r)
	}
	s.read(t, t.Context(), Request{Nodes: []string{"n1"}, Removal: WholeCluster})
	s.gone(t, 1)
}

// What keeps a node pod from being read leaves a report with one gap that says
// why, and no pod.
func TestNodePodFails(t *testing.T) {
	forbid := func(code int, message string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","message":%q}`, message)
			return true
		}
	}
	pending := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: nodepod.Container,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
	}
	cut := func(text string, err error) execFunc {
		return func(_ context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		change func(*podServer)
		made   int
		reason string
		detail string
		path   string // of the gap; nodes/n1/root
	}{
		"denied":       {change: func(s *podServer) { s.denied = []string{"create pods/exec", "delete pods"} }, reason: "Forbidden", detail: "needs create pods/exec, delete pods in namespace default"},
		"403":          {change: func(s *podServer) { s.refuse = forbid(403, "pods is forbidden") }, reason: "Forbidden", detail: "needs create pods in namespace default"},
		"pod security": {change: func(s *podServer) { s.refuse = forbid(403, `violates PodSecurity "baseline:latest"`) }, reason: "Forbidden", detail: "kubectl label namespace"},
		"conflict":     {change: func(s *podServer) { s.refuse = forbid(409, "exists") }, reason: "Refused", detail: "exists"},
		"image":        {change: func(s *podServer) { s.status = pending("ErrImagePull") }, made: 1, reason: "Unreadable", detail: "--node-pod-image"},
		"evicted":      {change: func(s *podServer) { s.status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"} }, made: 1, reason: "Unreadable", detail: "evicted"},
		"never":        {change: func(s *podServer) { s.status = pending("ContainerCreating") }, made: 1, reason: "Timeout", detail: "did not start the pod in time"},
		"no shell":     {change: func(s *podServer) { s.exec = cut("", errors.New(`exec: "sh": executable file not found in $PATH`)) }, made: 1, reason: "Unreadable", detail: "no shell"},
		"nothing":      {change: func(s *podServer) { s.exec = cut("", nil) }, made: 1, reason: "Unreadable", detail: "ended early"},
		"no stream":    {change: func(s *podServer) { s.exec = cut("hello\n", nil) }, made: 1, reason: "Unreadable", detail: "not what the reader writes"},
		"half a stream": {change: func(s *podServer) {
			s.exec = cut(stream[:strings.Index(stream, "E 30")], errors.New("connection lost"))
		}, made: 1, reason: "Unreadable", detail: "connection lost"},
		"half a sample": {change: func(s *podServer) { s.exec = cut(stream[:100], errors.New("connection lost")) }, made: 1, reason: "Unreadable", detail: "connection lost", path: "nodes/n1/samples/0"},
		"lost creation": {change: func(s *podServer) { s.late = true }, made: 1, reason: "Timeout", detail: "504"},
		"slow to go":    {change: func(s *podServer) { s.sticky = 3; s.exec = cut("", nil) }, made: 1, reason: "Unreadable", detail: "ended early"},
		"windows": {change: func(s *podServer) {
			s.objects["nodes"][0]["metadata"].(map[string]any)["labels"] = map[string]any{"kubernetes.io/os": "windows"}
		}, reason: "Unreadable", detail: "needs Linux"},
		"kubelet silent": {change: func(s *podServer) {
			s.objects["nodes"][0]["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}}
		}, reason: "Unreadable", detail: "NotReady since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPodServer(t)
			c.change(s)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			snap, warned := s.read(t, ctx, Request{Pods: web.Pods})
			s.gone(t, c.made)
			at := "nodes/n1/root"
			if c.path != "" {
				at = c.path
			}
			gap := gapsOf(t, snap)[at]
			if gap.Reason != c.reason || !strings.Contains(gap.Detail, c.detail) {
				t.Errorf("%+v", gap)
			}
			if _, err := snap.Node("n1").Files().Open("sys/fs/cgroup/kubepods/cpu.max"); snapshot.Reason(err) != c.reason {
				t.Errorf("a file that was not read: %v", err)
			}
			if len(warned) > 0 {
				t.Errorf("warned %v", warned)
			}
		})
	}
}

// A file that the node does not have is not mounted at the second attempt.
func TestNodePodWithoutStateFile(t *testing.T) {
	s := newPodServer(t)
	s.status = corev1.PodStatus{Phase: corev1.PodPending}
	s.events = []corev1.Event{{Reason: "FailedMount", Message: "hostPath type check failed: /var/lib/kubelet/memory_manager_state is not a file"}}
	s.refuse = func(http.ResponseWriter) bool {
		if len(s.made) == 1 {
			s.status, s.events = running, nil
		}
		return false
	}
	snap, _ := s.read(t, t.Context(), Request{Nodes: []string{"n1"}})
	s.gone(t, 2)
	if _, err := snap.Node("n1").Files().Open("var/lib/kubelet/memory_manager_state"); snapshot.Reason(err) != "NotFound" {
		t.Errorf("%v", err)
	}
	for i, want := range []int{7, 6} {
		if got := len(s.made[i].Spec.Volumes); got != want {
			t.Errorf("pod %d has %d volumes", i, got)
		}
	}
}

// However a run ends, its pod does not outlive it.
func TestNodePodInterrupted(t *testing.T) {
	for name, when := range map[string]func(*podServer, func()){
		"while it is made": func(s *podServer, cancel func()) {
			s.refuse = func(http.ResponseWriter) bool { cancel(); return false }
		},
		"while it starts": func(s *podServer, cancel func()) {
			s.status = corev1.PodStatus{}
			time.AfterFunc(200*time.Millisecond, cancel)
		},
		"while it is read": func(s *podServer, cancel func()) {
			s.exec = func(ctx context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
				_, _ = io.WriteString(out, stream[:60])
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
		},
		"while it hangs": func(s *podServer, cancel func()) {
			s.exec = func(ctx context.Context, _ execTarget, _ io.Reader, out, _ io.Writer) error {
				cancel()
				for { // a node that sends without end
					if _, err := io.WriteString(out, "noderes 1\nS 0\nT 1 1\nF 1 /proc/stat\nx\n"); err != nil {
						return err
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPodServer(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			when(s, cancel)
			want := Request{Nodes: []string{"n1"}, Access: AccessNode, NodePods: NodePods{Options: nodepod.Options{Namespace: "default"}, RunID: func() string { return "run1" }}}
			begin := time.Now()
			_, _, err := Collect(ctx, s.client, want)
			if err == nil || err.Error() != "interrupted" || time.Since(begin) > 3*time.Second {
				t.Errorf("%v after %s", err, time.Since(begin))
			}
			s.gone(t, 1)
		})
	}
}

// A pod that cannot be deleted is told of, with what becomes of it.
func TestNodePodStays(t *testing.T) {
	s := newPodServer(t)
	s.sticky = 1 << 30
	_, warned := s.read(t, t.Context(), Request{Nodes: []string{"n1"}})
	if len(warned) != 1 || !strings.Contains(warned[0], "kubectl noderes cleanup") || !strings.Contains(warned[0], "within 300 s") {
		t.Errorf("warned %q", warned)
	}
}
