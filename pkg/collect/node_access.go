package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// nodeAccess is how files of nodes are read in one run.
type nodeAccess struct {
	access Access
	pods   *nodePods
	// samples is how many a node pod takes.
	samples int
}

func newNodeAccess(ctx context.Context, client *Client, want Request) nodeAccess {
	a := nodeAccess{access: want.Access, samples: 1}
	if want.NodePods.Sample > 0 {
		a.samples = 2
	}
	if want.Access == AccessNode {
		a.pods = newNodePods(ctx, client, want.NodePods)
	}
	return a
}

// nodeFiles reads the files of a node, as far as it may. Object is the node as
// the API server gives it, nil where it does not.
func (c *collector) nodeFiles(ctx context.Context, node string, object []byte) {
	// Covers what nothing below names.
	c.builder.Gap(snapshot.Gap{Path: "nodes/" + node, Reason: snapshot.ReasonRefused, Detail: c.nodes.bound()})
	if c.nodes.access != AccessNode {
		return
	}
	if err := startsNoPod(object); err != nil {
		c.missingNode(node, err)
		return
	}
	reading, without, err := c.nodes.pods.read(ctx, node)
	if len(reading.Samples) == 0 {
		if err == nil {
			err = errors.New("nothing was read")
		}
		c.missingNode(node, err)
		return
	}
	c.keepReading(node, reading, c.nodes.samples, without, err)
}

// bound is why nothing more is read of a node.
func (a nodeAccess) bound() string {
	switch a.access {
	case AccessExec:
		return "files of the node are not read with --access=exec, but for the cgroups of the containers asked for"
	case AccessNode:
		return notRead
	}
	return "files of the node are not read with --access=api"
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
