package shrink

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// volumeZone: a volume keeps a pod of the node in its zone. Nodes elsewhere pass
// every other check, those in the zone fail one (Karpenter 1.14,
// pkg/controllers/provisioning/scheduling/existingnode.go). It is told of a
// volume that exists: one that a claim template makes anew goes with its pod. For
// pods that count for nothing no place is looked for.
func volumeZone(n *nodeCase) []report.Finding {
	if n.node.Node == nil || n.going() || n.pool != nil && n.podsErr == nil && n.empty() {
		return nil
	}
	answer := n.elsewhere()
	for _, pod := range answer.Stuck() {
		for _, r := range pod.Reasons {
			if r.Check == placement.VolumeZone {
				return []report.Finding{n.keptInZone(answer, pod, r)}
			}
		}
	}
	return nil
}

func (n *nodeCase) keptInZone(answer *placement.Answer, pod placement.Pod, r placement.Reason) report.Finding {
	elsewhere := pod.Failed[placement.VolumeZone]
	inZone := len(answer.Targets) - elsewhere
	rest := fmt.Sprintf("the other %s fails another test", plural(inZone, "node"))
	switch inZone {
	case 0:
		rest = "there is no other node"
	case 1:
	default:
		rest = fmt.Sprintf("the other %d nodes fail another test", inZone)
	}
	f := report.NewFinding(report.VolumeZone, report.Proven, n.subject(),
		fmt.Sprintf("Volume %s of pod %s can be attached in %s only: %s elsewhere would take the pod without it, and %s, so that node %s cannot be deleted without a new node there.",
			r.Volume, podName(pod.Pod), some(r.Zones), plural(elsewhere, "node"), rest, n.node.Name()),
		report.Evidence{Source: "api:persistentvolumes/" + r.Volume, Field: "spec.nodeAffinity", Value: some(r.Zones), Means: "where the volume is"},
		report.Evidence{Source: "api:persistentvolumeclaims/" + r.Claim, Field: "spec.volumeName", Value: r.Volume, Means: "the claim is bound to it"},
		podField(pod.Pod, "spec.volumes[].persistentVolumeClaim", r.Claim, "the pod uses it"))
	others := told(pod.Reasons)
	for _, other := range pod.Reasons {
		if other.Check == placement.Resources {
			because, _ := n.stuckEvidence(placement.Pod{Pod: pod.Pod, Reasons: []placement.Reason{other}})
			f.Because = append(f.Because, because...)
		}
	}
	f.Arithmetic = others
	f.Remedies = []report.Remedy{{Summary: fmt.Sprintf("Make room on a node in %s, or let a NodePool make a smaller node there.", some(r.Zones)),
		Caution: "A volume of another zone has to be made and filled anew; whether a cheaper node exists in the zone only Karpenter knows."}}
	for _, other := range pod.Reasons {
		if other.Check == placement.Resources && other.Enough {
			f.Remedies[0].Effect = fmt.Sprintf("node %s takes the pod once it has %s of %s free; now it has %s", other.Example.Name(), thousandths(other.Resource, other.Need), other.Resource, thousandths(other.Resource, other.Free))
		}
	}
	return f
}
