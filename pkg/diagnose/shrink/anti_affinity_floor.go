package shrink

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// antiAffinityFloor: a required anti-affinity, its own or that of others, keeps
// a pod off every other node that would take it (Karpenter 1.14,
// pkg/controllers/provisioning/scheduling/topologygroup.go:
// nextDomainAntiAffinity, topology.go:getMatchingTopologies).
func antiAffinityFloor(n *nodeCase) []report.Finding {
	return n.apartFinding(report.AntiAffinityFloor, floor.AntiAffinity)
}

func poolAntiAffinityFloor(p *poolCase) []report.Finding {
	return p.apartFinding(report.AntiAffinityFloor, floor.AntiAffinity)
}
