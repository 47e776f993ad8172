package shrink

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostPods is how many pods a finding about a node quotes.
const mostPods = 8

// podDoNotDisrupt: one protected pod keeps its node, until its annotation is
// taken away or, where it is a duration, has passed (Karpenter 1.14,
// pkg/utils/pod/scheduling.go: IsDoNotDisruptActive).
func podDoNotDisrupt(n *nodeCase) []report.Finding {
	blockers := n.blocked(disruption.CheckPodDoNotDisrupt)
	if len(blockers) == 0 {
		return nil
	}
	var texts []string
	var because []report.Evidence
	var remedies []report.Remedy
	var last time.Time
	forever := 0
	for _, b := range blockers {
		pod := n.podNamed(b.Pod.Namespace, b.Pod.Name)
		if pod == nil {
			continue
		}
		protection := disruption.DoNotDisruptOf(pod, n.version.rules)
		until, means := "for as long as it has the annotation", "holds without an end"
		switch {
		case !protection.Forever:
			until = "until " + utc(protection.Until)
			means = fmt.Sprintf("counted from the pod's start at %s: holds until %s, %s more", utc(pod.Status.StartTime.Time), utc(protection.Until), span(protection.Until.Sub(n.at)))
			if protection.Until.After(last) {
				last = protection.Until
			}
		case protection.Value != "true":
			forever++
			means = "a duration without a start to count from, which holds until the pod has started"
		default:
			forever++
		}
		if len(because) < mostPods {
			because = append(because, podField(pod, doNotDisruptField, cut(protection.Value, 100), means))
			remedies = append(remedies, unprotect(pod))
		}
		texts = append(texts, fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, until))
	}
	ends := "somebody has to take the annotation off, or the pod to go"
	if forever == 0 {
		ends = "this passes by itself at " + utc(last)
	}
	confidence := report.Proven
	if forever == 0 && n.version.text == "" {
		confidence = report.Likely // durations are known from 1.13 on
	}
	f := report.NewFinding(report.PodDoNotDisrupt, confidence, n.subject(),
		fmt.Sprintf("%s is kept by %s with karpenter.sh/do-not-disrupt: %s; %s%s.", n.title(), plural(len(texts), "pod"), some(texts), ends, n.driftsAnyway()), because...)
	if blockers[0].Forgiven {
		f.Because = append(f.Because, n.claimField("spec.terminationGracePeriod", span(n.node.NodeClaim.Spec.TerminationGracePeriod.Duration), "because of it drift goes on all the same; Emptiness and consolidation do not"))
	}
	f.Because = append(f.Because, n.blockedEvent("pod has \"karpenter.sh/do-not-disrupt\" annotation")...)
	f.Remedies = remedies[:min(len(remedies), mostNamed)]
	return []report.Finding{f}
}

// driftsAnyway says of a drifted node that its pods keep it from the other
// methods only, where its drain is bounded.
func (n *nodeCase) driftsAnyway() string {
	claim := n.node.NodeClaim
	if claim == nil || claim.Spec.TerminationGracePeriod == nil || !claim.IsTrue(karpenter.ConditionDrifted) {
		return ""
	}
	return fmt.Sprintf("; that does not stop its replacement for drift, as its drain ends after %s (terminationGracePeriod)", span(claim.Spec.TerminationGracePeriod.Duration))
}

const doNotDisruptField = "metadata.annotations[" + karpenter.DoNotDisruptAnnotation + "]"

func (n *nodeCase) podNamed(namespace, name string) *corev1.Pod {
	for _, p := range n.node.Pods {
		if p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

func unprotect(pod *corev1.Pod) report.Remedy {
	r := report.Remedy{Summary: fmt.Sprintf("Take the annotation off pod %s/%s once it may be moved.", pod.Namespace, pod.Name),
		Command: "kubectl -n " + shellWord(pod.Namespace) + " annotate pods " + shellWord(pod.Name) + " " + karpenter.DoNotDisruptAnnotation + "-",
		Effect:  "this pod no longer keeps its node"}
	switch c := controllerOf(pod); {
	case disruption.IsStaticPod(pod):
		r.Command = ""
		r.Summary = fmt.Sprintf("Take the annotation out of the manifest of static pod %s/%s on the node.", pod.Namespace, pod.Name)
		r.Caution = "The kubelet runs the pod anew when its manifest changes."
	case c != "":
		r.Caution = "It comes back with the next pod of " + c + " unless the pod template loses it too."
	}
	return r
}

// doNotDisruptIgnored: a value that is neither "true" nor, from 1.13 on, a
// positive duration protects nothing.
func doNotDisruptIgnored(n *nodeCase) []report.Finding {
	if !n.node.Managed() {
		return nil
	}
	var texts []string
	var because []report.Evidence
	var remedies []report.Remedy
	for _, pod := range n.node.Pods {
		protection := disruption.DoNotDisruptOf(pod, n.version.rules)
		if protection.Err == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s/%s (%q)", pod.Namespace, pod.Name, cut(protection.Value, 60)))
		if len(because) < mostPods {
			because = append(because, podField(pod, doNotDisruptField, fmt.Sprintf("%q", cut(protection.Value, 100)), cut(protection.Err.Error(), 200)))
		}
		if len(remedies) < mostNamed {
			remedies = append(remedies, report.Remedy{Summary: fmt.Sprintf("Say \"true\" if pod %s/%s is to be kept, or take the annotation off.", pod.Namespace, pod.Name),
				Command: "kubectl -n " + shellWord(pod.Namespace) + " annotate --overwrite pods " + shellWord(pod.Name) + " " + karpenter.DoNotDisruptAnnotation + "=true",
				Effect:  "the pod then keeps " + n.title()})
		}
	}
	if value, ok := n.node.Annotations()[karpenter.DoNotDisruptAnnotation]; ok && value != "true" {
		texts = append(texts, fmt.Sprintf("the node itself (%q)", cut(value, 60)))
		because = append(because, n.field(doNotDisruptField, fmt.Sprintf("%q", cut(value, 100)), "on a node only \"true\" counts"))
	}
	if len(texts) == 0 {
		return nil
	}
	allowed := `neither "true" nor a positive duration`
	if !n.version.rules.TimedDoNotDisrupt {
		allowed = `not "true", and this version knows no durations`
	}
	f := report.NewFinding(report.DoNotDisruptIgnored, report.Proven, n.subject(),
		fmt.Sprintf("karpenter.sh/do-not-disrupt protects nothing on %s where its value is %s: %s.", n.title(), allowed, some(texts)), because...)
	f.Remedies = remedies
	return []report.Finding{f}
}

// blockedEvent quotes the last event DisruptionBlocked whose text holds a phrase.
func (n *nodeCase) blockedEvent(phrase string) []report.Evidence {
	e, ok := n.said(func(e corev1.Event) bool { return e.Reason == disruptionBlocked && containsFold(e.Message, phrase) })
	if !ok {
		return nil
	}
	return []report.Evidence{n.eventEvidence(e, "Karpenter stops at the first blocker and names no other, nor until when it holds")}
}
