package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// Reason is why some of the targets do not take a pod.
type Reason struct {
	Check Check
	Nodes int
	// Example is one of them: for Resources the one with the most of what is lacking.
	Example *disruption.Node
	place   int

	// Of Resources: the first resource that is lacking. Amounts are in thousandths of its unit; Free is Allocatable less Used, what
	// the pods that stay request.
	Resource                      corev1.ResourceName
	Need, Free, Allocatable, Used int64
	// Enough: the example would take the pod if it requested no more than Free of it.
	Enough bool

	Taint *corev1.Taint // of Taints
	Port  int32         // of HostPorts
	// Label and Value are what the pod's node selector asks for, of NodeAffinity; "" where it is its affinity.
	Label, Value string
	// Volume, its Claim (namespace/name) and Zones, of VolumeZone.
	Volume, Claim string
	Zones         []string
}

// group is the targets that fail a shape for the same reason; the first two that would do as its example, the better one first.
type group struct {
	reason, next Reason
	nodes        int
}

// kind tells groups apart.
type kind struct {
	check    Check
	resource corev1.ResourceName
	volume   string
}

func (r *Reason) kind() kind { return kind{r.Check, r.Resource, r.Volume} }

// better reports whether r is the better example.
func (r *Reason) better(than *Reason) bool {
	return than.Example == nil || r.Check == Resources && r.Free > than.Free
}

// groupsOf are those of all targets, by check, each once.
func (p *Planner) groupsOf(s *shape) []*group {
	if s.groups != nil {
		return s.groups
	}
	of := map[kind]*group{}
	for place, check := range p.checks(s) {
		if check == Fits {
			continue
		}
		r := p.reason(s, p.targets[place], check)
		g := of[r.kind()]
		if g == nil {
			g = &group{}
			of[r.kind()] = g
			s.groups = append(s.groups, g)
		}
		g.nodes++
		switch {
		case r.better(&g.reason):
			g.reason, g.next = r, g.reason
		case r.better(&g.next):
			g.next = r
		}
	}
	slices.SortStableFunc(s.groups, func(a, b *group) int { return int(a.reason.Check - b.reason.Check) })
	return s.groups
}

// reasons are those of the targets but the node's own, by check; those of Resources by resource, those of VolumeZone by volume.
func (p *Planner) reasons(s *shape, own int) []Reason {
	var without Reason
	if own >= 0 && p.checks(s)[own] != Fits {
		without = p.reason(s, p.targets[own], p.checks(s)[own])
	}
	var out []Reason
	for _, g := range p.groupsOf(s) {
		r := g.reason
		r.Nodes = g.nodes
		if without.Example != nil && r.kind() == without.kind() {
			if r.Example == without.Example {
				r = g.next
			}
			r.Nodes = g.nodes - 1
		}
		if r.Nodes > 0 {
			r.Enough = p.enough(s, &r)
			out = append(out, r)
		}
	}
	return out
}

// enough reports whether only the resource that is lacking keeps the pod off the example.
func (p *Planner) enough(s *shape, r *Reason) bool {
	if r.Check != Resources || r.Free <= 0 {
		return false
	}
	less := *s
	less.need.least = slices.Clone(s.need.least)
	less.need.least[p.index[r.Resource]] = r.Free
	return p.check(&less, p.targets[r.place]) == Fits
}

func (p *Planner) reason(s *shape, t *target, check Check) Reason {
	r := Reason{Check: check, Nodes: 1, Example: t.node, place: t.place}
	switch check {
	case Taints:
		r.Taint = untolerated(t.node.Node.Spec.Taints, s.tolerations, false)
	case HostPorts:
		r.Port = conflict(s.ports, t.ports, false).port
	case Resources:
		i := t.lacks(s.need.least)
		r.Resource, r.Need, r.Free, r.Allocatable, r.Used = p.names[i], s.need.least.at(i), t.free(i), t.allocatable.at(i), t.used.at(i)
	case NodeAffinity:
		for key, value := range s.selector {
			if t.labels.Labels[key] != value && (r.Label == "" || key < r.Label) {
				r.Label, r.Value = key, value
			}
		}
	case VolumeZone:
		z := t.barredZone(s.zones)
		r.Volume, r.Claim, r.Zones = z.Volume, z.Claim, z.Zones()
	}
	return r
}
