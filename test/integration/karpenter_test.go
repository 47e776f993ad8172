package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/test/integration/plane"
	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// situations are those of pkg/diagnose/testdata/cases that are loaded, one after the other, and a code of each that must be found.
var situations = map[string]string{
	"karpenter-02-reasons-ceil":   "budget-zero-always",
	"karpenter-04-do-not-disrupt": "pod-do-not-disrupt",
	"karpenter-10-no-cheaper":     "no-cheaper-replacement",
	"karpenter-20-no-room-or-two": "pods-fit-nowhere",
}

// controllerAddress is where the stand-in for Karpenter's controller has its metrics.
const controllerAddress = "10.244.0.7"

// still is an API server with the CRDs of Karpenter, on which nothing runs, and the stand-in for its controller.
type still struct {
	cluster
	dynamic dynamic.Interface
	metrics []byte // of the situation that is loaded
}

func startStill(t *testing.T) *still {
	t.Helper()
	programs, err := plane.Find("binaries")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := plane.StartStill(ctx, programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	s := &still{cluster: cluster{Plane: p, plugin: live.plugin}}
	if s.admin, err = s.client("admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	file, err := p.Kubeconfig("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nodepools", "nodeclaims"} {
		s.define(ctx, t, filepath.Join(karpenterModule(t), "pkg", "apis", "crds", "karpenter.sh_"+name+".yaml"), name)
	}
	no := false
	for _, namespace := range []string{"default", "kube-system"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}, AutomountServiceAccountToken: &no}
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := s.admin.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
			if apierrors.IsNotFound(err) { // the namespace is about to be made
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.controllers(ctx, t)
	return s
}

// karpenterModule is the folder of the module that test/karpenter is held against.
func karpenterModule(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/karpenter")
	cmd.Dir = filepath.Join("..", "karpenter")
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("Karpenter's module is not to be had: %v", err)
	}
	return mustJSON[struct{ Dir string }](t, out).Dir
}

// define creates a custom resource, and waits until it is served.
func (s *still) define(ctx context.Context, t *testing.T, file, resource string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &crd.Object); err != nil {
		t.Fatal(err)
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := s.dynamic.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	served := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: resource}
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := s.dynamic.Resource(served).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s is not served: %v", resource, err)
	}
}

// controllers makes two pods of Karpenter's controller in a namespace of its own, the second of which leads.
func (s *still) controllers(ctx context.Context, t *testing.T) {
	t.Helper()
	handler := http.NewServeMux()
	handler.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.metrics) })
	if err := s.ServePod(controllerAddress, "8000", handler); err != nil {
		t.Fatal(err)
	}
	holder := "karpenter-1_0f6d"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-leader-election"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	if _, err := s.admin.CoordinationV1().Leases("kube-system").Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}, Data: map[string]string{"status": "autoscalerStatus: Initializing\n"}}
	if _, err := s.admin.CoreV1().ConfigMaps("kube-system").Create(ctx, status, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// controllerPods are loaded beside each situation, on a node that is none of the API's.
func (s *still) controllerPods(ctx context.Context, t *testing.T) []any {
	t.Helper()
	var made []any
	for i, address := range []string{"10.244.0.6", controllerAddress} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("karpenter-%d", i), Labels: map[string]string{"app.kubernetes.io/name": "karpenter"}},
			Spec: corev1.PodSpec{NodeName: "outside", Containers: []corev1.Container{{Name: "controller", Image: "registry.invalid/karpenter/controller:1.14.3",
				Ports: []corev1.ContainerPort{{Name: "http-metrics", ContainerPort: 8000}}}}},
		}
		pods := s.admin.CoreV1().Pods("kube-system")
		pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
		if pod, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod.APIVersion, pod.Kind = "v1", "Pod"
		made = append(made, pod)
	}
	return made
}

// situation loads one, and gives the folder of a bundle that holds the same: the recorded one, with what the API server gave.
func (s *still) situation(t *testing.T, name string) (recorded *snapshot.Snapshot, bundle string) {
	t.Helper()
	ctx := t.Context()
	recorded, err := snapshot.Open(filepath.Join("..", "..", "pkg", "diagnose", "testdata", "cases", name, "bundle.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := standin.LoadObjects(ctx, s.dynamic, recorded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standin.UnloadObjects(context.WithoutCancel(ctx), s.dynamic); err != nil {
			t.Error(err)
		}
	})
	if s.metrics, err = recorded.File("cluster/karpenter-metrics.txt"); err != nil {
		t.Fatal(err)
	}
	pods := mustJSON[struct{ Items []any }](t, files["cluster/pods.json"]).Items
	if files["cluster/pods.json"], err = json.Marshal(map[string]any{"kind": "List", "items": append(pods, s.controllerPods(ctx, t)...)}); err != nil {
		t.Fatal(err)
	}
	files["cluster/karpenter-metrics.txt"] = s.metrics
	for _, empty := range []string{"persistentvolumes", "persistentvolumeclaims"} {
		files["cluster/"+empty+".json"] = []byte(`{"kind":"List","items":[]}`)
	}
	if files["bundle.json"], err = recorded.File("bundle.json"); err != nil {
		t.Fatal(err)
	}
	bundle = t.TempDir()
	for path, data := range files {
		file := filepath.Join(bundle, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return recorded, bundle
}

// names of the items of a list of the recording.
func names(t *testing.T, recorded *snapshot.Snapshot, path string) []string {
	t.Helper()
	data, err := recorded.File(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range mustJSON[struct {
		Items []struct{ Metadata struct{ Name string } }
	}](t, data).Items {
		out = append(out, item.Metadata.Name)
	}
	return out
}

// TestKarpenterLive: with the role of the documentation and nothing else, the live reports of recorded situations are those of the
// collected bundle, byte for byte, and their findings those of the recording.
func TestKarpenterLive(t *testing.T) {
	s := startStill(t)
	user := s.userWith(t, rightsOf(apiOnly(t)))
	for _, name := range slices.Sorted(maps.Keys(situations)) {
		t.Run(name, func(t *testing.T) {
			recorded, want := s.situation(t, name)
			pools, nodes := names(t, recorded, "cluster/nodepools.karpenter.sh.json"), names(t, recorded, "cluster/nodes.json")
			commands := [][]string{append([]string{"explain", "nodepool"}, pools...), {"budgets"}, append([]string{"budgets"}, pools[0])}
			subjects := []string{"nodepool/" + pools[0]}
			for _, node := range nodes {
				commands = append(commands, []string{"explain", "node", node})
				subjects = append(subjects, node)
			}
			bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
			if _, errs, err := s.noderes(t, user, append([]string{"collect", "-o", bundle}, subjects...)...); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			codes := map[string]bool{}
			at := recorded.Manifest().CapturedAt.Format(time.RFC3339)
			for _, command := range commands {
				for _, format := range []string{"text", "json"} {
					args := append(slices.Clone(command), "-o", format, "--at", at)
					got, errs, err := s.noderes(t, user, args...)
					if err != nil || len(errs) > 0 {
						t.Fatalf("%v: %v\n%s", args, err, errs)
					}
					from, errs, err := s.noderes(t, "", append(args, "--from", bundle)...)
					if err != nil {
						t.Fatalf("%v: %v\n%s", args, err, errs)
					}
					if !bytes.Equal(got, from) {
						t.Errorf("%v: live\n%s\nfrom the bundle\n%s", args, got, from)
					}
					if format == "text" {
						continue
					}
					expected, errs, err := s.noderes(t, "", append(args, "--from", want)...)
					if err != nil {
						t.Fatalf("%v: %v\n%s", args, err, errs)
					}
					w, g := removalFindings(t, expected, codes), removalFindings(t, got, codes)
					if w != g {
						t.Errorf("%v: of the recording\n%s\nlive\n%s", args, w, g)
					}
				}
			}
			if !codes[situations[name]] {
				t.Errorf("no %s, so little was compared: %v", situations[name], slices.Sorted(maps.Keys(codes)))
			}
		})
	}
}

// TestKarpenterRightsAreNeeded: to leave out a right that says why nodes stay costs what the documentation says and nothing else.
func TestKarpenterRightsAreNeeded(t *testing.T) {
	s := startStill(t)
	recorded, _ := s.situation(t, "karpenter-20-no-room-or-two")
	node := names(t, recorded, "cluster/nodes.json")[0]
	all := rightsOf(apiOnly(t))
	first, removal := documented(t)
	removal[right{verb: "list", resource: "pods"}] = first[right{verb: "list", resource: "pods"}]
	removal[right{verb: "list", resource: "events"}] = first[right{verb: "list", resource: "events"}]
	tried := 0
	for _, without := range all {
		paths, known := removal[without.plain()]
		if !known {
			continue
		}
		tried++
		t.Run(without.verb+"-"+without.resource, func(t *testing.T) {
			user := s.userWith(t, slices.DeleteFunc(slices.Clone(all), func(r right) bool { return r == without }))
			bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
			if without.resource == "nodepools" {
				for _, command := range [][]string{{"budgets"}, {"explain", "nodepool", "np-limits"}, {"collect", "nodepool/np-limits", "-o", bundle}} {
					if out, errs, err := s.noderes(t, user, command...); err == nil || len(out) > 0 || !oneError(errs, without) {
						t.Errorf("%v: %v\n%s%s", command, err, out, errs)
					}
				}
			}
			if _, errs, err := s.noderes(t, user, "collect", node, "-o", bundle); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			gaps := missing(t, bundle)
			for path := range gaps {
				if strings.HasPrefix(path, "nodes/"+node+"/") && !strings.HasSuffix(path, "/pods.json") { // no kubelet answers here
					delete(gaps, path)
				}
			}
			for i, path := range paths {
				paths[i] = strings.ReplaceAll(path, "nodes/"+recording+"/", "nodes/"+node+"/")
			}
			costsJust(t, without, paths, gaps)
		})
	}
	if tried < 10 {
		t.Errorf("%d rights were left out", tried)
	}
}

// removalFindings are the findings of a report or a list, a line each, but for what only says that files of the node are missing.
func removalFindings(t *testing.T, document []byte, codes map[string]bool) string {
	t.Helper()
	read := mustJSON[struct {
		report
		Items []report
	}](t, document)
	var findings []finding
	for _, r := range append(read.Items, read.report) {
		for _, f := range r.Findings {
			codes[f.Code] = true
			if f.Code != "evidence-missing" && !strings.HasPrefix(f.Code, "node-healthy") {
				findings = append(findings, f)
			}
		}
	}
	return spell(t, findings)
}
