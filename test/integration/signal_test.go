package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// TestInterrupted sends SIGINT at ten moments of a run of some 1.2 s: it ends at once, with one line at most, and what it leaves is a
// whole bundle or nothing.
func TestInterrupted(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	live.kubelet.Delay(time.Second)
	defer live.kubelet.Delay(0)
	cut := 0
	for i := range 10 {
		dir := t.TempDir()
		bundle := filepath.Join(dir, "bundle.tar.gz")
		cmd := exec.CommandContext(t.Context(), live.plugin, "collect", "pod/throttled", "-n", live.pods[0].Namespace, "-o", bundle, "--access=api")
		cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + user}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 130 * time.Millisecond)
		sent := time.Now()
		_ = cmd.Process.Signal(os.Interrupt)
		err := cmd.Wait()
		if took := time.Since(sent); err != nil && took > time.Second {
			t.Errorf("%d: ended %s after the signal", i, took)
		}
		if bytes.Count(errs.Bytes(), []byte("\n")) > 1 {
			t.Errorf("%d: %s", i, errs.Bytes())
		}
		left, readErr := os.ReadDir(dir)
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch {
		case err != nil && len(left) > 0:
			t.Errorf("%d: %v, and left %v", i, err, left)
		case err == nil && len(left) != 1:
			t.Errorf("%d: left %v", i, left)
		case err == nil:
			if _, err := snapshot.Open(bundle); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		default:
			cut++
		}
	}
	if cut < 5 {
		t.Errorf("only %d of 10 runs were cut", cut)
	}
}
