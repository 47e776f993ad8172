package shrink

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
)

// elsewhere is whether the node's pods could run on the nodes that stay, each
// node asked for once. It knows nothing of what else holds the node.
func (n *nodeCase) elsewhere() *placement.Answer {
	if n.planner == nil {
		n.planner = placement.New(&n.karpenter, n.aroundNodes())
	}
	return n.planner.Of(n.node)
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
