package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// crashLoopBackOff says when the kubelet starts a container again and by which
// rule: the delay that its message names, else the one that the number of
// restarts gives; both count from the container's last end (kubelet 1.34 to 1.37,
// doBackOff). Init containers and starts that failed count alike.
func crashLoopBackOff(c *podCase) []report.Finding {
	if c.ended() {
		return nil
	}
	rule := c.config.RestartBackOff(c.rules.Minor)
	var out []report.Finding
	for _, k := range c.containers() {
		if k.status == nil {
			continue
		}
		switch waiting := k.status.State.Waiting; {
		case waiting != nil && waiting.Reason == "CrashLoopBackOff":
			out = append(out, c.backOffFinding(k, rule))
		case waiting == nil && k.status.State.Terminated != nil && k.status.RestartCount >= 2 && c.restarts(k):
			out = append(out, c.backOffDue(k, rule))
		}
	}
	return out
}

func (c *podCase) backOffFinding(k container, rule kubeletconfig.RestartBackOff) report.Finding {
	waiting := k.status.State.Waiting
	f := report.NewFinding(report.CrashLoopBackOff, report.Proven, c.subject(k.Name), "")
	f.Because = append(f.Because, c.podField(k.field("status")+".state.waiting", waiting.Reason, waiting.Message))
	end := k.end()
	delay, said := backOffDelay(waiting.Message)
	if !said {
		f.Confidence = report.Likely
		delay = rule.Delay(int(k.status.RestartCount) + 1)
	}
	c.backOffTimes(&f, k, rule, delay, said, end)
	return f
}

// backOffDue speaks of a container that ended and is not yet said to wait.
func (c *podCase) backOffDue(k container, rule kubeletconfig.RestartBackOff) report.Finding {
	f := report.NewFinding(report.CrashLoopBackOff, report.Likely, c.subject(k.Name), "")
	end := k.status.State.Terminated
	delay := rule.Delay(int(k.status.RestartCount) + 1)
	if ranLong(end) {
		delay = 0
	}
	c.backOffTimes(&f, k, rule, delay, false, end)
	return f
}

// backOffTimes words the delay, its rule and the next start.
func (c *podCase) backOffTimes(f *report.Finding, k container, rule kubeletconfig.RestartBackOff, delay time.Duration, said bool, end *corev1.ContainerStateTerminated) {
	restarts := plural(int64(k.status.RestartCount), "restart")
	what := "Container " + k.Name
	if k.init {
		what = "Init container " + k.Name
	}
	ended := ""
	if end != nil && end.Reason != "" {
		ended = fmt.Sprintf(" (%s, exit code %d)", end.Reason, end.ExitCode)
	}
	f.Because = append(f.Because, c.backOffRule(rule)...)
	f.Because = append(f.Because, restartRules(c, k, end)...)
	if end == nil || end.FinishedAt.IsZero() {
		f.Confidence = report.Likely
		f.Summary = fmt.Sprintf("%s waits to be restarted (%s so far): %s, counted from an end whose time the status does not show.", what, restarts, delay)
		if !said {
			f.Summary = fmt.Sprintf("%s waits to be restarted (%s so far); the status does not say for how long, nor when it ended.", what, restarts)
		}
		return
	}
	next := end.FinishedAt.Add(delay)
	state := "the next start is due at " + utc(next)
	if !next.After(c.at) {
		state = fmt.Sprintf("the next start was due at %s, before the moment observed (%s)", utc(next), utc(c.at))
	}
	if t, ok := c.evicted(); ok && !t.done {
		state += "; while the kubelet tries to evict the pod it starts nothing in it"
	}
	wait := fmt.Sprintf("waits %s after its end at %s%s", delay, utc(end.FinishedAt.Time), ended)
	if !said {
		wait = fmt.Sprintf("ended at %s%s and waits; the status does not say for how long. By the rule it is %s after %s in a row, and less if one of its runs was long", utc(end.FinishedAt.Time), ended, delay, restarts)
	}
	f.Summary = fmt.Sprintf("%s %s; %s (%s so far). The delay doubles from %s to at most %s and begins anew after a run of more than %s.",
		what, wait, state, restarts, rule.Initial, rule.Max, kubeletconfig.RestartBackOffReset)
	f.Because = append(f.Because, c.endEvidence(k, "the delay counts from here"))
	f.Arithmetic = fmt.Sprintf("%s + %s = %s", utc(end.FinishedAt.Time), delay, utc(next))
	if said && !rule.Has(delay) {
		f.Because = append(f.Because, c.podField(k.field("status")+".state.waiting.message", delay.String(),
			fmt.Sprintf("not a step from %s to %s: the kubelet's settings were others when it began", rule.Initial, rule.Max)))
	}
}

// backOffRule names what sets the bounds of the delay.
func (c *podCase) backOffRule(rule kubeletconfig.RestartBackOff) []report.Evidence {
	bounds := fmt.Sprintf("delays from %s to %s", rule.Initial, rule.Max)
	if c.configErr != nil {
		return []report.Evidence{c.apiEvidence("status.nodeInfo.kubeletVersion", c.versions().Kubelet, "its defaults: "+bounds+"; the configuration was not read")}
	}
	var out []report.Evidence
	period := "not set"
	if p := c.config.MaxContainerRestartPeriod; p != nil {
		period = p.String()
	}
	if rule.Why == "" {
		return []report.Evidence{c.configEvidence("crashLoopBackOff.maxContainerRestartPeriod", period,
			fmt.Sprintf("not in force: the gate KubeletCrashLoopBackOffMax is off; by default %s", bounds))}
	}
	if on := c.gate("ReduceDefaultCrashLoopBackOffDecay"); on {
		out = append(out, c.configEvidence("featureGates.ReduceDefaultCrashLoopBackOffDecay", "true", "the first delay is 1 s instead of 10 s"))
	}
	if on := c.gate("KubeletCrashLoopBackOffMax"); on {
		out = append(out, c.configEvidence("crashLoopBackOff.maxContainerRestartPeriod", period, "in force (gate KubeletCrashLoopBackOffMax): "+bounds))
	}
	return out
}

// restartRules quotes the container's own rules for restarts.
func restartRules(c *podCase, k container, end *corev1.ContainerStateTerminated) []report.Evidence {
	var out []report.Evidence
	for i, r := range k.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		var values []string
		hit := false
		for _, v := range r.ExitCodes.Values {
			values = append(values, fmt.Sprint(v))
			hit = hit || end != nil && end.ExitCode == v
		}
		if r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn {
			hit = !hit
		}
		if !hit {
			continue
		}
		out = append(out, c.podField(fmt.Sprintf("%s.restartPolicyRules[%d]", k.field("spec"), i),
			fmt.Sprintf("%s on exit codes %s [%s]", r.Action, r.ExitCodes.Operator, strings.Join(values, " ")), "the rule that restarts it; the delay is the same"))
		break
	}
	return out
}

// restarts says whether the kubelet starts the container again after its end.
func (c *podCase) restarts(k container) bool {
	end := k.status.State.Terminated
	if c.pod.DeletionTimestamp != nil || end == nil {
		return false
	}
	policy := c.pod.Spec.RestartPolicy
	if k.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*k.RestartPolicy)
	}
	switch {
	case len(restartRules(c, k, end)) > 0: // they come before the policy
		return true
	case k.init && !k.sidecar:
		return end.ExitCode != 0 && policy != corev1.RestartPolicyNever
	case policy == corev1.RestartPolicyAlways || policy == "":
		return true
	case policy == corev1.RestartPolicyOnFailure:
		return end.ExitCode != 0
	}
	return false
}

// ranLong says whether the run before an end was long enough for the delays to
// begin anew.
func ranLong(end *corev1.ContainerStateTerminated) bool {
	return end.StartedAt.Unix() > 0 && end.FinishedAt.Sub(end.StartedAt.Time) > kubeletconfig.RestartBackOffReset
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
