package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// resizeDeferred speaks of a resize that waits for room.
func (c *podCase) resizeDeferred(cond corev1.PodCondition, rule resizeRule) report.Finding {
	changes := c.resizeChanges()
	f := report.NewFinding(report.ResizePending, report.Proven, c.subject(changes.container()),
		fmt.Sprintf("The resize %swaits (%s): %s.", changes.text(), or(cond.Reason, "no reason given"), strings.TrimSuffix(rule.why, ".")))
	if kept := changes.kept(); kept != "" {
		f.Summary += " Until it is granted, what the pod was allocated counts: " + kept + "."
	}
	f.Because = append(f.Because, c.conditionEvidence(cond, "the kubelet's own words"))
	f.Because = append(f.Because, c.generationEvidence(cond)...)
	f.Because = append(f.Because, changes.evidence(c)...)
	f.Because = append(f.Because, rule.evidence...)
	f.Arithmetic = rule.arithmetic
	f.Remedies = rule.remedies
	return f
}

// resizeInProgress speaks of a resize that was granted and is on its way to the
// cgroups, or failed there: which files have not followed.
func (c *podCase) resizeInProgress(cond corev1.PodCondition) report.Finding {
	lag := c.lagging()
	var subject string
	for i, l := range lag {
		if subject = l.container; i > 0 && lag[0].container != l.container {
			subject = ""
			break
		}
	}
	f := report.NewFinding(report.ResizePending, report.Proven, c.subject(subject), "")
	switch {
	case cond.Reason == corev1.PodReasonError:
		f.Summary = "The resize was granted and failed: " + strings.TrimSuffix(cutText(cond.Message), ".") + ". The kubelet tries again"
		f.Remedies = errorRemedies(cond.Message)
	case len(lag) == 0 && c.groupsErr != nil:
		f.Summary = "A resize was granted and is being made; the cgroups were not read, so that it is not known how far it came"
		f.Confidence = report.Likely
	case len(lag) == 0:
		f.Summary = "A resize was granted, and every cgroup file that was read has followed: what is left is the runtime's report, or a container that has to be restarted"
	default:
		f.Summary = "A resize was granted and is being made"
	}
	if len(lag) > 0 {
		var parts []string
		for _, l := range lag {
			parts = append(parts, fmt.Sprintf("%s of %s is %q and should be %s", l.file, l.who, l.has, l.wants))
		}
		f.Summary += "; not followed: " + strings.Join(parts, ", ")
	}
	f.Summary += "."
	f.Because = append(f.Because, c.conditionEvidence(cond, "granted"))
	f.Because = append(f.Because, c.generationEvidence(cond)...)
	for _, l := range lag {
		f.Because = append(f.Because, c.fileEvidence(l.group.File(l.file), "", l.has, l.who+" should have "+l.wants))
		if l.arithmetic != "" {
			if f.Arithmetic != "" {
				f.Arithmetic += "; "
			}
			f.Arithmetic += l.arithmetic
		}
	}
	if len(f.Remedies) == 0 {
		f.Remedies = []report.Remedy{{Summary: "Wait, and look again: the kubelet changes memory before CPU, growing from the pod's cgroup down to the containers and shrinking the other way round."}}
	}
	return f
}

func errorRemedies(message string) []report.Remedy {
	if strings.Contains(message, "cannot decrease memory limits") || strings.Contains(message, "below current usage") {
		return []report.Remedy{{
			Summary: "Let the container free memory first, ask for a limit above its use, or recreate the pod.",
			Effect:  "The kubelet does not write a limit below memory.current, which counts page cache too: cache alone can stand in the way.",
		}}
	}
	return []report.Remedy{{Summary: "See the kubelet's and the runtime's log for the write that failed; recreating the pod does without it."}}
}

// lagFile is a cgroup file that has not the value of the granted resources.
type lagFile struct {
	group      cgroup.Group
	who        string
	container  string
	file       string
	has, wants string
	arithmetic string
}

// lagging are the files that do not have what the granted resources give.
func (c *podCase) lagging() []lagFile {
	if c.groupsErr != nil {
		return nil
	}
	var out []lagFile
	look := func(g cgroup.Group, who, container string, files func(cgroup.Settings) []cgroup.FileValues) {
		var wants []cgroup.FileValues
		for _, s := range c.quotaViews() {
			wants = merge(wants, files(s))
		}
		for _, want := range wants {
			switch want.File {
			case "cpu.max", "cpu.weight", "memory.max":
			default:
				continue
			}
			has, err := g.Text(want.File)
			if _, ok := want.Accepts(has); err != nil || ok || len(want.Accept) == 0 {
				continue
			}
			out = append(out, lagFile{group: g, who: who, container: container, file: want.File, has: has, wants: alternatives(want.Accept), arithmetic: want.Accept[0].Arithmetic})
		}
	}
	view := cgroup.Allocated
	look(c.groups.Pod, "the pod's cgroup", "", func(s cgroup.Settings) []cgroup.FileValues { return cgroup.PodValues(c.pod, view, s) })
	for _, k := range c.containers() {
		if g, ok := c.containerGroup(k.Name); ok {
			look(g, "container "+k.Name, k.Name, func(s cgroup.Settings) []cgroup.FileValues {
				values, _ := cgroup.ContainerValues(c.pod, k.Name, view, s)
				return values
			})
		}
	}
	return out
}

// resizeUnseen speaks of a spec that asks for other requests than allocated
// where no condition says that the kubelet has looked at it.
func (c *podCase) resizeUnseen() []report.Finding {
	var changes resizeChanges
	for _, ch := range c.resizeChanges() {
		if ch.list == "requests" { // limits of the status are the runtime's figures
			changes = append(changes, ch)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	f := report.NewFinding(report.ResizePending, report.Likely, c.subject(changes.container()),
		fmt.Sprintf("The resize %sis not granted, and no condition says why: the kubelet has not looked at it yet, or its feature gate InPlacePodVerticalScaling is off.", changes.text()))
	f.Because = changes.evidence(c)
	if seen := c.pod.Status.ObservedGeneration; seen != 0 && seen < c.pod.Generation {
		f.Because = append(f.Because, c.podField("status.observedGeneration", fmt.Sprint(seen), fmt.Sprintf("the spec is at generation %d", c.pod.Generation)))
	}
	f.Remedies = []report.Remedy{{Summary: "Look again in a minute; a kubelet that does not answer at all is another matter."}}
	return []report.Finding{f}
}
