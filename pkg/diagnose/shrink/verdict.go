package shrink

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/budget"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// verdictCodes close the findings on a node of Karpenter's that no other
// finding says what keeps. A node gets one of them at most.
var verdictCodes = []report.Code{report.ConsolidationRecheckDue, report.ProbablyRemovable, report.ShrinkBlockerUnknown}

// verdict depends on what the rules found of the node, or of its pool.
func (n *nodeCase) verdict(found []report.Finding) []report.Finding {
	if !n.node.Managed() && !n.others() {
		return []report.Finding{n.shrinkBlockerUnknown(n.unclaimed())}
	}
	if !n.node.Managed() || n.node.Node == nil || n.going() || n.held(found) {
		return nil
	}
	if doubts := n.doubts(); len(doubts) > 0 {
		return []report.Finding{n.shrinkBlockerUnknown(doubts)}
	}
	if f, due := n.consolidationRecheckDue(); due {
		return []report.Finding{f}
	}
	return []report.Finding{n.probablyRemovable()}
}

// held: what keeps the node is told, by a finding or by the state of its pool.
func (n *nodeCase) held(found []report.Finding) bool {
	empty := n.pool != nil && n.podsErr == nil && n.empty()
	for _, f := range found {
		switch f.Code {
		case report.KarpenterUnsynced, report.NodeNominated, report.NodePoolNotFound, report.NodeClaimNotInitialized:
			return true
		case report.MissingPriceLabels, report.DestinationConsolidateAfter, report.BalancedScoreBelow, report.NoCheaperReplacement,
			report.SpotToSpotBarred, report.PodsFitNowhere, report.NeedsSeveralReplacements:
			// Nothing is weighed, and no place looked for, where there is nothing to move.
			if !empty {
				return true
			}
		}
	}
	if slices.ContainsFunc(n.blockers, func(b disruption.Blocker) bool {
		return b.Check != disruption.CheckInstanceTypeNotFound && (b.Check != disruption.CheckNodePoolNotFound || n.poolsErr == nil)
	}) {
		return true
	}
	if n.pool == nil {
		return false
	}
	if len(n.apart()) > 0 {
		return true
	}
	switch n.timer().State {
	case disruption.TimerRunning, disruption.TimerOff:
		return true
	case disruption.TimerStatic:
		d := n.pool.pool.Disruption()
		return n.pool.static() || !d.ConsolidateAfter.Set || n.pool.onlyEmpty() && n.podsErr == nil && !empty
	}
	if n.podsErr != nil {
		return n.pool.closed(karpenter.Empty) && n.pool.closed(karpenter.Underutilized)
	}
	for _, b := range n.left() {
		if b.Check != disruption.CheckInstanceTypeNotFound {
			return true
		}
	}
	return n.pool.closed(n.wayOut())
}

// closed: the budgets leave nothing for the reason now.
func (p *poolCase) closed(reason karpenter.Reason) bool {
	s, known := p.stateOf(reason)
	return known && (s.allowance.Err != nil || p.atZero(s) || p.isUsedUp(s))
}

// timer is the node's clock of consolidateAfter. Karpenter's condition of it
// comes up to a second later, and in a bundle that is asked about a later moment
// not at all.
func (n *nodeCase) timer() disruption.Timer {
	return disruption.TimerOf(n.pool.pool, n.node.NodeClaim, n.at)
}

// wayOut is the reason for which the node would go.
func (n *nodeCase) wayOut() karpenter.Reason {
	if n.empty() {
		return karpenter.Empty
	}
	return karpenter.Underutilized
}

// left is for what the method of its way out leaves the node, the condition
// Consolidatable aside.
func (n *nodeCase) left() []disruption.Blocker {
	candidate, blocker := n.karpenter.Candidate(n.node, disruption.Graceful, n.at)
	if blocker != nil {
		return []disruption.Blocker{*blocker}
	}
	reason := n.wayOut()
	for _, m := range disruption.Methods(n.version.rules) {
		if m.Reason == reason {
			return slices.DeleteFunc(n.karpenter.Filter(m, candidate), func(b disruption.Blocker) bool { return b.Check == disruption.CheckNotConsolidatable })
		}
	}
	return nil
}

func (p *poolCase) stateOf(reason karpenter.Reason) (reasonState, bool) {
	i := slices.IndexFunc(p.states, func(s reasonState) bool { return s.reason == reason })
	if i < 0 {
		return reasonState{}, false
	}
	return p.states[i], true
}

// doubt is something that would have to be known.
type doubt struct {
	text     string
	evidence []report.Evidence
	sum      string
	// proven: the text also says that the node cannot be deleted.
	proven bool
}

// unclaimed is what is open of a node that looks like Karpenter's, and of which
// no NodeClaim is known. Karpenter's methods leave out a node without one
// (Karpenter 1.14, pkg/controllers/state/statenode.go: ValidateNodeDisruptable).
func (n *nodeCase) unclaimed() []doubt {
	sign := n.field("metadata.labels["+karpenter.NodePoolLabel+"]", cut(n.node.Node.Labels[karpenter.NodePoolLabel], 100), "a node of Karpenter's")
	if n.node.Node.Labels[karpenter.NodePoolLabel] == "" {
		sign = n.field("spec.taints", unregisteredTaint, "a node of Karpenter's that is not registered")
	}
	text := "it looks like Karpenter's, and no NodeClaim has its providerID: without one no method of Karpenter looks at it, and whether the provider takes its instance away as an orphan the data do not tell"
	switch {
	case n.node.Node.Spec.ProviderID == "":
		text = "it looks like Karpenter's and has no spec.providerID, by which Karpenter ties it to its NodeClaim: until it has one no method of Karpenter looks at it"
	case n.claimsErr != nil:
		text = "it looks like Karpenter's, and its NodeClaim, which says how far it is and since when it is quiet, could not be read"
	}
	return []doubt{{text: text, evidence: []report.Evidence{sign, n.field("spec.providerID", valueOr(cut(n.node.Node.Spec.ProviderID, 100), "(absent)"), "what a NodeClaim is tied to its node by")}}}
}

// doubts are what the data leave open of a node that nothing known keeps.
func (n *nodeCase) doubts() []doubt {
	if n.pool == nil {
		return []doubt{{text: "its NodePool, with its policy, timer and budgets, could not be read"}}
	}
	var out []doubt
	add := func(format string, args ...any) { out = append(out, doubt{text: fmt.Sprintf(format, args...)}) }
	switch n.timer().State {
	case disruption.TimerStatic:
		add("its NodePool has spec.replicas, which %s do not know", n.RulesName())
		return out
	case disruption.TimerNotInitialized:
		add("its NodeClaim lacks the condition %s, without which its clock does not run", karpenter.ConditionInitialized)
	}
	if n.podsErr != nil {
		if len(n.pods) > 0 {
			add("not all pods could be read, perhaps not all of the node's own")
		} else {
			add("its pods could not be read")
		}
		return out
	}
	if n.pdbsErr != nil {
		add("the PodDisruptionBudgets, which may keep its pods, could not be read")
	}
	policy := n.pool.pool.Disruption().ConsolidationPolicy
	if !n.version.rules.KnowsPolicy(policy) {
		add("%s do not know the consolidationPolicy %q", n.RulesName(), cut(string(policy), 60))
	}
	for _, b := range n.left() {
		if b.Check == disruption.CheckInstanceTypeNotFound {
			out = append(out, doubt{text: fmt.Sprintf("Karpenter's metrics offer no instance type %s, and consolidation leaves out a node whose type it does not find", cut(n.node.Labels()["node.kubernetes.io/instance-type"], 60)),
				evidence: []report.Evidence{n.field("metadata.labels[node.kubernetes.io/instance-type]", cut(n.node.Labels()["node.kubernetes.io/instance-type"], 60), "not among the offerings in Karpenter's metrics")}})
		}
	}
	if s, known := n.pool.stateOf(n.wayOut()); !known || !n.pool.nodesKnown() && s.allowance.Allowed != budget.Unlimited || s.allowance.Allowed == 0 {
		add("what the budgets leave for %s cannot be computed without all nodes and NodeClaims", n.wayOut())
	}
	if n.empty() {
		return out
	}
	if policy == karpenter.Balanced && n.version.rules.BalancedPolicy {
		if _, known := n.karpenter.Price(n.node); !known {
			add("the policy Balanced weighs its price, which is not known")
		}
	}
	return append(out, n.noPlan()...)
}

// mostDoubts is how many of them are told.
const mostDoubts = 6

// noPlan is why no plan moves the node's pods.
func (n *nodeCase) noPlan() []doubt {
	answer := n.elsewhere()
	switch answer.Outcome {
	case placement.ProbablyRemovable:
		if n.plan() == nil {
			return []doubt{{text: fmt.Sprintf("its pods fit elsewhere only with %s, which is empty and goes first", n.emptyTarget(answer.Moves).Name())}}
		}
		return nil
	case placement.CannotDelete:
		if answer.Together != nil {
			return []doubt{n.noRoomTogether(answer)}
		}
		stuck := answer.Stuck()
		first := stuck[0]
		d := doubt{proven: true, text: fmt.Sprintf("it cannot be deleted, for pod %s%s %s (%s), and whether a cheaper node could take its place only the provider can tell",
			podName(first.Pod), others(len(stuck)-1), fitsNone(len(answer.Targets)), told(first.Reasons))}
		d.evidence, d.sum = n.stuckEvidence(first)
		return []doubt{d}
	}
	var out []doubt
	for _, why := range answer.Doubts {
		if len(out) == mostDoubts {
			break
		}
		if why.Pod == nil {
			out = append(out, doubt{text: string(why.Why)})
			continue
		}
		out = append(out, doubt{text: fmt.Sprintf("of pod %s no place is certain, for %s", podName(why.Pod), why.Why),
			evidence: []report.Evidence{podField(why.Pod, "spec", strings.TrimPrefix(string(why.Why), "it "), "what is not computed here")}})
	}
	if len(out) == 0 {
		out = append(out, doubt{text: "no plan was found for its pods"})
	}
	return out
}

// plan is where the node's pods go, nil where no plan is found. Empty nodes that
// go are no place for them, as Karpenter takes those away first.
func (n *nodeCase) plan() []placement.Move {
	answer := n.elsewhere()
	if answer.Outcome != placement.ProbablyRemovable || n.emptyTarget(answer.Moves) == nil {
		return answer.Moves
	}
	if n.without == nil {
		rest := n.karpenter
		rest.Nodes = slices.DeleteFunc(slices.Clone(rest.Nodes), n.goesEmpty)
		n.without = placement.New(&rest, n.aroundNodes())
	}
	return n.without.Of(n.node).Moves
}

// emptyTarget is a target that goes because it is empty, if there is one.
func (n *nodeCase) emptyTarget(moves []placement.Move) *disruption.Node {
	for _, m := range moves {
		if n.goesEmpty(m.To) {
			return m.To
		}
	}
	return nil
}

// goesEmpty: nothing known keeps Emptiness from the node.
func (c *Cluster) goesEmpty(node *disruption.Node) bool {
	k := c.nodeOf(node)
	if !k.empty() || !k.candidate() {
		return false
	}
	s, ok := k.pool.stateOf(karpenter.Empty)
	return ok && remainingOf(s) > 0
}

// candidate: no check of the node, of its pods or of the method of its way out
// fails, and its clock has run out.
func (n *nodeCase) candidate() bool {
	return n.pool != nil && n.node.Managed() && n.node.Node != nil && !n.going() && len(n.blockers) == 0 && n.timer().State == disruption.TimerElapsed && len(n.left()) == 0
}

// together puts what is said of single nodes of the pool in one finding for each
// code: the verdicts, and that a price is not known.
func (p *poolCase) together(findings []report.Finding) []report.Finding {
	var out []report.Finding
	for _, code := range append(slices.Clone(verdictCodes), report.PriceUnknown) {
		var of []report.Finding
		for _, f := range findings {
			if f.Code == code {
				of = append(of, f)
			}
		}
		switch len(of) {
		case 0:
		case 1:
			out = append(out, of...)
		default:
			out = append(out, p.inOne(code, of))
		}
	}
	return out
}

func (p *poolCase) inOne(code report.Code, of []report.Finding) report.Finding {
	var names []string
	confidence := report.Proven
	for _, f := range of {
		names = append(names, f.Subject.Name)
		if f.Confidence.Rank() > confidence.Rank() {
			confidence = f.Confidence
		}
	}
	slices.Sort(names)
	text := ""
	remedy := report.Remedy{Summary: "Ask for one of them to see its pods' places, or what is not known of it.", Command: "kubectl noderes explain node " + shellWord(names[0])}
	switch code {
	case report.ProbablyRemovable:
		text = "Nothing known keeps %d of the %s of NodePool %s, each looked at by itself: %s; what goes of them at once is less where they need each other's room, or the budgets leave less."
	case report.ConsolidationRecheckDue:
		text = "Nothing known keeps %d of the %s of NodePool %s, but Karpenter may not look at them before its next round, 5m after the last change that it counts: %s."
	case report.PriceUnknown:
		text = "The prices of %d of the %s of NodePool %s are not known; what their removal would save, their place in Karpenter's order and whether other types are cheaper cannot be computed: %s."
		remedy = report.Remedy{Summary: statePrices, Command: "kubectl noderes explain nodepool " + shellWord(p.pool.Name) + " --prices prices.csv"}
	default:
		text = "Of %d of the %s of NodePool %s the data do not tell whether Karpenter can remove them: %s."
	}
	f := report.NewFinding(code, confidence, p.subject(), fmt.Sprintf(text, len(of), plural(len(p.nodes), "node"), p.pool.Name, some(names)))
	f.Because = ofSome(of)
	f.Remedies = []report.Remedy{remedy}
	return f
}
