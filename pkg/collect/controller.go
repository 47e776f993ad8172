package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/promtext"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

const (
	// controllerLabels select Karpenter's controller, as its chart labels it.
	controllerLabels = "app.kubernetes.io/name=karpenter"
	leaderLease      = "karpenter-leader-election"
	metricsPortName  = "http-metrics"
	metricsPort      = 8080 // of METRICS_PORT by default
	karpenterMetrics = "cluster/karpenter-metrics.txt"
)

// controllers reads Karpenter's controller: its pods, which tell version and
// settings, and the metrics of the one that leads. The gauges of the others are
// stale or absent.
func (c *collector) controllers(ctx context.Context, metrics bool) {
	data, err := c.client.get(ctx, "/api/v1/pods", url.Values{"labelSelector": {controllerLabels}})
	var pods []corev1.Pod
	if err == nil {
		pods, err = c.keepControllers(data)
	}
	if err != nil {
		c.gap("cluster/pods.json", err, "list pods of all namespaces")
	}
	if !metrics {
		return
	}
	if err == nil {
		err = c.metrics(ctx, pods)
	}
	if err != nil {
		c.gap(karpenterMetrics, err, "list pods of all namespaces")
	}
}

// keepControllers keeps the pods of a list; those returned run.
func (c *collector) keepControllers(data []byte) ([]corev1.Pod, error) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, errors.New("the answer is no list")
	}
	var pods []corev1.Pod
	for _, item := range list.Items {
		var pod corev1.Pod
		if err := json.Unmarshal(item, &pod); err != nil {
			return nil, errors.New("an item is no pod")
		}
		if err := c.keep("pods", item); err != nil {
			return nil, err
		}
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// metrics reads those of the leader. Errors are of what it could not even ask
// for; what was refused is a gap.
func (c *collector) metrics(ctx context.Context, pods []corev1.Pod) error {
	if len(pods) == 0 {
		c.builder.Gap(snapshot.Gap{Path: karpenterMetrics, Reason: snapshot.ReasonUnreadable, Detail: "no pod labelled " + controllerLabels + " runs: the controller may run elsewhere"})
		return nil
	}
	leader, err := c.leader(ctx, pods)
	if err != nil {
		c.gap(karpenterMetrics, err, "get leases.coordination.k8s.io/"+leaderLease+" in namespace "+pods[0].Namespace)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", url.PathEscape(leader.Namespace), url.PathEscape(leader.Name), portOf(leader))
	data, err := c.client.get(ctx, path, nil)
	if err == nil {
		err = c.builder.Add(karpenterMetrics, promtext.Keep(data, price.Series...))
	}
	if err != nil {
		c.gap(karpenterMetrics, err, "get pods/proxy in namespace "+leader.Namespace)
	}
	return nil
}

// leader is the controller that holds the lease. The holder is named after its
// pod, an underscore and a random part.
func (c *collector) leader(ctx context.Context, pods []corev1.Pod) (*corev1.Pod, error) {
	namespace := pods[0].Namespace
	data, err := c.client.get(ctx, "/apis/coordination.k8s.io/v1/namespaces/"+url.PathEscape(namespace)+"/leases/"+leaderLease, nil)
	if hasStatus(err, http.StatusNotFound) && len(pods) == 1 {
		return &pods[0], nil // leader election is off
	}
	if err != nil {
		return nil, err
	}
	var lease struct {
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &lease); err != nil {
		return nil, errors.New("the answer is no lease")
	}
	name, _, _ := strings.Cut(lease.Spec.HolderIdentity, "_")
	for i := range pods {
		if pods[i].Namespace == namespace && pods[i].Name == name {
			return &pods[i], nil
		}
	}
	return nil, errors.New("no running controller holds the lease " + leaderLease)
}

func portOf(pod *corev1.Pod) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == metricsPortName {
				return port.ContainerPort
			}
		}
	}
	return metricsPort
}
