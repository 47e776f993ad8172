package shrink

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// consolidateAfterRunning: the node has been quiet for less than
// consolidateAfter (Karpenter 1.14,
// pkg/controllers/nodeclaim/disruption/consolidation.go). The condition
// Consolidatable, which is what Karpenter's methods go by, is set aside the
// clock where it is there.
func consolidateAfterRunning(n *nodeCase) []report.Finding {
	if n.pool == nil || !n.node.Managed() || n.going() {
		return nil
	}
	claim, pool := n.node.NodeClaim, n.pool.pool
	timer := disruption.TimerOf(pool, claim, n.at)
	if timer.Start.IsZero() {
		return nil // off, or by a time that nobody wrote down
	}
	condition := claim.Condition(karpenter.ConditionConsolidatable)
	if timer.State != disruption.TimerRunning {
		n.lateCondition(timer, condition)
		return nil
	}
	after := pool.Disruption().ConsolidateAfter
	start, because := n.timerStart(timer)
	confidence := report.Proven
	contradicts := ""
	if condition != nil && condition.Status == metav1.ConditionTrue {
		e := n.claimField("status.conditions[Consolidatable]", "True", "set later than the moment asked for")
		if !condition.LastTransitionTime.After(n.at) {
			confidence = report.Likely
			contradicts = "; its condition Consolidatable is still True, which Karpenter's methods go by until it is taken away"
			e.Means = "contradicts the clock: Karpenter had not yet looked at the NodeClaim again, or consolidateAfter was raised since"
		}
		e.At = condition.LastTransitionTime
		because = append(because, e)
	}
	f := report.NewFinding(report.ConsolidateAfterRunning, confidence, n.subject(),
		fmt.Sprintf("%s becomes consolidatable at %s, in %s, if no pod comes, ends or is deleted there before: consolidateAfter is %s, and %s at %s%s.",
			n.title(), utc(timer.Ends), span(timer.Remaining(n.at)), after.Text, start, utc(timer.Start), contradicts),
		append([]report.Evidence{n.pool.field("spec.disruption.consolidateAfter", after.Text, "how long a node has to be quiet")}, because...)...)
	f.Arithmetic = fmt.Sprintf("%s + %s = %s; %s - %s = %s of %s passed", utc(timer.Start), after.Text, utc(timer.Ends), utc(n.at), utc(timer.Start), span(n.at.Sub(timer.Start)), after.Text)
	n.explainGaps(&f, after.Duration)
	return []report.Finding{f}
}

// timerStart is what the clock counts from, in words.
func (n *nodeCase) timerStart(timer disruption.Timer) (string, []report.Evidence) {
	claim := n.node.NodeClaim
	if !timer.LastPodEvent {
		e := n.claimField("status.conditions[Initialized]", "True", "no pod event is recorded, so the clock counts from here")
		e.At = claim.Condition(karpenter.ConditionInitialized).LastTransitionTime
		return "the node was initialized", []report.Evidence{e}
	}
	because := []report.Evidence{n.claimField("status.lastPodEventTime", utc(claim.Status.LastPodEventTime.Time), "the last time that a pod, not of a DaemonSet, was bound, ended or was deleted on the node, as Karpenter wrote it down")}
	if n.podsErr != nil {
		return "the last pod event was", because
	}
	e, ok := recordedEvent(n.podEvents(), claim.Status.LastPodEventTime.Time)
	if !ok {
		return "the last pod event, of a pod that is gone or whose object does not tell it, was", because
	}
	by := ""
	if m := maker(e.pod); m != "" {
		by = " of " + m
	}
	seen := podField(e.pod, "status", e.what+" at "+utc(e.at), "the event that the NodeClaim's time is of")
	seen.At = metav1.NewTime(e.at)
	return fmt.Sprintf("pod %s/%s%s %s", e.pod.Namespace, e.pod.Name, by, e.what), append(because, seen)
}

// explainGaps says how long the node was quiet between the pod events that are
// still known. Where it was never quiet for long enough, it will not be.
func (n *nodeCase) explainGaps(f *report.Finding, after time.Duration) {
	events := n.podEvents()
	if since := n.node.NodeClaim.Status.LastPodEventTime.Add(-4 * after); after < 1<<60 {
		for len(events) > 0 && events[0].at.Before(since) {
			events = events[1:]
		}
	}
	if len(events) < 3 {
		return
	}
	longest := time.Duration(0)
	for i := 1; i < len(events); i++ {
		longest = max(longest, events[i].at.Sub(events[i-1].at))
	}
	first, last := events[0], events[len(events)-1]
	f.Arithmetic += fmt.Sprintf("; of the %d pod events known from %s to %s the longest quiet time between two was %s", len(events), utc(first.at), utc(last.at), span(longest))
	if longest >= after {
		return
	}
	f.Arithmetic += fmt.Sprintf(", less than %s", span(after))
	if longest < 2*time.Second {
		return
	}
	shorter := (longest - time.Second).Round(time.Second)
	patch := fmt.Sprintf(`{"spec":{"disruption":{"consolidateAfter":"%ds"}}}`, int64(shorter.Seconds()))
	f.Remedies = []report.Remedy{{
		Summary: fmt.Sprintf("Set consolidateAfter below the longest quiet time (%s), or keep pods that come and go this often off the pool.", span(longest)),
		Command: n.pool.mergeCommand(patch), Patch: patch,
		Effect:  fmt.Sprintf("with %s the clock would have run out once between the events that are known", span(shorter)),
		Caution: "It holds for every node of the pool; those that are quiet for as long become candidates.",
	}}
}

// lateCondition notes that a clock has run out and Karpenter has not said so:
// until it does, no method of it looks at the node.
func (n *nodeCase) lateCondition(timer disruption.Timer, condition *metav1.Condition) {
	captured := n.snap.Manifest().CapturedAt
	const soon = time.Minute
	if timer.State != disruption.TimerElapsed || condition != nil && condition.Status == metav1.ConditionTrue || captured.Sub(timer.Ends) < soon || !n.at.Equal(captured) {
		return
	}
	n.gaps.Lack("condition Consolidatable", fmt.Sprintf("absent from NodeClaim %s, although its clock ran out at %s", n.node.NodeClaim.Name, utc(timer.Ends)),
		"Karpenter goes by the condition: either the bundle left it out, or its controller has not looked at the NodeClaim since", "collect the NodeClaims whole, and look whether Karpenter's controller runs")
}
