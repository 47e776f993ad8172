package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asCommand = "NODERES_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Args = []string{"kubectl-noderes", "whatif", "-f", "-", "--node", "n1", "--from", os.Getenv(asCommand)}
		main()
	}
	os.Exit(m.Run())
}

// TestSignalEnds sends a signal to a command that waits for its input: like a
// long computation it does not look at the context.
func TestSignalEnds(t *testing.T) {
	dir := t.TempDir()
	index := `{"formatVersion":1,"capturedAt":"2026-01-01T00:00:00Z","tool":"x","server":"v1.37.2"}`
	if err := os.WriteFile(filepath.Join(dir, "bundle.json"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), asCommand+"="+dir)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// More than a pipe holds: once it is written the command reads.
		if _, err := io.WriteString(in, strings.Repeat(" ", 1<<17)); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		late.Stop()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != s {
			t.Errorf("%v: ended with %v", s, c.ProcessState)
		}
	}
}
