package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// sigkillCause is who sent SIGKILL, as far as the API tells.
type sigkillCause struct {
	text     string
	evidence []report.Evidence
	// sure: the event falls into this very run of the container.
	sure bool
}

// exit137NotOOM speaks of exit code 137 (128 + SIGKILL) that no OOM kill
// explains: a failed probe, a stop whose grace period ran out, an eviction, or
// a signal from elsewhere.
func exit137NotOOM(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.containers() {
		end := k.end()
		if end == nil || end.ExitCode != 137 || end.Reason == "ContainerStatusUnknown" {
			continue
		}
		if _, stale := c.oom().before(end); end.Reason == reasonOOMKilled && !stale {
			continue
		}
		if c.killedByOOMD(k, end) {
			continue // systemd-oomd-kill
		}
		noKill, because := c.noOOMKill(k, end)
		if noKill == no {
			continue
		}
		cause, found := c.whoKilled(k, end)
		if noKill == unknown && !found {
			continue // neither the kill nor its absence is shown
		}
		confidence := report.Likely
		if noKill == yes && found && cause.sure || noKill == yes && !found && end.Reason != reasonOOMKilled {
			confidence = report.Proven
		}
		summary := fmt.Sprintf("Container %s ended by SIGKILL (exit code 137) at %s, and no OOM kill explains it", k.Name, utc(end.FinishedAt.Time))
		if noKill == unknown {
			summary = fmt.Sprintf("Container %s ended by SIGKILL (exit code 137) at %s", k.Name, utc(end.FinishedAt.Time))
		}
		if found {
			summary += ": " + cause.text
		} else {
			summary += "; who sent the signal is not in the data"
		}
		f := report.NewFinding(report.Exit137NotOOM, confidence, c.subject(k.Name), summary+".")
		f.Because = append(f.Because, c.endEvidence(k, "137 = 128 + 9: SIGKILL, whoever sent it"))
		f.Because = append(f.Because, cause.evidence...)
		f.Because = append(f.Because, because...)
		out = append(out, f)
	}
	return out
}

// noOOMKill says whether this exit is known not to be an OOM kill.
func (c *podCase) noOOMKill(k container, end *corev1.ContainerStateTerminated) (answer, []report.Evidence) {
	e := c.oom()
	id := cgroup.ContainerID(end.ContainerID)
	if last, stale := e.before(end); stale {
		return yes, []report.Evidence{killEvidence(last, fmt.Sprintf("the last OOM kill in this container, %s before its end", end.FinishedAt.Sub(last.Time.Wall).Round(time.Second)))}
	}
	if e.ofID(id) {
		return no, nil
	}
	kills, counted := e.slice.inTree("oom_kill")
	if counted && kills == 0 {
		return yes, c.eventsEvidence(e.slice, false, "the pod's cgroup, since it was made", "oom_kill", "oom", "max")
	}
	if scope, ok := e.scopes[k.Name]; ok && !counted {
		// The scope of the container that ended, if it is still there.
		if n, ok := scope.inTree("oom_kill"); ok && n == 0 && !k.running() && cgroup.ContainerID(k.status.ContainerID) == id {
			return yes, c.eventsEvidence(scope, false, "the container's cgroup", "oom_kill", "oom", "max")
		}
	}
	if e.logErr == nil && id != "" && e.log.First.HasWall && e.log.Last.HasWall &&
		e.log.First.Wall.Before(end.StartedAt.Time) && !bareKill(e.log, end) && len(e.kills) > 0 && (e.log.Last.Wall.After(end.FinishedAt.Time) || kills == uint64(len(e.kills))) {
		return yes, []report.Evidence{{Source: "kernel:log", Field: fmt.Sprintf("lines of %s to %s", utc(e.log.First.Wall), utc(e.log.Last.Wall)),
			Value: plural(len(e.kills), "OOM kill") + " of this pod", Means: "none of them of this container"}}
	}
	if counted {
		return no, nil // the pod had OOM kills and this may be one of them
	}
	return unknown, nil
}

// bareKill says whether the log has, within a container's run, a kill without
// its report, which names no cgroup: it may be this container's.
func bareKill(log kernlog.Log, end *corev1.ContainerStateTerminated) bool {
	return slices.ContainsFunc(log.Kills, func(k kernlog.Kill) bool {
		return k.TaskMemcg == "" && k.GroupKill == "" && (!k.Time.HasWall ||
			!k.Time.Wall.Before(end.StartedAt.Time) && !k.Time.Wall.After(end.FinishedAt.Add(2*time.Second)))
	})
}

// whoKilled looks for the sender of SIGKILL in status and events.
func (c *podCase) whoKilled(k container, end *corev1.ContainerStateTerminated) (sigkillCause, bool) {
	if cause, ok := c.endedByKubelet(); ok {
		return cause, true
	}
	inRun := func(t time.Time) bool {
		return !t.Before(end.StartedAt.Time) && !t.After(end.FinishedAt.Add(2*time.Second))
	}
	mine := func(e corev1.Event) bool {
		name := eventContainer(e)
		return name == k.Name || name == "" && strings.Contains(e.Message, k.Name)
	}
	var probe, stop, kill *corev1.Event
	killing := c.podEvents("Killing")
	for i := range killing {
		e := &killing[i]
		switch {
		case !mine(*e):
		case strings.Contains(e.Message, "failed liveness probe"), strings.Contains(e.Message, "failed startup probe"):
			kill = e
		case strings.Contains(e.Message, "topping container"):
			stop = e
		}
	}
	unhealthy := c.podEvents("Unhealthy")
	for i := range unhealthy {
		if e := &unhealthy[i]; mine(*e) && !strings.HasPrefix(e.Message, "Readiness") {
			probe = e
		}
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if g := c.pod.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = *g
	}
	graceEvidence := c.podField("spec.terminationGracePeriodSeconds", fmt.Sprint(grace), "s between SIGTERM and SIGKILL")
	if stop != nil && (kill == nil || inRun(lastSeen(*stop))) {
		at := lastSeen(*stop)
		took := end.FinishedAt.Sub(at)
		if inRun(at) {
			return sigkillCause{sure: true,
				text:     fmt.Sprintf("it was told to stop at %s and did not within the grace period of %d s, so it was killed %s later", utc(at), grace, took.Round(time.Second)),
				evidence: []report.Evidence{eventEvidence(*stop, "SIGTERM was sent"), graceEvidence}}, true
		}
	}
	if kill != nil || probe != nil {
		cause := sigkillCause{text: "its " + probeName(k, kill, probe) + " failed, SIGTERM was ignored, and SIGKILL followed after the grace period"}
		if kill != nil {
			if cause.sure = inRun(lastSeen(*kill)); cause.sure {
				cause.text = fmt.Sprintf("its %s failed: it was told to stop at %s, ignored that, and was killed %s later (grace period %d s)",
					probeName(k, kill, probe), utc(lastSeen(*kill)), end.FinishedAt.Sub(lastSeen(*kill)).Round(time.Second), grace)
			}
			cause.evidence = append(cause.evidence, eventEvidence(*kill, "the kubelet stopped it for its probe"))
		}
		if probe != nil {
			cause.sure = cause.sure || kill != nil && inRun(lastSeen(*probe))
			cause.evidence = append(cause.evidence, eventEvidence(*probe, fmt.Sprintf("seen %s", plural(int64(max(probe.Count, 1)), "time"))))
		}
		if !cause.sure {
			cause.text += "; the events are of earlier runs (repeated events are not all recorded), this run most likely ended the same way"
		}
		cause.evidence = append(cause.evidence, graceEvidence)
		return cause, true
	}
	// The timestamp is the request plus the grace period: one asked for after the
	// exit did not cause it.
	if t := c.pod.DeletionTimestamp; t != nil && !t.Add(-time.Duration(grace)*time.Second).After(end.FinishedAt.Time) {
		return sigkillCause{text: "the pod is being deleted and did not stop within its grace period",
			evidence: []report.Evidence{c.podField("metadata.deletionTimestamp", utc(t.Time), ""), graceEvidence}}, true
	}
	return sigkillCause{}, false
}

// endedByKubelet tells pods that were ended as a whole, by their status.
func (c *podCase) endedByKubelet() (sigkillCause, bool) {
	s := c.pod.Status
	because := []report.Evidence{c.podField("status.reason", s.Reason, s.Message)}
	for _, cond := range s.Conditions {
		if cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue {
			e := c.podField("status.conditions[DisruptionTarget]", cond.Reason, cond.Message)
			e.At = cond.LastTransitionTime
			because = append(because, e)
		}
	}
	text := ""
	switch {
	case s.Reason == "Evicted":
		text = "the kubelet evicted the pod"
	case s.Reason == "DeadlineExceeded":
		text = "the pod's activeDeadlineSeconds ran out"
		if d := c.pod.Spec.ActiveDeadlineSeconds; d != nil {
			because = append(because, c.podField("spec.activeDeadlineSeconds", fmt.Sprint(*d), "s"))
		}
	case s.Reason == "NodeShutdown", s.Reason == "Terminated" && strings.Contains(s.Message, "shutdown"):
		text = "the node was shut down, and the kubelet ended its pods"
	case s.Reason == "Preempting", s.Reason == "Preempted":
		text = "the pod was preempted"
	default:
		return sigkillCause{}, false
	}
	return sigkillCause{text: text, sure: true, evidence: because}, true
}

// probeName says which probe it was: liveness, startup, or either.
func probeName(k container, events ...*corev1.Event) string {
	for _, e := range events {
		if e == nil {
			continue
		}
		switch lower := strings.ToLower(e.Message); {
		case strings.Contains(lower, "liveness"):
			return "liveness probe"
		case strings.Contains(lower, "startup"):
			return "startup probe"
		}
	}
	if k.LivenessProbe == nil && k.StartupProbe != nil {
		return "startup probe"
	}
	return "liveness probe"
}
