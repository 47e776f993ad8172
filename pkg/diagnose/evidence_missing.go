package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// evidenceMissing is the one finding where the data show a pod neither healthy
// nor ill: no rule of CPU time, memory or admission could say anything. A wrong
// unit in the spec says nothing of what it did.
func evidenceMissing(c *podCase, findings []report.Finding) []report.Finding {
	said := func(f report.Finding) bool {
		e, _ := report.Lookup(f.Code)
		return e.Group != report.GroupPlacement && f.Code != report.UnitMistake
	}
	if slices.ContainsFunc(findings, said) {
		return nil
	}
	what := "its cgroups on node " + c.pod.Spec.NodeName + " were not read"
	switch {
	case c.pod.Spec.NodeName == "":
		return []report.Finding{report.NewFinding(report.EvidenceMissing, report.Proven, c.subject(""),
			"The pod is not assigned to a node: there is nothing on a node to explain yet.",
			c.podField("spec.nodeName", "", "not scheduled"), c.podField("status.phase", string(c.pod.Status.Phase), ""))}
	case c.ended():
		return []report.Finding{c.endedWithoutCause()}
	case c.groupsErr == nil:
		what = "what was read of its cgroups does not suffice"
	}
	f := report.NewFinding(report.EvidenceMissing, report.Proven, c.subject(""),
		fmt.Sprintf("The data show the pod neither healthy nor ill: %s%s. The gaps say what is missing.", what, c.endsText("; ")),
		append([]report.Evidence{c.podField("status.phase", string(c.pod.Status.Phase), "")}, c.endsEvidence()...)...)
	return []report.Finding{f}
}

// endedWithoutCause speaks of a pod that is over, by whatever its status tells.
func (c *podCase) endedWithoutCause() report.Finding {
	summary := fmt.Sprintf("The pod has ended (phase %s) and its cgroups are gone; nothing that was read tells why%s.", c.pod.Status.Phase, c.endsText(": "))
	if c.pod.Status.Phase == corev1.PodSucceeded {
		summary = "The pod has ended as it should (phase Succeeded) and its cgroups are gone."
	}
	return report.NewFinding(report.EvidenceMissing, report.Proven, c.subject(""), summary,
		append([]report.Evidence{c.podField("status.phase", string(c.pod.Status.Phase), c.pod.Status.Reason)}, c.endsEvidence()...)...)
}

// badEnds are the containers that ended otherwise than with 0, the first few.
func (c *podCase) badEnds() []container {
	const most = 4
	var out []container
	for _, k := range c.containers() {
		if end := k.end(); end != nil && end.ExitCode != 0 && len(out) < most {
			out = append(out, k)
		}
	}
	return out
}

func (c *podCase) endsText(before string) string {
	var parts []string
	for _, k := range c.badEnds() {
		parts = append(parts, fmt.Sprintf("container %s ended with exit code %d%s", k.Name, k.end().ExitCode, exitMeans(k.end())))
	}
	if len(parts) == 0 {
		return ""
	}
	return before + strings.Join(parts, ", ")
}

func (c *podCase) endsEvidence() []report.Evidence {
	var out []report.Evidence
	for _, k := range c.badEnds() {
		out = append(out, c.endEvidence(k, "the last exit"))
	}
	return out
}

// exitMeans says what an exit code above 128 is: a signal, whoever sent it.
func exitMeans(end *corev1.ContainerStateTerminated) string {
	if end.Reason == "ContainerStatusUnknown" {
		return " (the kubelet made it up: it could not get the container's status; it is no sign of an OOM)"
	}
	switch end.ExitCode {
	case 134:
		return " (128 + 6, SIGABRT: mostly the program itself, out of its own heap for one)"
	case 137:
		return " (128 + 9, SIGKILL: an OOM kill, a failed probe, a stop beyond the grace period, an eviction or a person; the data do not tell)"
	case 139:
		return " (128 + 11, SIGSEGV)"
	case 143:
		return " (128 + 15, SIGTERM: it was told to stop)"
	}
	return ""
}
