package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// crashLoopBackOff says when the kubelet starts a container again: the delay
// that it names, counted from the container's last end. An image pull adds to
// it.
func crashLoopBackOff(c *podCase) []report.Finding {
	var out []report.Finding
	for _, k := range c.containers() {
		if k.status == nil || k.status.State.Waiting == nil || k.status.State.Waiting.Reason != "CrashLoopBackOff" {
			continue
		}
		waiting := k.status.State.Waiting
		f := newFinding(report.CrashLoopBackOff, report.Proven, c.subject(k.Name), "")
		f.Because = append(f.Because, c.podField(k.field("status")+".state.waiting", waiting.Reason, waiting.Message))
		delay, ok := backOffDelay(waiting.Message)
		end := k.end()
		if !ok || end == nil || end.FinishedAt.IsZero() {
			f.Confidence = report.Likely
			f.Summary = fmt.Sprintf("Container %s waits to be restarted (%s so far); the status does not say for how long.", k.Name, plural(int64(k.status.RestartCount), "restart"))
			out = append(out, f)
			continue
		}
		next := end.FinishedAt.Add(delay)
		state := "is due at " + utc(next)
		if !next.After(c.at) {
			state = fmt.Sprintf("was due at %s, before the moment observed (%s)", utc(next), utc(c.at))
		}
		f.Summary = fmt.Sprintf("Container %s waits %s after its end at %s; the next start %s (%s so far).",
			k.Name, delay, utc(end.FinishedAt.Time), state, plural(int64(k.status.RestartCount), "restart"))
		f.Because = append(f.Because, c.endEvidence(k, "the delay counts from here"))
		f.Arithmetic = fmt.Sprintf("%s + %s = %s", utc(end.FinishedAt.Time), delay, utc(next))
		out = append(out, f)
	}
	return out
}

// backOffDelay reads the delay from the kubelet's message, "back-off 5m0s
// restarting failed container=…".
func backOffDelay(message string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(message, "back-off ")
	if !ok {
		return 0, false
	}
	word, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, false
	}
	return d, true
}
