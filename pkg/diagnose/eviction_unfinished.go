package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// evictionUnfinished speaks of an event Evicted whose pod runs on: the kubelet
// sends the event first and writes phase Failed, reason Evicted only once the pod
// is dead (kubelet 1.34 to 1.37, evictPod and killPodNow). On a node that thrashes
// it may never get there.
func evictionUnfinished(c *podCase) []report.Finding {
	if f, ok := c.unfinished(); ok {
		return []report.Finding{f}
	}
	return nil
}

// nodeEvictionUnfinished says it of every pod of the node.
func nodeEvictionUnfinished(n *nodeCase) []report.Finding {
	const most = 5
	var out []report.Finding
	for i := range n.pods {
		if f, ok := newBarePod(n, &n.pods[i]).unfinished(); ok && len(out) < most {
			out = append(out, f)
		}
	}
	return out
}

func (c *podCase) unfinished() (report.Finding, bool) {
	t, ok := c.evicted()
	if !ok || t.done || c.ended() || t.Kind == eviction.NodeCondition {
		return report.Finding{}, false
	}
	exceeded := c.podEvents("ExceededGracePeriod")
	for len(exceeded) > 0 && lastSeen(exceeded[0]).Before(t.at) {
		exceeded = exceeded[1:]
	}
	since := c.at.Sub(t.at)
	underWay := len(exceeded) == 0 && since >= 0 && since <= evictionGrace
	began, later := "", ""
	if !t.at.IsZero() {
		began = " at " + utc(t.at)
		if since >= 0 {
			later = since.Round(time.Second).String() + " later "
		}
	}
	state := fmt.Sprintf("%sit is not evicted: phase %s, no reason Evicted", later, c.pod.Status.Phase)
	if underWay {
		state = later + "that is still under way"
	}
	summary := fmt.Sprintf("The kubelet began to evict the pod%s, because %s, but %s", began, t.what(), state)
	if len(exceeded) > 0 {
		summary += "; the runtime did not kill it in time (ExceededGracePeriod)"
	}
	f := report.NewFinding(report.EvictionUnfinished, report.Proven, c.subject(""), summary+". The event tells of an attempt, not of a result.")
	f.Because = c.evictionEvidence(t)
	if len(exceeded) > 0 {
		f.Because = append(f.Because, eventEvidence(exceeded[len(exceeded)-1], "the pod was not dead 10 s, or one and a half grace periods, after the attempt"))
	}
	if ready, ok := c.nodeReady(); ok && ready.Value != "True" {
		f.Confidence = report.Likely // it may be done, and the kubelet cannot say so
		f.Because = append(f.Because, ready)
	}
	if underWay {
		f.Confidence = report.Likely
	}
	for _, k := range c.containers() {
		if k.running() && k.status.State.Running.StartedAt.After(t.at) {
			f.Because = append(f.Because, c.podField(k.field("status")+".state.running.startedAt", utc(k.status.State.Running.StartedAt.Time), "started after the attempt: the kubelet gave it up"))
		}
	}
	rank, evidence := c.rank(t)
	if rank != "" {
		f.Because = append(f.Because, evidence...)
		f.Arithmetic = "Why this pod: " + rank
	}
	f.Because = append(f.Because, c.noOOM()...)
	f.Remedies = c.unfinishedRemedies(t)
	return f, true
}

func (c *podCase) unfinishedRemedies(t evictionTry) []report.Remedy {
	if t.Kind != eviction.NodeLow || t.Resource != "memory" {
		return []report.Remedy{{Summary: "Look at the pod and the node again: the kubelet tries every 10 s while the cause lasts.", Command: "kubectl get pod -n " + c.pod.Namespace + " " + c.pod.Name + " -o wide"}}
	}
	remedy := report.Remedy{
		Summary: "Free memory on the node by hand: end what grows. The pod that the kubelet chose need not be the one that filled the node.",
		Effect:  "A node that reclaims all the time is too slow to kill; evictionHard memory.available well above zero, and limits on the pods, keep it from getting there.",
	}
	if limit, ok := c.limitOfAll(); ok {
		remedy.Caution = fmt.Sprintf("Its memory limit is %s: evicting it frees no more than that.", bytes(limit))
	}
	if names := c.unlimited(); len(names) > 0 {
		remedy.Summary += " Pods here that may grow without a limit: " + join(names) + "."
	}
	return []report.Remedy{remedy}
}

// limitOfAll is the most memory that the pod can hold by its spec.
func (c *podCase) limitOfAll() (uint64, bool) {
	limit, ok := c.podMemoryLimit()
	return limit, ok && limit > 0
}

// unlimited are running pods of the node without a memory limit, at most eight.
func (n *nodeCase) unlimited() []string {
	const most = 8
	var out []string
	for i := range n.pods {
		c := newBarePod(n, &n.pods[i])
		if _, limited := c.limitOfAll(); limited || !active(c.pod) || strings.HasPrefix(c.pod.Namespace, "kube-") || len(out) == most {
			continue
		}
		out = append(out, c.pod.Namespace+"/"+c.pod.Name)
	}
	return out
}

// nodeReady is the node's condition Ready.
func (n *nodeCase) nodeReady() (report.Evidence, bool) {
	if n.object == nil {
		return report.Evidence{}, false
	}
	for _, c := range n.object.Status.Conditions {
		if c.Type == corev1.NodeReady {
			e := n.apiEvidence("status.conditions[Ready]", string(c.Status), "what the kubelet last told may be old: "+c.Message)
			e.At = c.LastTransitionTime
			return e, true
		}
	}
	return report.Evidence{}, false
}
