package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// refusedAgain says whether the kubelet had admitted the refused pod before: at
// its restart it admits every pod again, and one that is refused then fails
// although it ran. proven is false where only the checkpoint speaks for it,
// which has entries of pods refused half-way as well.
func (c *podCase) refusedAgain() (because []report.Evidence, again, proven bool) {
	if c.everStarted() {
		for _, k := range c.containers() {
			switch {
			case k.end() != nil:
				because = append(because, c.endEvidence(k, "it had run"))
			case k.running():
				e := c.podField(k.field("status")+".state.running", "running", "it ran")
				e.At = k.status.State.Running.StartedAt
				because = append(because, e)
			}
		}
		proven = true
	}
	if started := c.podEvents("Started"); len(started) > 0 {
		because = append(because, eventEvidence(started[0], "a container of the pod had started"))
		proven = true
	}
	if e, refused := c.refusalEvent(); refused && c.pod.Status.StartTime != nil {
		at := firstSeen(e)
		// A pod that is refused at once gets its startTime from the refusal.
		const slack = 30 * time.Second
		if start := c.pod.Status.StartTime; !at.IsZero() && at.Sub(start.Time) > slack {
			f := c.podField("status.startTime", utc(start.Time), fmt.Sprintf("the kubelet had taken the pod %s before it refused it", at.Sub(start.Time).Round(time.Second)))
			f.At = *start
			because = append(because, f)
			proven = true
		}
	}
	held := c.heldEvidence()
	switch {
	case proven:
		return append(because, held...), true, true
	case len(held) > 0 && c.pod.Status.Reason != "UnexpectedAdmissionError" && c.heldAll():
		return held, true, false
	}
	return nil, false, false
}

// refusalEvent is the event of the refusal.
func (c *podCase) refusalEvent() (corev1.Event, bool) {
	events := c.podEvents(c.pod.Status.Reason)
	if len(events) == 0 {
		return corev1.Event{}, false
	}
	return events[len(events)-1], true
}

func (c *podCase) heldEvidence() []report.Evidence {
	var out []report.Evidence
	for _, k := range c.containers() {
		if set, ok := c.ownedCPUs(c.uid, k.Name); ok {
			out = append(out, c.fileEvidence(cpuStatePath, "entries["+c.uid+"]["+k.Name+"]", set.String(), "CPUs that are still booked for container "+k.Name))
		}
	}
	return out
}

// heldAll says whether every container that is entitled to CPUs of its own has
// them: a pod that was refused on its way has them for the first ones only.
func (c *podCase) heldAll() bool {
	p := kubeletPod(c.pod)
	for _, r := range c.requestsOf(p.Pod).Containers {
		if _, ok := c.ownedCPUs(c.uid, r.Name); !ok && r.CPUs > 0 {
			return false
		}
	}
	return true
}

// restartEvents are the last signs of a start of the kubelet before a moment.
func (n *nodeCase) restartEvents(before time.Time) []report.Evidence {
	mine := func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == n.name
	}
	var last *corev1.Event
	for _, e := range n.eventsOf(mine, "Starting", "Rebooted") {
		// kube-proxy says Starting too.
		if e.Reason == "Starting" && !strings.Contains(e.Message, "kubelet") || !before.IsZero() && lastSeen(e).After(before.Add(time.Second)) {
			continue
		}
		last = &e
	}
	if last == nil {
		return nil
	}
	return []report.Evidence{eventEvidence(*last, "the kubelet started, and admitted its pods again")}
}

// readmissionRefused speaks of a pod that a restart of the kubelet refused
// although it ran: beside the code of the refusal, which is for any pod.
func readmissionRefused(c *podCase) []report.Finding {
	if !c.refused() {
		return nil
	}
	because, again, proven := c.refusedAgain()
	if !again {
		return nil
	}
	s := c.pod.Status
	confidence := report.Proven
	if !proven {
		confidence = report.Likely
	}
	var at time.Time
	if e, ok := c.refusalEvent(); ok {
		at = firstSeen(e)
	}
	why := c.readmissionCause()
	if h, ok := c.refusedWithHeld(); ok {
		if h.proven && len(h.parts) > 0 {
			confidence = report.Proven
		}
		held, other := h.texts()
		if s.Reason == "TopologyAffinityError" {
			why = fmt.Sprintf("What it holds, %s, does not agree with topologyManagerPolicy %s, which came with the restart.", held, h.attempt.from.config.Kubelet.TopologyManagerPolicy)
			if other != "" {
				why = fmt.Sprintf("Its containers ask for other amounts than the checkpoint books for them: %s.", other)
			}
		}
	}
	f := report.NewFinding(report.ReadmissionRefused, confidence, c.subject(""),
		fmt.Sprintf("A restart of the kubelet of %s refused the pod although it had been admitted there before: %s. %s", c.name, s.Reason, why))
	f.Because = append([]report.Evidence{
		c.podField("status.reason", s.Reason, ""),
		c.podField("status.message", s.Message, "the kubelet's own words"),
	}, because...)
	f.Because = append(f.Because, c.restartEvents(at)...)
	if c.smtCheckedFirst() {
		f.Because = append(f.Because, c.apiEvidence("status.nodeInfo.kubeletVersion", c.object.Status.NodeInfo.KubeletVersion, "to 1.36 free whole cores are asked for before it is seen that the container has its CPUs"))
	}
	f.Remedies = []report.Remedy{{
		Summary: "Delete the pod; its controller makes a new one. Its containers were killed, and what it held goes back to the shared pool.",
	}}
	if c.smtCheckedFirst() {
		f.Remedies = append(f.Remedies, report.Remedy{
			Summary: "Drain the node before the kubelet restarts, or keep as many CPUs free on whole cores as the largest such container has; a kubelet of 1.37 does not refuse it.",
		})
	} else {
		f.Remedies = append(f.Remedies, report.Remedy{Summary: "Drain the node before a restart of the kubelet that changes its policies, options, reservations, labels or version."})
	}
	return []report.Finding{f}
}

// smtCheckedFirst says whether the refusal is that of full-pcpus-only in a
// kubelet that asks for free CPUs even of a container that has its own.
func (c *podCase) smtCheckedFirst() bool {
	return c.object != nil && c.rulesKnown && c.rules.SMTCheckFirst && c.pod.Status.Reason == "SMTAlignmentError" && strings.Contains(c.pod.Status.Message, "not enough free physical CPUs")
}

func (c *podCase) readmissionCause() string {
	s := c.pod.Status
	switch {
	case c.smtCheckedFirst():
		return fmt.Sprintf("A kubelet of 1.%d with full-pcpus-only asks for so many free CPUs on whole cores before it sees that the container has its own.", c.rules.Minor)
	case s.Reason == "SMTAlignmentError":
		return "With full-pcpus-only its size is no multiple of a core's CPUs: the option came with the restart, or another machine."
	case s.Reason == "TopologyAffinityError":
		return "What it holds no longer agrees with the Topology Manager's policy, which came with the restart, or its containers ask for other amounts than they hold."
	case s.Reason == "NodeAffinity":
		return "The node's labels no longer match the pod; the scheduler does not ask again, the kubelet does at its start."
	case strings.HasPrefix(s.Reason, "OutOf"):
		return "What the node has for pods no longer holds the requests of all that ran there."
	}
	return "At its start the kubelet admits every pod again, in the order of creation, and this one no longer got through."
}
