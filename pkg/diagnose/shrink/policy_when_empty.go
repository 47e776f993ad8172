package shrink

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// policyWhenEmpty: the pool gives up only nodes with nothing to move on them,
// and these have something (Karpenter 1.14,
// pkg/controllers/disruption/consolidation.go: ShouldDisrupt).
func policyWhenEmpty(p *poolCase) []report.Finding {
	if !p.onlyEmpty() || p.podsErr != nil {
		return nil
	}
	var busy []string
	for _, n := range p.nodes {
		if n.Managed() && !n.MarkedForDeletion() && !disruption.IsEmpty(n.Pods, p.version.rules) {
			busy = append(busy, n.Name())
		}
	}
	if len(busy) == 0 {
		return nil
	}
	f := report.NewFinding(report.PolicyWhenEmpty, report.Proven, p.subject(),
		fmt.Sprintf("NodePool %s gives up only empty nodes (consolidationPolicy WhenEmpty), and %d of its %s have pods to move: %s.", p.pool.Name, len(busy), plural(len(p.nodes), "node"), some(busy)),
		p.field("spec.disruption.consolidationPolicy", string(karpenter.WhenEmpty), "nodes with pods that would have to be moved are not consolidated, however little they use"))
	f.Because = append(f.Because, p.quotes(unconsolidatable, karpenter.PolicyWhenEmpty(p.pool.Name, p.version.rules))...)
	f.Remedies = []report.Remedy{p.otherPolicy()}
	return []report.Finding{f}
}

func nodePolicyWhenEmpty(n *nodeCase) []report.Finding {
	if n.pool == nil || !n.node.Managed() || n.going() || !n.pool.onlyEmpty() || n.podsErr != nil || disruption.IsEmpty(n.node.Pods, n.version.rules) {
		return nil
	}
	var pods []string
	var because []report.Evidence
	for _, pod := range n.node.Pods {
		if !disruption.IsReschedulable(pod) {
			continue
		}
		cost := disruption.EvictionCost(pod, n.version.rules)
		if n.version.rules.EmptyByCost && cost <= 0 {
			continue
		}
		pods = append(pods, pod.Namespace+"/"+pod.Name)
		if len(because) < mostNamed {
			because = append(because, podField(pod, "spec.nodeName", pod.Spec.NodeName, fmt.Sprintf("would have to be moved (eviction cost %.4g)", cost)))
		}
	}
	f := report.NewFinding(report.PolicyWhenEmpty, report.Proven, n.subject(),
		fmt.Sprintf("%s is not empty, and NodePool %s gives up only empty nodes (consolidationPolicy WhenEmpty): %s would have to be moved, %s.", n.title(), n.pool.pool.Name, plural(len(pods), "pod"), some(pods)),
		n.pool.field("spec.disruption.consolidationPolicy", string(karpenter.WhenEmpty), "nodes with pods that would have to be moved are not consolidated, however little they use"))
	f.Because = append(append(f.Because, because...), n.quote(unconsolidatable, karpenter.PolicyWhenEmpty(n.pool.pool.Name, n.version.rules))...)
	f.Remedies = []report.Remedy{n.pool.otherPolicy()}
	return []report.Finding{f}
}

// onlyEmpty: nothing but Emptiness consolidates the pool.
func (p *poolCase) onlyEmpty() bool {
	d := p.pool.Disruption()
	return !p.static() && d.ConsolidateAfter.Set && d.ConsolidationPolicy == karpenter.WhenEmpty
}

func (p *poolCase) otherPolicy() report.Remedy {
	patch := `{"spec":{"disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized"}}}`
	return report.Remedy{Summary: "Let the pool give up underutilized nodes too, or move the pods yourself.",
		Command: p.mergeCommand(patch), Patch: patch,
		Effect:  "nodes with pods become candidates of consolidation; whether one can go then depends on room elsewhere and on prices",
		Caution: "Their pods are evicted and started elsewhere."}
}

// controllerOf names what makes a pod, "" where nothing does.
func controllerOf(pod *corev1.Pod) string {
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			return o.Kind + " " + o.Name
		}
	}
	return ""
}
