package placement

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// shape is all that decides where a pod fits. Pods of the same shape share it, and what the nodes say to it.
type shape struct {
	*class
	need  need
	ports []hostPort
	zones []zone
	// doubts are why no plan can hold a pod of this shape.
	doubts []DoubtReason
	failed []Check // by place; nil: not asked yet
	counts [Checks]int
	groups []*group
}

// class is what shapes with the same tolerations and node selection have in common.
type class struct {
	tolerations []corev1.Toleration
	selector    map[string]string
	// loose is the required affinity without fields, which Karpenter does not read; nil: none. unread: it cannot be parsed.
	loose  *nodeaffinity.NodeSelector
	unread bool
	// strict is all of it, and first its first term, the only one that Karpenter tries before a new node.
	strict nodeaffinity.RequiredNodeAffinity
	first  *nodeaffinity.NodeSelector
	terms  []corev1.NodeSelectorTerm
	// vague are labels of Planner.vague that it asks for.
	vague map[string]bool
	said  []verdict // by place
}

// verdict is what a node says to a class.
type verdict struct {
	asked, taints, affinity bool // what it fails for certain
	strict                  bool // it passes whatever may count
}

func (p *Planner) shapeOf(pod *corev1.Pod) *shape {
	if s := p.shapes[pod]; s != nil {
		return s
	}
	s := &shape{class: p.classOf(pod), need: p.needOf(pod), ports: hostPorts(pod)}
	s.zones, s.doubts = p.volumes.of(pod)
	s.doubts = append(s.doubts, p.doubtsOf(pod)...)
	if s.need.odd || s.unread {
		s.doubts = append(s.doubts, DoubtOdd)
	}
	key := fmt.Sprintf("%p %v %v %v %v", s.class, s.need, s.ports, s.zones, s.doubts)
	if same := p.shapeByKey[key]; same != nil {
		s = same
	}
	p.shapeByKey[key], p.shapes[pod] = s, s
	return s
}

// doubtsOf are what a pod has beside its volumes that is not computed here.
func (p *Planner) doubtsOf(pod *corev1.Pod) []DoubtReason {
	var out []DoubtReason
	if len(pod.Spec.ResourceClaims) > 0 {
		out = append(out, DoubtDevices)
	}
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		out = append(out, DoubtSpread)
	}
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil || a.PodAntiAffinity != nil {
			out = append(out, DoubtAffinity)
		}
		if a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			out = append(out, DoubtPreference)
		}
	}
	if p.kept.keeps(pod) {
		out = append(out, DoubtKeptOff)
	}
	return out
}

func (p *Planner) classOf(pod *corev1.Pod) *class {
	var required *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	text, err := json.Marshal([]any{pod.Spec.Tolerations, pod.Spec.NodeSelector, required})
	if c := p.classes[string(text)]; c != nil && err == nil {
		return c
	}
	c := &class{tolerations: pod.Spec.Tolerations, selector: pod.Spec.NodeSelector, strict: nodeaffinity.GetRequiredNodeAffinity(pod), said: make([]verdict, len(p.targets))}
	if required != nil && len(required.NodeSelectorTerms) > 0 {
		c.terms = required.NodeSelectorTerms
		var errs [2]error
		c.loose, errs[0] = nodeaffinity.NewNodeSelector(withoutFields(required.NodeSelectorTerms))
		c.first, errs[1] = nodeaffinity.NewNodeSelector(withoutFields(required.NodeSelectorTerms[:1]))
		c.unread = errs[0] != nil || errs[1] != nil
	}
	c.unread = c.unread || err != nil
	c.vague = map[string]bool{}
	for key := range c.selector {
		if p.vague[key] {
			c.vague[key] = true
		}
	}
	for _, t := range c.terms {
		for _, e := range t.MatchExpressions {
			if p.vague[e.Key] {
				c.vague[e.Key] = true
			}
		}
	}
	p.classes[string(text)] = c
	return c
}

// withoutFields leaves out matchFields. A term that has nothing else selects every node.
func withoutFields(terms []corev1.NodeSelectorTerm) *corev1.NodeSelector {
	out := &corev1.NodeSelector{}
	for _, t := range terms {
		if len(t.MatchExpressions) == 0 && len(t.MatchFields) > 0 {
			t.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}
		}
		t.MatchFields = nil
		out.NodeSelectorTerms = append(out.NodeSelectorTerms, t)
	}
	return out
}

// ask is what a node that there is says to the class, each once.
func (c *class) ask(t *target) verdict {
	if v := c.said[t.place]; v.asked {
		return v
	}
	taints := t.node.Node.Spec.Taints
	v := verdict{asked: true, taints: untolerated(taints, c.tolerations, false) != nil, affinity: !c.unread && !t.ambiguous && !c.admits(t)}
	if !v.taints && !v.affinity && !c.unread && !t.ambiguous {
		match, err := c.strict.Match(t.node.Node)
		v.strict = err == nil && match && untolerated(taints, c.tolerations, true) == nil && (c.first == nil || c.first.Match(t.labels))
	}
	c.said[t.place] = v
	return v
}

// admits reports whether the node has the labels, or lacks only vague ones.
func (c *class) admits(t *target) bool {
	for key, value := range c.selector {
		if has, ok := t.labels.Labels[key]; has != value && (ok || !c.vague[key]) {
			return false
		}
	}
	if c.loose == nil || c.loose.Match(t.labels) {
		return true
	}
	if len(c.vague) == 0 {
		return false
	}
	for _, term := range c.terms {
		var left []corev1.NodeSelectorRequirement
		for _, e := range term.MatchExpressions {
			if _, ok := t.labels.Labels[e.Key]; ok || !c.vague[e.Key] {
				left = append(left, e)
			}
		}
		if len(left) == 0 {
			return len(term.MatchExpressions) > 0
		}
		s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: left}}})
		if err != nil || s.Match(t.labels) {
			return true
		}
	}
	return false
}

// checks are what each target says to the shape.
func (p *Planner) checks(s *shape) []Check {
	if s.failed == nil {
		s.failed = make([]Check, len(p.targets))
		for i, t := range p.targets {
			s.failed[i] = p.check(s, t)
			s.counts[s.failed[i]]++
		}
	}
	return s.failed
}

// check is the first check that the target fails for certain, [Fits] where it fails none.
func (p *Planner) check(s *shape, t *target) Check {
	if !t.initialized {
		return Uninitialized
	}
	said := s.ask(t)
	switch {
	case said.taints:
		return Taints
	case conflict(s.ports, t.ports, false) != nil:
		return HostPorts
	case t.lacks(s.need.least) >= 0:
		return Resources
	case said.affinity:
		return NodeAffinity
	case t.barredZone(s.zones) != nil:
		return VolumeZone
	}
	return Fits
}

// lacks is the first resource that the target has too little of, -1 where it has enough.
func (t *target) lacks(need vector) int {
	for i, amount := range need {
		if amount > 0 && !t.endless[i] && amount > t.free(i) {
			return i
		}
	}
	return -1
}

// free is what the pods that stay leave of a resource.
func (t *target) free(i int) int64 { return t.allocatable.at(i) - t.used.at(i) }
