package standin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Exec is the beginning of the paths by which commands are run in containers.
const Exec = "/exec/"

// fault is what becomes of the output of a command.
type fault struct {
	after int           // bytes that still arrive; negative: all
	hold  chan struct{} // then nothing more, until it is closed; nil: the connection breaks
	began chan struct{} // closed once the first byte was sent
}

// CutExec breaks the connection of each later command after so many bytes of its output, or never if that is negative.
func (k *Kubelet) CutExec(after int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = &fault{after: after}
}

// HoldExec lets nothing more of a later command's output through after so many bytes, until it is released. Began is closed when
// the first byte was sent.
func (k *Kubelet) HoldExec(after int) (began <-chan struct{}, release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &fault{after: after, hold: make(chan struct{}), began: make(chan struct{})}
	k.fault = f
	return f.began, func() { close(f.hold) }
}

// run serves a command over SPDY, as the kubelet does for the API server (protocol v4.channel.k8s.io).
func (k *Kubelet) run(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	wanted := 1
	for _, name := range []string{"input", "output", "error"} {
		if query.Get(name) == "1" {
			wanted++
		}
	}
	if _, err := httpstream.Handshake(req, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 4)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	byType := map[string]httpstream.Stream{}
	for len(byType) < wanted {
		select {
		case s := <-streams:
			byType[s.Headers().Get(corev1.StreamType)] = s
		case <-time.After(10 * time.Second):
			return
		}
	}
	k.mu.Lock()
	f := k.fault
	k.mu.Unlock()
	cmd := k.machine.command(query["command"])
	if in := byType[corev1.StreamTypeStdin]; in != nil {
		cmd.Stdin = in
	}
	out := &faulty{w: byType[corev1.StreamTypeStdout], fault: f, conn: conn}
	if f != nil {
		out.left = f.after
	}
	if out.w != nil {
		cmd.Stdout = out
	}
	if errs := byType[corev1.StreamTypeStderr]; errs != nil {
		cmd.Stderr = errs
	}
	cmd.WaitDelay = time.Second // for a standard input that stays open
	ended := make(chan struct{})
	defer close(ended)
	if err := cmd.Start(); err != nil {
		_ = json.NewEncoder(byType[corev1.StreamTypeError]).Encode(metav1.Status{Status: metav1.StatusFailure, Message: err.Error()})
		return
	}
	go func() {
		select {
		case <-conn.CloseChan(): // who asked has gone
			_ = cmd.Process.Kill()
		case <-ended:
		}
	}()
	status := metav1.Status{Status: metav1.StatusSuccess}
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "WaitDelay") {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: err.Error()}
	}
	_ = json.NewEncoder(byType[corev1.StreamTypeError]).Encode(status)
}

// faulty is standard output with a fault.
type faulty struct {
	w     io.Writer
	fault *fault
	left  int
	conn  httpstream.Connection
	begun bool
}

func (f *faulty) Write(p []byte) (int, error) {
	if f.fault == nil || f.fault.after < 0 {
		return f.w.Write(p)
	}
	if f.fault.began != nil && !f.begun {
		f.begun = true
		select {
		case <-f.fault.began:
		default:
			close(f.fault.began)
		}
	}
	n, err := f.w.Write(p[:min(len(p), f.left)])
	if f.left -= n; err != nil || n == len(p) {
		return n, err
	}
	if f.fault.hold != nil {
		select {
		case <-f.fault.hold:
		case <-f.conn.CloseChan():
		}
	}
	f.conn.Close()
	return n, errors.New("cut")
}
