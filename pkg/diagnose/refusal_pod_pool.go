package diagnose

import (
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// hiddenPoolRefusal: of a pod whose exclusive containers take all of its
// pod-level resources the managers offer no set of NUMA nodes, so that a strict
// policy of the Topology Manager refuses it before the check by which they would
// (policy_static.go, validatePodScopeResources). With best-effort that check
// speaks.
func (n *nodeCase) hiddenPoolRefusal(a *attempt, subject report.Subject) []report.Finding {
	if !a.wholePod() || a.from.config.Kubelet.TopologyManagerPolicy == "best-effort" {
		return nil
	}
	lenient := a.from
	lenient.config.Kubelet.TopologyManagerPolicy = "best-effort"
	b, err := lenient.try(a.pod)
	if err != nil || b.crash != nil || b.result.Reason != "EmptyPodSharedPoolError" {
		return nil
	}
	// The words of the check, with the answer of the policy that is set.
	said := *a
	said.result.Message = b.result.Message
	f := n.podPoolEmpty(&said, subject)
	f.Because[len(f.Because)-1].Means = clip(a.result.Message)
	f.Because = append(f.Because, n.configEvidence("topologyManagerPolicy", a.from.config.Kubelet.TopologyManagerPolicy,
		"refuses the pod for want of hints; with best-effort the kubelet would say: "+clip(b.result.Message)))
	return []report.Finding{f}
}
