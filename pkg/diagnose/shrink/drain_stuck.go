package shrink

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// passingHold is how long a PodDisruptionBudget that will allow evictions again
// may hold a drain before that counts as stuck: the successors of the pods that
// went have to become ready.
const passingHold = 5 * time.Minute

// drainStuck: a node is deleted and pods that may not be evicted hold it, until
// its termination grace period ends or, without one, for ever (Karpenter 1.14,
// pkg/controllers/node/termination/terminator).
func drainStuck(n *nodeCase) []report.Finding {
	if !n.node.Managed() || n.podsErr != nil {
		return nil
	}
	// The API refuses a pod of several budgets whatever Karpenter's version.
	evictions := n.karpenter
	evictions.Rules.SeveralPDBsBlock = true
	drain, ok := evictions.DrainOf(n.node, n.at)
	if !ok || drain.Stage != disruption.DrainPods {
		return nil
	}
	age := n.at.Sub(drain.Started)
	var texts []string
	var because []report.Evidence
	var remedies []report.Remedy
	for _, w := range drain.Waiting {
		for _, b := range w.Holds {
			if !w.Turn || n.passes(b) && age < passingHold || n.evictable(w.Pod, b) {
				continue
			}
			// From then on nothing holds it.
			if !w.DeletedAt.IsZero() && !w.DeletedAt.After(n.at) {
				continue
			}
			by, evidence, remedy := n.hold(w.Pod, b)
			text := fmt.Sprintf("pod %s/%s by %s", w.Pod.Namespace, w.Pod.Name, by)
			if !w.DeletedAt.IsZero() {
				text += ", until it is deleted at " + utc(w.DeletedAt)
			} else if !b.Until.IsZero() {
				text += " until " + utc(b.Until)
			}
			texts = append(texts, text)
			if len(because) < mostPods {
				because = append(because, evidence)
				remedies = append(remedies, remedy)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	ends := "nothing bounds it: its NodeClaim has no terminationGracePeriod"
	switch {
	case drain.Err != nil:
		ends = "until when is not known: " + cut(drain.Err.Error(), 200)
	case !drain.Ends.IsZero():
		ends = fmt.Sprintf("it ends at %s, when the termination grace period is over", utc(drain.Ends))
	}
	f := report.NewFinding(report.DrainStuck, report.Proven, n.subject(),
		fmt.Sprintf("%s has been draining %s and cannot go on: it is held by %s; %s, and it consumes one from each budget of its pool all that time.", n.title(), n.since(*n.node.NodeClaim.DeletionTimestamp), some(texts), ends))
	e := n.claimField("metadata.deletionTimestamp", utc(drain.Started), "the drain began")
	e.At = *n.node.NodeClaim.DeletionTimestamp
	f.Because = append([]report.Evidence{e}, because...)
	if !drain.Ends.IsZero() {
		f.Because = append(f.Because, n.terminationEvidence())
	}
	if event, ok := n.said(func(e corev1.Event) bool { return e.Reason == "FailedDraining" }); ok {
		f.Because = append(f.Because, n.eventEvidence(event, "it counts the pods and does not say what holds them"))
	}
	f.Arithmetic = fmt.Sprintf("%s waiting, %d of them held", plural(len(drain.Waiting), "pod"), len(texts))
	f.Remedies = remedies[:min(len(remedies), mostNamed)]
	return []report.Finding{f}
}

// passes: the hold goes away without anybody's doing.
func (n *nodeCase) passes(b disruption.Blocker) bool {
	if b.Check != disruption.CheckPDB {
		return false
	}
	pdb := n.pdbNamed(b.PDBs[0].Namespace, b.PDBs[0].Name)
	return pdb != nil && !disruption.FullyBlocks(pdb) && pdb.Status.DesiredHealthy < pdb.Status.ExpectedPods
}

// evictable: the API evicts the pod all the same. It asks no budget for one that
// has not started, and lets one that is not ready go while as many others are
// healthy as the budget wants (Kubernetes 1.37,
// pkg/registry/core/pod/storage/eviction.go).
func (n *nodeCase) evictable(pod *corev1.Pod, b disruption.Blocker) bool {
	if b.Check == disruption.CheckPodDoNotDisrupt {
		return false
	}
	if pod.Status.Phase == corev1.PodPending {
		return true
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	pdb := n.pdbNamed(b.PDBs[0].Namespace, b.PDBs[0].Name)
	if ready || pdb == nil || len(n.karpenter.PDBs.Matching(pod)) > 1 {
		return false
	}
	return alwaysAllow(pdb) || pdb.Status.DesiredHealthy > 0 && pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy
}

// hold says what holds a pod that should be evicted, and how it is let go.
func (n *nodeCase) hold(pod *corev1.Pod, b disruption.Blocker) (by string, evidence report.Evidence, remedy report.Remedy) {
	if b.Check == disruption.CheckPodDoNotDisrupt {
		value := cut(pod.Annotations[karpenter.DoNotDisruptAnnotation], 100)
		r := unprotect(pod)
		r.Effect = "the drain evicts the pod then"
		return fmt.Sprintf("%s: %q", karpenter.DoNotDisruptAnnotation, value), podField(pod, doNotDisruptField, value, "the drain does not evict the pod, and waits for it"), r
	}
	var names []string
	for _, key := range b.PDBs {
		names = append(names, key.String())
	}
	e := report.Evidence{Source: "api:poddisruptionbudgets/" + names[0], Field: "status.disruptionsAllowed", Means: "evictions of the pod are refused"}
	if pdb := n.pdbNamed(b.PDBs[0].Namespace, b.PDBs[0].Name); pdb != nil {
		e.Value = fmt.Sprint(pdb.Status.DisruptionsAllowed)
	}
	return "PodDisruptionBudget " + strings.Join(names, " and "), e, report.Remedy{
		Summary: fmt.Sprintf("Delete pod %s/%s, which asks no budget, or make the budget allow its eviction.", pod.Namespace, pod.Name),
		Command: "kubectl -n " + shellWord(pod.Namespace) + " delete pods " + shellWord(pod.Name),
		Effect:  "the drain waits for this pod no longer",
		Caution: "The budget was there to keep it up.",
	}
}

func (n *nodeCase) terminationEvidence() report.Evidence {
	claim := n.node.NodeClaim
	if text, ok := claim.Annotations[karpenter.TerminationTimestampAnnotation]; ok {
		return n.claimField("metadata.annotations["+karpenter.TerminationTimestampAnnotation+"]", cut(text, 60), "when all pods are deleted whatever holds them")
	}
	return n.claimField("spec.terminationGracePeriod", span(claim.Spec.TerminationGracePeriod.Duration), "after the deletion, when all pods are deleted whatever holds them")
}
