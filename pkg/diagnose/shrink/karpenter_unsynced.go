package shrink

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// launching is how long a NodeClaim may be without an instance as a matter of
// course.
const launching = time.Minute

// karpenterUnsynced: while a NodeClaim has no instance Karpenter takes its view
// of the cluster for incomplete and disrupts nothing at all, in no pool
// (Karpenter 1.14, pkg/controllers/state/cluster.go: Synced). It is told
// where a launch takes longer than it should.
func karpenterUnsynced(c *Cluster) []report.Finding {
	if c.claimsErr != nil && len(c.unlaunched) == 0 {
		return nil
	}
	var hanging []*karpenter.NodeClaim
	for _, claim := range c.unlaunched {
		if !claim.CreationTimestamp.IsZero() && c.at.Sub(claim.CreationTimestamp.Time) >= launching {
			hanging = append(hanging, claim)
		}
	}
	if len(hanging) == 0 {
		return nil
	}
	var names []string
	var because []report.Evidence
	oldest := hanging[0]
	for _, claim := range hanging {
		if claim.CreationTimestamp.Before(&oldest.CreationTimestamp) {
			oldest = claim
		}
		names = append(names, claim.Name)
		if len(because) >= mostPods {
			continue
		}
		source := "api:nodeclaims.karpenter.sh/" + claim.Name
		e := report.Evidence{Source: source, Field: "status.providerID", Value: "(absent)", Means: "no instance, " + c.since(claim.CreationTimestamp)}
		e.At = metav1.NewTime(claim.CreationTimestamp.Time)
		because = append(because, e)
		if l := claim.Condition(karpenter.ConditionLaunched); l != nil && l.Status != "True" {
			because = append(because, report.Evidence{Source: source, Field: "status.conditions[Launched]", Value: cut(fmt.Sprintf("%s %s: %s", l.Status, l.Reason, l.Message), 300), Means: "what the launch says", At: l.LastTransitionTime})
		}
	}
	f := report.NewFinding(report.KarpenterUnsynced, report.Proven, report.Subject{Kind: "NodeClaim", Name: oldest.Name},
		fmt.Sprintf("Karpenter disrupts nothing, in no pool, until %s has an instance or is gone: %s without providerID, the oldest %s.", isOne(len(hanging), "NodeClaim "+oldest.Name, "every NodeClaim"), some(names), c.since(oldest.CreationTimestamp)), because...)
	if c.metrics.Synced != nil {
		f.Because = append(f.Because, report.Evidence{Source: metricsSource, Field: price.StateSynced, Value: c.metrics.SyncedText, Means: "0 is unsynced, as its metrics were read"})
	}
	f.Remedies = []report.Remedy{{Summary: "See why its launch hangs; if it will not come up, delete it.", Command: "kubectl delete nodeclaims.karpenter.sh " + shellWord(oldest.Name),
		Effect: "the cluster state is synced once no NodeClaim is without providerID", Caution: "Pods that waited for it are planned anew."}}
	return []report.Finding{f}
}

func poolUnsynced(p *poolCase) []report.Finding { return karpenterUnsynced(p.Cluster) }

func nodeUnsynced(n *nodeCase) []report.Finding {
	if !n.node.Managed() {
		return nil
	}
	return karpenterUnsynced(n.Cluster)
}

func isOne(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
