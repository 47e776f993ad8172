package shrink

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// pause is a time in which the autoscaler removes nothing.
type pause struct {
	what   string
	flag   string
	length time.Duration
	from   time.Time
	proof  report.Evidence
}

func (p pause) until() time.Time { return p.from.Add(p.length).UTC() }

// caCooldown: the node is unneeded, but not for long enough yet, or the
// autoscaler pauses after it has added or failed to remove one (Cluster
// Autoscaler 1.36, core/static_autoscaler.go, core/scaledown/unneeded).
func caCooldown(a *caCase) []report.Finding {
	var out []report.Finding
	if f, ok := a.unneeded(); ok {
		out = append(out, f)
	}
	if f, ok := a.pausing(); ok {
		f.Confidence = weaker(f.Confidence, a.belongs)
		f.Because = append(f.Because, a.tie)
		out = append(out, f)
	}
	return out
}

// unneeded: the taint on a candidate says since when.
func (a *caCase) unneeded() (report.Finding, bool) {
	taint, since, ok := autoscaler.TaintOf(a.node.Node, autoscaler.DeletionCandidateTaint)
	if !ok || since.IsZero() || since.After(a.at) {
		return report.Finding{}, false
	}
	flag, length := autoscaler.FlagUnneededTime, a.settings.UnneededTime
	if autoscaler.Unready(a.node.Node) != "" {
		flag, length = autoscaler.FlagUnreadyTime, a.settings.UnreadyTime
	}
	until := since.Add(length)
	if !until.After(a.at) {
		return report.Finding{}, false
	}
	f := report.NewFinding(report.CACooldown, report.Likely, a.subject(),
		fmt.Sprintf("%s is unneeded since %s and goes once it has been so for %s, at %s (in %s), if nothing else holds it.", a.title(), utc(since), span(length), a.instant(until), span(until.Sub(a.at))),
		a.field("spec.taints", taint.ToString(), "when the Cluster Autoscaler found it unneeded, in seconds since 1970: "+utc(since)),
		a.setting(flag, span(length), "how long it has to be unneeded; a node group may have its own"))
	f.Arithmetic = fmt.Sprintf("%s + %s = %s", utc(since), span(length), utc(until))
	return f, true
}

// pausing is the pause that ends last.
func (c *Cluster) pausing() (report.Finding, bool) {
	s := c.autoscaler()
	var last pause
	for _, p := range c.pauses() {
		if p.until().After(c.at) && p.until().After(last.until()) {
			last = p
		}
	}
	if last.what == "" {
		return report.Finding{}, false
	}
	confidence := report.Likely
	if s.settings.DelayTypeLocal {
		confidence = report.Possible // only the group that was changed pauses
	}
	f := report.NewFinding(report.CACooldown, confidence, report.Subject{Kind: "ClusterAutoscaler", Name: "cluster-autoscaler"},
		fmt.Sprintf("The Cluster Autoscaler removes no node until %s (%s more): %s at %s, and it pauses for %s after that.", c.instant(last.until()), span(last.until().Sub(c.at)), last.what, utc(last.from), span(last.length)),
		last.proof, s.setting(last.flag, span(last.length), "how long it pauses"))
	f.Arithmetic = fmt.Sprintf("%s + %s = %s", utc(last.from), span(last.length), utc(last.until()))
	return f, true
}

// pauses are those that events and the status tell of. What the autoscaler
// counts from is in its memory; it writes the events at that moment.
func (c *Cluster) pauses() []pause {
	s := c.autoscaler()
	var out []pause
	for _, e := range c.events {
		seen := lastSeen(e)
		if !autoscalerEvent(e) || seen.After(c.at) {
			continue
		}
		p := pause{from: seen, proof: c.eventEvidence(e, "by the Cluster Autoscaler ("+cut(e.Reason, 60)+")")}
		switch {
		case e.Reason == "TriggeredScaleUp" || strings.HasPrefix(e.Reason, "ScaledUp"):
			p.what, p.flag, p.length = "it added nodes", autoscaler.FlagDelayAfterAdd, s.settings.DelayAfterAdd
		case e.Reason == "ScaleDownFailed":
			p.what, p.flag, p.length = "removing a node failed", autoscaler.FlagDelayAfterFailure, s.settings.DelayAfterFailure
		case e.Reason == "ScaleDown" && e.InvolvedObject.Kind == "Node" || e.Reason == "ScaleDownEmpty":
			p.what, p.flag, p.length = "it removed a node", autoscaler.FlagDelayAfterDelete, s.settings.DelayAfterDelete
		default:
			continue
		}
		out = append(out, p)
	}
	if up := s.status.ScaleUp; up.Status == autoscaler.InProgress && !up.Since.IsZero() && !up.Since.After(c.at) {
		out = append(out, pause{what: "it began to add nodes", flag: autoscaler.FlagDelayAfterAdd, length: s.settings.DelayAfterAdd, from: up.Since,
			proof: report.Evidence{Source: autoscalerStatusSource, Field: "status.clusterWide.scaleUp.status", Value: up.Status, Means: "since " + utc(up.Since), At: metav1.NewTime(up.Since)}})
	}
	return out
}
