package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caMinSize: the node group has no more nodes than it must have (Cluster
// Autoscaler 1.36, core/scaledown/planner: NodeGroupMinSizeReached).
func caMinSize(a *caCase) []report.Finding {
	if a.group == nil || !atMinimum(*a.group) {
		return nil
	}
	f := a.groupMinSize(*a.group)
	f.Subject = a.subject()
	f.Confidence = weaker(f.Confidence, a.belongs)
	f.Summary = fmt.Sprintf("%s stays while its node group is at its minimum size: %s.", a.kept(), groupText(*a.group))
	f.Because = append(f.Because, a.tie)
	return []report.Finding{f}
}

// atMinimum: the status has a minimum, and no more nodes are wanted than that.
func atMinimum(g autoscaler.Group) bool { return g.Min > 0 && g.Size() > 0 && g.Room() == 0 }

func (c *Cluster) groupMinSize(g autoscaler.Group) report.Finding {
	confidence := report.Proven
	if c.autoscaler().stale(c.at) {
		confidence = report.Likely
	}
	f := report.NewFinding(report.CAMinSize, confidence, groupSubject(g),
		fmt.Sprintf("Node group %s is at its minimum size: %d nodes are wanted, and it must have %d; none of them is removed, whatever it holds.", cut(g.Name, 200), g.Size(), g.Min),
		groupField(g, "health.cloudProviderTarget", fmt.Sprint(g.Size()), "the nodes that the cloud provider was told to run"),
		groupField(g, "health.minSize", fmt.Sprint(g.Min), "its minimum"))
	f.Arithmetic = fmt.Sprintf("%d wanted - %d minimum = %d that may go", g.Size(), g.Min, g.Room())
	f.Remedies = []report.Remedy{{Summary: "Lower the group's minimum where the Cluster Autoscaler is given it: --nodes=MIN:MAX:NAME, or the cloud provider's node group.",
		Effect: "with a minimum of " + fmt.Sprint(g.Min-1) + " one node may go"}}
	return f
}

func groupSubject(g autoscaler.Group) report.Subject {
	return report.Subject{Kind: "NodeGroup", Name: cut(g.Name, 250)}
}

// groupField is evidence from the autoscaler's status.
func groupField(g autoscaler.Group, field, value, means string) report.Evidence {
	return report.Evidence{Source: autoscalerStatusSource, Field: "status.nodeGroups[" + cut(g.Name, 200) + "]." + field, Value: value, Means: means}
}
