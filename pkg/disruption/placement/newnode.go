package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// NewNode is whether a new node can be made for a pod. What instance types there are only the provider knows, so that it is never
// said that one can.
type NewNode struct {
	// Barred is proven: every pool is.
	Barred bool
	// Pools are those that are barred, by name. Others may make a node.
	Pools []BarredPool
}

// Bar is why a pool makes no node for a pod.
type Bar string

// Bars.
const (
	BarStatic       Bar = "it is static, and makes nodes only up to its replicas"
	BarDeleting     Bar = "it is being deleted"
	BarNotReady     Bar = "it is not ready"
	BarTaints       Bar = "the pod does not tolerate its taints"
	BarRequirements Bar = "its labels and requirements exclude what the pod's node selector or affinity asks for"
	BarZone         Bar = "its zones are not those of a volume of the pod"
	BarLimits       Bar = "its limits leave too little"
)

// BarredPool is one pool that makes no node for a pod.
type BarredPool struct {
	Name string
	Bar  Bar
	// Of BarLimits, in thousandths: Left is Limit less Used, the capacity of the pool's nodes that stay, and Need the least that a node
	// for the pod has.
	Resource                corev1.ResourceName
	Limit, Used, Left, Need int64
	Taint                   *corev1.Taint // of BarTaints
	Label                   string        // of BarRequirements
	Volume                  string        // of BarZone
}

// pool is a NodePool as a maker of nodes.
type pool struct {
	*karpenter.NodePool
	bar Bar // whatever the pod
	// used is the capacity of its nodes that stay.
	used vector
	by   map[*disruption.Node]vector
}

// nodes is the resource that spec.limits counts nodes by.
const nodes corev1.ResourceName = "nodes"

func (p *Planner) readPools() {
	byName := map[string]*pool{}
	var names []string
	for name, object := range p.cluster.Pools {
		byName[name] = &pool{NodePool: object, bar: barOf(object), by: map[*disruption.Node]vector{}}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.pools = append(p.pools, byName[name])
	}
	for _, n := range p.cluster.Nodes {
		name, _ := n.NodePool()
		of := byName[name]
		if of == nil || n.MarkedForDeletion() {
			continue
		}
		var capacity vector
		for resource, q := range capacityOf(n) {
			if _, down, ok := thousandths(q); ok {
				capacity.add(p.resource(resource), down)
			}
		}
		capacity.add(p.resource(nodes), 1000)
		of.by[n] = capacity
		of.used.addAll(capacity)
	}
}

// capacityOf follows pkg/controllers/state/statenode.go:Capacity: until a node is initialized its NodeClaim fills what it lacks.
func capacityOf(n *disruption.Node) corev1.ResourceList {
	if n.Node == nil {
		return n.NodeClaim.Status.Capacity
	}
	if n.Initialized() {
		return n.Node.Status.Capacity
	}
	out := corev1.ResourceList{}
	for name, q := range n.NodeClaim.Status.Capacity {
		out[name] = q
	}
	for name, q := range n.Node.Status.Capacity {
		if !q.IsZero() {
			out[name] = q
		}
	}
	return out
}

// barOf follows pkg/controllers/provisioning/provisioner.go:NewScheduler. A pool without the condition Ready was not read whole.
func barOf(object *karpenter.NodePool) Bar {
	switch {
	case object.IsStatic():
		return BarStatic
	case object.DeletionTimestamp != nil:
		return BarDeleting
	case slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Ready" && c.Status != metav1.ConditionTrue }):
		return BarNotReady
	}
	return ""
}

// newNode asks every pool. n goes, so that its capacity counts against no limit.
func (p *Planner) newNode(s *shape, n *disruption.Node) NewNode {
	out := NewNode{Barred: !p.known.PoolsUnknown && !p.known.NodeClaimsUnknown}
	for _, of := range p.pools {
		if barred, is := p.barred(of, s, n); is {
			out.Pools = append(out.Pools, barred)
		} else {
			out.Barred = false
		}
	}
	return out
}

func (p *Planner) barred(of *pool, s *shape, n *disruption.Node) (BarredPool, bool) {
	b := BarredPool{Name: of.Name, Bar: of.bar}
	if b.Bar != "" {
		return b, true
	}
	if b.Taint = untolerated(of.Spec.Template.Spec.Taints, s.tolerations, false); b.Taint != nil {
		b.Bar = BarTaints
		return b, true
	}
	if b.Label = of.excludes(s.class); b.Label != "" {
		b.Bar = BarRequirements
		return b, true
	}
	for _, z := range s.zones {
		if !slices.ContainsFunc(z.anyOf, of.reaches) {
			b.Bar, b.Volume = BarZone, z.Volume
			return b, true
		}
	}
	barred := p.exceeds(&b, of, s, n)
	return b, barred
}

// exceeds: no instance type is taken that has more of any limited resource than the limit leaves
// (pkg/controllers/provisioning/scheduling/scheduler.go:filterByRemainingResources). A node has at least what the pod requests, and
// some CPU and memory.
func (p *Planner) exceeds(b *BarredPool, of *pool, s *shape, n *disruption.Node) bool {
	limited := make([]corev1.ResourceName, 0, len(of.Spec.Limits))
	for name := range of.Spec.Limits {
		limited = append(limited, name)
	}
	slices.Sort(limited)
	for _, name := range limited {
		limit, _, ok := thousandths(of.Spec.Limits[name])
		if !ok {
			continue
		}
		i := p.resource(name)
		need := s.need.least.at(i)
		switch name {
		case nodes:
			need = 1000
		case corev1.ResourceCPU, corev1.ResourceMemory:
			need = max(need, 1)
		}
		used := of.used.at(i) - of.by[n].at(i)
		if need > 0 && need > limit-used {
			b.Bar, b.Resource, b.Limit, b.Used, b.Left, b.Need = BarLimits, name, limit, used, limit-used, need
			return true
		}
	}
	return false
}

// reaches reports whether a node of the pool may be in the zones, as far as the usual labels name them.
func (of *pool) reaches(term zoneTerm) bool {
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone} {
		if values := term[key]; len(values) > 0 && !of.admits(key, values, nil) {
			return false
		}
	}
	return true
}

// excludes is the first label by which no node of the pool is what the class asks for, "" where one may be.
func (of *pool) excludes(c *class) string {
	keys := make([]string, 0, len(c.selector))
	for key := range c.selector {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !of.admits(key, []string{c.selector[key]}, c.vague) {
			return key
		}
	}
	if c.unread {
		return ""
	}
	label := ""
	for _, term := range c.terms {
		label = ""
		for _, e := range term.MatchExpressions {
			if e.Operator == corev1.NodeSelectorOpIn && !of.admits(e.Key, e.Values, c.vague) {
				label = e.Key
				break
			}
		}
		if label == "" {
			return ""
		}
	}
	return label
}

// admits reports whether a node of the pool may carry one of the values. The pool's own labels have one value; of a requirement only
// the lists count. A label that neither names has no value, if it is not vague and its name is not one that providers give: those have a
// domain.
func (of *pool) admits(key string, values []string, vague map[string]bool) bool {
	if stable, ok := stableLabels[key]; ok {
		key = stable
	}
	if key == karpenter.NodePoolLabel {
		return slices.Contains(values, of.Name)
	}
	known := false
	if value, ok := of.Spec.Template.Metadata.Labels[key]; ok {
		if known = true; !slices.Contains(values, value) {
			return false
		}
	}
	for _, r := range of.Spec.Template.Spec.Requirements {
		own := r.Key
		if stable, ok := stableLabels[own]; ok {
			own = stable
		}
		if own != key {
			continue
		}
		known = true
		listed := func(value string) bool { return slices.Contains(r.Values, value) }
		switch r.Operator {
		case corev1.NodeSelectorOpIn:
			if !slices.ContainsFunc(values, listed) {
				return false
			}
		case corev1.NodeSelectorOpNotIn:
			if !slices.ContainsFunc(values, func(value string) bool { return !listed(value) }) {
				return false
			}
		}
	}
	return known || vague[key] || strings.Contains(key, "/")
}
