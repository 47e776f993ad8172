package shrink

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/drain"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeCase is one node as whatever could remove it sees it.
type nodeCase struct {
	*Cluster
	node *disruption.Node
	// pool is the NodePool that the node belongs to; nil where it names none,
	// or one that is not known.
	pool *poolCase
	// blockers are all that keep it from being a candidate of any method, as far
	// as pods and their budgets are known.
	blockers []disruption.Blocker
	// apartPods are of apart, once isApart.
	apartPods []apartPod
	isApart   bool
	// autoscaledCase is the node as the Cluster Autoscaler sees it, once it was asked for.
	autoscaledCase *caCase
	autoscaledRead bool
	// drainRead is what a drain by hand comes to; nil: not asked for yet.
	drainRead *drain.Plan
}

// Node applies the rules to one node. It finds nothing where the API server's
// object of it is not known.
func (c *Cluster) Node(name string) []report.Finding {
	for _, n := range c.karpenter.Nodes {
		if n.Node == nil && c.nodesErr != nil {
			continue
		}
		if n.Name() == name || n.Node != nil && n.Node.Name == name {
			k := c.nodeOf(n)
			k.missing()
			found := apply(nodeRules, k)
			if k.others() {
				return found // no rule of Karpenter's version decides over it
			}
			return c.settled(append(found, k.verdict(found)...))
		}
	}
	return c.settled(c.awaited(name))
}

// awaited is the word on a node that Karpenter has and leaves out of its state:
// without a providerID nothing ties it to its NodeClaim.
func (c *Cluster) awaited(name string) []report.Finding {
	nodes, err := c.snap.Nodes()
	if err != nil {
		return nil
	}
	for i := range nodes {
		if nodes[i].Name == name && nodes[i].Labels[karpenter.NodePoolLabel] != "" {
			k := &nodeCase{Cluster: c, node: &disruption.Node{Node: &nodes[i]}}
			return []report.Finding{k.shrinkBlockerUnknown(k.unclaimed())}
		}
	}
	return nil
}

// nodeOf is made once for each node.
func (c *Cluster) nodeOf(n *disruption.Node) *nodeCase {
	if c.nodeCases[n] == nil {
		if c.nodeCases == nil {
			c.nodeCases = map[*disruption.Node]*nodeCase{}
		}
		c.nodeCases[n] = c.nodeCase(n)
	}
	return c.nodeCases[n]
}

func (c *Cluster) nodeCase(n *disruption.Node) *nodeCase {
	k := &nodeCase{Cluster: c, node: n, blockers: c.karpenter.Blockers(n, c.at)}
	if n.Managed() && n.NodeClaim.DeletionTimestamp != nil {
		k.blockers = slices.DeleteFunc(k.blockers, ofPods)
	}
	if name, ok := n.NodePool(); ok {
		if pool := c.karpenter.Pools[name]; pool != nil {
			k.pool = c.poolCase(pool)
		}
	}
	return k
}

// ofPods are blockers that keep nobody from choosing a node that is being
// deleted. What they do to its drain stands with that.
func ofPods(b disruption.Blocker) bool {
	return b.Check == disruption.CheckPodDoNotDisrupt || b.Check == disruption.CheckPDB || b.Check == disruption.CheckSeveralPDBs
}

// subject is the node, or before it has registered its NodeClaim.
func (n *nodeCase) subject() report.Subject {
	if n.node.Node == nil {
		return report.Subject{Kind: "NodeClaim", Name: n.node.NodeClaim.Name}
	}
	return report.Subject{Kind: "Node", Name: n.node.Node.Name}
}

// title is the subject as a sentence begins with it.
func (n *nodeCase) title() string {
	s := n.subject()
	return s.Kind + " " + s.Name
}

// going: the node is deleting or a command has chosen it, so that what keeps
// others is past for it.
func (n *nodeCase) going() bool { return n.node.MarkedForDeletion() }

// blocked are its blockers by one check.
func (n *nodeCase) blocked(check disruption.Check) []disruption.Blocker {
	var out []disruption.Blocker
	for _, b := range n.blockers {
		if b.Check == check {
			out = append(out, b)
		}
	}
	return out
}

// missing notes what could not be read of what Karpenter looks at.
func (n *nodeCase) missing() {
	if !n.node.Managed() {
		if !n.others() {
			n.gaps.Miss("cluster/nodeclaims.karpenter.sh.json", n.claimsErr, "what Karpenter does with the node is not known without its NodeClaim", "collect nodeclaims.karpenter.sh (list)")
		}
		return
	}
	n.gaps.Miss("cluster/pods.json", n.podsErr, "what the pods on the node keep from happening is not known", "collect pods (list) of all namespaces")
	n.gaps.Miss("cluster/poddisruptionbudgets.json", n.pdbsErr, "whether a PodDisruptionBudget keeps the node is not known", "collect poddisruptionbudgets (list) of all namespaces")
	n.gaps.Miss("cluster/events.json", n.eventsErr, "nothing of what Karpenter said is known, nor whether the node is nominated", "collect events (list) of all namespaces")
	n.gaps.Miss("cluster/nodepools.karpenter.sh.json", n.poolsErr, "the node's policy, timer and budgets are not known", "collect nodepools.karpenter.sh (list)")
}

// field is evidence from the node's API object.
func (n *nodeCase) field(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:nodes/" + n.subject().Name, Field: field, Value: value, Means: means}
}

func podField(p *corev1.Pod, field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:pods/" + p.Namespace + "/" + p.Name, Field: field, Value: value, Means: means}
}

func (n *nodeCase) claimField(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:nodeclaims.karpenter.sh/" + n.node.NodeClaim.Name, Field: field, Value: value, Means: means}
}
