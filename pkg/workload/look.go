package workload

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Look is how a pod looks to the API server alone.
type Look struct {
	// State is a word or two for it, such as "OOMKilled" or "Running".
	State string
	// grave orders the states, the gravest first.
	grave    int
	restarts int64
	// last is when a container of it ended last, zero for never.
	last            time.Time
	namespace, name string
}

// States in their order.
const (
	failed = iota
	stuck
	killed
	restarted
	notReady
	running
	succeeded
)

// LookAt tells how a pod looks.
func LookAt(pod *corev1.Pod) Look {
	l := Look{State: string(pod.Status.Phase), grave: running, namespace: pod.Namespace, name: pod.Name}
	if l.State == "" {
		l.State = string(corev1.PodUnknown)
	}
	worse := func(grave int, state string) {
		if grave < l.grave {
			l.grave, l.State = grave, cmp.Or(state, l.State)
		}
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		l.grave = succeeded
		return l
	case corev1.PodFailed:
		worse(failed, pod.Status.Reason)
	case corev1.PodRunning:
		if !ready(pod) {
			worse(notReady, "NotReady")
		}
	default:
		worse(notReady, "")
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			l.restarts += int64(s.RestartCount)
			if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "" {
				worse(stuck, w.Reason)
			}
			for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
				switch {
				case t == nil:
					continue
				case t.Reason == "OOMKilled":
					worse(killed, t.Reason)
				case t.ExitCode != 0:
					worse(restarted, "Restarted")
				}
				if t.FinishedAt.After(l.last) {
					l.last = t.FinishedAt.Time
				}
			}
		}
	}
	return l
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Compare puts the pod first that looks worse: by its state, the more and the
// later restarts, its name.
func (l Look) Compare(o Look) int {
	return cmp.Or(cmp.Compare(l.grave, o.grave), cmp.Compare(o.restarts, l.restarts), o.last.Compare(l.last),
		strings.Compare(l.namespace, o.namespace), strings.Compare(l.name, o.name))
}
