package shrink

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// destinationConsolidateAfter: the nodes that the pods would fit on are inside
// their own consolidateAfter, and since 1.14 consolidation puts no pods on such
// nodes (pkg/controllers/provisioning/scheduling/scheduler.go:addToExistingNode).
func destinationConsolidateAfter(n *nodeCase) []report.Finding {
	if !n.weighs() || n.going() || !n.version.rules.DestinationsProtected {
		return nil
	}
	protected := n.elsewhere().Protected
	if len(protected) == 0 {
		return nil
	}
	var first, last time.Time
	var texts []string
	var because []report.Evidence
	for _, to := range protected {
		pool := n.nodeOf(to).pool
		timer := disruption.TimerOf(pool.pool, to.NodeClaim, n.at)
		last = later(last, timer.Ends)
		if first.IsZero() || timer.Ends.Before(first) {
			first = timer.Ends
		}
		texts = append(texts, fmt.Sprintf("%s until %s", to.Name(), utc(timer.Ends)))
		if len(because) < 2*mostNamed {
			e := n.nodeOf(to).clockEvidence()
			e.Means = fmt.Sprintf("with consolidateAfter %s it takes no pods of consolidation until %s", pool.pool.Disruption().ConsolidateAfter.Text, utc(timer.Ends))
			e.At = metav1.NewTime(timer.Start)
			because = append(because, e)
		}
	}
	if own := n.timer(); own.State == disruption.TimerRunning && !last.After(own.Ends) {
		return nil // it is over before the node itself can go
	}
	f := report.NewFinding(report.DestinationConsolidateAfter, report.Likely, n.subject(),
		fmt.Sprintf("The pods of node %s fit only with %s that %s inside consolidateAfter and so %s none of them: %s.", n.node.Name(), plural(len(protected), "node"),
			isOne(len(protected), "is itself", "are themselves"), isOne(len(protected), "takes", "take"), some(texts)), because...)
	f.Arithmetic = fmt.Sprintf("a first-fit plan finds places for all pods with %s and not without; the first clock runs out in %s, the last in %s, if no pod comes, ends or is deleted there before",
		isOne(len(protected), "this node", "these nodes"), span(first.Sub(n.at)), span(last.Sub(n.at)))
	f.Remedies = n.shorterAt(protected)
	return []report.Finding{f}
}

// shorterAt is a consolidateAfter with which all of the nodes take pods now,
// where they are of one pool.
func (n *nodeCase) shorterAt(protected []*disruption.Node) []report.Remedy {
	pool := n.nodeOf(protected[0]).pool
	shortest := time.Duration(0)
	for i, to := range protected {
		if n.nodeOf(to).pool != pool {
			return nil
		}
		quiet := n.at.Sub(disruption.TimerOf(pool.pool, to.NodeClaim, n.at).Start)
		if i == 0 || quiet < shortest {
			shortest = quiet
		}
	}
	if shortest < time.Second {
		return nil
	}
	patch := fmt.Sprintf(`{"spec":{"disruption":{"consolidateAfter":"%ds"}}}`, int64(shortest/time.Second))
	return []report.Remedy{{
		Summary: fmt.Sprintf("Set consolidateAfter of NodePool %s to %s or less, which all of them have been quiet for.", pool.pool.Name, span(shortest.Truncate(time.Second))),
		Command: pool.mergeCommand(patch), Patch: patch,
		Effect:  "they then take pods of consolidation now, by the plan all of this node's",
		Caution: "Each of them becomes consolidatable too, as does every node of the pool that has been quiet for as long.",
	}}
}
