package shrink

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caUnready: a node that is not ready goes later than others, or never, and too
// many of them stop the autoscaler for the whole cluster (Cluster Autoscaler
// 1.36, core/scaledown/unneeded, clusterstate: IsClusterHealthy).
func caUnready(a *caCase) []report.Finding {
	var out []report.Finding
	if f, ok := a.nodeUnready(); ok {
		out = append(out, f)
	}
	if f, ok := a.clusterUnhealthy(); ok {
		f.Confidence = weaker(f.Confidence, a.belongs)
		f.Because = append(f.Because, a.tie)
		out = append(out, f)
	}
	return out
}

func (a *caCase) nodeUnready() (report.Finding, bool) {
	why := autoscaler.Unready(a.node.Node)
	if why == "" {
		return report.Finding{}, false
	}
	flag := a.setting(autoscaler.FlagUnreadyTime, span(a.settings.UnreadyTime), "how long a node that is not ready has to be unneeded; a node group may have its own")
	text := fmt.Sprintf("is not ready (%s), and goes only once it has been unneeded for %s, instead of %s", why, span(a.settings.UnreadyTime), span(a.settings.UnneededTime))
	confidence := a.bound(autoscaler.FlagUnreadyTime)
	if !a.settings.UnreadyEnabled {
		flag = a.setting(autoscaler.FlagUnreadyEnabled, "true", "whether nodes that are not ready are removed")
		text = fmt.Sprintf("is not ready (%s), and the Cluster Autoscaler removes no such node: it runs with --%s=false", why, autoscaler.FlagUnreadyEnabled)
	}
	evidence := a.field("status.conditions[Ready]", "(absent)", "without it a node counts as not ready")
	for _, c := range a.node.Node.Status.Conditions {
		ill := c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue || c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue
		if ill && (c.Type == corev1.NodeReady || c.Type == corev1.NodeDiskPressure || c.Type == corev1.NodeNetworkUnavailable) {
			evidence = a.field("status.conditions["+string(c.Type)+"]", string(c.Status), cut(c.Reason, 100)+", "+a.since(c.LastTransitionTime))
			evidence.At = c.LastTransitionTime
			break
		}
	}
	return report.NewFinding(report.CAUnready, weaker(confidence, a.belongs), a.subject(), a.kept()+" "+text+".", evidence, flag, a.tie), true
}

// clusterUnhealthy: the autoscaler does nothing at all.
func (c *Cluster) clusterUnhealthy() (report.Finding, bool) {
	s := c.autoscaler()
	h := s.status.Health
	if h.Status != autoscaler.Unhealthy {
		return report.Finding{}, false
	}
	confidence := report.Proven
	if s.stale(c.at) {
		confidence = report.Likely
	}
	f := report.NewFinding(report.CAUnready, confidence, report.Subject{Kind: "ClusterAutoscaler", Name: "cluster-autoscaler"},
		fmt.Sprintf("The Cluster Autoscaler stands still for the whole cluster: it takes the cluster for unhealthy, with %d of %d nodes ready.", h.Ready, h.Total),
		report.Evidence{Source: autoscalerStatusSource, Field: "status.clusterWide.health.status", Value: h.Status, Means: "since " + utc(h.Since)},
		s.setting(autoscaler.FlagMaxUnreadyPercentage, number(s.settings.MaxUnreadyPercentage), "per cent of nodes not ready that it bears"),
		s.setting(autoscaler.FlagOKUnreadyCount, fmt.Sprint(s.settings.OKUnreadyCount), "so many nodes not ready it bears in any case"))
	f.Arithmetic = fmt.Sprintf("%d of %d nodes not ready, %d not registered for long", h.Unready, h.Total, h.LongUnregistered)
	return f, true
}
