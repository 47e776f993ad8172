package shrink

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// batchMaxDuration is the default of Karpenter's BATCH_MAX_DURATION, by which it
// reckons how long a nomination lasts.
const batchMaxDuration = 10 * time.Second

// nodeNominated: Karpenter has planned a pending pod onto the node. That is in
// its memory only; from outside it shows by events, within the time that a
// nomination lasts.
func nodeNominated(n *nodeCase) []report.Finding {
	if !n.node.Managed() || n.going() || n.node.Node == nil {
		return nil
	}
	window := disruption.NominationWindow(batchMaxDuration)
	fresh := func(e corev1.Event) bool {
		age := n.at.Sub(lastSeen(e))
		return age >= 0 && age < window
	}
	var because []report.Evidence
	confidence := report.Possible
	var until time.Time
	pods := map[types.NamespacedName]bool{}
	for _, e := range n.nominations()[n.node.Node.Name] {
		if !fresh(e) {
			continue
		}
		pods[types.NamespacedName{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}] = true
		confidence = report.Likely
		if end := lastSeen(e).Add(window); end.After(until) {
			until = end
		}
		if len(because) < mostNamed {
			because = append(because, n.eventEvidence(e, "Karpenter planned this pod onto the node"))
		}
	}
	text := karpenter.BlockedEvent(karpenter.Nominated, n.version.rules)
	if e, ok := n.said(func(e corev1.Event) bool { return e.Reason == disruptionBlocked && e.Message == text }); ok && fresh(e) && !n.saidSince(e) {
		because = append(because, n.eventEvidence(e, "the nomination was there then; when it began is not said"))
		if end := lastSeen(e).Add(window); end.After(until) {
			until = end
		}
	}
	if len(because) == 0 {
		return nil
	}
	what := "a pending pod"
	if len(pods) > 0 {
		what = plural(len(pods), "pending pod")
	}
	f := report.NewFinding(report.NodeNominated, confidence, n.subject(),
		fmt.Sprintf("%s was nominated for %s a short time ago, which keeps it until %s at the latest, unless another pod is planned onto it.", n.title(), what, utc(until)), because...)
	f.Arithmetic = fmt.Sprintf("a nomination lasts max(2 × %s, 10s) = %s from the last one on, with the default BATCH_MAX_DURATION", span(batchMaxDuration), span(window))
	return []report.Finding{f}
}

// nominations are the events Nominated of pods, by the node that they name.
func (c *Cluster) nominations() map[string][]corev1.Event {
	if c.nominated != nil {
		return c.nominated
	}
	c.nominated = map[string][]corev1.Event{}
	for _, e := range c.events {
		if e.Reason != "Nominated" || e.InvolvedObject.Kind != "Pod" {
			continue
		}
		_, node, ok := strings.Cut(e.Message, "node/")
		if !ok {
			continue
		}
		node, _, _ = strings.Cut(node, ",")
		node = strings.TrimSpace(node)
		c.nominated[node] = append(c.nominated[node], e)
	}
	return c.nominated
}
