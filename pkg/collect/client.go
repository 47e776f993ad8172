package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

const (
	// parallel bounds the requests under way at once.
	parallel = 8
	// attempts are those of one request, the first included: an API server that
	// sheds load asks to come again.
	attempts = 4
	// maxWait is the longest that one wish to come again is obeyed.
	maxWait = 5 * time.Second
)

// Client reads from one API server. It changes nothing there but node pods.
type Client struct {
	http *http.Client
	base url.URL
	slot chan struct{}
	exec execFunc // nil: not allowed

	mu       sync.Mutex
	requests int
	bytes    int64
	date     time.Time
}

// NewClient reads from the server at base, such as
// "https://127.0.0.1:6443/prefix", through an HTTP client that authenticates.
func NewClient(client *http.Client, base *url.URL) *Client {
	return &Client{http: client, base: *base, slot: make(chan struct{}, parallel)}
}

// Cost is how many requests were answered or failed, and the bytes of the
// answers' bodies after decompression.
func (c *Client) Cost() (requests int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests, c.bytes
}

// statusError is an answer other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	}
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.message)
}

func hasStatus(err error, code int) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == code
}

// get reads one answer whole. Path is relative to the server, its elements
// already escaped.
func (c *Client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.getAs(ctx, path, query, "application/json, */*;q=0.5")
}

// getAs is get of one media type.
func (c *Client) getAs(ctx context.Context, path string, query url.Values, accept string) ([]byte, error) {
	select {
	case c.slot <- struct{}{}:
		defer func() { <-c.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for attempt := 1; ; attempt++ {
		data, wait, err := c.once(ctx, path, query, accept)
		if wait < 0 || attempt == attempts {
			return data, err
		}
		timer := time.NewTimer(min(wait, maxWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// once makes one attempt; wait is how long to wait before the next, negative
// where another would be of no use.
func (c *Client) once(ctx context.Context, path string, query url.Values, accept string) (data []byte, wait time.Duration, err error) {
	target := strings.TrimSuffix(c.base.String(), "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, -1, err
	}
	req.Header.Set("Accept", accept)
	c.mu.Lock()
	c.requests++
	c.mu.Unlock()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, -1, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, snapshot.MaxFileBytes+1))
	c.count(resp, path, len(data))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, retryAfter(resp), &statusError{resp.StatusCode, message(data)}
	case err != nil:
		return nil, -1, err
	case len(data) > snapshot.MaxFileBytes:
		return nil, -1, snapshot.ErrFileTooLarge
	}
	return data, -1, nil
}

// count keeps the newest date of the API server's own answers: its clock is the
// one by which its objects are dated. Proxied answers carry the kubelet's.
func (c *Client) count(resp *http.Response, path string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += int64(n)
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && !strings.Contains(path, "/proxy/") && date.After(c.date) {
		c.date = date.UTC()
	}
}

func (c *Client) serverTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.date
}

// retryAfter is the wait that a server asks for who sheds load; negative for
// every other answer.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return -1
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 3600 {
		return -1
	}
	return time.Duration(seconds) * time.Second
}

// message is what an error answer says: a Status of the API, or a line of text.
func message(data []byte) string {
	const most = 300
	var status metav1.Status
	text := string(data[:min(len(data), 4*most)])
	if json.Unmarshal(data, &status) == nil && status.Kind == "Status" {
		text = status.Message
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// reasonOf is the reason word of a gap. Right is the permission that the request
// needed; a refusal's own words would name the user.
func reasonOf(err error, right string) (reason, detail string) {
	var status *statusError
	var network net.Error
	switch {
	case errors.As(err, &status):
		switch {
		case status.code == http.StatusForbidden || status.code == http.StatusUnauthorized:
			return snapshot.ReasonForbidden, "needs " + right
		case status.code == http.StatusNotFound:
			return snapshot.ReasonNotFound, status.Error()
		case status.code == http.StatusGatewayTimeout:
			return snapshot.ReasonTimeout, status.Error()
		}
		return snapshot.ReasonUnreadable, status.Error()
	case errors.Is(err, snapshot.ErrFileTooLarge):
		return snapshot.ReasonTooLarge, err.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return snapshot.ReasonTimeout, "no answer in time"
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) { // its URL names the server
		err = wrapped.Err
	}
	return snapshot.ReasonUnreadable, err.Error()
}
