package shrink

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostMoves is how many moves of a plan are told.
const mostMoves = 8

// patience is within how long Karpenter acts on a node that nothing keeps: it
// looks anew after 5 min at the latest, tries several nodes for 1 min and single
// ones for 3, and waits 15 s before it acts (Karpenter 1.14,
// pkg/controllers/disruption).
const patience = 10 * time.Minute

// probablyRemovable: nothing known keeps the node, and its pods, if it has any,
// have places by a plan. It is never more than likely: Karpenter takes its pods
// and targets in its own order, and keeps nominations in its memory.
func (n *nodeCase) probablyRemovable() report.Finding {
	s, _ := n.pool.stateOf(n.wayOut())
	leaves := fmt.Sprintf("the budgets of NodePool %s leave %s for %s", n.pool.pool.Name, amount(remainingOf(s)), s.reason)
	confidence, but, because := n.contradicted()
	var summary, sum string
	if s.reason == karpenter.Empty {
		empty := "it is empty, with no pod to move"
		if cheap, evidence := n.costNothing(); cheap > 0 {
			empty = fmt.Sprintf("Karpenter counts it as empty, for evicting its %s costs nothing, so that no other place is looked for", plural(cheap, "pod"))
			because = append(evidence, because...)
		}
		summary = fmt.Sprintf("Nothing known keeps %s: %s, and %s, so that Karpenter probably removes it%s.", lowerTitle(n), empty, leaves, but)
	} else {
		moves := n.plan()
		summary = fmt.Sprintf("Nothing known keeps %s: by a plan %s (%s), and %s, so that Karpenter probably removes it, alone or together with others%s.",
			lowerTitle(n), isOne(len(moves), "its pod fits on another node", fmt.Sprintf("its %d pods fit on other nodes", len(moves))), movesText(moves), leaves, but)
		evidence, room := n.movesEvidence(moves)
		because, sum = append(evidence, because...), room
	}
	because = append(because, n.pool.budgetEvidence(s.allowance.DecidedBy, "decides for "+string(s.reason))...)
	because = append(because, n.clockEvidence())
	if sticks, evidence := n.drainSticks(); sticks != "" {
		summary = strings.TrimSuffix(summary, ".") + sticks + "."
		because = append(because, evidence...)
	}
	text, priced, known := n.savings()
	if known {
		because = append(because, priced...)
		summary = strings.TrimSuffix(summary, ".") + "; it costs " + text + "."
	}
	f := report.NewFinding(report.ProbablyRemovable, confidence, n.subject(), summary, because...)
	f.Arithmetic = sum
	return f
}

// drainSticks: a version that knows no rule of several budgets on one pod chooses
// the node, and the eviction API then refuses the pod (Kubernetes 1.37,
// pkg/registry/core/pod/storage/eviction.go).
func (n *nodeCase) drainSticks() (text string, because []report.Evidence) {
	evictions := n.karpenter
	evictions.Rules.SeveralPDBsBlock = true
	var pods []string
	for _, b := range evictions.PodBlockers(n.node, n.at) {
		if b.Check != disruption.CheckSeveralPDBs {
			continue
		}
		if pods = append(pods, b.Pod.String()); len(pods) > mostNamed {
			continue
		}
		var names []string
		for _, key := range b.PDBs {
			names = append(names, key.String())
		}
		because = append(because, report.Evidence{Source: "api:pods/" + b.Pod.String(), Field: "metadata.labels", Value: some(names), Means: "PodDisruptionBudgets that select it; this version of Karpenter asks each, the eviction API refuses their number"})
	}
	if len(pods) == 0 {
		return "", nil
	}
	ends := "for ever, as there is no terminationGracePeriod"
	if tgp := n.node.NodeClaim.Spec.TerminationGracePeriod; tgp != nil {
		ends = "for " + span(tgp.Duration) + " (terminationGracePeriod)"
	}
	return fmt.Sprintf("; its drain may then wait %s, for more than one PodDisruptionBudget selects %s, which the eviction API refuses", ends, some(pods)), because
}

// costNothing counts the pods of an empty node that would have to be moved if
// their eviction cost anything (Karpenter 1.14, pkg/utils/disruption:
// EvictionCost).
func (n *nodeCase) costNothing() (pods int, because []report.Evidence) {
	for _, p := range n.node.Pods {
		if !disruption.IsReschedulable(p) {
			continue
		}
		if pods++; pods > mostNamed {
			continue
		}
		cost := fmt.Sprintf("eviction cost %.4g, no more than 0", disruption.EvictionCost(p, n.version.rules))
		e := podField(p, "metadata.annotations["+corev1.PodDeletionCost+"]", cut(p.Annotations[corev1.PodDeletionCost], 60), cost)
		if e.Value == "" && p.Spec.Priority != nil {
			e = podField(p, "spec.priority", fmt.Sprint(*p.Spec.Priority), cost)
		}
		if e.Value == "" {
			e = podField(p, "spec.nodeName", p.Spec.NodeName, cost)
		}
		because = append(because, e)
	}
	return pods, because
}

// contradicted is what speaks against a node's going although nothing keeps it.
func (n *nodeCase) contradicted() (confidence report.Confidence, but string, because []report.Evidence) {
	confidence = report.Likely
	if n.eventsErr != nil {
		confidence = report.Possible
	}
	if e, ok := n.said(consolidates); ok && e.Reason == "ConsolidationRejected" && n.at.Sub(lastSeen(e)) <= patience {
		confidence = report.Possible
		because = append(because, n.eventEvidence(e, "Karpenter gave a move up before it acted; it computes it anew in its next passes"))
	}
	captured := n.snap.Manifest().CapturedAt
	if !n.at.Equal(captured) {
		return confidence, "", because // the state is that of another moment
	}
	if e, ok := n.refused(); ok {
		because = append(because, n.eventEvidence(e, "the objects do not show it, or it is over since"))
		return report.Possible, fmt.Sprintf("; but at %s Karpenter said of it %q, which the objects do not show", utc(lastSeen(e)), cut(e.Message, 200)), because
	}
	ends := n.timer().Ends
	if c := n.node.NodeClaim.Condition(karpenter.ConditionConsolidatable); (c == nil || c.Status != metav1.ConditionTrue) && n.at.Sub(ends) >= time.Minute {
		return report.Possible, fmt.Sprintf(", once it marks it Consolidatable, which it has not though the clock ran out at %s", utc(ends)), because
	}
	if since := later(ends, n.lastChange().at); n.at.Sub(since) > patience && n.open(n.at.Add(-patience)) {
		return report.Possible, fmt.Sprintf("; but it has left it since %s (for %s) although it looks every 5m, so that something else may hold it", utc(since), span(n.at.Sub(since))), because
	}
	return confidence, "", because
}

// refused is Karpenter's last event that something keeps the node, if nothing
// that counts has changed since, and it is not so old that it would have been
// said again.
func (n *nodeCase) refused() (corev1.Event, bool) {
	nominated := karpenter.BlockedEvent(karpenter.Nominated, n.version.rules)
	e, ok := n.said(func(e corev1.Event) bool {
		return (e.Reason == disruptionBlocked || e.Reason == unconsolidatable) && e.Message != nominated
	})
	if !ok || lastSeen(e).Before(later(n.timer().Ends, n.lastChange().at)) {
		return corev1.Event{}, false
	}
	age := freshEvent
	if e.Reason == unconsolidatable {
		age = repeated
	}
	if n.empty() && e.Reason == unconsolidatable {
		return corev1.Event{}, false // it spoke of pods that are gone
	}
	return e, n.at.Sub(lastSeen(e)) <= age
}

// open: the budgets have left something for the node's way out ever since.
func (n *nodeCase) open(since time.Time) bool {
	s, _ := n.pool.stateOf(n.wayOut())
	for _, segment := range n.pool.budgets.Timeline(s.reason, s.usage.Total, since, n.at) {
		if segment.Allowed == 0 {
			return false
		}
	}
	return true
}

// clockEvidence is when the node became consolidatable.
func (n *nodeCase) clockEvidence() report.Evidence {
	timer := n.timer()
	e := n.claimField("status.lastPodEventTime", utc(timer.Start), "")
	if !timer.LastPodEvent {
		e = n.claimField("status.conditions["+karpenter.ConditionInitialized+"]", "True", "no pod event is recorded; ")
	}
	e.Means += fmt.Sprintf("with consolidateAfter %s consolidatable since %s", n.pool.pool.Disruption().ConsolidateAfter.Text, utc(timer.Ends))
	e.At = metav1.NewTime(timer.Start)
	return e
}

func movesText(moves []placement.Move) string {
	const most = 3
	var out []string
	for _, m := range moves[:min(len(moves), most)] {
		out = append(out, podName(m.Pod)+" → "+m.To.Name())
	}
	text := strings.Join(out, ", ")
	if len(moves) > most {
		text += " and " + plural(len(moves)-most, "other")
	}
	return text
}

// movesEvidence is each move, and the room on each target.
func (n *nodeCase) movesEvidence(moves []placement.Move) (because []report.Evidence, sum string) {
	var targets []*disruption.Node
	come := map[*disruption.Node][]*corev1.Pod{}
	for i, m := range moves {
		if i < mostMoves {
			cpu, memory := requested(m.Pod, corev1.ResourceCPU), requested(m.Pod, corev1.ResourceMemory)
			because = append(because, podField(m.Pod, "spec.containers[].resources.requests", "cpu "+cpu.String()+", memory "+memory.String(), "by the plan goes to node "+m.To.Name()))
		}
		if come[m.To] == nil {
			targets = append(targets, m.To)
		}
		come[m.To] = append(come[m.To], m.Pod)
	}
	var sums []string
	for _, t := range targets[:min(len(targets), mostMoves)] {
		sums = append(sums, "node "+t.Name()+": "+room(t, come[t], corev1.ResourceCPU)+", "+room(t, come[t], corev1.ResourceMemory))
	}
	if more := len(targets) - mostMoves; more > 0 {
		sums = append(sums, plural(more, "more node"))
	}
	return because, strings.Join(sums, "; ")
}

// room is what pods request against what their target has left.
func room(target *disruption.Node, pods []*corev1.Pod, name corev1.ResourceName) string {
	free := target.Node.Status.Allocatable[name].DeepCopy()
	has, used, wanted := free.DeepCopy(), resource.Quantity{}, resource.Quantity{}
	for _, p := range target.Pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			used.Add(requested(p, name))
		}
	}
	for _, p := range pods {
		wanted.Add(requested(p, name))
	}
	free.Sub(used)
	return fmt.Sprintf("%s %s allocatable - %s requested there = %s, %s come", name, has.String(), used.String(), free.String(), wanted.String())
}

func requested(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})[name]
}
