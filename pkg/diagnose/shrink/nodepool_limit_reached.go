package shrink

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodePoolLimitReached: the pool uses all of a limit, so that no node is
// launched for it beside those it has (Karpenter 1.14,
// pkg/controllers/provisioning/scheduling and pkg/apis/v1/nodepool.go:
// ExceededBy). A limit never removes a node.
func nodePoolLimitReached(p *poolCase) []report.Finding {
	var reached, sums []string
	var because []report.Evidence
	exceeded := false
	for _, name := range sortedResources(p.pool.Spec.Limits) {
		limit := p.pool.Spec.Limits[name]
		used, ok := p.used(name)
		if !ok {
			p.gaps.Lack("status.resources of NodePool "+p.pool.Name, "no "+string(name)+" in it", "whether spec.limits."+string(name)+" is reached is not known", "collect nodepools.karpenter.sh with its status")
			continue
		}
		if used.Cmp(limit) < 0 {
			continue
		}
		exceeded = exceeded || used.Cmp(limit) > 0
		left := limit.DeepCopy()
		left.Sub(used)
		if left.Sign() < 0 {
			left = resource.Quantity{}
		}
		reached = append(reached, fmt.Sprintf("%s %s of %s", name, used.String(), limit.String()))
		sums = append(sums, fmt.Sprintf("%s: %s used, limit %s: remaining %s", name, used.String(), limit.String(), left.String()))
		because = append(because, p.field("status.resources."+string(name), used.String(), "the capacity of its nodes, as Karpenter sums it"),
			p.field("spec.limits."+string(name), limit.String(), "no node is launched that would go beyond it"))
	}
	if len(reached) == 0 {
		return nil
	}
	means := "no node is launched beside the present ones, and a replacement is planned only where it stays within the limit once the nodes that it replaces are gone"
	if exceeded {
		means = "it launches no node, not as a replacement either, until its use is down to the limit; a limit removes no node"
	}
	f := report.NewFinding(report.NodePoolLimitReached, report.Proven, p.subject(),
		fmt.Sprintf("NodePool %s has used up its limits (%s): %s.", p.pool.Name, strings.Join(reached, ", "), means), because...)
	f.Arithmetic = strings.Join(sums, "; ")
	f.Remedies = []report.Remedy{{
		Summary: "Raise the limit by at least the smallest node that the pool may launch, or let nodes be deleted without replacement.",
		Command: "kubectl edit nodepools.karpenter.sh " + shellWord(p.pool.Name),
		Effect:  "a limit never removes a node, so lowering it shrinks nothing",
	}}
	return []report.Finding{f}
}

// used is what the pool's status counts of a resource.
func (p *poolCase) used(name corev1.ResourceName) (resource.Quantity, bool) {
	if q, ok := p.pool.Status.Resources[name]; ok {
		return q, true
	}
	if name == "nodes" && p.pool.Status.Nodes != nil {
		return *resource.NewQuantity(*p.pool.Status.Nodes, resource.DecimalSI), true
	}
	return resource.Quantity{}, false
}

func sortedResources(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
