package diagnose

import (
	"fmt"
	"slices"

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
	what := "the cgroup files of its containers"
	switch {
	case c.pod.Spec.NodeName == "":
		return []report.Finding{newFinding(report.EvidenceMissing, report.Proven, c.subject(""),
			"The pod is not assigned to a node: there is nothing on a node to explain yet.",
			c.podField("spec.nodeName", "", "not scheduled"), c.podField("status.phase", string(c.pod.Status.Phase), ""))}
	case c.ended():
		return []report.Finding{newFinding(report.EvidenceMissing, report.Proven, c.subject(""),
			fmt.Sprintf("The pod has ended (phase %s) and its cgroups are gone; its status shows no kill and no refusal.", c.pod.Status.Phase),
			c.podField("status.phase", string(c.pod.Status.Phase), ""))}
	case c.groupsErr == nil:
		what = "cpu.stat, memory.events and memory.current of its cgroups"
	}
	f := newFinding(report.EvidenceMissing, report.Proven, c.subject(""),
		fmt.Sprintf("The data show the pod neither healthy nor ill: %s of node %s are missing. The gaps say what was not read.", what, c.pod.Spec.NodeName),
		c.podField("status.phase", string(c.pod.Status.Phase), "all that the API says"))
	return []report.Finding{f}
}
