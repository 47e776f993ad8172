// Package shrink holds the rules that say why a node stays or goes: by
// Karpenter, by the Cluster Autoscaler, or by neither. It puts what
// pkg/disruption computes side by side with what the snapshot holds.
//
// Start at Cluster, then rules.go: every rule and the subjects it speaks of.
package shrink

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Options are what a question supposes beside the snapshot.
type Options struct {
	// KarpenterVersion is used where the snapshot does not tell it.
	KarpenterVersion string
	// Prices are stated ones, beside what the snapshot tells.
	Prices disruption.InstanceTypes
	// Zone is the viewer's, shown beside UTC; nil: none.
	Zone *time.Location
	// Ahead is how far the timeline of budgets goes; 0 is a day.
	Ahead time.Duration
	// NodePools stand in for those of the same name, or beside the others.
	NodePools []karpenter.NodePool
}

// Cluster is what the snapshot tells of nodes and of what may remove them, at
// one moment. What could not be read is in the gaps.
type Cluster struct {
	snap *snapshot.Snapshot
	at   time.Time
	gaps *gap.Log

	version version
	// metrics are empty where metricsErr is set.
	metrics    price.Metrics
	metricsErr error
	zone       *time.Location
	ahead      time.Duration

	pods   []corev1.Pod
	events []corev1.Event
	pdbs   []policyv1.PodDisruptionBudget

	// podsErr, poolsErr and so on say why the objects are not known, or not all
	// of them.
	nodesErr, podsErr, eventsErr, pdbsErr, poolsErr, claimsErr error

	// karpenter is what Karpenter's disruption controller looks at. Its PDBs are
	// empty where pdbsErr is set.
	karpenter disruption.Cluster
	// unlaunched are NodeClaims without an instance.
	unlaunched []*karpenter.NodeClaim

	poolCases  map[string]*poolCase         // by name, as they are asked for
	poolTotals map[string]disruption.Totals // nil: not asked for yet
	eventsOf   map[[2]string][]int          // indexes of events, by kind and name
	nominated  map[string][]corev1.Event
	nodeCases  map[*disruption.Node]*nodeCase
	karpenters []controller       // nil: not looked for yet
	planner    *placement.Planner // nil: not asked for yet
	topology   *floor.Topology    // nil: not asked for yet
	bars       int                // pairs looked at by it
	without    *placement.Planner // that of the nodes without empty ones that go; nil: not asked for yet
	candidates *[]*nodeCase       // of consolidation; nil: not asked for yet
	changed    *change            // nil: not asked for yet
	// autoscalerRead is what is known of the Cluster Autoscaler; nil: not asked for yet.
	autoscalerRead *autoscalerState
}

// Read takes a snapshot as it is at a moment. Objects that are missing leave a
// gap when a rule asks for them, not here.
func Read(s *snapshot.Snapshot, at time.Time, gaps *gap.Log, o Options) *Cluster {
	c := &Cluster{snap: s, at: at, gaps: gaps, poolCases: map[string]*poolCase{}, zone: o.Zone, ahead: o.Ahead}
	if c.ahead <= 0 {
		c.ahead = 24 * time.Hour
	}
	nodes, err := s.Nodes()
	c.nodesErr = err
	c.pods, c.podsErr = s.Pods()
	// Where the lists hold a part, what is known of the others is nothing.
	if err == nil {
		c.nodesErr = s.Partial("cluster/nodes.json")
	}
	if c.podsErr == nil {
		c.podsErr = s.Partial("cluster/pods.json")
	}
	c.events, c.eventsErr = s.Events()
	// Those of what was asked for are enough, unless some of them could not be had.
	if err := s.Partial("cluster/events.json"); c.eventsErr == nil && err != nil && snapshot.Reason(err) != snapshot.ReasonRefused {
		c.eventsErr = err
	}
	c.pdbs, c.pdbsErr = s.PodDisruptionBudgets()

	c.karpenter.Pools = map[string]*karpenter.NodePool{}
	claims, err := custom(s, "nodeclaims.karpenter.sh", karpenter.DecodeNodeClaims)
	c.claimsErr = err
	c.karpenter.Nodes, c.unlaunched = disruption.Join(nodes, claims, c.pods)
	for _, n := range c.karpenter.Nodes {
		n.Marked, n.Queued = disruption.Marks(n)
	}
	if c.karpenter.PDBs, err = disruption.NewPDBs(c.pdbs); err != nil {
		c.pdbsErr = err
	}
	c.readPrices(o.Prices)
	c.version = readVersion(c, o.KarpenterVersion)
	c.karpenter.Rules = c.version.rules
	c.readPools(o.NodePools)
	return c
}

// readPools takes the pools as an API server would give them, also where the
// snapshot has one as it was written.
func (c *Cluster) readPools(instead []karpenter.NodePool) {
	pools, err := custom(c.snap, "nodepools.karpenter.sh", karpenter.DecodeNodePools)
	c.poolsErr = err
	for _, p := range pools {
		if raw, err := karpenter.WithDefaults(p.Raw, c.version.rules); err == nil {
			if whole, err := karpenter.DecodeNodePool(raw); err == nil {
				p = whole
			}
		}
		c.karpenter.Pools[p.Name] = &p
	}
	for i := range instead {
		c.karpenter.Pools[instead[i].Name] = &instead[i]
	}
}

// custom decodes a list of Karpenter's objects. Those that can be read are
// returned together with the error of the others.
func custom[T any](s *snapshot.Snapshot, resource string, decode func([]byte) ([]T, error)) ([]T, error) {
	data, err := s.CustomList(resource)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// NodePools are the names of the pools, sorted.
func (c *Cluster) NodePools() []string {
	names := make([]string, 0, len(c.karpenter.Pools))
	for name := range c.karpenter.Pools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// NodePoolsError says why not all NodePools are known; nil where they are.
func (c *Cluster) NodePoolsError() error { return c.poolsErr }

// RulesName names the rules that were applied.
func (c *Cluster) RulesName() string {
	return fmt.Sprintf("karpenter 1.%d rules", c.version.rules.Minor)
}

// Managed reports whether a node is Karpenter's.
func (c *Cluster) Managed(node string) bool {
	return slices.ContainsFunc(c.karpenter.Nodes, func(n *disruption.Node) bool {
		return n.Managed() && n.Node != nil && n.Node.Name == node
	})
}

// Version is Karpenter's as far as the snapshot or the question tells it; ""
// where the default rules were assumed.
func (c *Cluster) Version() string { return c.version.text }

// eventsOn are those of one object, oldest last seen first.
func (c *Cluster) eventsOn(kind, name string) []corev1.Event {
	var out []corev1.Event
	if c.eventsOf == nil {
		c.eventsOf = map[[2]string][]int{}
		for i := range c.events {
			key := [2]string{c.events[i].InvolvedObject.Kind, c.events[i].InvolvedObject.Name}
			c.eventsOf[key] = append(c.eventsOf[key], i)
		}
	}
	for _, i := range c.eventsOf[[2]string{kind, name}] {
		out = append(out, c.events[i])
	}
	slices.SortStableFunc(out, func(a, b corev1.Event) int {
		if by := lastSeen(a).Compare(lastSeen(b)); by != 0 {
			return by
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// lastSeen is when an event last happened, by whichever of its times is set.
func lastSeen(e corev1.Event) time.Time {
	last := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if last.IsZero() {
			last = t
		}
	}
	return last
}
