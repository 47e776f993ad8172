package shrink

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// podEvent is something of a pod that Karpenter writes down on the NodeClaim as
// lastPodEventTime (Karpenter 1.14, pkg/controllers/nodeclaim/podevents), as far
// as the pod's object still tells when it was. Its clock is that of the kubelet
// or the scheduler, cut to seconds.
type podEvent struct {
	at   time.Time
	pod  *corev1.Pod
	what string
}

// podEvents are those of the node's pods up to the moment, oldest first. Pods
// of DaemonSets do not count.
func (n *nodeCase) podEvents() []podEvent {
	var out []podEvent
	for _, pod := range n.node.Pods {
		if disruption.IsDaemonSetPod(pod) {
			continue
		}
		for _, e := range eventsOfPod(pod) {
			if !e.at.IsZero() && !e.at.After(n.at) {
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b podEvent) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return out
}

func eventsOfPod(pod *corev1.Pod) []podEvent {
	out := []podEvent{{at: boundAt(pod), pod: pod, what: "was bound to the node"}}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		out = append(out, podEvent{at: endedAt(pod), pod: pod, what: "ended (" + string(pod.Status.Phase) + ")"})
	}
	if pod.DeletionTimestamp != nil {
		out = append(out, podEvent{at: deletedAt(pod), pod: pod, what: "was deleted"})
	}
	return out
}

func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return time.Time{}
}

// endedAt is when the last container of a pod that is over ended.
func endedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// deletedAt is when deletion was asked for: its timestamp is the end of the
// grace period.
func deletedAt(pod *corev1.Pod) time.Time {
	grace := pod.DeletionGracePeriodSeconds
	if grace == nil || *grace < 0 || *grace > math.MaxInt32 {
		return pod.DeletionTimestamp.Time
	}
	return pod.DeletionTimestamp.Add(-time.Duration(*grace) * time.Second)
}

// recordedEvent is the one that lastPodEventTime is of: the nearest to it within
// the time that Karpenter needs to hear of one.
func recordedEvent(events []podEvent, recorded time.Time) (found podEvent, ok bool) {
	const near = 2 * time.Second
	for _, e := range events {
		apart := recorded.Sub(e.at).Abs()
		if apart <= near && (!ok || apart <= recorded.Sub(found.at).Abs()) {
			found, ok = e, true
		}
	}
	return found, ok
}

// maker names what the pod is one of: its controller, and of a Job that a
// CronJob names after itself and a number, the CronJob as the name has it.
func maker(pod *corev1.Pod) string {
	c := controllerOf(pod)
	job, isJob := strings.CutPrefix(c, "Job ")
	if i := strings.LastIndex(job, "-"); isJob && i > 0 && len(job)-i > 8 && strings.Trim(job[i+1:], "0123456789") == "" {
		return c + " (of CronJob " + job[:i] + ", by its name)"
	}
	return c
}
