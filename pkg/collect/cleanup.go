package collect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
)

// Leftover is a node pod that is there.
type Leftover struct {
	Namespace, Name, Node string
	Phase                 corev1.PodPhase
	Age                   time.Duration
	// Err is why it could not be deleted; nil if it is gone, or none was to be deleted.
	Err error
}

// Leftovers finds the node pods of a namespace, of all for "", and with remove
// deletes them. What only bears their labels is left alone.
func Leftovers(ctx context.Context, client *Client, namespace string, remove bool) ([]Leftover, error) {
	path, where := "/api/v1/pods", "all namespaces"
	if namespace != "" {
		if err := segments(namespace); err != nil {
			return nil, err
		}
		path, where = podsPath(namespace), "namespace "+namespace
	}
	query := url.Values{"labelSelector": {nodepod.Selector}, "limit": {"500"}}
	var found []Leftover
	for {
		data, err := client.get(ctx, path, query)
		if err != nil {
			return found, subjectError(err, "no pods in "+where, "list pods in "+where)
		}
		var list corev1.PodList
		if err := json.Unmarshal(data, &list); err != nil {
			return found, errors.New("the answer is no list of pods")
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if !nodepod.Ours(pod) || pod.UID == "" {
				continue
			}
			left := Leftover{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Phase: pod.Status.Phase}
			if now := client.serverTime(); !pod.CreationTimestamp.IsZero() && !now.IsZero() {
				left.Age = max(now.Sub(pod.CreationTimestamp.Time), 0)
			}
			if remove {
				ctx, cancel := context.WithTimeout(ctx, removal)
				left.Err = client.removePod(ctx, pod)
				cancel()
			}
			found = append(found, left)
		}
		if next := list.Continue; next == "" || next == query.Get("continue") {
			return found, nil
		}
		query.Set("continue", list.Continue)
	}
}

// createDry asks the API server what it would make of a pod.
func (c *Client) createDry(ctx context.Context, o nodepod.Options, pod *corev1.Pod) (*corev1.Pod, error) {
	data, err := c.send(ctx, http.MethodPost, podsPath(pod.Namespace), url.Values{"dryRun": {"All"}}, pod)
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.code < 500 {
			return nil, &refusedError{nodepod.Refusal(o, status.code, status.message), status.code}
		}
	}
	return decodePod(data, err)
}
