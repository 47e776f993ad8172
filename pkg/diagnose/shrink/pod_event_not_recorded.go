package shrink

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podEventNotRecorded: a pod event later than status.lastPodEventTime restarted
// no clock. Within 10 s of the recorded one that is by design (Karpenter 1.14,
// pkg/controllers/nodeclaim/podevents). It is told while it makes the node count
// as quiet too early.
func podEventNotRecorded(n *nodeCase) []report.Finding {
	if n.pool == nil || !n.node.Managed() || n.going() || n.podsErr != nil {
		return nil
	}
	claim := n.node.NodeClaim
	recorded := claim.Status.LastPodEventTime.Time
	timer := disruption.TimerOf(n.pool.pool, claim, n.at)
	events := n.podEvents()
	if recorded.IsZero() || len(events) == 0 || timer.State != disruption.TimerRunning && timer.State != disruption.TimerElapsed {
		return nil
	}
	last := events[len(events)-1]
	after := n.pool.pool.Disruption().ConsolidateAfter.Duration
	apart := last.at.Sub(recorded)
	// Times are cut to seconds on both sides.
	if apart <= 1e9 || after <= 0 || n.at.Sub(last.at) >= after {
		return nil
	}
	why := "Karpenter writes down one event in 10 s at most"
	if !disruption.Unrecorded(recorded, last.at) {
		why = "more than the 10 s that Karpenter leaves between two, so that its controller did not run or did not see it"
	}
	e := podField(last.pod, "status", last.what+" at "+utc(last.at), "restarted no clock")
	e.At = metav1.NewTime(last.at)
	f := report.NewFinding(report.PodEventNotRecorded, report.Likely, n.subject(),
		fmt.Sprintf("%s counts as quiet %s too early: pod %s/%s %s at %s, later than the recorded %s (%s).", n.title(), span(apart), last.pod.Namespace, last.pod.Name, last.what, utc(last.at), utc(recorded), why),
		n.claimField("status.lastPodEventTime", utc(recorded), "what consolidateAfter counts from"), e)
	f.Arithmetic = fmt.Sprintf("%s - %s = %s; quiet from %s on instead of %s", utc(last.at), utc(recorded), span(apart), utc(timer.Ends), utc(last.at.Add(after)))
	return []report.Finding{f}
}
