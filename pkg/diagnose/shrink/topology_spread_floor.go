package shrink

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// topologySpreadFloor: a pod's spread constraint that is DoNotSchedule keeps it
// off every other node that would take it (Karpenter 1.14,
// pkg/controllers/provisioning/scheduling/topologygroup.go:
// nextDomainTopologySpread).
func topologySpreadFloor(n *nodeCase) []report.Finding {
	return n.apartFinding(report.TopologySpreadFloor, floor.TopologySpread)
}

func poolTopologySpreadFloor(p *poolCase) []report.Finding {
	return p.apartFinding(report.TopologySpreadFloor, floor.TopologySpread)
}
