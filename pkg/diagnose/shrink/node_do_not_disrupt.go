package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeDoNotDisrupt: the annotation on the node itself stops every method, with
// the exact value "true" (Karpenter 1.14,
// pkg/controllers/state/statenode.go: ValidateNodeDisruptable).
func nodeDoNotDisrupt(n *nodeCase) []report.Finding {
	if len(n.blocked(disruption.CheckNodeDoNotDisrupt)) == 0 {
		return nil
	}
	key := karpenter.DoNotDisruptAnnotation
	field := "metadata.annotations[" + key + "]"
	from, evidence := "", n.claimField(field, "true", "stops every voluntary disruption until somebody takes it away")
	command := "kubectl annotate nodeclaims.karpenter.sh " + shellWord(n.node.NodeClaim.Name) + " " + key + "-"
	if n.node.Node != nil && n.node.Registered() {
		evidence = n.field(field, "true", evidence.Means)
		command = "kubectl annotate nodes " + shellWord(n.node.Node.Name) + " " + key + "-"
	}
	f := report.NewFinding(report.NodeDoNotDisrupt, report.Proven, n.subject(), "", evidence)
	f.Remedies = []report.Remedy{{Summary: "Take the annotation off the node.", Command: command,
		Effect: "this blocker goes at once; expiry and repair never asked for it"}}
	if n.pool != nil && n.pool.pool.Spec.Template.Metadata.Annotations[key] == "true" {
		from = ", as the template of NodePool " + n.pool.pool.Name + " gives it to each of its nodes"
		f.Because = append(f.Because, n.pool.field("spec.template.metadata.annotations["+key+"]", "true", "each new NodeClaim and its node begin with it"))
		patch := `{"spec":{"template":{"metadata":{"annotations":{"` + key + `":null}}}}}`
		f.Remedies = append(f.Remedies, report.Remedy{Summary: "Take it out of the pool's template too, for the nodes to come.",
			Command: n.pool.mergeCommand(patch), Patch: patch, Effect: "nodes that are there keep theirs",
			Caution: "The template's hash changes, so that all nodes of the pool become drifted (NodePoolDrifted)."})
	}
	f.Summary = fmt.Sprintf("%s carries %s: \"true\"%s, which keeps it from every voluntary disruption for as long as it is there.", n.title(), key, from)
	f.Because = append(f.Because, n.quote(disruptionBlocked, karpenter.BlockedEvent(karpenter.NodeDoNotDisrupt, n.version.rules))...)
	return []report.Finding{f}
}
