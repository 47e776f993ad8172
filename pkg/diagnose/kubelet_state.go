package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// ready is the node's condition of that name. known is false without a node
// object or without the condition.
func (n *nodeCase) ready() (cond corev1.NodeCondition, up, known bool) {
	if n.object == nil {
		return cond, false, false
	}
	for _, c := range n.object.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c, c.Status == corev1.ConditionTrue, true
		}
	}
	return cond, false, false
}

// startVerb completes "the kubelet …": it stands or falls with whether one runs
// now.
func (n *nodeCase) startVerb() string {
	if _, up, known := n.ready(); up && known {
		return "would not start again"
	}
	return "does not start"
}

// podStartFaults say in a pod's report on what the node's kubelet fails to
// start, where none answers: the pod then waits for it, whatever its own state.
func podStartFaults(c *podCase) []report.Finding {
	if _, up, known := c.ready(); c.name == "" || c.ended() || up || !known {
		return nil
	}
	var out []report.Finding
	for _, find := range []func(*nodeCase) []report.Finding{reservedMemoryMismatch, tooManyNUMANodes, kubeletConfigInvalid} {
		out = append(out, find(c.nodeCase)...)
	}
	return out
}

// readyEvidence quotes the node's condition, if there is one.
func (n *nodeCase) readyEvidence() []report.Evidence {
	cond, up, known := n.ready()
	if !known {
		return nil
	}
	means := "no kubelet answers for the node"
	if up {
		means = "a kubelet runs: it started before this came about"
	}
	e := n.apiEvidence("status.conditions[Ready]", strings.TrimSuffix(fmt.Sprintf("%s, %s", cond.Status, cond.Reason), ", "), means)
	e.At = cond.LastTransitionTime
	return []report.Evidence{e}
}

// logEvidence is the kubelet's log line that has a message of it, the last one;
// the log quotes it, or not.
func (n *nodeCase) logEvidence(message string) []report.Evidence {
	data, err := n.files.File("kubelet.log")
	if err != nil || message == "" {
		return nil
	}
	quoted := strings.ReplaceAll(message, `"`, `\"`)
	var found string
	for line := range strings.SplitSeq(string(data), "\n") {
		if strings.Contains(line, message) || strings.Contains(line, quoted) {
			found = line
		}
	}
	if found == "" {
		return nil
	}
	return []report.Evidence{{Source: "kubelet:log", Value: clip(found), Means: "the kubelet says so itself"}}
}
