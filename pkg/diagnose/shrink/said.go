package shrink

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Reasons of Karpenter's events.
const (
	disruptionBlocked = "DisruptionBlocked"
	unconsolidatable  = "Unconsolidatable"
)

// said is the last event on the node or its NodeClaim that a condition holds
// for, up to the moment. ok is false where there is none.
func (n *nodeCase) said(is func(corev1.Event) bool) (last corev1.Event, ok bool) {
	var events []corev1.Event
	if n.node.NodeClaim != nil {
		events = n.eventsOn("NodeClaim", n.node.NodeClaim.Name)
	}
	if n.node.Node != nil {
		events = append(events, n.eventsOn("Node", n.node.Node.Name)...)
	}
	for _, e := range events {
		if seen := lastSeen(e); !seen.After(n.at) && is(e) && (!ok || !seen.Before(lastSeen(last))) {
			last, ok = e, true
		}
	}
	return last, ok
}

// quote is Karpenter's event with exactly this message, if there is one.
func (n *nodeCase) quote(reason, message string) []report.Evidence {
	e, ok := n.said(func(e corev1.Event) bool { return e.Reason == reason && e.Message == message })
	if !ok {
		return nil
	}
	return []report.Evidence{n.eventEvidence(e, "Karpenter names the first thing that it meets, and repeats a text only after minutes")}
}

// eventEvidence is an event with its age, and what it means.
func (c *Cluster) eventEvidence(e corev1.Event, means string) report.Evidence {
	seen := lastSeen(e)
	says := "last seen " + span(c.at.Sub(seen)) + " before"
	if e.Count > 1 {
		says += fmt.Sprintf(" (count %d, which is no rate)", e.Count)
	}
	return report.Evidence{Source: "api:events/" + e.Namespace + "/" + e.Name, Field: "message", Value: cut(e.Message, 400), Means: says + "; " + means, At: metav1.NewTime(seen)}
}

// since is how long ago a moment is, in words.
func (c *Cluster) since(t metav1.Time) string {
	if t.IsZero() {
		return "since an unknown time"
	}
	if t.After(c.at) {
		return "since " + utc(t.Time)
	}
	return fmt.Sprintf("since %s (for %s)", utc(t.Time), span(c.at.Sub(t.Time)))
}

func containsFold(text, phrase string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(phrase))
}
