package shrink

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeClaimNotInitialized: a node that Karpenter does not take for ready is
// never a candidate, and counts in no budget (Karpenter 1.14,
// pkg/controllers/nodeclaim/lifecycle/initialization.go).
func nodeClaimNotInitialized(n *nodeCase) []report.Finding {
	if n.node.NodeClaim == nil || n.node.NodeClaim.DeletionTimestamp != nil {
		return nil
	}
	blockers := append(n.blocked(disruption.CheckNotInitialized), n.blocked(disruption.CheckNoNode)...)
	if len(blockers) == 0 {
		return nil
	}
	claim := n.node.NodeClaim
	held, because := n.awaits()
	since := "since its launch"
	for _, name := range []string{karpenter.ConditionRegistered, karpenter.ConditionInitialized} {
		condition := claim.Condition(name)
		if condition == nil || condition.Status == "True" {
			continue
		}
		since = n.since(condition.LastTransitionTime)
		e := n.claimField("status.conditions["+name+"]", strings.TrimSpace(fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, cut(condition.Message, 300))), "what Karpenter waits for")
		e.At = condition.LastTransitionTime
		because = append([]report.Evidence{e}, because...)
		if len(held) == 0 && condition.Message != "" {
			held = []string{cut(condition.Message, 200)}
		}
		break
	}
	confidence := report.Proven
	state := fmt.Sprintf("is not initialized %s, held by %s", since, join(held))
	switch {
	case n.lost():
		state = "has no Node any more, although one had registered for it"
		if c := claim.Condition(karpenter.ConditionRegistered); !c.LastTransitionTime.IsZero() {
			state += " at " + utc(c.LastTransitionTime.Time)
		}
	case n.node.Node == nil:
		state = fmt.Sprintf("is not initialized %s, for no node has joined for it", since)
	case len(held) == 0:
		state, confidence = fmt.Sprintf("is not initialized %s, and by what it is held neither its conditions nor its node tell", since), report.Likely
	}
	f := report.NewFinding(report.NodeClaimNotInitialized, confidence, n.subject(),
		fmt.Sprintf("%s %s: no method of Karpenter looks at it, and it counts in no budget.", n.title(), state), because...)
	f.Because = append(f.Because, n.quote(disruptionBlocked, karpenter.BlockedEvent(blockers[0].Text, n.version.rules))...)
	f.Remedies = n.initialize()
	return []report.Finding{f}
}

// lost: a node had registered, and is not there any more.
func (n *nodeCase) lost() bool {
	return n.node.Node == nil && n.node.NodeClaim.IsTrue(karpenter.ConditionRegistered)
}

// leftTaints are startup taints that are still on the node.
func (n *nodeCase) leftTaints() []corev1.Taint {
	var out []corev1.Taint
	if n.node.Node == nil {
		return nil
	}
	for _, t := range n.node.NodeClaim.Spec.StartupTaints {
		if slices.ContainsFunc(n.node.Node.Spec.Taints, func(on corev1.Taint) bool { return on.Key == t.Key && on.Effect == t.Effect }) {
			out = append(out, t)
		}
	}
	return out
}

// awaits is what the objects themselves show to be missing.
func (n *nodeCase) awaits() (held []string, because []report.Evidence) {
	if n.node.Node == nil {
		return []string{"no node has joined for it"}, []report.Evidence{n.claimField("status.nodeName", valueOr(n.node.NodeClaim.Status.NodeName, "(absent)"), "no Node has its providerID "+cut(n.node.NodeClaim.Status.ProviderID, 100))}
	}
	if !n.node.Registered() {
		held = append(held, "the node's registration")
		because = append(because, n.field("metadata.labels["+karpenter.RegisteredLabel+"]", valueOr(n.node.Node.Labels[karpenter.RegisteredLabel], "(absent)"), "Karpenter sets it to true once it has tied the node to its NodeClaim"))
	}
	for _, t := range n.leftTaints() {
		held = append(held, "the startup taint "+t.ToString())
		because = append(because, n.field("spec.taints", t.ToString(), "a startup taint of the NodeClaim that is still on the node; whoever it was meant for takes it off, Karpenter never does"))
	}
	if status := n.node.ReadyStatus(); status != corev1.ConditionTrue {
		held = append(held, fmt.Sprintf("the node's condition Ready (%s)", valueOr(string(status), "absent")))
		because = append(because, n.field("status.conditions[Ready]", valueOr(string(status), "(absent)"), "a node has to be ready once"))
	}
	return held, because
}

func (n *nodeCase) initialize() []report.Remedy {
	var out []report.Remedy
	for _, t := range n.leftTaints() {
		out = append(out, report.Remedy{
			Summary: "Find what should take off the taint " + t.Key + " (the agent or DaemonSet that it waits for) and why it did not; by hand only once that is so.",
			Command: "kubectl taint nodes " + shellWord(n.node.Node.Name) + " " + shellWord(t.Key+":"+string(t.Effect)+"-"),
			Caution: "Pods are then scheduled to the node before what the taint waits for is there.",
		})
	}
	if n.lost() {
		return []report.Remedy{{
			Summary: "See whether its instance is still there; if not, Karpenter deletes the NodeClaim by itself, as it looks every 2 min. Else delete it.",
			Command: "kubectl delete nodeclaims.karpenter.sh " + shellWord(n.node.NodeClaim.Name),
			Caution: "The instance is terminated with all that runs on it.",
		}}
	}
	if len(out) == 0 {
		out = append(out, report.Remedy{
			Summary: "If the node will not come up any more, delete its NodeClaim.",
			Command: "kubectl delete nodeclaims.karpenter.sh " + shellWord(n.node.NodeClaim.Name),
			Caution: "The instance is terminated and the pods on it are evicted.",
		})
	}
	return out
}

func valueOr(value, other string) string {
	if value == "" {
		return other
	}
	return value
}
