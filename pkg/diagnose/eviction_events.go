package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const reasonEvicted = "Evicted"

// evictionTry is an eviction of this pod as the kubelet told of it: in an event,
// which it sends before it kills, or in the status, which it writes after.
type evictionTry struct {
	eviction.Message
	text  string
	at    time.Time // zero: not known
	event *corev1.Event
	// done: the status says that the pod failed because of it.
	done bool
}

// evicted is the pod's last eviction; ok is false where the kubelet tells of
// none. Others use the reason Evicted for events of their own: only the kubelet's
// wording counts there.
func (c *podCase) evicted() (evictionTry, bool) {
	var t evictionTry
	events := c.podEvents(reasonEvicted)
	for i := range slices.Backward(events) {
		if m := eviction.ParseMessage(events[i].Message); m.Kind != eviction.Unknown {
			t = evictionTry{Message: m, text: events[i].Message, at: lastSeen(events[i]), event: &events[i]}
			break
		}
	}
	s := c.pod.Status
	if s.Phase == corev1.PodFailed && s.Reason == reasonEvicted {
		t.done = true
		t.Message, t.text = eviction.ParseMessage(s.Message), s.Message
		if condition := c.disruption(); t.at.IsZero() && condition != nil {
			t.at = condition.LastTransitionTime.Time
		}
	}
	return t, t.done || t.event != nil
}

// disruption is the condition with which the kubelet marks a pod that it ended.
func (c *podCase) disruption() *corev1.PodCondition {
	for i := range c.pod.Status.Conditions {
		condition := &c.pod.Status.Conditions[i]
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue && condition.Reason == corev1.PodReasonTerminationByKubelet {
			return condition
		}
	}
	return nil
}

// what says what was short or exceeded.
func (t evictionTry) what() string {
	switch t.Kind {
	case eviction.NodeLow:
		text := "the node was low on " + t.Resource
		if t.Threshold != "" {
			text += fmt.Sprintf(" (available %s, below the threshold of %s)", t.Available, t.Threshold)
		}
		return text
	case eviction.NodeCondition:
		return "the node had the condition " + strings.Join(strings.Fields(t.Conditions), " and ")
	case eviction.EmptyDirLimit:
		return fmt.Sprintf("emptyDir volume %q held more than its sizeLimit of %s", t.Volume, t.Limit)
	case eviction.PodStorageLimit:
		return fmt.Sprintf("its local storage exceeded its containers' limits.ephemeral-storage, %s together", t.Limit)
	case eviction.ContainerStorageLimit:
		return fmt.Sprintf("container %s exceeded its limits.ephemeral-storage of %s", t.Container, t.Limit)
	}
	return "the message is not one of the kubelet's that are known"
}

// consumers says who used more than it asked for.
func (t evictionTry) consumers() string {
	var parts []string
	for _, k := range t.Consumers {
		who := "container " + k.Name
		if k.Pod {
			who = "the pod"
		}
		parts = append(parts, fmt.Sprintf("%s used %s of a request of %s", who, k.Usage, k.Request))
	}
	return join(parts)
}

// evictionEvidence quotes status, event and what the node says of it.
func (c *podCase) evictionEvidence(t evictionTry) []report.Evidence {
	var out []report.Evidence
	s := c.pod.Status
	if t.done {
		out = append(out, c.podField("status.reason", s.Reason, "phase "+string(s.Phase)+": an eviction that was carried out"),
			c.podField("status.message", cutText(s.Message), ""))
		if condition := c.disruption(); condition != nil {
			e := c.podField("status.conditions[DisruptionTarget]", string(condition.Reason), "the kubelet ended it")
			e.At = condition.LastTransitionTime
			out = append(out, e)
		}
	} else {
		out = append(out, c.podField("status.phase", string(s.Phase), "an eviction ends with phase Failed and reason Evicted"))
	}
	if t.event != nil {
		out = append(out, eventEvidence(*t.event, "sent before the pod is killed"))
		for _, key := range []string{eviction.StarvedResource, eviction.OffendingContainers, eviction.OffendingContainersUsage} {
			if v := t.event.Annotations[key]; v != "" {
				out = append(out, report.Evidence{Source: "api:events/" + t.event.Namespace + "/" + t.event.Name, Field: "metadata.annotations[" + key + "]", Value: cutText(v)})
			}
		}
	}
	for _, e := range c.eventsOf(c.mine, "EvictionThresholdMet") {
		if t.at.IsZero() || absolute(lastSeen(e).Sub(t.at)) <= time.Minute {
			out = append(out, eventEvidence(e, "the kubelet began to evict"))
		}
	}
	if t.Kind == eviction.NodeLow {
		out = append(out, c.thresholdEvidence(t)...)
		for _, signal := range eviction.Signals(t.Resource)[:min(1, len(eviction.Signals(t.Resource)))] {
			if e, ok := c.pressureCondition(signal); ok {
				out = append(out, e)
			}
		}
	}
	return out
}

// thresholdEvidence is the threshold of the configuration that the message
// names.
func (c *podCase) thresholdEvidence(t evictionTry) []report.Evidence {
	if c.configErr != nil || t.Threshold == "" {
		return nil
	}
	thresholds, _ := c.config.EvictionThresholds()
	for _, x := range thresholds {
		if !slices.Contains(eviction.Signals(t.Resource), x.Signal) {
			continue
		}
		capacity, known := c.signalCapacity(x.Signal)
		if x.Text != t.Threshold && (!known || x.Quantity(capacity) != t.Threshold) {
			continue
		}
		means := "a hard threshold: the pod gets 1 s to end"
		if x.Soft {
			means = fmt.Sprintf("a soft threshold: met for %s", x.Grace)
		}
		return []report.Evidence{c.configEvidence(x.Field, x.Text, "the threshold that was met; "+means)}
	}
	return nil
}

// signalCapacity is what a percentage of a signal is taken of.
func (n *nodeCase) signalCapacity(signal string) (int64, bool) {
	for _, s := range n.evictionSignals() {
		if s.name == signal {
			return s.capacity, true
		}
	}
	if n.object == nil {
		return 0, false
	}
	switch signal {
	case signalMemory:
		return n.object.Status.Capacity.Memory().Value(), true
	case "nodefs.available":
		q, ok := n.object.Status.Capacity[corev1.ResourceEphemeralStorage]
		return q.Value(), ok
	}
	return 0, false
}

// statless says whether the event shows that the kubelet had no statistics of
// the pod: only then it sends one for a shortage without the annotation.
func (t evictionTry) statless() bool {
	return t.event != nil && t.Kind == eviction.NodeLow && t.Threshold != "" && len(t.Consumers) == 0 && t.event.Annotations[eviction.StarvedResource] == ""
}

// rank says why this pod: by the kubelet's own list in its log, or by what the
// event shows of the rule.
func (c *podCase) rank(t evictionTry) (string, []report.Evidence) {
	name := c.pod.Namespace + "/" + c.pod.Name
	if list, line, ok := c.rankedInLog(t.at); ok {
		if i := slices.Index(list, name); i >= 0 {
			const most = 5
			return fmt.Sprintf("the kubelet ranked it %d of %d", i+1, len(list)), []report.Evidence{{Source: "kubelet:log", Field: fmt.Sprintf("line %d, pods ranked for eviction", line),
				Value: strings.Join(list[:min(most, len(list))], ", "), Means: "the kubelet's own order, the first goes"}}
		}
	}
	switch {
	case t.statless():
		return "the event has no annotation starved_resource, so the kubelet had no statistics of the pod, and such a pod goes first whatever it uses", nil
	case len(t.Consumers) > 0:
		return "pods above their request go first, then the lower priority, then the larger excess", nil
	case t.event != nil && t.Kind == eviction.NodeLow && t.Threshold != "":
		return "none of its containers was above its request, so none above theirs was left, or the pod as a whole was", nil
	}
	return "", nil
}

// rankedInLog is the last list of pods that the kubelet's log has up to 30 s
// after a moment, and not more than a minute before it.
func (n *nodeCase) rankedInLog(at time.Time) (pods []string, line int, ok bool) {
	if at.IsZero() {
		return nil, 0, false
	}
	data, err := n.files.File("kubelet.log")
	if err != nil {
		return nil, 0, false
	}
	const phrase = `"Eviction manager: pods ranked for eviction" pods=[`
	for i, text := range strings.Split(string(data), "\n") {
		_, rest, found := strings.Cut(text, phrase)
		if !found {
			continue
		}
		list, _, closed := strings.Cut(rest, "]")
		logged, err := logTime(text)
		if !closed || err != nil || logged.Before(at.Add(-time.Minute)) || logged.After(at.Add(30*time.Second)) {
			continue
		}
		pods, line, ok = nil, i+1, true
		for name := range strings.SplitSeq(list, ",") {
			pods = append(pods, strings.Trim(name, `" `))
		}
	}
	return pods, line, ok
}

// logTime is the stamp that journalctl puts before a line.
func logTime(line string) (time.Time, error) {
	word, _, _ := strings.Cut(line, " ")
	t, err := time.Parse("2006-01-02T15:04:05.999999999-0700", word)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, word)
	}
	return t, err
}

// noOOM sets the eviction apart from an OOM kill, with what the pod's counters
// and containers show.
func (c *podCase) noOOM() []report.Evidence {
	e := c.oom()
	var out []report.Evidence
	if kills, ok := e.slice.inTree("oom_kill"); ok && kills == 0 {
		out = append(out, c.eventsEvidence(e.slice, false, "the kernel killed nothing here: no OOM; the pod's cgroup", "oom_kill")...)
	}
	for _, k := range c.containers() {
		end := k.end()
		if end == nil || end.FinishedAt.IsZero() {
			continue
		}
		switch {
		case end.Reason == reasonOOMKilled:
			out = append(out, c.endEvidence(k, "an OOM kill, which is the kernel's and another matter than the eviction"))
		case end.ExitCode == 137 || end.ExitCode == 143:
			out = append(out, c.endEvidence(k, "SIGTERM or SIGKILL, as the kubelet ends an evicted pod; no OOM kill"))
		}
	}
	return out
}

func absolute(d time.Duration) time.Duration { return max(d, -d) }

// cutText bounds a text of the API.
func cutText(s string) string {
	const most = 300
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
