package floor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Constraint keeps pods of a kind apart by a label of nodes: a topology spread constraint that is DoNotSchedule, or a term of a
// required anti-affinity. Preferred ones are not told of: Karpenter drops them where a pod fits nowhere.
type Constraint struct {
	Kind Kind // TopologySpread or AntiAffinity
	Key  string
	// MaxSkew of a spread; 1 of an anti-affinity.
	MaxSkew int64
	// Path is where it stands in the pod, such as "spec.topologySpreadConstraints[0]".
	Path string

	namespaces []string // nil: any
	selector   labels.Selector
	// nodes are those on which pods count; nil: all.
	nodes *nodeaffinity.RequiredNodeAffinity
	id    string // of all that selects, the same for pods of one workload
}

// ConstraintsOf are those of a pod, spreads first. Those whose selection is not known are left out: selectors that cannot be parsed,
// and namespaces chosen by their labels.
func ConstraintsOf(pod *corev1.Pod) []Constraint {
	var out []Constraint
	for i, s := range pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable != corev1.DoNotSchedule || s.MaxSkew < 1 {
			continue
		}
		if s.TopologyKey != corev1.LabelHostname && s.NodeTaintsPolicy != nil && *s.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor {
			continue // which pods count depends on the taints of their nodes
		}
		c := Constraint{Kind: TopologySpread, Key: s.TopologyKey, MaxSkew: int64(s.MaxSkew), Path: fmt.Sprintf("spec.topologySpreadConstraints[%d]", i), namespaces: []string{pod.Namespace}}
		if !c.read(pod, s.LabelSelector, s.MatchLabelKeys, nil) {
			continue
		}
		if s.NodeAffinityPolicy == nil || *s.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
			nodes := nodeaffinity.GetRequiredNodeAffinity(pod)
			c.nodes = &nodes
			c.id += "\n" + selection(pod)
		}
		out = append(out, c)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for i, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			c := Constraint{Kind: AntiAffinity, Key: term.TopologyKey, MaxSkew: 1, Path: fmt.Sprintf("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[%d]", i)}
			switch every := term.NamespaceSelector != nil && len(term.NamespaceSelector.MatchLabels)+len(term.NamespaceSelector.MatchExpressions) == 0; {
			case every:
			case len(term.Namespaces) > 0:
				// What a selector of namespaces adds is left out.
				c.namespaces = slices.Compact(slices.Sorted(slices.Values(term.Namespaces)))
			case term.NamespaceSelector != nil:
				continue
			default:
				c.namespaces = []string{pod.Namespace}
			}
			if c.read(pod, term.LabelSelector, term.MatchLabelKeys, term.MismatchLabelKeys) {
				out = append(out, c)
			}
		}
	}
	return out
}

// read adds the selector. Without one nothing is selected.
func (c *Constraint) read(pod *corev1.Pod, selector *metav1.LabelSelector, same, other []string) bool {
	if selector == nil || c.Key == "" {
		return false
	}
	whole := selector.DeepCopy()
	add := func(keys []string, op metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, ok := pod.Labels[key]; ok {
				whole.MatchExpressions = append(whole.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: []string{value}})
			}
		}
	}
	add(same, metav1.LabelSelectorOpIn)
	add(other, metav1.LabelSelectorOpNotIn)
	var err error
	if c.selector, err = metav1.LabelSelectorAsSelector(whole); err != nil {
		return false
	}
	names := "*"
	if c.namespaces != nil {
		names = strings.Join(c.namespaces, ",")
	}
	c.id = fmt.Sprintf("%s\n%s\n%d\n%s\n%s", c.Kind, c.Key, c.MaxSkew, names, c.selector)
	return true
}

// Selects reports whether the pod is of the kind that is kept apart.
func (c *Constraint) Selects(pod *corev1.Pod) bool {
	return (c.namespaces == nil || slices.Contains(c.namespaces, pod.Namespace)) && c.selector.Matches(labels.Set(pod.Labels))
}

// selection is what a pod requires of its node, as text.
func selection(pod *corev1.Pod) string {
	var required *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	text, _ := json.Marshal([]any{pod.Spec.NodeSelector, required}) // strings and lists of them
	return string(text)
}

// countsOn reports whether pods on the node count for certain.
func (c *Constraint) countsOn(n *corev1.Node) bool {
	if c.nodes == nil {
		return true
	}
	match, err := c.nodes.Match(n)
	return err == nil && match
}

// Selector is the selector as text.
func (c *Constraint) Selector() string { return c.selector.String() }

// mostConstraints bounds how many different constraints are looked at.
const mostConstraints = 256

// byTopology: of pods that have the same constraint on hostname and are selected by it, a node takes another one only while it has
// fewer than MaxSkew, for Karpenter takes the least of all nodes for 0 (Karpenter 1.14, pkg/controllers/provisioning/scheduling/
// topologygroup.go: nextDomainTopologySpread, nextDomainAntiAffinity). So a node ends with at most MaxSkew of them, or with what it
// has now.
func (p *Pool) byTopology() []Floor {
	type group struct {
		constraint Constraint
		pods       []*corev1.Pod
		on         []int64
	}
	groups := map[string]*group{}
	var order []*group
	for i, pod := range p.Pods {
		for _, c := range ConstraintsOf(pod) {
			if c.Key != corev1.LabelHostname || !c.Selects(pod) {
				continue
			}
			g := groups[c.id]
			if g == nil {
				if len(order) == mostConstraints {
					continue
				}
				g = &group{constraint: c, on: make([]int64, len(p.Nodes))}
				groups[c.id] = g
				order = append(order, g)
			}
			if len(g.pods) > 0 && g.pods[len(g.pods)-1] == pod {
				continue // it has the constraint twice
			}
			g.pods = append(g.pods, pod)
			g.on[p.at[i]]++
		}
	}
	var out []Floor
	for _, g := range order {
		holds := make([]int64, len(g.on))
		for i, n := range g.on {
			holds[i] = max(n, g.constraint.MaxSkew)
		}
		if b, ok := Least(int64(len(g.pods)), holds); ok {
			out = append(out, Floor{By: g.constraint.Kind, Bound: b, Pods: g.pods, Constraint: &g.constraint})
		}
	}
	return out
}
