//go:build unix

package karpenter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/test/integration/plane"
)

var (
	nodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	nodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	classes     = schema.GroupVersionResource{Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pdbs        = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const (
	namespace = "default"
	// controllerNode is no node of Karpenter's: its own pod is there.
	controllerNode, controllerAddress = "control", "10.244.0.7"
)

// A cluster has a Karpenter that acts.
type cluster struct {
	*plane.Plane
	dynamic    dynamic.Interface
	karpenter  *plane.Process
	plugin     string
	kubeconfig string
	// metrics are served in Karpenter's place while it stands still.
	metrics atomic.Pointer[[]byte]
}

func start(ctx context.Context, t *testing.T) *cluster {
	t.Helper()
	binaries := filepath.Join("..", "binaries")
	programs, err := plane.Find(binaries, plane.Karpenter)
	if errors.Is(err, plane.ErrNotBuilt) {
		t.Skipf("SKIPPED: %v (make integration-karpenter-build)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(ctx, programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	stopWhenCut(t, p)
	c := &cluster{Plane: p}
	if c.kubeconfig, err = p.Kubeconfig("admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := p.StartKwok(filepath.Join("..", "testdata", "stages.yaml")); err != nil {
		t.Fatal(err)
	}
	c.define(ctx, t, binaries)
	c.create(ctx, t, classes, "", `{"metadata":{"name":"default"},"spec":{"nodeRegistrationDelay":"1s"}}`)
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if c.karpenter, err = p.StartKarpenter(soon, "StaticCapacity=true"); err != nil {
		t.Fatalf("%v\n%s", err, p.Logs())
	}
	c.controller(ctx, t)
	c.build(ctx, t)
	return c
}

// stopWhenCut stops the plane if the test is interrupted: that runs no clean-up.
func stopWhenCut(t *testing.T, p *plane.Plane) {
	cut, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(cut, os.Interrupt, syscall.SIGTERM)
	t.Cleanup(func() { signal.Stop(cut); close(done) })
	go func() {
		select {
		case <-done:
		case s := <-cut:
			fmt.Fprintln(os.Stderr, s)
			p.Stop()
			os.Exit(1)
		}
	}()
}

// define creates the CRDs of Karpenter and its kwok provider, and waits until they are served.
func (c *cluster) define(ctx context.Context, t *testing.T, binaries string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/karpenter")
	cmd.Dir = filepath.Join(binaries, plane.Karpenter)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(string(out))
	var files []string
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		found, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(folder), "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no CRDs in %s: %v", folder, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		c.create(ctx, t, definitions, "", string(definition))
	}
	for _, served := range []schema.GroupVersionResource{nodePools, nodeClaims, classes} {
		c.until(ctx, t, served.Resource+" are served", time.Minute, func() bool {
			_, err := c.dynamic.Resource(served).List(ctx, metav1.ListOptions{})
			return err == nil
		})
	}
}

// controller makes the pod that Karpenter would be in a cluster of its own, its metrics at the pod's address.
func (c *cluster) controller(ctx context.Context, t *testing.T) {
	t.Helper()
	running := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: c.KarpenterMetrics()})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if last := c.metrics.Load(); last != nil {
			_, _ = w.Write(*last)
			return
		}
		running.ServeHTTP(w, r)
	})
	if err := c.ServePod(controllerAddress, "8080", mux); err != nil {
		t.Fatal(err)
	}
	c.create(ctx, t, nodes, "", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"taints":[{"key":"integration.invalid/control","effect":"NoSchedule"}]},
		"status":{"capacity":{"cpu":"2","memory":"4Gi","pods":"10"},"allocatable":{"cpu":"2","memory":"4Gi","pods":"10"}}}`, controllerNode))
	c.until(ctx, t, "the ServiceAccount default", time.Minute, func() bool {
		_, err := c.dynamic.Resource(accounts).Namespace("kube-system").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	pod := c.create(ctx, t, pods, "kube-system", fmt.Sprintf(`{"metadata":{"name":"karpenter-0","labels":{"app.kubernetes.io/name":"karpenter"}},
		"spec":{"nodeName":%q,"tolerations":[{"operator":"Exists"}],
			"containers":[{"name":"controller","image":"registry.invalid/karpenter/controller:1.14.1","ports":[{"name":"http-metrics","containerPort":8080}]}]}}`, controllerNode))
	c.until(ctx, t, "Karpenter's pod", time.Minute, func() bool {
		_, err := c.dynamic.Resource(pods).Namespace("kube-system").Patch(ctx, pod.GetName(), types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}]}}`, controllerAddress, controllerAddress), metav1.PatchOptions{}, "status")
		return err == nil
	})
	c.create(ctx, t, leases, "kube-system", `{"metadata":{"name":"karpenter-leader-election"},"spec":{"holderIdentity":"karpenter-0_0"}}`)
}

// pause has Karpenter stand still, its metrics as they are now.
func (c *cluster) pause(ctx context.Context, t *testing.T) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.KarpenterMetrics()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	last, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	c.metrics.Store(&last)
	if err := c.karpenter.Pause(); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) resume(t *testing.T) {
	t.Helper()
	if err := c.karpenter.Resume(); err != nil {
		t.Fatal(err)
	}
	c.metrics.Store(nil)
}

// build makes the plugin, or takes the one that $NODERES_PLUGIN names.
func (c *cluster) build(ctx context.Context, t *testing.T) {
	t.Helper()
	if c.plugin = os.Getenv("NODERES_PLUGIN"); c.plugin != "" {
		return
	}
	c.plugin = filepath.Join(c.Dir(), "kubectl-noderes")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", c.plugin, "./cmd/kubectl-noderes")
	cmd.Dir, cmd.Env = filepath.Join("..", "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// noderes runs the plugin against the cluster, and gives its reports.
func (c *cluster) noderes(ctx context.Context, t *testing.T, args ...string) []report {
	t.Helper()
	cmd := exec.CommandContext(ctx, c.plugin, append(args, "-o", "json")...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "KUBECONFIG=" + c.kubeconfig}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.Bytes())
	}
	var list struct {
		report
		Items []report
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.Bytes())
	}
	if list.Items == nil {
		return []report{list.report}
	}
	return list.Items
}

// A report is what is read of one of the plugin.
type report struct {
	Metadata struct{ Name string }
	Findings []struct {
		Code, Confidence, Summary string
		Subject                   struct{ Kind, Name string }
	}
	Budgets []struct{ Name string }
}

func (c *cluster) create(ctx context.Context, t *testing.T, of schema.GroupVersionResource, namespace, object string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(object), &o.Object); err != nil {
		t.Fatalf("%v\n%s", err, object)
	}
	o.SetAPIVersion(of.GroupVersion().String())
	if o.GetKind() == "" {
		o.SetKind(kinds[of])
	}
	made, err := c.dynamic.Resource(of).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s %s: %v", of.Resource, o.GetName(), err)
	}
	return made
}

var kinds = map[schema.GroupVersionResource]string{
	nodePools: "NodePool", classes: "KWOKNodeClass", nodes: "Node", pods: "Pod", deployments: "Deployment", pdbs: "PodDisruptionBudget",
	leases: "Lease", definitions: "CustomResourceDefinition",
}

// list gives all objects of a kind by a key, or fails.
func (c *cluster) list(ctx context.Context, t *testing.T, of schema.GroupVersionResource) []unstructured.Unstructured {
	t.Helper()
	l, err := c.dynamic.Resource(of).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("%s: %v", of.Resource, err)
	}
	return l.Items
}

func (c *cluster) patch(ctx context.Context, t *testing.T, of schema.GroupVersionResource, name, patch string) {
	t.Helper()
	if _, err := c.dynamic.Resource(of).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatalf("%s %s: %v", of.Resource, name, err)
	}
}

func (c *cluster) remove(ctx context.Context, t *testing.T, of schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := c.dynamic.Resource(of).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("%s %s: %v", of.Resource, name, err)
	}
}

// until waits, and gives up the test where that takes longer than limit.
func (c *cluster) until(ctx context.Context, t *testing.T, what string, limit time.Duration, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, limit, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: not within %s: %v\n%s", what, limit, err, c.Logs())
	}
}
