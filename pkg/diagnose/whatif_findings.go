package diagnose

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// confidence of an answer, and what keeps it from being proven.
func (q *whatIf) confidence(t trial, w world) (report.Confidence, []string) {
	var why []string
	n := q.changed
	switch {
	case !n.rulesKnown:
		why = append(why, fmt.Sprintf("the kubelet's version is not known; the rules of 1.%d were applied", n.rules.Minor))
	case !n.rulesExact:
		why = append(why, fmt.Sprintf("the rules of kubelet 1.%d were applied, the nearest to its version", n.rules.Minor))
	}
	if len(q.set) > 0 {
		why = append(why, "it is for changed settings, under which other things of the node may change as well")
	}
	if w.podsUnknown {
		why = append(why, "the node's pods are not known: what the state files book was taken as held, and requests could not be summed up")
	}
	if w.nextStart != nil {
		why = append(why, "the kubelet runs on a state on which it would not start again: "+clip(startText(w.nextStart)))
	}
	if unknown := n.unknownDevices(q.pod); len(unknown) > 0 && t.attempt != nil && t.from.config.Kubelet.TopologyManagerPolicy != "none" {
		why = append(why, "the NUMA nodes of the devices of "+join(unknown)+" are not known")
		n.gaps.Lack("nodes/"+n.name+"/podresources.json", "it does not name the devices of "+join(unknown), "which NUMA nodes the devices want", "the PodResources API of the kubelet")
	}
	if len(why) > 0 {
		return report.Likely, why
	}
	return report.Proven, nil
}

// settingEvidence quotes what was supposed, and what the start with it did.
func (q *whatIf) settingEvidence(w world) []report.Evidence {
	var out []report.Evidence
	for _, s := range q.set {
		out = append(out, report.Evidence{Source: "kubelet:--set", Field: strings.SplitN(s.String(), "=", 2)[0], Value: s.Value, Means: "supposed" + q.changed.replaced(s)})
	}
	if r := w.readmitted; r != nil {
		for _, path := range r.CheckpointsRemoved {
			out = append(out, report.Evidence{Source: "node:" + path, Value: "removed", Means: "the kubelet would not start on it with these settings"})
		}
		means := "in the order of their creation"
		if len(r.Refused) > 0 {
			means += "; refused: " + q.refusedNames(r)
		}
		out = append(out, report.Evidence{Source: "api:pods", Field: "admitted again", Value: fmt.Sprintf("%d of %d", r.Admitted, r.Admitted+len(r.Refused)), Means: means})
	}
	return out
}

func (q *whatIf) refusedNames(r *report.Readmitted) string {
	const most = 5
	var names []string
	for _, p := range r.Refused {
		if len(names) == most {
			names = append(names, fmt.Sprintf("%d more", len(r.Refused)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s/%s (%s)", p.Namespace, p.Pod, p.Reason))
	}
	return join(names)
}

// placeText says in words what a container would get.
func placeText(c report.WhatIfContainer) string {
	var out string
	switch {
	case c.Exclusive:
		out = fmt.Sprintf("container %s gets CPUs %s", c.Name, *c.CPUs)
		if len(c.NUMANodes) > 0 {
			out += " on " + numaText(c.NUMANodes)
		}
	case c.CPUs != nil:
		out = fmt.Sprintf("container %s shares CPUs %s", c.Name, *c.CPUs)
	default:
		out = fmt.Sprintf("container %s shares CPUs", c.Name)
	}
	seen := map[string]bool{}
	for _, b := range c.Memory {
		if on := ids(b.NUMANodes); !seen[on] {
			seen[on] = true
			out += ", its memory is on " + numaText(b.NUMANodes)
		}
	}
	return out
}

// placesText says so of the first containers.
func placesText(containers []report.WhatIfContainer) string {
	const most = 3
	var parts []string
	for i, c := range containers {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(containers)-most))
			break
		}
		parts = append(parts, placeText(c))
	}
	return strings.Join(parts, "; ")
}

// admittedFinding says what the pod would get.
func (q *whatIf) admittedFinding(t trial, w world, fact report.WhatIf) report.Finding {
	n := q.changed
	confidence, why := q.confidence(t, w)
	f := report.NewFinding(report.WouldBeAdmittedNow, confidence, q.subject(), "")
	f.Summary = fmt.Sprintf("The kubelet of %s would admit the pod now: %s.", n.name, placesText(fact.Containers))
	f.Because = append(f.Because, report.Evidence{Source: q.source, Field: "spec.containers[].resources.requests", Value: requestsText(q.pod), Means: string(q.pod.Status.QOSClass)})
	if t.attempt != nil {
		f.Because = append(f.Because, q.managerEvidence(t)...)
	} else {
		f.Because = append(f.Because, n.configEvidence("cpuManagerPolicy", n.config.CPUManagerPolicy, "with memoryManagerPolicy None and topologyManagerPolicy none the managers admit every pod"))
	}
	if t.fitKnown {
		e, sum := q.fitEvidence()
		f.Because, f.Arithmetic = append(f.Because, e...), sum
	} else {
		f.Confidence = report.Likely
		if !w.podsUnknown {
			why = append(why, fitUnknown(n))
		}
	}
	if twice := q.taken(t); !twice.IsEmpty() {
		f.Summary = strings.TrimSuffix(f.Summary, ".") + fmt.Sprintf("; of these %s are reserved or another container's.", twice)
		f.Because = append(f.Because, n.sharedPoolEvidence(t.from.pool(), fmt.Sprintf("the shared pool before the pod; it would get %s beside: the kubelet takes whole cores by their average size", twice)))
	}
	f.Because = append(f.Because, q.settingEvidence(w)...)
	f.Because = append(f.Because, q.doubts(why)...)
	return f
}

func fitUnknown(n *nodeCase) string {
	if n.object == nil {
		return "without the node's object the kubelet's fit check could not be made"
	}
	return "the kubelet's fit check could not be made: its sums do not hold what the pods request"
}

func (q *whatIf) doubts(why []string) []report.Evidence {
	var out []report.Evidence
	for _, text := range why {
		out = append(out, report.Evidence{Source: "kubelet:version", Field: "not proven", Value: q.changed.versions().Replay, Means: text})
	}
	return out
}

// managerEvidence is what the managers went by.
func (q *whatIf) managerEvidence(t trial) []report.Evidence {
	n, k := q.changed, t.from.config.Kubelet
	out := []report.Evidence{n.configEvidence("topologyManagerPolicy", k.TopologyManagerPolicy, "scope "+k.TopologyManagerScope)}
	if k.CPUManagerPolicy == "static" {
		before := t.from.pool()
		out = append(out, n.configEvidence("cpuManagerPolicyOptions", optionsText(k.CPUManagerPolicyOptions), "cpuManagerPolicy static"),
			n.sharedPoolEvidence(before, fmt.Sprintf("the shared pool; without the reserved %s free for exclusive use before the pod: %s", t.node.CPU.Reserved, setOrNone(before.Difference(t.node.CPU.Reserved)))))
	}
	if k.MemoryManagerPolicy == "Static" {
		for _, m := range t.node.Memory.State.Nodes {
			for _, table := range m.Tables {
				if string(table.Type) == string(corev1.ResourceMemory) {
					out = append(out, n.freeMemoryEvidence(m.ID, string(table.Type), table.Free, bytes(table.Free)+" left after the pod"))
				}
			}
		}
	}
	return out
}

// fitEvidence is the sum of the kubelet's fit check for cpu and memory.
func (q *whatIf) fitEvidence() ([]report.Evidence, string) {
	n := q.changed
	var out []report.Evidence
	var sums []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		allocatable, ok := n.object.Status.Allocatable[name]
		if !ok {
			continue
		}
		m := misfit{resource: name, used: n.usedOf(name, q.pod)}
		wanted := n.countedRequests(q.pod)
		m.requested, m.allocatable = countedAmount(name, wanted[name]), countedAmount(name, allocatable)
		out = append(out, n.apiEvidence("status.allocatable."+string(name), m.amount(m.allocatable),
			fmt.Sprintf("active pods request %s, this one %s", m.amount(m.used), m.amount(m.requested))))
		sums = append(sums, fmt.Sprintf("%s: %s + %s = %s ≤ %s", name, m.amount(m.used), m.amount(m.requested), m.amount(addClipped(m.used, m.requested)), m.amount(m.allocatable)))
	}
	return out, strings.Join(sums, "; ")
}

// refusedFinding sums the refusal up; the finding beside it has its code.
func (q *whatIf) refusedFinding(t trial, w world, fact report.WhatIf, refusals []report.Finding) report.Finding {
	confidence, why := q.confidence(t, w)
	f := report.NewFinding(report.WouldBeRefusedNow, confidence, q.subject(), "")
	said := clip(fact.Message)
	if fact.Reason != "" {
		said = fact.Reason + ": " + said
	}
	f.Summary = fmt.Sprintf("The kubelet of %s would refuse the pod now: %s.", q.now.name, strings.TrimSuffix(said, "."))
	source := "api:nodes/" + q.now.name
	if t.attempt != nil && !t.result.Admit {
		source = q.now.source(cpuStatePath)
	}
	f.Because = append(f.Because,
		report.Evidence{Source: q.source, Field: "spec.containers[].resources.requests", Value: requestsText(q.pod), Means: string(q.pod.Status.QOSClass)},
		report.Evidence{Source: source, Field: "replayed answer", Value: fact.Reason, Means: clip(fact.Message)})
	f.Because = append(f.Because, q.settingEvidence(w)...)
	f.Because = append(f.Because, q.doubts(why)...)
	for _, change := range fact.Nearest {
		effect := "would be admitted"
		switch {
		case len(change.Containers) > 0:
			effect += ": " + placesText(change.Containers)
		case change.CPUs != nil:
			effect += ", with CPUs " + *change.CPUs
		}
		f.Remedies = append(f.Remedies, report.Remedy{Summary: change.Change, Effect: effect + " (found by running it)"})
	}
	for _, r := range refusals {
		if r.Confidence.Rank() > f.Confidence.Rank() {
			f.Confidence = r.Confidence
		}
	}
	return f
}

// noStart: under these settings, or on these state files, no kubelet runs that
// could admit anything.
func (q *whatIf) noStart(err error) report.Finding {
	f := report.NewFinding(report.WouldBeRefusedNow, report.Likely, q.subject(),
		fmt.Sprintf("The kubelet of %s would not start, so the pod would stay Pending: %s.", q.now.name, strings.TrimSuffix(clip(startText(err)), ".")),
		report.Evidence{Source: q.source, Field: "spec.containers[].resources.requests", Value: requestsText(q.pod), Means: string(q.pod.Status.QOSClass)})
	if len(q.set) == 0 {
		f.Because = append(f.Because, q.now.fileEvidence(cpuStatePath, "replayed start", "fails", clip(startText(err))))
	}
	f.Because = append(f.Because, q.settingEvidence(world{})...)
	return f
}

// startText is the kubelet's own word for why it does not start.
func startText(err error) string {
	var start *node.StartError
	if errors.As(err, &start) && start.Unwrap() != nil {
		return start.Unwrap().Error()
	}
	return err.Error()
}

// unknown: the data do not tell what the kubelet would say.
func (q *whatIf) unknown(err error) report.Finding {
	q.now.gaps.Lack("nodes/"+q.now.name, err.Error(), "whether the kubelet would admit the pod", "the node pod, and get nodes/proxy (kubelet /configz)")
	return report.NewFinding(report.EvidenceMissing, report.Proven, q.subject(),
		fmt.Sprintf("What the kubelet of %s would answer cannot be told: %s.", q.now.name, strings.TrimSuffix(clip(err.Error()), ".")))
}
