package floor

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Topology tells which nodes other pods keep a pod off. Where it errs, they do not.
type Topology struct {
	nodes   []*disruption.Node
	pending []*corev1.Pod
	matches map[string]*counts // of pods that a constraint selects, by its id
	bearers map[string]*bearer // of pods with an anti-affinity, by its id
	order   []*bearer          // as the nodes have them
}

// counts are how many pods there are by domain: those that count for certain, and all that may. Pods on nodes that go, and pending
// ones, are placed anew: they are in loose only.
type counts struct {
	by    map[string]int64
	may   map[string]int64
	some  map[string][]*corev1.Pod // one of each domain, and one of another node there
	from  map[*disruption.Node]int64
	loose int64
}

type bearer struct {
	constraint Constraint
	counts
}

// NewTopology prepares a cluster. Pods without a node are pending.
func NewTopology(nodes []*disruption.Node, pending []*corev1.Pod) *Topology {
	t := &Topology{nodes: nodes, pending: pending, matches: map[string]*counts{}, bearers: map[string]*bearer{}}
	for _, n := range nodes {
		if n.Node == nil || n.MarkedForDeletion() {
			continue
		}
		for _, pod := range n.Pods {
			if ended(pod) {
				continue
			}
			for _, c := range ConstraintsOf(pod) {
				if c.Kind == AntiAffinity {
					t.bears(c, n, pod)
				}
			}
		}
	}
	return t
}

func (t *Topology) bears(c Constraint, n *disruption.Node, pod *corev1.Pod) {
	b := t.bearers[c.id]
	if b == nil {
		if len(t.order) == mostConstraints {
			return
		}
		b = &bearer{c, newCounts()}
		t.bearers[c.id] = b
		t.order = append(t.order, b)
	}
	b.add(&c, n, pod, true)
}

func newCounts() counts {
	return counts{by: map[string]int64{}, may: map[string]int64{}, some: map[string][]*corev1.Pod{}, from: map[*disruption.Node]int64{}}
}

func (c *counts) add(of *Constraint, n *disruption.Node, pod *corev1.Pod, counts bool) {
	domain, ok := domainOf(n, of.Key)
	if !ok {
		return
	}
	c.may[domain]++
	if !counts {
		return
	}
	c.by[domain]++
	c.from[n]++
	if some := c.some[domain]; len(some) == 0 || len(some) == 1 && some[0].Spec.NodeName != pod.Spec.NodeName {
		c.some[domain] = append(some, pod)
	}
}

// domainOf is the node's value of a label. A node without hostname has its name (pkg/controllers/provisioning/scheduling/topology.go:
// countDomains).
func domainOf(n *disruption.Node, key string) (string, bool) {
	value, ok := n.Node.Labels[key]
	if !ok && key == corev1.LabelHostname {
		return n.Node.Name, true
	}
	return value, ok
}

// without is how many there are in a domain if a node goes, at least: none of its pods count.
func (c *counts) without(n *disruption.Node, key, domain string) int64 {
	count := c.by[domain]
	if own, ok := domainOf(n, key); ok && own == domain {
		count -= c.from[n]
	}
	return count
}

// other is one that is not on a node.
func (c *counts) other(n *disruption.Node, domain string) *corev1.Pod {
	for _, pod := range c.some[domain] {
		if pod.Spec.NodeName != n.Node.Name {
			return pod
		}
	}
	return nil
}

func (t *Topology) matching(c *Constraint) (*counts, bool) {
	if m := t.matches[c.id]; m != nil {
		return m, true
	}
	if len(t.matches) == mostConstraints {
		return nil, false
	}
	m := newCounts()
	for _, n := range t.nodes {
		counts := n.Node != nil && c.countsOn(n.Node)
		for _, pod := range n.Pods {
			switch {
			case ended(pod) || !c.Selects(pod):
			case n.Node == nil || n.MarkedForDeletion():
				m.loose++
			default:
				m.add(c, n, pod, counts)
			}
		}
	}
	for _, pod := range t.pending {
		if !ended(pod) && c.Selects(pod) {
			m.loose++
		}
	}
	t.matches[c.id] = &m
	return &m, true
}

// Bar is a constraint that keeps a pod off a node.
type Bar struct {
	Constraint Constraint
	// Inverse: it is another pod's, and selects this one.
	Inverse bool
	// Domain is the node's value of the constraint's key. Count are the pods that count there, Other is one of them.
	Domain string
	Count  int64
	Other  *corev1.Pod
	// Skew is what the pod would make of a spread there, at least.
	Skew int64
	// Own is the value of the node that the pod is on, and OwnCount the most that may count there once that node is gone. Not of
	// hostname, of which the least counts as 0.
	Own      string
	OwnCount int64
	// Assumed: it is taken for granted that Karpenter still counts Own among the values once the node is gone.
	Assumed bool
}

// Kept tells for one pod of a node that goes which other nodes are barred.
type Kept struct {
	*Topology
	pod  *corev1.Pod
	from *disruption.Node
	own  []Constraint
	kept []*bearer       // those of others that select the pod
	left map[string]bool // by constraint: whether the node's domain stays
}

// Constrained reports whether there is a constraint that the pod could be kept off a node by.
func (k *Kept) Constrained() bool { return len(k.own)+len(k.kept) > 0 }

// Of prepares the question for a pod of a node that goes.
func (t *Topology) Of(pod *corev1.Pod, from *disruption.Node) *Kept {
	k := &Kept{Topology: t, pod: pod, from: from, own: ConstraintsOf(pod), left: map[string]bool{}}
	for _, b := range t.order {
		if b.constraint.Selects(pod) {
			k.kept = append(k.kept, b)
		}
	}
	return k
}

// Bar is the first constraint that keeps the pod off a node that stays; nil: none does for certain.
func (k *Kept) Bar(target *disruption.Node) *Bar { return k.bar(target, nil) }

// Without is that of the constraints but one.
func (k *Kept) Without(c *Constraint, target *disruption.Node) *Bar { return k.bar(target, c) }

func (k *Kept) bar(target *disruption.Node, but *Constraint) *Bar {
	if target.Node == nil {
		return nil
	}
	for i := range k.own {
		c := &k.own[i]
		domain, ok := domainOf(target, c.Key)
		if !ok || but != nil && c.id == but.id {
			continue
		}
		m, known := k.matching(c)
		if !known {
			continue
		}
		bar := &Bar{Constraint: *c, Domain: domain, Count: m.without(k.from, c.Key, domain)}
		if k.bars(bar, m) {
			bar.Other = m.other(k.from, domain)
			return bar
		}
	}
	for _, b := range k.kept {
		c := &b.constraint
		domain, ok := domainOf(target, c.Key)
		if !ok || but != nil && c.id == but.id {
			continue
		}
		if count := b.without(k.from, c.Key, domain); count > 0 {
			return &Bar{Constraint: *c, Inverse: true, Domain: domain, Count: count, Other: b.other(k.from, domain)}
		}
	}
	return nil
}

func (k *Kept) bars(b *Bar, m *counts) bool {
	c := &b.Constraint
	if c.Kind == AntiAffinity {
		return b.Count > 0
	}
	self := int64(0)
	if c.Selects(k.pod) {
		self = 1
	}
	b.Skew = b.Count + self
	if c.Key == corev1.LabelHostname {
		return b.Skew > c.MaxSkew
	}
	own, ok := domainOf(k.from, c.Key)
	if !ok || own == b.Domain || !allows(k.pod, k.from.Node) {
		return false
	}
	// The pods of its node that count, and all that are placed anew, may come to be in its domain before it.
	b.Own, b.OwnCount = own, m.may[own]-self+m.loose
	b.Assumed = !k.stays(c, own)
	b.Skew -= b.OwnCount
	return b.Skew > c.MaxSkew
}

// allows reports whether the pod may be on the node that it is on, so that its value of a key is one of those that it supports.
func allows(pod *corev1.Pod, n *corev1.Node) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n)
	return err == nil && match
}

// stays reports whether another node that counts has the same value.
func (k *Kept) stays(c *Constraint, domain string) bool {
	left, known := k.left[c.id]
	if !known {
		left = k.another(c, domain)
		k.left[c.id] = left
	}
	return left
}

func (k *Kept) another(c *Constraint, domain string) bool {
	for _, n := range k.nodes {
		if n == k.from || n.Node == nil || n.MarkedForDeletion() || !c.countsOn(n.Node) {
			continue
		}
		if d, ok := domainOf(n, c.Key); ok && d == domain {
			return true
		}
	}
	return false
}
