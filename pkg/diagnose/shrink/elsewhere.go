package shrink

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// elsewhere is whether the node's pods could run on the nodes that stay, each
// node asked for once. It knows nothing of what else holds the node.
func (n *nodeCase) elsewhere() *placement.Answer {
	if n.planner == nil {
		n.planner = placement.New(&n.karpenter, n.aroundNodes())
	}
	answer := n.planner.Of(n.node)
	n.missingElsewhere(answer)
	return answer
}

// missingElsewhere notes what could not be read of what the answer depends on.
func (n *nodeCase) missingElsewhere(answer *placement.Answer) {
	if len(answer.Moves) > 0 {
		_, err := n.snap.DaemonSets()
		n.gaps.Miss("cluster/daemonsets.json", err, "the room that DaemonSets without a pod would take on other nodes is not counted", "collect daemonsets (list) of all namespaces")
	}
	for _, pod := range answer.Pods {
		for _, v := range pod.Pod.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			_, err := n.snap.PersistentVolumeClaims()
			n.gaps.Miss("cluster/persistentvolumeclaims.json", err, "which volumes the node's pods use is not known, nor where those keep them", "collect persistentvolumeclaims (list) of all namespaces")
			_, err = n.snap.PersistentVolumes()
			n.gaps.Miss("cluster/persistentvolumes.json", err, "whether a volume keeps a pod of the node in its zone is not known", "collect persistentvolumes (list)")
			return
		}
	}
}

// aroundNodes is what placement looks at beside the nodes and their pods.
func (c *Cluster) aroundNodes() placement.Known {
	known := placement.Known{Now: c.at, NodesUnknown: c.nodesErr != nil, NodeClaimsUnknown: c.claimsErr != nil, PodsUnknown: c.podsErr != nil, PoolsUnknown: c.poolsErr != nil}
	for i := range c.pods {
		if c.pods[i].Spec.NodeName == "" {
			known.Pending = append(known.Pending, &c.pods[i])
		}
	}
	if list, err := c.snap.DaemonSets(); err == nil && c.snap.Partial("cluster/daemonsets.json") == nil {
		known.DaemonSets = &list
	}
	if list, err := c.snap.PersistentVolumes(); err == nil {
		known.Volumes = &list
	}
	if list, err := c.snap.PersistentVolumeClaims(); err == nil {
		known.Claims = &list
	}
	return known
}

// noRoomTogether says of which resource the pods of the node request more than
// the nodes that may take any of them have.
func (n *nodeCase) noRoomTogether(answer *placement.Answer) doubt {
	t := answer.Together
	need, free := thousandths(t.Resource, t.Need), thousandths(t.Resource, t.Free)
	d := doubt{proven: true, text: fmt.Sprintf("it cannot be deleted, for its %s request together %s of %s, and only %s is free on the %s that may take any of them, and whether a cheaper node could take its place only the provider can tell",
		plural(len(answer.Pods), "pod"), need, t.Resource, free, plural(t.Nodes, "node"))}
	d.sum = fmt.Sprintf("%s: %s requested by the pods that have to go elsewhere > %s free on all nodes that may take one", t.Resource, need, free)
	for i, pod := range answer.Pods {
		if i == mostReasons {
			break
		}
		d.evidence = append(d.evidence, podField(pod.Pod, "spec.containers[].resources.requests", cut(requestsOf(pod.Pod, t.Resource), 200), "what it requests of "+string(t.Resource)))
	}
	return d
}

// nowhereTogether: each pod may find a place, not all of them do, and no NodePool
// makes a node for any.
func (n *nodeCase) nowhereTogether(answer *placement.Answer) report.Finding {
	t, d := answer.Together, n.noRoomTogether(answer)
	first := answer.Pods[0]
	f := report.NewFinding(report.PodsFitNowhere, report.Proven, n.subject(),
		fmt.Sprintf("The %s of node %s request together %s of %s, only %s is free on the %s that may take any of them, and for none of them a new node can be made (%s: %s): the node can neither be deleted nor replaced.",
			plural(len(answer.Pods), "pod"), n.node.Name(), thousandths(t.Resource, t.Need), t.Resource, thousandths(t.Resource, t.Free), plural(t.Nodes, "node"), podName(first.Pod), n.noNewNode(first.NewNode)), d.evidence...)
	first.Reasons = nil
	because, sum := n.stuckEvidence(first)
	f.Because = append(f.Because, because...)
	f.Arithmetic = d.sum
	if len(because) > 0 {
		f.Arithmetic += "; " + sum
	}
	f.Remedies = n.makeRoom(first)
	return f
}

// requestsOf are those of a pod's containers, as they were read.
func requestsOf(p *corev1.Pod, name corev1.ResourceName) string {
	var out []string
	for _, c := range p.Spec.Containers {
		out = append(out, quantity(c.Resources.Requests, name))
	}
	return strings.Join(out, " + ")
}
