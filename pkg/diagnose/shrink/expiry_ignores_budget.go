package shrink

import (
	"fmt"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// expiryNear is how far ahead an expiry is told of even where no budget says
// otherwise.
const expiryNear = 24 * time.Hour

// expiryIgnoresBudget: a NodeClaim is deleted at its age limit whatever the
// budgets say (Karpenter 1.14, pkg/controllers/nodeclaim/expiration). It is told
// where that is near, or where the budgets come to 0 for every reason then.
func expiryIgnoresBudget(n *nodeCase) []report.Finding {
	if !n.node.Managed() {
		return nil
	}
	claim := n.node.NodeClaim
	at, ok := disruption.ExpiresAt(claim)
	deleted := claim.DeletionTimestamp
	if !ok || claim.CreationTimestamp.IsZero() || deleted != nil && deleted.Time.Before(at) {
		return nil
	}
	then, closed := n.allowedAt(at)
	if !closed && at.Sub(n.at) > expiryNear {
		return nil
	}
	age := claim.Spec.ExpireAfter
	ends := "its pods are evicted by their own budgets and may hold it for ever, as there is no terminationGracePeriod"
	if tgp := claim.Spec.TerminationGracePeriod; tgp != nil {
		ends = fmt.Sprintf("its pods are evicted by their own budgets, for %s at most (terminationGracePeriod)", span(tgp.Duration))
	}
	when := fmt.Sprintf("expires at %s, in %s", utc(at), span(at.Sub(n.at)))
	confidence := report.Proven
	switch {
	case deleted != nil && deleted.Sub(at) < time.Minute:
		when = fmt.Sprintf("was deleted at %s because it expired at %s", utc(deleted.Time), utc(at))
		confidence = report.Likely
	case deleted != nil:
		when = fmt.Sprintf("expired at %s, and is being deleted since %s", utc(at), utc(deleted.Time))
		confidence = report.Likely
	case !at.After(n.at):
		when = fmt.Sprintf("expired at %s, %s ago, and is deleted as soon as Karpenter looks", utc(at), span(n.at.Sub(at)))
		if n.at.Sub(at) > patience && n.at.Equal(n.snap.Manifest().CapturedAt) {
			when += ", which it does at that moment: perhaps its controller does not run"
		}
	}
	f := report.NewFinding(report.ExpiryIgnoresBudget, confidence, n.subject(),
		fmt.Sprintf("%s %s (created %s, expireAfter %s), whatever the budgets say%s and without a replacement first; %s.", n.title(), when, utc(claim.CreationTimestamp.Time), age.Text, then, ends),
		n.claimField("metadata.creationTimestamp", utc(claim.CreationTimestamp.Time), "its age counts from here"), n.claimField("spec.expireAfter", age.Text, "the age at which it is deleted; it never changes for a NodeClaim"))
	f.Arithmetic = fmt.Sprintf("%s + %s = %s", utc(claim.CreationTimestamp.Time), age.Text, utc(at))
	if deleted != nil {
		f.Because = append(f.Because, n.claimField("metadata.deletionTimestamp", utc(deleted.Time), "when its deletion was asked for; by whom it does not say"))
		return []report.Finding{f}
	}
	if !at.After(n.at) {
		return []report.Finding{f} // no hour is left to choose
	}
	f.Remedies = []report.Remedy{{Summary: "To choose the hour yourself, delete the NodeClaim before.", Command: "kubectl delete nodeclaims.karpenter.sh " + shellWord(claim.Name),
		Effect: "it drains then instead of at " + utc(at), Caution: "No replacement is launched first either."}}
	return []report.Finding{f}
}

// allowedAt is what the pool's budgets allow at a moment, for the nodes that it
// has now, and whether that is 0 for every reason.
func (n *nodeCase) allowedAt(at time.Time) (text string, closed bool) {
	if n.pool == nil || !n.pool.nodesKnown() {
		return "", false
	}
	var parts []string
	closed = true
	for _, reason := range n.version.rules.Reasons() {
		total := n.pool.usage(reason).Total
		a := n.pool.budgets.Allowed(reason, total, at)
		closed = closed && total > 0 && a.Allowed == 0
		parts = append(parts, fmt.Sprintf("%s %s", reason, allowed(a.Allowed)))
	}
	return " (at that moment " + strings.Join(parts, ", ") + ")", closed
}

// allowed is a number of nodes, as budgets allow them.
func allowed(nodes int) string {
	if nodes == budget.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(nodes)
}
