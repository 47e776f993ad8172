package shrink

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// freshEvent is how old an event may be to tell of a state that the objects do
// not show: Karpenter repeats it every two minutes while the state lasts.
const freshEvent = 5 * time.Minute

// nodePoolNotFound: the node's pool is gone, or Karpenter cannot list the
// instance types for it, which it says in the same words (Karpenter 1.14,
// pkg/controllers/disruption/types.go: NewCandidate).
func nodePoolNotFound(n *nodeCase) []report.Finding {
	if !n.node.Managed() || n.going() {
		return nil
	}
	name, labelled := n.node.NodePool()
	switch {
	case !labelled:
		if len(n.blocked(disruption.CheckNoNodePoolLabel)) == 0 {
			return nil
		}
		f := report.NewFinding(report.NodePoolNotFound, report.Proven, n.subject(),
			fmt.Sprintf("%s is Karpenter's and has no label %s, so that no method looks at it.", n.title(), karpenter.NodePoolLabel),
			n.claimField("metadata.name", n.node.NodeClaim.Name, "its NodeClaim, by providerID"))
		if pool := n.node.NodeClaim.Labels[karpenter.NodePoolLabel]; pool != "" && n.node.Node != nil {
			f.Because = append(f.Because, n.claimField("metadata.labels["+karpenter.NodePoolLabel+"]", pool, "what the node's label should say"))
			f.Remedies = []report.Remedy{{Summary: "Give the node back its label.", Command: "kubectl label nodes " + shellWord(n.node.Node.Name) + " " + shellWord(karpenter.NodePoolLabel+"="+pool), Effect: "the node belongs to its pool again"}}
		}
		return []report.Finding{f}
	case n.karpenter.Pools[name] == nil && n.poolsErr == nil:
		owner := n.ownedBy(name)
		goes := "nothing but its deletion removes it"
		if owner != "" {
			goes = "but Kubernetes' garbage collector deletes its NodeClaim, which names the pool as its owner, whatever the budgets say"
		}
		f := report.NewFinding(report.NodePoolNotFound, report.Proven, n.subject(),
			fmt.Sprintf("%s belongs to NodePool %s, which is not there any more: no method looks at it, %s.", n.title(), cut(name, 100), goes),
			report.Evidence{Source: "api:nodepools.karpenter.sh", Field: "metadata.name", Value: some(n.NodePools()), Means: "the pools that there are"})
		f.Because = append(f.Because, n.quote(disruptionBlocked, karpenter.BlockedEvent(karpenter.NodePoolNotFound(name), n.version.rules))...)
		f.Remedies = []report.Remedy{{Summary: "Create the pool again, or delete the NodeClaim.", Command: "kubectl delete nodeclaims.karpenter.sh " + shellWord(n.node.NodeClaim.Name),
			Caution: "The node is drained and its instance terminated; no replacement is launched first."}}
		if owner != "" {
			f.Because = append(f.Because, n.claimField("metadata.ownerReferences", "NodePool "+cut(name, 100)+" "+cut(owner, 60), "an owner that is gone; what it owned is deleted in its turn"))
			f.Remedies[0].Summary = "To choose the hour yourself, delete the NodeClaim; a pool made anew under the name is another owner and does not save it."
		}
		return []report.Finding{f}
	case n.pool == nil:
		return nil
	}
	event, ok := n.said(func(e corev1.Event) bool {
		return e.Reason == disruptionBlocked && strings.EqualFold(strings.TrimPrefix(e.Message, "Cannot disrupt Node: "), karpenter.NodePoolNotFound(name))
	})
	if !ok || n.at.Sub(lastSeen(event)) > freshEvent || n.saidSince(event) {
		return nil
	}
	f := report.NewFinding(report.NodePoolNotFound, report.Likely, n.subject(),
		fmt.Sprintf("Karpenter finds no NodePool %s for %s although it is there: it cannot list the pool's instance types, because its NodeClass or the provider fails.", name, n.title()),
		n.eventEvidence(event, "it says the same of a pool that is gone and of one whose instance types it cannot list"))
	for _, c := range n.pool.pool.Status.Conditions {
		if c.Status != "True" && len(f.Because) < mostPods {
			f.Because = append(f.Because, n.pool.field("status.conditions["+c.Type+"]", string(c.Status)+" "+c.Reason, cut(c.Message, 200)))
		}
	}
	f.Remedies = []report.Remedy{{Summary: "Look at the NodeClass that the pool names and at Karpenter's log.", Command: "kubectl describe nodepools.karpenter.sh " + shellWord(name)}}
	return []report.Finding{f}
}

// ownedBy is the UID of the NodePool that the NodeClaim names as its owner, ""
// where it names none, as after a deletion that leaves what it owns alone.
func (n *nodeCase) ownedBy(pool string) string {
	for _, o := range n.node.NodeClaim.OwnerReferences {
		if o.Kind == "NodePool" && o.Name == pool {
			return valueOr(string(o.UID), "(no UID)")
		}
	}
	return ""
}

// saidSince: Karpenter has judged the node otherwise after the event.
func (n *nodeCase) saidSince(event corev1.Event) bool {
	_, ok := n.said(func(e corev1.Event) bool {
		return (e.Reason == disruptionBlocked || e.Reason == unconsolidatable) && e.Message != event.Message && lastSeen(e).After(lastSeen(event))
	})
	return ok
}
