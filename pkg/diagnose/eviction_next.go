package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeEvictionNext says which pod the kubelet would evict next, where a signal
// stands at its threshold or near it: signals, thresholds and the ranking are the
// eviction manager's (kubelet 1.34 to 1.37, pkg/kubelet/eviction).
func nodeEvictionNext(n *nodeCase) []report.Finding {
	if f, _, ok := n.evictionNext(); ok {
		return []report.Finding{f}
	}
	return n.pressureUnranked()
}

// podEvictionNext says it on the report of the pod that goes next.
func podEvictionNext(c *podCase) []report.Finding {
	if f, uid, ok := c.evictionNext(); ok && uid == c.uid {
		return []report.Finding{f}
	}
	return nil
}

// evictionNext is the finding and the UID of the pod it is about.
func (n *nodeCase) evictionNext() (report.Finding, string, bool) {
	if n.podsErr != nil {
		return report.Finding{}, "", false // who is not known may come first
	}
	for _, p := range n.pressures() {
		if !p.near() {
			continue
		}
		q, ok := n.evictionQueue(p.evictionSignal)
		if !ok {
			continue
		}
		next, place, ok := q.next()
		if !ok {
			continue
		}
		return n.evictionNextFinding(p, q, next, place), cgroup.PodUID(next.Pod), true
	}
	return report.Finding{}, "", false
}

func (n *nodeCase) evictionNextFinding(p pressure, q evictionQueue, next eviction.Candidate, place int) report.Finding {
	pod := next.Pod
	when := "The kubelet would evict this pod next"
	if p.met() && !p.threshold.Soft {
		when = "The kubelet evicts this pod next"
	}
	f := report.NewFinding(report.EvictionNext, report.Likely, report.Subject{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
		fmt.Sprintf("%s: %s; pod %s/%s %s, first of %s%s.", when, p.text(), pod.Namespace, pod.Name, p.why(next), plural(len(q.order), "pod"), p.tied(q, place)))
	if len(q.unknown) > 0 {
		f.Confidence = report.Possible
		n.gaps.Lack("nodes/"+n.name+"/stats-summary.json", fmt.Sprintf("the use of %s is not known, among them %s", plural(len(q.unknown), "pod"), q.unknown[0]),
			"another pod may stand before this one in the queue of eviction", "get nodes/proxy (kubelet /stats/summary)")
	}
	f.Because = append(f.Because, p.evidence...)
	f.Because = append(f.Because, n.configEvidence(p.threshold.Field, p.threshold.Text, n.thresholdMeans(p)))
	if condition, ok := n.pressureCondition(p.name); ok {
		f.Because = append(f.Because, condition)
	}
	const rows = 6
	for i, c := range q.order {
		if i == rows {
			break
		}
		e, measured := q.evidence[cgroup.PodUID(c.Pod)]
		if !measured {
			e = report.Evidence{Source: "api:pods/" + c.Pod.Namespace + "/" + c.Pod.Name, Field: "status.phase", Value: string(c.Pod.Status.Phase)}
			if q.measured {
				e = report.Evidence{Source: statsSource, Field: "pods[" + c.Pod.Namespace + "/" + c.Pod.Name + "]", Value: "absent"}
			}
		}
		e.Means = fmt.Sprintf("place %d: pod %s/%s %s", i+1, c.Pod.Namespace, c.Pod.Name, p.why(c))
		if eviction.Critical(c.Pod) {
			e.Means += "; critical, never evicted"
		}
		f.Because = append(f.Because, e)
	}
	f.Arithmetic = p.arithmetic
	if s, ok := n.memorySignal(); ok && p.name == signalMemory && p.arithmetic == "" {
		f.Because = append(f.Because, s.evidence...)
		f.Arithmetic = "by the node's files " + s.arithmetic
	}
	if p.threshold.MinReclaim != "" {
		f.Because = append(f.Because, n.configEvidence("evictionMinimumReclaim["+p.threshold.Signal+"]", p.threshold.MinReclaim,
			"once met, the threshold stays so until "+p.amount(p.threshold.Until(p.capacity))+" is free"))
	}
	if !q.measured {
		n.gaps.Miss("nodes/"+n.name+"/stats-summary.json", n.statsErr(), "the ranking is computed from cgroups instead of the kubelet's own figures", "get nodes/proxy (kubelet /stats/summary)")
	}
	f.Remedies = []report.Remedy{{
		Summary: "Set requests near to use, so that pods which use more than they asked for go first, or give this pod a higher priority.",
		Effect:  "The kubelet takes one pod a round, every 10 s: pods without statistics (none of their containers runs), then those above their request, then the lower priority, then the larger excess.",
	}}
	if !next.Known {
		f.Remedies[0].Summary = "Get a container of this pod to run, or scale it down: while none does, it goes before all others, whatever its request and priority."
	}
	return f
}

// tied says whether the pod's place is shared.
func (p pressure) tied(q evictionQueue, place int) string {
	if place+1 < len(q.order) && eviction.Tied(q.order[place], q.order[place+1], p.name == signalPIDs) {
		return " (the kubelet cannot tell it from the next, so that either may go)"
	}
	return ""
}

// why a pod stands where it does in the queue.
func (p pressure) why(c eviction.Candidate) string {
	runs := slices.ContainsFunc((&podCase{pod: c.Pod}).containers(), container.running)
	switch {
	case !c.Known && runs:
		return fmt.Sprintf("has no statistics, and such pods go first (priority %d)", c.Priority())
	case !c.Known:
		return fmt.Sprintf("has no statistics, as none of its containers runs, and such pods go first (priority %d)", c.Priority())
	case p.name == signalPIDs:
		return fmt.Sprintf("has priority %d and %s", c.Priority(), plural(c.Usage, "process"))
	case c.Exceeds():
		return fmt.Sprintf("uses %s, %s above its request of %s (priority %d)", p.amount(c.Usage), p.amount(c.Excess()), p.amount(c.Request), c.Priority())
	default:
		return fmt.Sprintf("uses %s of its request of %s (priority %d)", p.amount(c.Usage), p.amount(c.Request), c.Priority())
	}
}

func (n *nodeCase) thresholdMeans(p pressure) string {
	means := fmt.Sprintf("the hard threshold, %s; a pod gets 1 s to end", p.amount(p.at))
	if p.threshold.Soft {
		means = fmt.Sprintf("the soft threshold, %s, which has to be met for %s; a pod gets its own grace period to end, but no more than evictionMaxPodGracePeriod, %d s",
			p.amount(p.at), p.threshold.Grace, n.config.EvictionMaxPodGracePeriod)
	}
	if p.name == signalAllocatable {
		means += "; it counts for the cgroup of all pods too"
	}
	return means
}

func (n *nodeCase) statsErr() error {
	_, err := n.stats()
	return err
}

// conditionOf is the node condition that a signal sets.
func conditionOf(signal string) corev1.NodeConditionType {
	switch signal {
	case signalMemory, signalAllocatable:
		return corev1.NodeMemoryPressure
	case signalPIDs:
		return corev1.NodePIDPressure
	default:
		return corev1.NodeDiskPressure
	}
}

// pressureCondition quotes the node's condition where it is true.
func (n *nodeCase) pressureCondition(signal string) (report.Evidence, bool) {
	if n.object == nil {
		return report.Evidence{}, false
	}
	for _, c := range n.object.Status.Conditions {
		if c.Type == conditionOf(signal) && c.Status == corev1.ConditionTrue {
			e := n.apiEvidence("status.conditions["+string(c.Type)+"]", string(c.Status), c.Message)
			e.At = c.LastTransitionTime
			return e, true
		}
	}
	return report.Evidence{}, false
}

// pressureUnranked says that the kubelet is evicting where the node's condition
// alone is known, so that no pod can be named.
func (n *nodeCase) pressureUnranked() []report.Finding {
	for _, signal := range []string{signalMemory, "nodefs.available", signalPIDs} {
		condition, ok := n.pressureCondition(signal)
		if !ok || n.measures(conditionOf(signal)) {
			continue
		}
		f := report.NewFinding(report.EvictionNext, report.Likely, n.subject(), fmt.Sprintf(
			"The node reports %s: the kubelet evicts pods until it is over; which one goes next cannot be told, as their use was not read.", conditionOf(signal)), condition)
		for _, e := range n.eventsOf(n.mine, "EvictionThresholdMet") {
			f.Because = append(f.Because, eventEvidence(e, "the kubelet began to evict"))
		}
		n.gaps.Miss("nodes/"+n.name+"/stats-summary.json", n.statsErr(), "the signals of eviction and the queue of the pods", "get nodes/proxy (kubelet /stats/summary)")
		f.Remedies = []report.Remedy{{
			Summary: "Find the pods without a limit, or far above their request, and end or move them; the kubelet evicts by excess over the request, not by size.",
		}}
		return []report.Finding{f}
	}
	return nil
}

// measures says whether the signals behind a condition were measured.
func (n *nodeCase) measures(condition corev1.NodeConditionType) bool {
	for _, p := range n.pressures() {
		if conditionOf(p.name) == condition {
			return true
		}
	}
	return false
}

// mine selects events of the node itself.
func (n *nodeCase) mine(e *corev1.Event) bool {
	return e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == n.name
}
