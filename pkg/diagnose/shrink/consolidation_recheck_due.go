package shrink

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	// recheck is how long consolidation rests after it has found nothing to do,
	// unless something that it counts changes (Karpenter 1.14,
	// pkg/controllers/state/cluster.go: ConsolidationState).
	recheck = 5 * time.Minute
	// polling is how long after a pass without result the next one begins.
	polling = 10 * time.Second
	// acting is how long after a pass that found something the nodes show it,
	// with the 15 s of validation.
	acting = time.Minute
)

// consolidationRecheckDue: nothing keeps the node, but it became consolidatable
// after consolidation had looked at others and found nothing to do. That a clock
// runs out is no change that it counts.
func (n *nodeCase) consolidationRecheckDue() (f report.Finding, due bool) {
	if n.empty() || n.nodesErr != nil || n.podsErr != nil || n.claimsErr != nil || n.eventsErr != nil {
		return f, false
	}
	change, ends := n.lastChange(), n.timer().Ends
	next := change.at.Add(recheck)
	if change.at.IsZero() || n.at.After(next.Add(polling)) {
		return f, false
	}
	other, ok := n.judgedBefore(change.at, ends)
	if !ok {
		return f, false
	}
	s, _ := n.pool.stateOf(karpenter.Underutilized)
	moves := n.plan()
	f = report.NewFinding(report.ConsolidationRecheckDue, report.Likely, n.subject(),
		fmt.Sprintf("Nothing known keeps node %s, whose pods fit on other nodes by a plan (%s); but it became consolidatable at %s, when Karpenter had looked at node %s and found nothing to do, so that it looks again about %s, 5m after the last change that it counts, or with the next one.",
			n.node.Name(), movesText(moves), utc(ends), other.node.Name(), utc(next)),
		n.clockEvidence(), change.evidence)
	e := other.clockEvidence()
	e.Means += ", and was still there when this node became it"
	f.Because = append(f.Because, e)
	evidence, room := n.movesEvidence(moves)
	f.Because = append(append(f.Because, evidence...), n.pool.budgetEvidence(s.allowance.DecidedBy, fmt.Sprintf("decides for Underutilized: %s left", amount(remainingOf(s))))...)
	f.Arithmetic = fmt.Sprintf("%s + %s = %s, and up to %s until the next pass", utc(change.at), span(recheck), utc(next), span(polling))
	if room != "" {
		f.Arithmetic += "; " + room
	}
	f.Remedies = []report.Remedy{{Summary: "Wait. A node, NodeClaim or pod that comes or goes, or a change of a NodePool's spec, makes Karpenter look at once."}}
	return f, true
}

// judgedBefore is a node that consolidation has looked at in vain after a moment
// and before another, by its clock: a pass comes every 10 s, and one that budgets
// do not constrain and that finds nothing to do is the last until something
// changes.
func (n *nodeCase) judgedBefore(from, until time.Time) (*nodeCase, bool) {
	for _, other := range n.consolidatable() {
		since := later(from, other.timer().Ends)
		if since.Add(polling).After(until) {
			break // as those after it, this node among them
		}
		if since.Add(acting).After(until) && other.elsewhere().Outcome == placement.ProbablyRemovable {
			continue
		}
		return other, true
	}
	return nil, false
}

// consolidatable are the nodes that consolidation looks at, those first that
// became it first.
func (c *Cluster) consolidatable() []*nodeCase {
	if c.candidates != nil {
		return *c.candidates
	}
	out := []*nodeCase{}
	for _, node := range c.karpenter.Nodes {
		k := c.nodeOf(node)
		if !k.candidate() || k.empty() {
			continue
		}
		if s, ok := k.pool.stateOf(karpenter.Underutilized); ok && remainingOf(s) > 0 {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b *nodeCase) int {
		return cmp.Or(a.timer().Ends.Compare(b.timer().Ends), cmp.Compare(a.node.Name(), b.node.Name()))
	})
	c.candidates = &out
	return out
}

// change is one that consolidation counts.
type change struct {
	at       time.Time
	evidence report.Evidence
}

// lastChange is the last change that consolidation counts, as far as objects and
// events still tell, zero where none does: a node or NodeClaim that comes, goes,
// is initialized or chosen, a pod that is bound or goes, a new NodePool. Changes
// of a NodePool's spec have no time.
func (c *Cluster) lastChange() change {
	if c.changed != nil {
		return *c.changed
	}
	last := &change{}
	saw := func(at time.Time, source, field, value, means string) {
		if at.After(last.at) && !at.After(c.at) {
			*last = change{at, report.Evidence{Source: source, Field: field, Value: value, Means: "the last change known that consolidation counts: " + means, At: metav1.NewTime(at)}}
		}
	}
	there := map[[2]string]bool{}
	const created = "metadata.creationTimestamp"
	for _, p := range c.karpenter.Pools {
		there[[2]string{"NodePool", p.Name}] = true
	}
	for _, name := range c.NodePools() {
		at := c.karpenter.Pools[name].CreationTimestamp.Time
		saw(at, "api:nodepools.karpenter.sh/"+name, created, utc(at), "a new NodePool")
	}
	for _, n := range c.karpenter.Nodes {
		if n.Node != nil {
			there[[2]string{"Node", n.Node.Name}] = true
			at := n.Node.CreationTimestamp.Time
			saw(at, "api:nodes/"+n.Node.Name, created, utc(at), "a new node")
		}
		if n.NodeClaim != nil {
			there[[2]string{"NodeClaim", n.NodeClaim.Name}] = true
			changesOf(n.NodeClaim, saw)
		}
	}
	for _, claim := range c.unlaunched {
		there[[2]string{"NodeClaim", claim.Name}] = true
		changesOf(claim, saw)
	}
	for i := range c.pods {
		p := &c.pods[i]
		there[[2]string{"Pod", podName(p)}] = true
		if p.Spec.NodeName != "" {
			at := boundAt(p)
			saw(at, "api:pods/"+podName(p), "status.conditions[PodScheduled]", utc(at), "a pod was bound")
		}
	}
	for i := range c.events {
		e := &c.events[i]
		key := [2]string{e.InvolvedObject.Kind, e.InvolvedObject.Name}
		if key[0] == "Pod" {
			key[1] = e.InvolvedObject.Namespace + "/" + key[1]
		}
		if k := key[0]; (k == "Pod" || k == "Node" || k == "NodeClaim") && !there[key] {
			at := lastSeen(*e)
			saw(at, "api:events/"+e.Namespace+"/"+e.Name, "involvedObject", k+" "+key[1], "it was there then and is gone")
		}
	}
	c.changed = last
	return *last
}

func changesOf(claim *karpenter.NodeClaim, saw func(at time.Time, source, field, value, means string)) {
	source := "api:nodeclaims.karpenter.sh/" + claim.Name
	at := claim.CreationTimestamp.Time
	saw(at, source, "metadata.creationTimestamp", utc(at), "a new NodeClaim")
	for _, name := range []string{karpenter.ConditionInitialized, karpenter.ConditionDisruptionReason} {
		if c := claim.Condition(name); c != nil {
			saw(c.LastTransitionTime.Time, source, "status.conditions["+name+"]", string(c.Status), "the condition "+name+" of a NodeClaim changed")
		}
	}
	if d := claim.DeletionTimestamp; d != nil {
		saw(d.Time, source, "metadata.deletionTimestamp", utc(d.Time), "a NodeClaim was deleted")
	}
	if last := claim.Status.LastPodEventTime; !last.IsZero() {
		saw(last.Time, source, "status.lastPodEventTime", utc(last.Time), "a pod was bound, ended or deleted on its node")
	}
}
