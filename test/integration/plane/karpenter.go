package plane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

// StartKarpenter starts Karpenter with its kwok provider and these feature gates, and returns when it is ready. Its CRDs have to be
// served. ctx bounds the wait.
func (p *Plane) StartKarpenter(ctx context.Context, gates string) (*Process, error) {
	config, err := p.Kubeconfig("karpenter", "system:masters")
	if err != nil {
		return nil, err
	}
	// Karpenter has no flag for it.
	process, err := p.launchWith([]string{"KUBECONFIG=" + config}, Karpenter,
		"--metrics-port="+p.ports["karpenter"], "--health-probe-port="+p.ports["karpenter-probes"], "--feature-gates="+gates)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for {
		if err := process.running(); err != nil {
			return nil, err
		}
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+p.ports["karpenter-probes"]+"/readyz", nil); err != nil {
			return nil, err
		} else if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return process, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("Karpenter is not ready: %w\n%s", ctx.Err(), process.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// KarpenterMetrics is where Karpenter has its metrics, as host:port.
func (p *Plane) KarpenterMetrics() string { return "127.0.0.1:" + p.ports["karpenter"] }

// Log is all that the process has printed.
func (p *Process) Log() ([]byte, error) { return os.ReadFile(p.log) }
