package collect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// nodeAccess is how files of nodes are read in one run.
type nodeAccess struct {
	access   Access
	pods     *nodePods
	sample   time.Duration
	subjects subjects

	execMu sync.Mutex
	exec   map[string]func() []nodepod.Right // those denied, by namespace
}

func newNodeAccess(ctx context.Context, client *Client, want Request) *nodeAccess {
	a := &nodeAccess{access: want.Access, sample: want.NodePods.Sample, exec: map[string]func() []nodepod.Right{}}
	if want.Access == AccessNode {
		a.pods = newNodePods(ctx, client, want.NodePods)
	}
	return a
}

// nodeFiles reads the files of a node, as far as it may: by a node pod, else the
// cgroups of the containers asked for. Object is the node as the API server gives
// it, configz its kubelet's configuration; nil where they are not known. Silent is
// the error of a kubelet that does not answer: no command reaches a pod there.
// All says that a node pod read them.
func (c *collector) nodeFiles(ctx context.Context, node string, object, configz []byte, silent error) (all bool) {
	// Covers what nothing below names.
	c.builder.Gap(snapshot.Gap{Path: "nodes/" + node, Reason: snapshot.ReasonRefused, Detail: c.nodes.bound()})
	switch c.nodes.access {
	case AccessNode:
		err := cmp.Or(silent, startsNoPod(object))
		if err == nil {
			err = c.readNode(ctx, node)
		}
		if err == nil {
			return true
		}
		c.missingNode(node, err)
		c.readContainers(ctx, node, configz)
	case AccessExec:
		c.readContainers(ctx, node, configz)
	}
	return false
}

// readNode reads a node by a node pod. It is an error only if that told nothing.
// A pod that comes or goes restarts Karpenter's clock of the node
// (consolidateAfter), so what is asked of that is read before.
func (c *collector) readNode(ctx context.Context, node string) error {
	<-c.removed // ends with ctx too
	reading, without, err := c.nodes.pods.read(ctx, node)
	if len(reading.Samples) == 0 {
		return err
	}
	samples := 1
	if c.nodes.sample > 0 {
		samples = 2
	}
	c.keepReading(node, reading, samples, without, err)
	return nil
}

// bound is why nothing more is read of a node.
func (a *nodeAccess) bound() string {
	switch a.access {
	case AccessExec:
		return "files of the node are not read with --access=exec, but for the cgroups of the containers asked for"
	case AccessNode:
		return notRead
	}
	return "files of the node are not read with --access=api"
}

// unanswered is the error of a request to a kubelet that nobody answered; nil for
// every other.
func unanswered(err error) error {
	for _, code := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		if hasStatus(err, code) {
			return fmt.Errorf("the API server does not reach the node's kubelet, nor would commands (%w)", err)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the node's kubelet does not answer, nor would it start a node pod: %w", err)
	}
	return nil
}

// startsNoPod is the reason why a node pod would not start on a node, as far as
// the node's object tells.
func startsNoPod(object []byte) error {
	var node corev1.Node
	if object == nil || json.Unmarshal(object, &node) != nil {
		return nil
	}
	if system := node.Labels[corev1.LabelOSStable]; system != "" && system != string(corev1.Linux) {
		return fmt.Errorf("the node runs %s, and a node pod needs Linux", system)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown {
			return fmt.Errorf("the node is NotReady since %s: its kubelet does not answer and starts no node pod", condition.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"))
		}
	}
	return nil
}

// isNodePod says whether an object of a list of pods is a node pod, of this run
// or of another: none is a part of what is to be explained.
func isNodePod(object json.RawMessage) bool {
	var pod struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(object, &pod) != nil || pod.Metadata.Labels[nodepod.RunID] == "" {
		return false
	}
	var whole corev1.Pod
	return json.Unmarshal(object, &whole) == nil && nodepod.Ours(&whole)
}
