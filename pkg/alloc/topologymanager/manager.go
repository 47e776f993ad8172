// Package topologymanager replays the kubelet's topology manager (kubelet 1.37, pkg/kubelet/cm/topologymanager): how the hints of the
// providers become one set of NUMA nodes, and whether the policy admits it.
package topologymanager

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
)

// The policies and scopes.
const (
	None           = "none"
	BestEffort     = "best-effort"
	Restricted     = "restricted"
	SingleNUMANode = "single-numa-node"

	ContainerScope = "container"
	PodScope       = "pod"
)

// Config is what the topology manager is started with.
type Config struct {
	Policy, Scope string
	Options       map[string]string
}

// Manager merges hints. It is not for concurrent use.
type Manager struct {
	// Scope is none, container or pod; none with the policy none, whatever was configured.
	Scope  string
	policy string

	all       hint.Mask
	allErr    error
	closest   bool
	distances map[int][]uint64 // by node id; each row is indexed by node id, as the kubelet does

	merger merger
	rank   [64]int8 // of a node among all, by id
	skip   bool
	seen   []bool      // by list and common nodes
	kept   []hint.Hint // of all lists, with single-numa-node
}

// New returns a manager. The errors are the possible ones; the kubelet's is one of them.
func New(nodes []topology.NUMANode, c Config, r alloc.Rules) (*Manager, []error) {
	if c.Policy == None {
		return &Manager{Scope: None, policy: None}, nil
	}
	o, errs := parseOptions(c.Options, r)
	if len(errs) > 0 {
		return nil, errs
	}
	m := &Manager{Scope: c.Scope, policy: c.Policy, closest: o.closest && c.Policy != SingleNUMANode, distances: map[int][]uint64{}}
	for i, n := range nodes {
		if o.closest && !n.HasDistances {
			return nil, []error{errDistances}
		}
		m.distances[n.ID] = n.Distances
		if uint(n.ID) < 64 {
			m.rank[n.ID] = int8(min(i, maxSeen-1))
		}
		one, ok := hint.MaskOf(n.ID)
		if !ok {
			m.allErr = hint.ErrNilPointer
		}
		m.all |= one
	}
	if len(nodes) > o.maxNodes {
		return nil, []error{fmt.Errorf("unsupported on machines with more than %v NUMA Nodes", o.maxNodes)}
	}
	switch c.Policy {
	case BestEffort, Restricted, SingleNUMANode:
	default:
		return nil, []error{fmt.Errorf("unknown policy: \"%s\"", c.Policy)}
	}
	switch c.Scope {
	case ContainerScope, PodScope:
	default:
		return nil, []error{fmt.Errorf("unknown scope: \"%s\"", c.Scope)}
	}
	return m, nil
}

// Merge returns the best of the hints and whether the policy admits it. lists has one list for each resource and for each provider
// without a preference (see NoPreference), in the order of the providers; it is changed.
func (m *Manager) Merge(lists [][]hint.Hint) (best hint.Hint, admit bool, err error) {
	if m.allErr != nil {
		return hint.Hint{}, false, m.allErr
	}
	for i := range lists {
		if len(lists[i]) == 0 {
			lists[i] = impossible
		}
	}
	if m.policy == SingleNUMANode {
		m.kept = m.kept[:0]
		for i := range lists {
			from := len(m.kept)
			m.kept = appendSingleNode(m.kept, lists[i])
			lists[i] = m.kept[from:]
		}
	}
	if best, err = m.merge(lists); err != nil {
		return hint.Hint{}, false, err
	}
	switch m.policy {
	case Restricted:
		return best, best.Preferred, nil
	case SingleNUMANode:
		if best.Mask == m.all {
			best.Mask, best.Aligned = 0, false
		}
		return best, best.Preferred, nil
	}
	return best, true, nil
}

// NoPreference is the list of a provider, or of a resource, for which every node will do.
var NoPreference = []hint.Hint{{Preferred: true}}

var impossible = []hint.Hint{{}}

// appendSingleNode keeps the preferred hints of one node or of none in particular.
func appendSingleNode(kept, list []hint.Hint) []hint.Hint {
	for _, h := range list {
		if h.Preferred && (!h.Aligned || h.Mask.Count() == 1) {
			kept = append(kept, h)
		}
	}
	return kept
}
