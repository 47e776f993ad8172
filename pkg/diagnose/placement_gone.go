package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// goneByEvents are pods that events show on the node at or before a moment, and
// that are not there any more. Events are kept for an hour or so: that there are
// none says nothing.
func (n *nodeCase) goneByEvents(at time.Time) ([]string, []report.Evidence) {
	if at.IsZero() {
		return nil, nil
	}
	there := map[string]bool{}
	for i := range n.pods {
		there[n.pods[i].Namespace+"/"+n.pods[i].Name] = true
	}
	before := map[string]bool{}
	started := n.eventsOf(func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind == "Pod" && (e.Source.Host == n.name || e.ReportingInstance == n.name)
	}, "Pulled", "Pulling", "Created", "Started", "Killing")
	var names []string
	var out []report.Evidence
	const most = 4
	for _, e := range started {
		name := e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
		if !there[name] && !firstSeen(e).After(at) {
			before[name] = true
		}
		if e.Reason == "Killing" && lastSeen(e).Before(at) {
			delete(before, name)
		}
	}
	for _, e := range started {
		name := e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
		if before[name] && len(names) < most {
			delete(before, name)
			names = append(names, "pod "+clip(name))
			out = append(out, eventEvidence(e, "a pod that is gone now"))
		}
	}
	return names, out
}

// firstSeen is when an event first happened.
func firstSeen(e corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return lastSeen(e)
}
