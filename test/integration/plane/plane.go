package plane

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Plane is a running control plane. Everything of it is below one temporary folder, and on loopback.
type Plane struct {
	Server string // the API server's URL

	dir       string
	ca        *authority
	nodes     *nodes
	programs  Programs
	ports     map[string]string
	processes []*Process // in the order of their start
	api       *Process
	apiArgs   []string
	stop      sync.Once
}

// Start starts etcd, the API server, the scheduler and the controller manager, and returns when the API server is ready. Until then,
// ctx bounds it; it is for the caller to Stop the plane.
func Start(ctx context.Context, programs Programs) (*Plane, error) {
	p, err := StartStill(ctx, programs)
	if err != nil {
		return nil, err
	}
	if err := p.startControllers(); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// StartStill starts etcd and the API server alone: nothing but the test changes what it holds, and no object is missed for its owner.
func StartStill(ctx context.Context, programs Programs) (p *Plane, err error) {
	// Short, because the path of a socket may have 108 bytes at most.
	dir, err := os.MkdirTemp("", "noderes-")
	if err != nil {
		return nil, err
	}
	p = &Plane{dir: dir, programs: programs, ports: map[string]string{}}
	defer func() {
		if err != nil {
			p.Stop()
			p = nil
		}
	}()
	if p.ca, err = newAuthority(dir); err != nil {
		return p, err
	}
	if p.nodes, err = newNodes(p.path("nodes"), p.ca); err != nil {
		return p, err
	}
	for _, name := range []string{"etcd", "peer", "api", "scheduler", "controllers", "kwok", "karpenter", "karpenter-probes"} {
		if p.ports[name], err = freePort(); err != nil {
			return p, err
		}
	}
	p.Server = "https://127.0.0.1:" + p.ports["api"]
	if err := p.credentials(); err != nil {
		return p, err
	}
	if err := p.startStore(); err != nil {
		return p, err
	}
	return p, p.startAPI(ctx)
}

// Stop ends every process of the plane and removes its folder.
func (p *Plane) Stop() {
	p.stop.Do(p.end)
}

func (p *Plane) end() {
	for i := len(p.processes) - 1; i >= 0; i-- {
		p.processes[i].Stop()
	}
	if p.nodes != nil {
		p.nodes.close()
	}
	os.RemoveAll(p.dir)
}

// Dir is the plane's folder, which goes when it stops.
func (p *Plane) Dir() string { return p.dir }

// ServeKubelet has handler answer as the kubelet of the node with the internal address host and the kubelet's port.
func (p *Plane) ServeKubelet(host, port string, handler http.Handler) error {
	return p.nodes.serve(host, port, handler)
}

// ServePod has handler answer as the pod with the address host.
func (p *Plane) ServePod(host, port string, handler http.Handler) error {
	return p.nodes.servePod(host, port, handler)
}

// Kubeconfig makes a kubeconfig file of a user with a certificate of its own.
func (p *Plane) Kubeconfig(user string, groups ...string) (string, error) {
	own, err := p.ca.sign(user, groups)
	if err != nil {
		return "", err
	}
	b64 := base64.StdEncoding.EncodeToString
	named := func(key string, value map[string]string) []any {
		return []any{map[string]any{"name": "integration", key: value}}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "integration",
		"clusters": named("cluster", map[string]string{"server": p.Server, "certificate-authority-data": b64(p.ca.pem())}),
		"users":    named("user", map[string]string{"client-certificate-data": b64(own.cert), "client-key-data": b64(own.key)}),
		"contexts": named("context", map[string]string{"cluster": "integration", "user": "integration"}),
	})
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(p.dir, "kubeconfig-")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.Write(data)
	return file.Name(), err
}

// KillAPI ends the API server as a crash would; StartAPI starts it again.
func (p *Plane) KillAPI() { p.api.Kill() }

// StartAPI starts the API server after KillAPI, and returns when it is ready.
func (p *Plane) StartAPI(ctx context.Context) error {
	api, err := start(p.dir, "kube-apiserver", nil, p.programs["kube-apiserver"], p.apiArgs...)
	if err != nil {
		return err
	}
	p.api = api
	p.processes = append(p.processes, api)
	return p.ready(ctx)
}

// Logs are the ends of what the processes printed.
func (p *Plane) Logs() string {
	text := ""
	for _, process := range p.processes {
		text += fmt.Sprintf("--- %s\n%s\n", process.name, process.tail())
	}
	return text
}

func (p *Plane) path(file string) string { return filepath.Join(p.dir, file) }

// credentials leaves what the processes show each other.
func (p *Plane) credentials() error {
	if err := p.ca.writeTokenKeys(); err != nil {
		return err
	}
	if err := p.ca.write("etcd", "etcd", "127.0.0.1"); err != nil {
		return err
	}
	if err := p.ca.write("api", "kube-apiserver", "127.0.0.1", "kubernetes.default.svc"); err != nil {
		return err
	}
	if err := p.ca.write("kubelet-client", apiServer); err != nil {
		return err
	}
	egress, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
		"egressSelections": []any{map[string]any{"name": "cluster", "connection": map[string]any{
			"proxyProtocol": "HTTPConnect",
			"transport":     map[string]any{"uds": map[string]string{"udsName": p.path("nodes")}},
		}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(p.path("egress.json"), egress, 0o600)
}

func (p *Plane) launch(name string, args ...string) (*Process, error) {
	return p.launchWith(nil, name, args...)
}

func (p *Plane) launchWith(env []string, name string, args ...string) (*Process, error) {
	process, err := start(p.dir, name, env, p.programs[name], args...)
	if err == nil {
		p.processes = append(p.processes, process)
	}
	return process, err
}

func (p *Plane) startStore() error {
	client, peer := "https://127.0.0.1:"+p.ports["etcd"], "https://127.0.0.1:"+p.ports["peer"]
	_, err := p.launch("etcd", "--name=integration", "--data-dir="+p.path("data"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=integration="+peer,
		"--client-cert-auth", "--trusted-ca-file="+p.path("ca.crt"), "--cert-file="+p.path("etcd.crt"), "--key-file="+p.path("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+p.path("ca.crt"), "--peer-cert-file="+p.path("etcd.crt"), "--peer-key-file="+p.path("etcd.key"))
	return err
}

func (p *Plane) startAPI(ctx context.Context) error {
	p.apiArgs = []string{
		"--etcd-servers=https://127.0.0.1:" + p.ports["etcd"], "--etcd-cafile=" + p.path("ca.crt"),
		"--etcd-certfile=" + p.path("api.crt"), "--etcd-keyfile=" + p.path("api.key"),
		"--bind-address=127.0.0.1", "--secure-port=" + p.ports["api"], "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.path("api.crt"), "--tls-private-key-file=" + p.path("api.key"), "--client-ca-file=" + p.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--allow-privileged", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + p.path("sa.pub"),
		"--service-account-signing-key-file=" + p.path("sa.key"),
		"--kubelet-client-certificate=" + p.path("kubelet-client.crt"), "--kubelet-client-key=" + p.path("kubelet-client.key"),
		"--kubelet-certificate-authority=" + p.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file=" + p.path("egress.json"),
	}
	return p.StartAPI(ctx)
}

func (p *Plane) startControllers() error {
	for _, c := range []struct {
		program, user, port string
		more                []string
	}{
		{"kube-scheduler", "system:kube-scheduler", "scheduler", nil},
		{"kube-controller-manager", "system:kube-controller-manager", "controllers", []string{
			"--service-account-private-key-file=" + p.path("sa.key"), "--root-ca-file=" + p.path("ca.crt"), "--use-service-account-credentials",
		}},
	} {
		config, err := p.Kubeconfig(c.user)
		if err != nil {
			return err
		}
		args := append([]string{
			"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", "--secure-port=" + p.ports[c.port], "--leader-elect=false",
		}, c.more...)
		if _, err := p.launch(c.program, args...); err != nil {
			return err
		}
	}
	return nil
}

// StartKwok starts kwok with the stages of a file. It takes over every node, and every pod that has a node: what is to keep its status
// has to have it before.
func (p *Plane) StartKwok(stages string) error {
	config, err := p.Kubeconfig("kwok", "system:masters")
	if err != nil {
		return err
	}
	stages, err = filepath.Abs(stages)
	if err != nil {
		return err
	}
	_, err = p.launch("kwok", "--kubeconfig="+config, "--config="+stages, "--manage-all-nodes", "--node-lease-duration-seconds=40",
		"--node-ip=127.0.0.1", "--server-address=127.0.0.1:"+p.ports["kwok"])
	return err
}

// ready waits for the API server.
func (p *Plane) ready(ctx context.Context) error {
	own, err := p.ca.sign("ready", []string{"system:masters"})
	if err != nil {
		return err
	}
	client, err := own.client(p.ca)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for {
		for _, process := range []*Process{p.processes[0], p.api} {
			if err := process.running(); err != nil {
				return err
			}
		}
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Server+"/readyz", nil); err != nil {
			return err
		} else if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w\n%s", ctx.Err(), p.api.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freePort is a port of loopback that nobody listens on now.
func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
