package shrink

import (
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeCase is one node as whatever could remove it sees it.
type nodeCase struct {
	*Cluster
	node *disruption.Node
	// pool is the NodePool that the node belongs to; nil where it names none,
	// or one that is not known.
	pool *poolCase
}

// Node applies the rules to one node. It finds nothing where the API server's
// object of it is not known.
func (c *Cluster) Node(name string) []report.Finding {
	for _, n := range c.karpenter.Nodes {
		if n.Name() == name {
			return apply(nodeRules, c.nodeCase(n))
		}
	}
	return nil
}

func (c *Cluster) nodeCase(n *disruption.Node) *nodeCase {
	k := &nodeCase{Cluster: c, node: n}
	if name, ok := n.NodePool(); ok {
		if pool := c.karpenter.Pools[name]; pool != nil {
			k.pool = c.poolCase(pool)
		}
	}
	return k
}

func (n *nodeCase) subject() report.Subject { return report.Subject{Kind: "Node", Name: n.node.Name()} }

// field is evidence from the node's API object.
func (n *nodeCase) field(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:nodes/" + n.node.Name(), Field: field, Value: value, Means: means}
}
