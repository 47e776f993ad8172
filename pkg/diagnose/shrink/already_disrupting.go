package shrink

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// alreadyDisrupting: the node is on its way out (Karpenter 1.14,
// pkg/controllers/disruption/queue.go, pkg/controllers/node/termination). All
// that time it consumes budget.
func alreadyDisrupting(n *nodeCase) []report.Finding {
	if a := n.autoscaled(); a != nil && a.goes() {
		return []report.Finding{removedByAutoscaler(a)}
	}
	if !n.node.Managed() || !n.going() {
		return nil
	}
	claim := n.node.NodeClaim
	var text string
	var because []report.Evidence
	if c := claim.Condition(karpenter.ConditionDisruptionReason); c != nil && c.Status == "True" {
		e := n.claimField("status.conditions["+karpenter.ConditionDisruptionReason+"]", c.Reason, "a command of Karpenter has chosen it")
		e.At = c.LastTransitionTime
		because = append(because, e)
		text = fmt.Sprintf("has been chosen for disruption (%s) %s; it is deleted once its replacements, if it needs any, are initialized, and let go again if they are not in 10 min to 1 h", c.Reason, n.since(c.LastTransitionTime))
	}
	drain, deleting := n.karpenter.DrainOf(n.node, n.at)
	if deleting {
		e := n.claimField("metadata.deletionTimestamp", utc(drain.Started), "it is being deleted")
		e.At = *claim.DeletionTimestamp
		because = append(because, e)
		text = fmt.Sprintf("is being deleted %s: %s", n.since(*claim.DeletionTimestamp), n.drainStage(drain))
	}
	if text == "" && claim.IsTrue(karpenter.ConditionInstanceTerminating) {
		because = append(because, n.claimField("status.conditions["+karpenter.ConditionInstanceTerminating+"]", "True", "the provider is taking the machine away"))
		text = "is going: its instance is being terminated"
	}
	if text == "" {
		because = append(because, n.field("spec.taints", karpenter.DisruptedTaint+":NoSchedule", "set when a command chooses the node, and taken off when it fails"))
		text = "carries the taint of a node that a command has chosen, though its NodeClaim is neither marked nor deleted: the command is just beginning, or Karpenter takes the taint off in its next pass"
	}
	f := report.NewFinding(report.AlreadyDisrupting, report.Proven, n.subject(), fmt.Sprintf("%s %s; it consumes one from each budget of its pool meanwhile.", n.title(), text), because...)
	return []report.Finding{f}
}

// removedByAutoscaler: the Cluster Autoscaler taints a node before it drains it,
// and takes the taint off if it fails (Cluster Autoscaler 1.36,
// core/scaledown/actuation).
func removedByAutoscaler(a *caCase) report.Finding {
	taint, since, _ := autoscaler.TaintOf(a.node.Node, autoscaler.ToBeDeletedTaint)
	when := ""
	if !since.IsZero() {
		when = " " + a.since(metav1.NewTime(since))
	}
	return report.NewFinding(report.AlreadyDisrupting, report.Proven, a.subject(),
		fmt.Sprintf("%s is being removed by the Cluster Autoscaler%s: it evicts its pods and then has its instance deleted, or takes the taint off if it fails.", a.title(), when),
		a.field("spec.taints", cut(taint.ToString(), 200), "set when the Cluster Autoscaler begins to remove the node"))
}

// drainStage says what the deletion waits for.
func (n *nodeCase) drainStage(d disruption.Drain) string {
	switch {
	case d.Stage == disruption.DrainInstance:
		return "it is drained, its instance is being terminated"
	case n.podsErr != nil:
		return "what it still waits for is not known without the pods"
	case d.Stage == disruption.DrainVolumes:
		if left := n.overdue(); len(left) > 0 {
			return fmt.Sprintf("the drain waits no longer for %s terminating for over 1 min, %s, and its volumes are being detached", plural(len(left), "pod"), some(left))
		}
		return "its pods are gone, its volumes are being detached"
	}
	var names []string
	for _, w := range d.Waiting {
		names = append(names, w.Pod.Namespace+"/"+w.Pod.Name)
	}
	text := fmt.Sprintf("the drain waits for %s, %s", plural(len(names), "pod"), some(names))
	switch {
	case d.Ends.IsZero():
	case d.Ends.After(n.at):
		text += ", at most until " + utc(d.Ends)
	default:
		text += ", though its termination grace period was over at " + utc(d.Ends)
	}
	return text
}

// overdue are pods that should have ended, and that a drain waits for no longer
// (Karpenter 1.14, pkg/utils/pod/scheduling.go: IsStuckTerminating).
func (n *nodeCase) overdue() []string {
	var out []string
	for _, p := range n.node.Pods {
		over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp != nil && n.at.Sub(p.DeletionTimestamp.Time) > time.Minute && !over && !disruption.IsStaticPod(p) {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	return out
}
