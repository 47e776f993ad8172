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

// reasons are those of all targets, by check; those of Resources by resource, those of VolumeZone by volume.
func (p *Planner) reasons(s *shape, own int) []Reason {
	type kind struct {
		check  Check
		detail string
	}
	of := map[kind]*Reason{}
	var kinds []kind
	for place, check := range p.checks(s) {
		if place == own {
			continue
		}
		t := p.targets[place]
		r := p.reason(s, t, check)
		k := kind{check, string(r.Resource) + r.Volume}
		first := of[k]
		if first == nil {
			of[k] = &r
			kinds = append(kinds, k)
			continue
		}
		first.Nodes++
		if check == Resources && r.Free > first.Free {
			r.Nodes = first.Nodes
			of[k] = &r
		}
	}
	var out []Reason
	for _, k := range kinds {
		out = append(out, *of[k])
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return int(a.Check - b.Check) })
	return out
}

func (p *Planner) reason(s *shape, t *target, check Check) Reason {
	r := Reason{Check: check, Nodes: 1, Example: t.node}
	switch check {
	case Taints:
		r.Taint = untolerated(t.node.Node.Spec.Taints, s.tolerations, false)
	case HostPorts:
		r.Port = conflict(s.ports, t.ports, false).port
	case Resources:
		i := t.lacks(s.need.least)
		r.Resource, r.Need, r.Free, r.Allocatable, r.Used = p.names[i], s.need.least.at(i), t.free(i), t.allocatable.at(i), t.used.at(i)
		if r.Free > 0 {
			less := *s
			less.need.least = slices.Clone(s.need.least)
			less.need.least[i] = r.Free
			r.Enough = p.check(&less, t) == Fits
		}
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
