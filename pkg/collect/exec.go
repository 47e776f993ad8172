package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
)

// execFunc runs a command in a container until it ends or ctx is done.
type execFunc func(ctx context.Context, target execTarget, stdin io.Reader, stdout, stderr io.Writer) error

type execTarget struct {
	namespace, pod, container string
	command                   []string
}

// AllowExec lets the client run commands in containers, over WebSockets or, where
// something on the way does not let them pass, SPDY.
func (c *Client) AllowExec(config *rest.Config) {
	c.exec = func(ctx context.Context, target execTarget, stdin io.Reader, stdout, stderr io.Writer) error {
		u := c.base
		u.Path = strings.TrimSuffix(u.Path, "/") + "/api/v1/namespaces/" + url.PathEscape(target.namespace) + "/pods/" + url.PathEscape(target.pod) + "/exec"
		u.RawQuery = url.Values{"container": {target.container}, "command": target.command, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}.Encode()
		socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
		if err != nil {
			return err
		}
		spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, &u)
		if err != nil {
			return err
		}
		either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
			return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
		})
		if err != nil {
			return err
		}
		return either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	}
}

var (
	errNoExec  = errors.New("commands cannot be run in containers")
	errNoShell = errors.New("the container has no shell with cat and date")
)

// readIn runs the reader in a container. What arrived before an error is there.
func (c *Client) readIn(ctx context.Context, namespace, pod, container string, o reader.Options) (reader.Reading, error) {
	if c.exec == nil {
		return reader.Reading{}, errNoExec
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	said := &capped{most: 1 << 10}
	ended := make(chan error, 1)
	go func() {
		err := c.exec(ctx, execTarget{namespace, pod, container, o.Command()}, strings.NewReader(reader.Script), in, said)
		ended <- err
		if err == nil {
			err = io.EOF
		}
		in.CloseWithError(err)
	}()
	reading, err := reader.Read(out, time.Now)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(out, 1<<10)) // lets it end by itself
	}
	out.CloseWithError(io.ErrClosedPipe)
	cancel()
	execErr := <-ended
	switch {
	case err == nil:
		return reading, nil
	case noShell(execErr, said.String()):
		return reading, errNoShell
	case execErr != nil && !errors.Is(execErr, context.Canceled) && !errors.Is(execErr, io.ErrClosedPipe):
		return reading, fmt.Errorf("%w: %w", err, execErr)
	}
	return reading, err
}

// noShell says whether a runtime found no program to run.
func noShell(err error, said string) bool {
	if err == nil {
		return false
	}
	text := err.Error() + said
	return strings.Contains(text, "executable file not found") || strings.Contains(text, "no such file or directory") ||
		strings.Contains(text, "exit code 126") || strings.Contains(text, "exit code 127")
}

// capped keeps the beginning of what is written.
type capped struct {
	bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.most - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
