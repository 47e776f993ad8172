package disruption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Check is one of Karpenter's tests of a node, named after what stops it.
type Check string

// The checks in the order in which Karpenter makes them: first those of every method, then those of single ones.
const (
	CheckInQueue          Check = "InQueue"
	CheckNotManaged       Check = "NotManaged"
	CheckNoNode           Check = "NoNode"
	CheckNotInitialized   Check = "NotInitialized"
	CheckDeleting         Check = "Deleting"
	CheckNominated        Check = "Nominated"
	CheckNodeDoNotDisrupt Check = "NodeDoNotDisrupt"
	CheckNoNodePoolLabel  Check = "NoNodePoolLabel"
	CheckNodePoolNotFound Check = "NodePoolNotFound"
	CheckPodDoNotDisrupt  Check = "PodDoNotDisrupt"
	CheckPDB              Check = "PDB"
	CheckSeveralPDBs      Check = "SeveralPDBs"

	CheckDynamicNodePool      Check = "DynamicNodePool"
	CheckStaticNodePool       Check = "StaticNodePool"
	CheckInstanceTypeNotFound Check = "InstanceTypeNotFound"
	CheckNoCapacityType       Check = "NoCapacityType"
	CheckNoZone               Check = "NoZone"
	CheckConsolidationNever   Check = "ConsolidationNever"
	CheckEmpty                Check = "Empty"    // left to Emptiness
	CheckNotEmpty             Check = "NotEmpty" // left to consolidation
	CheckPolicyWhenEmpty      Check = "PolicyWhenEmpty"
	CheckNotConsolidatable    Check = "NotConsolidatable"
	CheckNotDrifted           Check = "NotDrifted"
)

// Blocker is one thing that keeps a node from being disrupted.
type Blocker struct {
	Check Check
	// Text is Karpenter's error, or the message of its event Unconsolidatable; "" where it says nothing.
	Text string
	Pod  types.NamespacedName   // of the pod's checks
	PDBs []types.NamespacedName // of CheckPDB and CheckSeveralPDBs
	// Until is when the blocker passes by itself; zero where no time is set for that.
	Until time.Time
	// Forgiven: methods of the class Eventual go on all the same, because the NodeClaim bounds its termination.
	Forgiven bool
}

// Blockers returns everything that keeps the node from being a candidate of any method, in Karpenter's order. Karpenter stops at the
// first (pkg/controllers/disruption/types.go:NewCandidate).
func (c *Cluster) Blockers(n *Node, now time.Time) []Blocker {
	var out []Blocker
	add := func(check Check, text string) { out = append(out, Blocker{Check: check, Text: text}) }
	if n.Queued {
		add(CheckInQueue, karpenter.InQueue)
	}
	out = append(out, c.NodeBlockers(n)...)
	if !n.Managed() {
		return out
	}
	pool, labelled := n.NodePool()
	if labelled && (c.Pools[pool] == nil || c.Unlisted[pool]) {
		add(CheckNodePoolNotFound, karpenter.NodePoolNotFound(pool))
	}
	if instanceType, known := c.instanceType(n); c.Rules.UnknownInstanceTypeBlocks && !known {
		add(CheckInstanceTypeNotFound, karpenter.InstanceTypeNotFound(instanceType))
	}
	for _, b := range c.PodBlockers(n, now) {
		b.Forgiven = n.NodeClaim.Spec.TerminationGracePeriod != nil
		out = append(out, b)
	}
	return out
}

// NodeBlockers are those of the node itself (pkg/controllers/state/statenode.go:ValidateNodeDisruptable).
func (c *Cluster) NodeBlockers(n *Node) []Blocker {
	if !n.Managed() {
		return []Blocker{{Check: CheckNotManaged, Text: karpenter.NotManaged}}
	}
	var out []Blocker
	add := func(check Check, text string) { out = append(out, Blocker{Check: check, Text: text}) }
	switch {
	case n.Node == nil:
		add(CheckNoNode, karpenter.NoNode)
	case !n.Initialized():
		add(CheckNotInitialized, karpenter.NotInitialized)
	}
	if n.MarkedForDeletion() {
		add(CheckDeleting, karpenter.Deleting)
	}
	if n.Nominated {
		add(CheckNominated, karpenter.Nominated)
	}
	if n.Annotations()[karpenter.DoNotDisruptAnnotation] == "true" {
		add(CheckNodeDoNotDisrupt, karpenter.NodeDoNotDisrupt)
	}
	if _, labelled := n.NodePool(); !labelled {
		add(CheckNoNodePoolLabel, karpenter.NoNodePoolLabel)
	}
	return out
}

// PodBlockers are those of the pods on the node, each pod by itself: first every protected pod, then every pod whose budget keeps it
// (pkg/controllers/state/statenode.go:ValidatePodsDisruptable). Pods of DaemonSets count too, and for the annotation static pods.
func (c *Cluster) PodBlockers(n *Node, now time.Time) []Blocker {
	var out []Blocker
	for _, pod := range n.Pods {
		if protection := DoNotDisruptOf(pod, c.Rules); isActive(pod) && protection.Holds(now) {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			out = append(out, Blocker{Check: CheckPodDoNotDisrupt, Text: karpenter.PodDoNotDisrupt(name), Pod: name, Until: protection.Until})
		}
	}
	for _, pod := range n.Pods {
		keys := keysOf(c.PDBs.Blocking(pod, now, c.Rules))
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		switch len(keys) {
		case 0:
		case 1:
			out = append(out, Blocker{Check: CheckPDB, Text: karpenter.PDBPrevents(keys[0]), Pod: name, PDBs: keys})
		default:
			out = append(out, Blocker{Check: CheckSeveralPDBs, Text: karpenter.SeveralPDBs(keys), Pod: name, PDBs: keys})
		}
	}
	return out
}

// instanceType returns the node's instance type, and whether the provider offers it as far as is known.
func (c *Cluster) instanceType(n *Node) (name string, known bool) {
	name = n.Labels()[instanceTypeLabel]
	if c.Types == nil {
		return name, true
	}
	_, known = c.Types[name]
	return name, known
}
