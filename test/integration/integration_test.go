package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/test/integration/plane"
	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// recording is the demo's that the cluster is made of.
const recording = "smt2"

// A cluster is a plane with the recording loaded, and a stand-in for the kubelet of its node.
type cluster struct {
	*plane.Plane
	admin    kubernetes.Interface
	recorded *snapshot.Snapshot
	kubelet  *standin.Kubelet
	pods     []corev1.Pod            // as they are in the cluster
	uids     map[types.UID]types.UID // theirs by the recorded ones
	plugin   string                  // the plugin's binary
}

// limit is for all tests together, below that of `make integration`.
const limit = 7 * time.Minute

// live is the cluster that all tests share.
var live *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	programs, err := plane.Find("binaries")
	if errors.Is(err, plane.ErrNotBuilt) {
		fmt.Printf("SKIPPED: %v\n", err)
		return
	}
	status := 1
	if err == nil {
		status, err = withCluster(programs, m.Run)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// withCluster runs the tests. Whatever happens, nothing of the cluster is left.
func withCluster(programs plane.Programs, run func() int) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	begin := time.Now()
	p, err := plane.Start(ctx, programs)
	if err != nil {
		return 1, err
	}
	defer p.Stop()
	defer whenCut(p)()
	live = &cluster{Plane: p}
	started := time.Since(begin)
	if err := live.load(ctx); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, p.Logs())
	}
	loaded := time.Since(begin)
	if err := live.build(ctx); err != nil {
		return 1, err
	}
	fmt.Printf("API server ready after %.1f s, recording loaded after %.1f s, plugin built after %.1f s\n",
		started.Seconds(), loaded.Seconds(), time.Since(begin).Seconds())
	status := run()
	if status != 0 {
		fmt.Print(p.Logs())
	}
	return status, nil
}

// build makes the plugin, or takes the one that $NODERES_PLUGIN names.
func (c *cluster) build(ctx context.Context) error {
	if c.plugin = os.Getenv("NODERES_PLUGIN"); c.plugin != "" {
		return nil
	}
	c.plugin = filepath.Join(c.Dir(), "kubectl-noderes")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", c.plugin, "./cmd/kubectl-noderes")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// whenCut stops the plane if the test is interrupted, or about to be out of time: neither runs what is deferred.
func whenCut(p *plane.Plane) (end func()) {
	cut := make(chan os.Signal, 1)
	signal.Notify(cut, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case s := <-cut:
			fmt.Fprintln(os.Stderr, s)
		case <-time.After(limit):
			fmt.Fprintln(os.Stderr, "the tests take longer than", limit)
		}
		p.Stop()
		os.Exit(1)
	}()
	return func() {
		signal.Stop(cut)
		close(done)
	}
}

func (c *cluster) load(ctx context.Context) error {
	var err error
	if c.admin, err = c.client("admin", "system:masters"); err != nil {
		return err
	}
	if c.recorded, err = demo.Open(recording); err != nil {
		return err
	}
	if c.pods, c.uids, err = standin.Load(ctx, c.admin, c.recorded); err != nil {
		return err
	}
	if err := c.StartKwok(filepath.Join("testdata", "stages.yaml")); err != nil {
		return err
	}
	nodes, err := c.recorded.Nodes()
	if err != nil {
		return err
	}
	for i := range nodes {
		node := &nodes[i]
		files := os.DirFS(filepath.Join("testdata", node.Name))
		if c.kubelet, err = standin.New(c.recorded.Node(node.Name), files, c.pods, c.uids); err != nil {
			return err
		}
		machine, err := standin.NewMachine(filepath.Join(c.Dir(), "machine"), c.recorded.Node(node.Name), c.uids)
		if err != nil {
			return err
		}
		c.kubelet.Run(machine)
		host, port := endpoint(node)
		if err := c.ServeKubelet(host, port, c.kubelet); err != nil {
			return err
		}
	}
	return nil
}

// endpoint is where the API server looks for the node's kubelet.
func endpoint(node *corev1.Node) (host, port string) {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			host = a.Address
		}
	}
	return host, fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
}

// client is a client of a user with a certificate of its own.
func (c *cluster) client(user string, groups ...string) (kubernetes.Interface, error) {
	file, err := c.Kubeconfig(user, groups...)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000
	config.WarningHandler = rest.NoWarnings{}
	return kubernetes.NewForConfig(config)
}

// noderes runs the plugin, and gives what it printed. A cluster is read through the API server alone where no --access is given.
func (c *cluster) noderes(t *testing.T, kubeconfig string, args ...string) (stdout, stderr []byte, err error) {
	t.Helper()
	if kubeconfig != "" && !slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--access") || arg == "cleanup" || arg == "budgets" || arg == "top"
	}) {
		args = append(slices.Clone(args), "--access=api")
	}
	cmd := exec.CommandContext(t.Context(), c.plugin, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "KUBECONFIG=" + kubeconfig}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

// mustJSON decodes into a value of T.
func mustJSON[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return v
}
