package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// send makes one request that may change something, with a body in JSON. It is
// not made again: whether the first was carried out nobody knows. It waits for
// no other request, so that what was made can be taken away at any time.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	target := strings.TrimSuffix(c.base.String(), "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.mu.Lock()
	c.requests++
	c.mu.Unlock()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, snapshot.MaxFileBytes+1))
	c.count(resp, path, len(data))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, &statusError{resp.StatusCode, message(data)}
	case err != nil:
		return nil, err
	case len(data) > snapshot.MaxFileBytes:
		return nil, snapshot.ErrFileTooLarge
	}
	return data, nil
}
