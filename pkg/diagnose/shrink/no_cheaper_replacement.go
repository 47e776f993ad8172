package shrink

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const noCheaper = "Can't replace with a cheaper node"

// noCheaperReplacement: Karpenter looked at the node and found no cheaper type
// for its pods. Which types there are and what they cost is the provider's
// knowledge, so only its event can tell.
func noCheaperReplacement(n *nodeCase) []report.Finding {
	e, ok := n.lastVerdict()
	if !ok || e.Message != noCheaper {
		return nil
	}
	cost := ""
	text, priced, known := n.savings()
	if known {
		cost = " It costs " + text + "."
	}
	f := report.NewFinding(report.NoCheaperReplacement, report.Likely, n.subject(),
		fmt.Sprintf("At %s Karpenter found that the pods of %s need a node and that no cheaper one would do.%s", utc(lastSeen(e)), n.node.Name(), cost),
		append([]report.Evidence{n.verdictEvidence(e)}, priced...)...)
	f.Remedies = []report.Remedy{{Summary: "Allow cheaper instance types or capacity in the NodePool's requirements, or lower the requests of the pods.",
		Caution: "The same text is said where a spread, an anti-affinity or a destination inside its consolidateAfter keeps the pods off the other nodes."}}
	return []report.Finding{f}
}

// repeated is how long a verdict of consolidation can stay unsaid while it still
// holds: its event is kept back for 15 min, and Karpenter looks again after 5.
const repeated = 20*time.Minute + 10*time.Second

// lastVerdict is the last thing that consolidation said of the node, if it can
// still hold: said after the node became consolidatable, and not so long ago
// that it would have been said again. Of an empty node it says nothing: what was
// said was of pods that are gone.
func (n *nodeCase) lastVerdict() (last corev1.Event, ok bool) {
	if n.podsErr == nil && n.pool != nil && n.empty() {
		return corev1.Event{}, false
	}
	if n.pool == nil || !n.node.Managed() || n.node.Node == nil {
		return corev1.Event{}, false
	}
	timer := disruption.TimerOf(n.pool.pool, n.node.NodeClaim, n.at)
	if timer.State != disruption.TimerElapsed {
		return corev1.Event{}, false
	}
	for _, e := range append(n.eventsOn("NodeClaim", n.node.NodeClaim.Name), n.eventsOn("Node", n.node.Node.Name)...) {
		seen := lastSeen(e)
		if e.Reason != "Unconsolidatable" && e.Reason != "ConsolidationCandidate" || seen.After(n.at) || seen.Before(timer.Ends.Truncate(time.Second)) || n.at.Sub(seen) > repeated {
			continue
		}
		if !ok || !seen.Before(lastSeen(last)) {
			last, ok = e, true
		}
	}
	return last, ok && last.Reason == "Unconsolidatable"
}

func (n *nodeCase) verdictEvidence(e corev1.Event) report.Evidence {
	seen := lastSeen(e)
	return report.Evidence{Source: "api:events/" + e.Namespace + "/" + e.Name, Field: "message", Value: e.Message, At: metav1.NewTime(seen),
		Means: fmt.Sprintf("said %s before, after the node became consolidatable; the same event is kept back for 15m", span(n.at.Sub(seen)))}
}
