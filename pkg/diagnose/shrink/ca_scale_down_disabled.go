package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caScaleDownDisabled: an annotation excepts the node, with the exact value
// "true" (Cluster Autoscaler 1.36, core/scaledown/eligibility), or a flag keeps
// the autoscaler from removing any node.
func caScaleDownDisabled(a *caCase) []report.Finding {
	var out []report.Finding
	if autoscaler.ScaleDownDisabledOn(a.node.Node) {
		f := report.NewFinding(report.CAScaleDownDisabled, weaker(a.belongs), a.subject(),
			fmt.Sprintf("%s carries %s: \"true\", which keeps the Cluster Autoscaler from removing it for as long as it is there.", a.kept(), autoscaler.ScaleDownDisabled),
			a.field("metadata.annotations["+autoscaler.ScaleDownDisabled+"]", "true", "excepts the node, empty or not"), a.tie)
		f.Remedies = []report.Remedy{{Summary: "Take the annotation off the node.", Command: "kubectl annotate nodes " + shellWord(a.node.Name()) + " " + autoscaler.ScaleDownDisabled + "-",
			Effect: "this blocker goes with the next scan; " + a.othersHold()}}
		out = append(out, f)
	}
	if f, ok := a.scaleDownOff(); ok {
		f.Confidence = weaker(f.Confidence, a.belongs)
		f.Because = append(f.Because, a.tie)
		out = append(out, f)
	}
	return out
}

// scaleDownOff: a flag keeps the autoscaler from removing any node.
func (c *Cluster) scaleDownOff() (report.Finding, bool) {
	s := c.autoscaler()
	if s.settings.ScaleDownEnabled {
		return report.Finding{}, false
	}
	flag := s.setting(autoscaler.FlagScaleDownEnabled, "true", "whether it removes nodes at all")
	return report.NewFinding(report.CAScaleDownDisabled, report.Proven, report.Subject{Kind: "ClusterAutoscaler", Name: "cluster-autoscaler"},
		"The Cluster Autoscaler removes no node of the cluster: it runs with --"+autoscaler.FlagScaleDownEnabled+"="+flag.Value+".", flag), true
}

// othersHold says how many pods hold the node.
func (a *caCase) othersHold() string {
	holding := a.heldBy(func(b autoscaler.Blocker) bool { return !b.Over })
	switch {
	case a.ownPodsErr() != nil:
		return "whether pods hold the node is not known"
	case len(holding) == 0:
		return "no pod holds the node"
	}
	return plural(len(holding), "pod") + " on it still hold it: " + some(podNames(holding))
}
