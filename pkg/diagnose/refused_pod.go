package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// refused says whether the kubelet refused the pod, at once or after a restart.
func (c *podCase) refused() bool {
	s := c.pod.Status
	if s.Phase != corev1.PodFailed || s.Reason == reasonEvicted || !refusal(s) {
		return false
	}
	return !c.everStarted() || strings.HasPrefix(s.Message, "Pod was rejected")
}

// refusedWords are the kubelet's message without what its status puts before.
func (c *podCase) refusedWords() string {
	m := c.pod.Status.Message
	for _, prefix := range []string{"Pod was rejected: ", "Pod "} {
		if rest, ok := strings.CutPrefix(m, prefix); ok {
			return rest
		}
	}
	return m
}

func (c *podCase) requestsOf(p *corev1.Pod) alloc.PodRequests { return alloc.RequestsOf(p, c.rules) }

func (c *podCase) statusEvidence() []report.Evidence {
	s := c.pod.Status
	out := []report.Evidence{c.podField("status.reason", s.Reason, ""), c.podField("status.message", s.Message, "the kubelet's own words")}
	if e, ok := c.refusalEvent(); ok {
		out = append(out, eventEvidence(e, ""))
	}
	return out
}

// refusedPod explains a refusal. The status tells what the kubelet said; the
// replay of its managers on the recorded state shows why, NUMA node by NUMA
// node, as far as the state is still that of the moment. Where no rule does,
// the finding is refusal-unexplained.
func refusedPod(c *podCase) []report.Finding {
	if !c.refused() {
		return nil
	}
	var out []report.Finding
	now := ""
	if reason := c.pod.Status.Reason; fitReason(reason) {
		out = c.fitRefused()
	} else {
		out, now = c.replayedRefusal()
		if len(out) == 0 {
			out = c.saidRefusal(now)
		}
	}
	if len(out) == 0 {
		out = []report.Finding{c.unexplained(now)}
	}
	for i := range out {
		out[i].Because = append(c.statusEvidence(), out[i].Because...)
	}
	return out
}

// replayedRefusal runs the pod through the managers: on the state of the moment
// as far as it can be told, which is the recorded one without the pods that came
// later; on the recorded one, for those may have been there as others that are
// gone; and as one that a restart admits again. It explains what comes to the
// very answer that the status has; now is what comes on the recorded state.
func (c *podCase) replayedRefusal() (out []report.Finding, now string) {
	m, err := c.managers()
	if err != nil {
		if !errors.Is(err, errNoNode) {
			c.gaps.Lack("nodes/"+c.name, err.Error(), "a replay of the kubelet's managers: why it refused the pod", "")
		}
		return nil, ""
	}
	pod := c.newPodDevices(kubeletPod(c.pod))
	a, err := m.try(pod)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("On the recorded state the kubelet would not start: %v.", err)
	case a.crash != nil:
		return c.nodeCase.refusals(a, c.subject("")), ""
	}
	now = fmt.Sprintf("On the recorded state it would be refused with %s (%s).", a.result.Reason, clip(a.result.Message))
	if a.result.Admit {
		now = "On the recorded state the managers would admit it."
	}
	if out = c.heldExplained(); len(out) > 0 {
		return out, now
	}
	if out = c.thenRefused(m, pod, now); len(out) > 0 {
		return out, now
	}
	if c.sameAnswer(a) {
		return c.explained(a), now
	}
	if a.result.Admit {
		if b := c.readmitted(m, a, pod); b != nil && c.sameAnswer(b) {
			return c.explained(b), now
		}
	}
	return nil, now + " So the state was another then."
}

// thenRefused runs the pod without the pods that came after its refusal. Where
// some came in the same second it is run without and with them, and only what
// both say is said.
func (c *podCase) thenRefused(m managers, pod node.Pod, now string) []report.Finding {
	before, same, later := c.atRefusal(m)
	if len(same)+len(later) == 0 {
		return nil
	}
	var out []report.Finding
	for i, pods := range [][]node.Pod{before, append(slices.Clone(before), same...)} {
		if i == 1 && len(same) == 0 {
			break
		}
		then := m
		then.pods = pods
		a, err := then.try(pod)
		if err != nil || a.crash != nil || !c.sameAnswer(a) {
			continue
		}
		found := c.explained(a)
		left := later
		if i == 0 {
			left = append(slices.Clone(same), later...)
		}
		for j := range found {
			found[j].Because = append(found[j].Because, report.Evidence{Source: "api:pods", Field: "metadata.name", Value: namesOf(left, 6),
				Means: "came after the refusal, so the replay leaves out what they hold. " + now})
		}
		if out == nil {
			out = found
			continue
		}
		out = slices.DeleteFunc(out, func(f report.Finding) bool {
			return !slices.ContainsFunc(found, func(g report.Finding) bool { return g.Code == f.Code })
		})
	}
	return out
}

// atRefusal parts the active pods by when the kubelet took them: before it
// refused this one, in the same second as far as is known, and later.
func (c *podCase) atRefusal(m managers) (before, same, later []node.Pod) {
	for _, p := range m.pods {
		switch c.tookBefore(p.Pod) {
		case -1:
			before = append(before, p)
		case 0:
			same = append(same, p)
		default:
			later = append(later, p)
		}
	}
	return before, same, later
}

// tookBefore compares the moments at which the kubelet took another pod and
// this one: the scheduler's, which are exact, else the kubelet's, else those of
// creation.
func (c *podCase) tookBefore(other *corev1.Pod) int {
	if a, b := c.scheduled(other), c.scheduled(c.pod); !a.IsZero() && !b.IsZero() {
		return a.Compare(b)
	}
	if a, b := other.Status.StartTime, c.pod.Status.StartTime; a != nil && b != nil {
		return a.Compare(b.Time)
	}
	return other.CreationTimestamp.Compare(c.pod.CreationTimestamp.Time)
}

// scheduled is the moment at which the scheduler bound the pod, zero where no
// event tells it to the microsecond.
func (n *nodeCase) scheduled(pod *corev1.Pod) time.Time {
	events := n.eventsOf(func(e *corev1.Event) bool { return e.InvolvedObject.UID == pod.UID && pod.UID != "" }, "Scheduled")
	if len(events) == 0 {
		return time.Time{}
	}
	return events[len(events)-1].EventTime.Time
}

// namesOf names so many pods, and how many more there are.
func namesOf(pods []node.Pod, most int) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// readmitted runs the pod as one that got in and meets a restart of the
// kubelet, after the pods that are older.
func (c *podCase) readmitted(m managers, admitted *attempt, pod node.Pod) *attempt {
	if _, again, _ := c.refusedAgain(); !again {
		return nil
	}
	n, err := admitted.node.Restart(m.config)
	if err != nil && !node.MayStart(err) {
		return nil
	}
	for _, p := range m.pods {
		if p.CreationTimestamp.Before(&pod.CreationTimestamp) {
			if _, err := n.Admit(p, nil); err != nil {
				return nil
			}
		}
	}
	return m.admit(n, pod)
}

// sameAnswer says whether the replay gives the status's reason, and its message
// as far as that has figures. Other versions word it otherwise.
func (c *podCase) sameAnswer(a *attempt) bool {
	if a.result.Admit || a.result.Reason != c.pod.Status.Reason {
		return false
	}
	said := c.refusedWords()
	return said == a.result.Message || said == "" ||
		strings.Contains(said, "not enough cpus available to satisfy request") && !strings.Contains(said, "requested=") && strings.Contains(a.result.Message, "not enough cpus available")
}

// explained are the findings of a replay that came to the kubelet's answer.
func (c *podCase) explained(a *attempt) []report.Finding {
	out := c.nodeCase.refusals(a, c.subject(""))
	out = slices.DeleteFunc(out, func(f report.Finding) bool { return f.Code == report.RefusalUnexplained })
	for i := range out {
		if unknown := c.unknownDevices(c.pod); len(unknown) > 0 && out[i].Code != report.SMTAlignmentRefused {
			out[i].Because = append(out[i].Because, c.podField("spec.containers[].resources.limits", join(unknown), "devices whose NUMA nodes are not known: their hints can only have narrowed the choice further"))
		}
	}
	return out
}

// saidRefusal is what the status alone proves, where no replay comes to it.
func (c *podCase) saidRefusal(now string) []report.Finding {
	reason, words := c.pod.Status.Reason, c.refusedWords()
	code, confidence, text := report.Code(""), report.Proven, ""
	switch {
	case reason == "SMTAlignmentError":
		code, text = report.SMTAlignmentRefused, "full-pcpus-only hands out whole cores: "+words
	case reason == "TopologyAffinityError":
		code, confidence = report.TopologyAffinityRefused, report.Likely
		text = "the Topology Manager's policy admitted no set of NUMA nodes; which resource had none is not told by its message"
	case reason == "EmptyPodSharedPoolError":
		code, text = report.PodPoolEmpty, words
	case strings.Contains(words, "not enough cpus available to satisfy request"):
		code, text = report.CPUsExhausted, "fewer CPUs were free than a container asked for: "+words
	case strings.Contains(words, "preferred hint violates NUMA node allocation"):
		code, text = report.MemoryGroupConflict, "a NUMA node that serves containers otherwise cannot join the group of nodes: "+words
	case strings.Contains(words, "[memorymanager] failed to"):
		code, confidence, text = report.MemoryExhausted, report.Likely, "no set of NUMA nodes that the Memory Manager may use had the memory free: "+words
	default:
		return nil
	}
	f := report.NewFinding(code, confidence, c.subject(""), fmt.Sprintf("The kubelet of %s refused the pod: %s.%s", c.name, strings.TrimSuffix(text, "."), behind(now)))
	f.Remedies = []report.Remedy{{Summary: "A refused pod is not tried again: its controller has to make a new one.", Effect: strings.TrimSpace(now)}}
	if confidence != report.Proven {
		c.gaps.Lack("nodes/"+c.name+"/root/"+kubeletDir, "the state of the moment of the refusal is not there", "which resource was short on which NUMA node then", "the kubelet's log of that time")
	}
	return []report.Finding{f}
}

func behind(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// fitReason says whether a reason is of the kubelet's own fit check.
func fitReason(reason string) bool {
	switch reason {
	case "NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "PodOSNotSupported":
		return true
	}
	return strings.HasPrefix(reason, "OutOf")
}

// fitRefused explains a refusal of the kubelet's fit check: by the sums in its
// message, and by those of now where it follows from them still.
func (c *podCase) fitRefused() []report.Finding {
	s := c.pod.Status
	source := "api:pods/" + c.pod.Namespace + "/" + c.pod.Name
	pod := kubeletPod(c.pod).Pod
	if misfits, known := c.fitCheck(pod, source); known {
		if i := slices.IndexFunc(misfits, func(m misfit) bool { return m.reason == s.Reason }); i >= 0 {
			first := misfits[i]
			rest := slices.Delete(slices.Clone(misfits), i, i+1)
			f := c.fitRefusal(append([]misfit{first}, rest...), pod, c.subject(""), source)
			f.Confidence = report.Proven // the status says it, whatever the sums are now
			return []report.Finding{f}
		}
	}
	f := report.NewFinding(report.FitCheckRefused, report.Proven, c.subject(""),
		fmt.Sprintf("The kubelet's own fit check, which comes after its managers, refused the pod: %s (%s). By what is known of the node now it would not.", s.Reason, clip(c.refusedWords())))
	if m := capacityMessage.FindStringSubmatch(s.Message); m != nil {
		rule := capacityRule(m[1], m[2], m[3], m[4])
		f.Arithmetic = rule.arithmetic
		f.Summary = fmt.Sprintf("The kubelet's own fit check, which comes after its managers, refused the pod (%s): %s.", s.Reason, rule.why)
	}
	if c.object == nil {
		f.Summary = strings.TrimSuffix(f.Summary, " By what is known of the node now it would not.")
	}
	f.Remedies = []report.Remedy{{Summary: "A refused pod is not tried again: its controller has to make a new one, which can get in if the node has room by then."}}
	return []report.Finding{f}
}

// unexplained reports the refusal in the kubelet's own words.
func (c *podCase) unexplained(now string) report.Finding {
	s := c.pod.Status
	f := report.NewFinding(report.RefusalUnexplained, report.Proven, c.subject(""),
		fmt.Sprintf("The kubelet of %s refused the pod: %s. No rule here explains it.%s", c.name, s.Reason, behind(now)))
	f.Remedies = []report.Remedy{{Summary: "A refused pod is not tried again: its controller has to make a new one, which may meet the same refusal."}}
	return f
}
