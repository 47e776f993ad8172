package floor

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mostLabels bounds how many labels, and values of one, are looked at.
const mostLabels = 64

// bySelection: pods that ask for different values of a label never share a node, so that what each value needs adds up. It is told
// of labels of which at least two values are asked for.
func (p *Pool) bySelection() []Floor {
	asking := map[string]map[string][]int{}
	for i, pod := range p.Pods {
		for label, value := range selected(pod) {
			if p.Nodes[p.at[i]].Node.Labels[label] != value {
				continue // it would not be put there now, so nothing follows from where it is
			}
			if asking[label] == nil {
				asking[label] = map[string][]int{}
			}
			asking[label][value] = append(asking[label][value], i)
		}
	}
	var out []Floor
	for _, label := range slices.Sorted(maps.Keys(asking)) {
		byValue := asking[label]
		if len(byValue) < 2 {
			continue
		}
		if len(out) == mostLabels {
			break
		}
		out = append(out, p.selection(label, byValue))
	}
	return out
}

func (p *Pool) selection(label string, byValue map[string][]int) Floor {
	nodes := map[string][]int{}
	for i, n := range p.Nodes {
		nodes[n.Node.Labels[label]] = append(nodes[n.Node.Labels[label]], i)
	}
	f := Floor{By: NodeSelection, Label: label}
	var counted []int
	for _, value := range slices.Sorted(maps.Keys(byValue)) {
		pods := byValue[value]
		least := 1
		for _, name := range p.names {
			if b, ok := p.sumOf(name, pods, nodes[value]); ok {
				least = max(least, b.Nodes)
			}
		}
		f.Nodes += least
		f.Values = append(f.Values, Value{value, least, len(pods)})
		counted = append(counted, pods...)
	}
	slices.Sort(counted)
	for _, i := range counted {
		f.Pods = append(f.Pods, p.Pods[i])
	}
	slices.SortStableFunc(f.Values, func(a, b Value) int { return cmp.Compare(b.Nodes, a.Nodes) })
	f.Need = int64(f.Nodes)
	return f
}

// selected are the labels of which a pod asks for exactly one value: by its node selector, or by a required node affinity of one term.
func selected(pod *corev1.Pod) map[string]string {
	out := maps.Clone(pod.Spec.NodeSelector)
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return out
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 {
		return out
	}
	for _, e := range terms[0].MatchExpressions {
		if e.Operator != corev1.NodeSelectorOpIn || len(e.Values) != 1 {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		if _, has := out[e.Key]; !has {
			out[e.Key] = e.Values[0]
		}
	}
	return out
}
