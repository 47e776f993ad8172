package shrink

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostFloors is how many lower bounds of a kind are told of a pool, the highest
// first.
const mostFloors = 3

// capacityFacts are how many nodes the pool has and its pods need at least. Nil
// where nodes or pods are not all known.
func (p *poolCase) capacityFacts() []report.NodePoolCapacity {
	p.gaps.Miss("cluster/pods.json", p.podsErr, "how many nodes the pool's pods need, and what they keep from happening, is not known", "collect pods (list) of all namespaces")
	if !p.nodesKnown() || p.podsErr != nil {
		return nil
	}
	pool := floor.Of(p.nodes)
	facts := report.NodePoolCapacity{NodePool: p.pool.Name, Nodes: len(pool.Nodes), Leaving: len(pool.Leaving), Starting: len(pool.Starting), Sizes: sizesOf(pool.Nodes), Pods: len(pool.Pods)}
	told := map[floor.Kind]int{}
	for i, f := range pool.Floors() {
		facts.Needed = max(facts.Needed, f.Nodes)
		told[f.By]++
		if i == 0 || f.Nodes > 1 && told[f.By] <= mostFloors {
			facts.Floors = append(facts.Floors, p.floorFact(pool, f))
		}
	}
	if n := p.pending(); n > 0 {
		p.gaps.Lack("where pods without a node will run", plural(n, "pod")+" pending", "NodePool "+p.pool.Name+" may need more nodes than its pods do now", "")
	}
	return []report.NodePoolCapacity{facts}
}

// pending counts pods that need a node and have none yet.
func (c *Cluster) pending() int {
	n := 0
	for i := range c.pods {
		if p := &c.pods[i]; p.Spec.NodeName == "" && disruption.IsReschedulable(p) && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// mostSizes is how many instance types are told of one by one.
const mostSizes = 12

// sizesOf are the instance types of nodes, the most frequent first.
func sizesOf(nodes []*disruption.Node) []report.NodeSize {
	count := map[string]int{}
	for _, n := range nodes {
		count[n.Node.Labels[corev1.LabelInstanceTypeStable]]++
	}
	var out []report.NodeSize
	for name, n := range count {
		out = append(out, report.NodeSize{InstanceType: name, Nodes: n})
	}
	slices.SortFunc(out, func(a, b report.NodeSize) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	if len(out) > mostSizes {
		rest := report.NodeSize{InstanceType: "of other types"}
		for _, s := range out[mostSizes:] {
			rest.Nodes += s.Nodes
		}
		out = append(out[:mostSizes], rest)
	}
	return out
}

func (p *poolCase) floorFact(pool *floor.Pool, f floor.Floor) report.NodeFloor {
	fact := report.NodeFloor{Nodes: f.Nodes, By: string(f.By)}
	first := f.Pods[0]
	switch f.By {
	case floor.Requests:
		fact.Of = string(f.Resource)
		need := readable(f.Resource, f.Need)
		if f.Resource == corev1.ResourcePods {
			fact.Arithmetic = plural(len(f.Pods), "pod") + holding(f.Bound, "take", func(n int64) string { return thousandths(f.Resource, n) })
			fact.Because = largest(pool, f.Resource)
			break
		}
		fact.Arithmetic = fmt.Sprintf("%s requested by %s%s", need, plural(len(f.Pods), "pod"), holding(f.Bound, "leave", func(n int64) string { return readable(f.Resource, n) }))
		fact.Because = append(fact.Because, report.Evidence{Source: "api:pods", Field: "spec.containers[].resources.requests." + string(f.Resource), Value: need,
			Means: "sum of what the pods request that are on the pool's nodes and would have to go elsewhere"})
		fact.Because = append(fact.Because, largest(pool, f.Resource)...)
	case floor.LargePods:
		fact.Of = string(f.Resource)
		each := readable(f.Resource, f.Each)
		fact.Arithmetic = fmt.Sprintf("%s request %s or more each%s", plural(len(f.Pods), "pod"), each, holding(f.Bound, "take", plainCount))
		fact.Because = append(fact.Because, podField(first, "spec.containers[].resources.requests."+string(f.Resource), each, "one of them"))
		fact.Because = append(fact.Because, largest(pool, f.Resource)...)
	case floor.NodeSelection:
		fact.Of = f.Label
		var parts []string
		for _, v := range f.Values[:min(len(f.Values), mostNamed)] {
			parts = append(parts, fmt.Sprintf("%d for %s (%s)", v.Nodes, cut(v.Value, 100), plural(v.Pods, "pod")))
		}
		if n := len(f.Values) - mostNamed; n > 0 {
			parts = append(parts, plural(n, "other value"))
		}
		fact.Arithmetic = fmt.Sprintf("%s = %d: pods that ask for different values share no node", strings.Join(parts, " + "), f.Nodes)
		fact.Because = append(fact.Because, podField(first, "spec.nodeSelector or required node affinity", f.Label, "one of the pods that ask for a value"))
	default:
		fact.Of = workloads(f.Pods)
		fact.Arithmetic = fmt.Sprintf("%s, of which a node takes at most %d%s", plural(len(f.Pods), "pod"), f.Constraint.MaxSkew, holding(f.Bound, "hold", plainCount))
		fact.Because = append(fact.Because, podField(first, f.Constraint.Path, fmt.Sprintf("%s, selects %s", f.Constraint.Key, cut(f.Constraint.Selector(), 200)), "the same of all of them"))
	}
	return fact
}

// holding tells what the largest nodes hold, one fewer than needed and all that are.
func holding(b floor.Bound, verb string, write func(int64) string) string {
	switch {
	case b.Nodes <= 1 && b.Endless():
		return ""
	case b.Nodes <= 1:
		return fmt.Sprintf("; the largest node %ss %s", verb, write(b.Held))
	}
	text := fmt.Sprintf("; the %d largest nodes %s %s", b.Nodes-1, verb, write(b.Fewer))
	if b.Nodes == 2 {
		text = fmt.Sprintf("; the largest node %ss %s", verb, write(b.Fewer))
	}
	if !b.Endless() {
		text += fmt.Sprintf(", the %d largest %s", b.Nodes, write(b.Held))
	}
	return text
}

func largest(pool *floor.Pool, name corev1.ResourceName) []report.Evidence {
	node, room := pool.Largest(name)
	if node == nil {
		return nil
	}
	return []report.Evidence{{Source: "api:nodes/" + node.Node.Name, Field: "status.allocatable." + string(name), Value: quantity(node.Node.Status.Allocatable, name),
		Means: fmt.Sprintf("the largest; its DaemonSet and static pods leave %s", readable(name, room))}}
}

func plainCount(n int64) string { return fmt.Sprint(n) }

// readable is an amount in thousandths as a person reads it: bytes to two decimals of
// their largest unit.
func readable(name corev1.ResourceName, n int64) string {
	if !isBytes(name) || n%1000 != 0 || n < 1<<10*1000 {
		return thousandths(name, n)
	}
	bytes := n / 1000
	if exact := resource.NewQuantity(bytes, resource.BinarySI).String(); len(exact) <= len("1000Gi") {
		return exact
	}
	units := []string{"Ki", "Mi", "Gi", "Ti", "Pi"}
	unit, i := float64(1<<10), 0
	for float64(bytes) >= unit*1024 && i < len(units)-1 {
		unit *= 1024
		i++
	}
	text := fmt.Sprintf("%.2f", float64(bytes)/unit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + units[i]
}

// workloads are the controllers of pods, by name.
func workloads(pods []*corev1.Pod) string {
	var names []string
	seen := map[string]bool{}
	for _, pod := range pods {
		if name := workload(pod); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return some(names)
}

// workload is what made a pod: its controller, and that of a ReplicaSet that is
// named as a Deployment names its own.
func workload(pod *corev1.Pod) string {
	for _, owner := range pod.OwnerReferences {
		if owner.Controller == nil || !*owner.Controller {
			continue
		}
		kind, name := owner.Kind, owner.Name
		if hash := pod.Labels["pod-template-hash"]; kind == "ReplicaSet" && hash != "" {
			if deployment, ok := strings.CutSuffix(name, "-"+hash); ok && deployment != "" {
				kind, name = "Deployment", deployment
			}
		}
		return fmt.Sprintf("%s %s/%s", kind, pod.Namespace, name)
	}
	return fmt.Sprintf("Pod %s/%s", pod.Namespace, pod.Name)
}
