package diagnose

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// evictedNodePressure speaks of a pod that the kubelet ended, or refused, because
// the node was short of something (kubelet 1.34 to 1.37, eviction manager). Only
// phase Failed with reason Evicted is an eviction; the event alone is an attempt.
func evictedNodePressure(c *podCase) []report.Finding {
	t, ok := c.evicted()
	if !ok || !t.done {
		return nil
	}
	switch t.Kind {
	case eviction.NodeLow, eviction.NodeCondition, eviction.Unknown:
		return []report.Finding{c.evictedFinding(t)}
	}
	return nil
}

func (c *podCase) evictedFinding(t evictionTry) report.Finding {
	did := "evicted the pod"
	if t.Kind == eviction.NodeCondition {
		did = "refused the pod at admission"
	}
	summary := "The kubelet " + did
	if !t.at.IsZero() {
		summary += " at " + utc(t.at)
	}
	summary += ": " + t.what()
	if who := t.consumers(); who != "" {
		summary += "; " + who
	}
	rank, evidence := c.rank(t)
	if rank != "" {
		summary += "; " + rank
	}
	f := report.NewFinding(report.EvictedNodePressure, report.Proven, c.subject(""), summary+". It is the kubelet's decision, no OOM kill.")
	if t.Kind == eviction.Unknown {
		f.Confidence = report.Likely
	}
	f.Because = append(c.evictionEvidence(t), evidence...)
	f.Because = append(f.Because, c.noOOM()...)
	f.Remedies = evictionRemedies(t)
	return f
}

func evictionRemedies(t evictionTry) []report.Remedy {
	switch {
	case t.Kind == eviction.NodeCondition:
		return []report.Remedy{{
			Summary: "Wait until the condition is over, or place the pod elsewhere: memory pressure alone keeps only BestEffort pods out, disk and process pressure all but critical ones.",
			Effect:  "The condition stays for evictionPressureTransitionPeriod (5 min by default) after the shortage.",
		}}
	case t.Resource == "memory":
		return []report.Remedy{{
			Summary: "Set the memory request near to what the pod uses, and limits on what may grow; find the pods of the node that are far above their requests.",
			Effect:  "A pod that stays below its request is evicted only after all those above theirs.",
			Caution: "The pod that goes need not be the one that filled the node: priority and excess over the request decide, not size.",
		}}
	case t.Resource == "ephemeral-storage" || t.Resource == "inodes":
		return []report.Remedy{{
			Summary: "Set requests.ephemeral-storage near to use, and look at logs, emptyDir volumes and the writable layer of the node's containers.",
			Effect:  "A pod that stays below its request is evicted only after those above theirs; images that nobody uses are deleted first.",
		}}
	}
	return []report.Remedy{{Summary: "Find what uses the resource on the node, and give pods that must stay a higher priority."}}
}

// nodeEvictions sums up on the node's report which of its pods were evicted.
func nodeEvictions(n *nodeCase) []report.Finding {
	const rows = 5
	var newest evictionTry
	var names []string
	var because []report.Evidence
	low := map[string]int{}
	for i := range n.pods {
		c := newBarePod(n, &n.pods[i])
		t, ok := c.evicted()
		if !ok || !t.done || t.Kind != eviction.NodeLow {
			continue
		}
		low[t.Resource]++
		names = append(names, c.pod.Namespace+"/"+c.pod.Name)
		if len(because) < rows {
			because = append(because, c.podField("status.message", cutText(c.pod.Status.Message), "evicted"))
		}
		if t.at.After(newest.at) || newest.Resource == "" {
			newest = t
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	more := ""
	if len(names) > rows {
		more = fmt.Sprintf(" and %d more", len(names)-rows)
	}
	when := ""
	if !newest.at.IsZero() {
		when = ", last at " + utc(newest.at)
	}
	f := report.NewFinding(report.EvictedNodePressure, report.Proven, n.subject(), fmt.Sprintf(
		"The kubelet evicted %s%s: %s; %s%s.", plural(len(names), "pod"), when, newest.what(), join(names[:min(rows, len(names))]), more), because...)
	for _, e := range n.eventsOf(n.mine, "EvictionThresholdMet") {
		f.Because = append(f.Because, eventEvidence(e, "the kubelet began to evict"))
	}
	f.Remedies = evictionRemedies(newest)
	return []report.Finding{f}
}

// newBarePod is a pod of which only the API is asked.
func newBarePod(n *nodeCase, pod *corev1.Pod) *podCase {
	return &podCase{nodeCase: n, pod: pod, uid: cgroup.PodUID(pod), groupsErr: errNoNode,
		oom: func() oomEvidence { return oomEvidence{logErr: errNoNode} }}
}

// evictionGrace is how long after its event an eviction may still be under way:
// the kubelet waits that long for the pod to be gone (podCleanupTimeout).
const evictionGrace = 30 * time.Second
