package shrink

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
	"github.com/noderes/kubectl-noderes/pkg/disruption/floor"
	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// apartPod is a pod of a node that no other node takes, and some of them only
// for the sake of a spread or an anti-affinity.
type apartPod struct {
	placement.Pod
	kind   floor.Kind
	barred int // nodes that pass every other test
	// bar is that of target, of them the node with the fewest pods that count.
	bar    *floor.Bar
	target *disruption.Node
	// free: target fails nothing else.
	free bool
	// assumed as of [floor.Bar].
	assumed bool
}

// mostBars bounds how many pairs of a pod and a node are looked at for what
// keeps them apart.
const mostBars = 2_000_000

// apart are those of the node's pods, found once. What is not known of nodes or
// pods may take any of them.
func (n *nodeCase) apart() []apartPod {
	if n.isApart {
		return n.apartPods
	}
	n.isApart = true
	if !n.node.Managed() || n.node.Node == nil || n.going() || n.nodesErr != nil || n.claimsErr != nil || n.podsErr != nil || n.empty() ||
		n.pool != nil && n.pool.pool.IsStatic() {
		return nil
	}
	for _, pod := range n.elsewhere().Pods {
		if a, is := n.apartOf(pod); is {
			n.apartPods = append(n.apartPods, a)
		}
	}
	return n.apartPods
}

func (n *nodeCase) apartOf(pod placement.Pod) (apartPod, bool) {
	a := apartPod{Pod: pod}
	kept := n.keepers().Of(pod.Pod, n.node)
	if pod.Stuck || !kept.Constrained() {
		return a, false
	}
	kinds := map[floor.Kind]int{}
	all := true
	ok := n.planner.Places(pod.Pod, n.node, func(target *disruption.Node) bool {
		bar := kept.Bar(target)
		n.bars++
		if all = bar != nil && n.bars <= mostBars; !all {
			return false
		}
		kinds[bar.Constraint.Kind]++
		a.barred++
		a.assumed = a.assumed || bar.Assumed
		if free := kept.Without(&bar.Constraint, target) == nil; a.bar == nil || free && !a.free || free == a.free && less(bar, a.bar) {
			a.bar, a.target, a.free = bar, target, free
		}
		return true
	})
	if n.bars > mostBars {
		n.gaps.Lack("which pods are kept off every other node", "there are too many pods and nodes to try", "a spread or an anti-affinity may keep more nodes than are told", "")
	}
	if a.kind = floor.AntiAffinity; kinds[floor.TopologySpread] >= kinds[floor.AntiAffinity] {
		a.kind = floor.TopologySpread
	}
	return a, ok && all && a.bar != nil
}

func less(a, b *floor.Bar) bool {
	if a.Constraint.Kind == floor.TopologySpread && b.Constraint.Kind == floor.TopologySpread {
		return a.Skew-a.Constraint.MaxSkew < b.Skew-b.Constraint.MaxSkew
	}
	return a.Count < b.Count
}

// keepers are what keeps pods apart, in the whole cluster.
func (c *Cluster) keepers() *floor.Topology {
	if c.topology == nil {
		c.topology = floor.NewTopology(c.karpenter.Nodes, c.aroundNodes().Pending)
	}
	return c.topology
}

// apartFinding tells of the node's pods that one kind of constraint keeps.
func (n *nodeCase) apartFinding(code report.Code, kind floor.Kind) []report.Finding {
	var of []apartPod
	confidence := report.Likely
	for _, a := range n.apart() {
		if a.kind == kind {
			of = append(of, a)
			if !a.assumed {
				confidence = report.Proven
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	first := of[0]
	targets := len(n.elsewhere().Targets)
	f := report.NewFinding(code, confidence, n.subject(),
		fmt.Sprintf("Pod %s%s of node %s %s (%s%s), so that the node cannot be deleted without a new one.", podName(first.Pod.Pod), others(len(of)-1), n.node.Name(), fitsNone(targets),
			first.keptOff(targets), first.failed(targets)))
	var sums []string
	for i, a := range of {
		if i == mostStuck {
			sums = append(sums, plural(len(of)-i, "more pod")+" like these")
			break
		}
		f.Because = append(f.Because, a.evidence()...)
		sums = append(sums, podName(a.Pod.Pod)+" on "+a.target.Name()+": "+a.sum())
	}
	f.Arithmetic = strings.Join(sums, "; ")
	f.Remedies = first.remedies()
	return []report.Finding{f}
}

// keptOff says what bars nodes.
func (a apartPod) keptOff(targets int) string {
	nodes := fmt.Sprintf("%d of them", a.barred)
	if a.barred == targets {
		nodes = isOne(targets, "it", "all of them")
	}
	c := a.bar.Constraint
	switch {
	case a.bar.Inverse:
		return fmt.Sprintf("the anti-affinity on %s of pods such as %s keeps it off %s", c.Key, otherName(a.bar), nodes)
	case c.Kind == floor.AntiAffinity:
		return fmt.Sprintf("its own anti-affinity on %s keeps it off %s, where pods such as %s are", c.Key, nodes, otherName(a.bar))
	case a.bar.Own != "":
		return fmt.Sprintf("its spread over %s with maxSkew %d keeps it in %s and off %s", c.Key, c.MaxSkew, cut(a.bar.Own, 100), nodes)
	}
	return fmt.Sprintf("its spread over %s with maxSkew %d keeps it off %s, where %s or more like it are already", c.Key, c.MaxSkew, nodes, plural(int(a.bar.Count), "pod"))
}

func (a apartPod) failed(targets int) string {
	switch rest := targets - a.barred; rest {
	case 0:
		return ""
	case 1:
		return ", and 1 fails another test"
	default:
		return fmt.Sprintf(", and %d fail another test", rest)
	}
}

func otherName(b *floor.Bar) string {
	if b.Other == nil {
		return "of another node"
	}
	return podName(b.Other)
}

// sum is the test that target fails.
func (a apartPod) sum() string {
	c := a.bar.Constraint
	domain := cut(a.bar.Domain, 100)
	switch {
	case c.Kind == floor.AntiAffinity:
		return fmt.Sprintf("%s=%s has %s that the anti-affinity keeps apart, more than 0", c.Key, domain, plural(int(a.bar.Count), "pod"))
	case a.bar.Own != "":
		own := cut(a.bar.Own, 100)
		return fmt.Sprintf("%d with it in %s - %d at most left in %s = %d > maxSkew %d", a.bar.Skew+a.bar.OwnCount, domain, a.bar.OwnCount, own, a.bar.Skew, c.MaxSkew)
	}
	return fmt.Sprintf("%d with it - 0, for Karpenter could make an empty node, = %d > maxSkew %d", a.bar.Skew, a.bar.Skew, c.MaxSkew)
}

func (a apartPod) evidence() []report.Evidence {
	c := a.bar.Constraint
	bearer, means := a.Pod.Pod, "a node takes the pod only while this holds"
	if a.bar.Inverse && a.bar.Other != nil {
		bearer, means = a.bar.Other, "its constraint; it selects pod "+podName(a.Pod.Pod)
	}
	value := fmt.Sprintf("%s, selects %s", c.Key, cut(c.Selector(), 200))
	if c.Kind == floor.TopologySpread {
		value = fmt.Sprintf("%s, maxSkew %d, DoNotSchedule, selects %s", c.Key, c.MaxSkew, cut(c.Selector(), 200))
	}
	of := fmt.Sprintf("of %s that pass every other test the one with the fewest pods that count: %d", plural(a.barred, "node"), a.bar.Count)
	if a.bar.Other != nil {
		of += ", such as " + podName(a.bar.Other)
	}
	return []report.Evidence{podField(bearer, c.Path, value, means),
		{Source: "api:nodes/" + a.target.Node.Name, Field: "metadata.labels[" + c.Key + "]", Value: cut(a.bar.Domain, 200), Means: of}}
}

// remedies are of the constraint; what they are said to do was tried.
func (a apartPod) remedies() []report.Remedy {
	c := a.bar.Constraint
	effect := ""
	if a.free {
		effect = fmt.Sprintf("node %s then fails no test that can be made here of pod %s", a.target.Name(), podName(a.Pod.Pod))
	}
	if c.Kind == floor.TopologySpread {
		if !a.free {
			return nil
		}
		return []report.Remedy{{Summary: fmt.Sprintf("If its availability allows it, set maxSkew of the spread over %s to %d or more.", c.Key, a.bar.Skew), Command: editCommand(a.Pod.Pod), Effect: effect,
			Caution: "It rolls the workload out anew. ScheduleAnyway alone is not sure to help: by default Karpenter takes it for required as long as a new node could satisfy it."}}
	}
	of := a.Pod.Pod
	if a.bar.Inverse && a.bar.Other != nil {
		of = a.bar.Other
	}
	return []report.Remedy{{Summary: fmt.Sprintf("If its availability allows it, run fewer replicas of %s, or let them share a node: a spread over %s in place of the anti-affinity.", workload(of), c.Key), Command: editCommand(of), Effect: effect,
		Caution: "A preferred anti-affinity alone is not sure to help: by default Karpenter takes it for required as long as a new node could satisfy it."}}
}

// apartFinding tells of the pool's nodes that one kind of constraint keeps: of
// one as of the node itself, of several together.
func (p *poolCase) apartFinding(code report.Code, kind floor.Kind) []report.Finding {
	var of []report.Finding
	var names []string
	var pods []*corev1.Pod
	stay := 0
	confidence := report.Proven
	for _, node := range p.nodes {
		if node.Node != nil && !node.MarkedForDeletion() {
			stay++
		}
		n := p.nodeOf(node)
		for _, f := range n.apartFinding(code, kind) {
			of = append(of, f)
			names = append(names, node.Name())
			if f.Confidence.Rank() > confidence.Rank() {
				confidence = f.Confidence
			}
			for _, a := range n.apart() {
				if a.kind == kind {
					pods = append(pods, a.Pod.Pod)
				}
			}
		}
	}
	if len(of) < 2 {
		return of
	}
	noun := map[floor.Kind]string{floor.TopologySpread: "topology spread", floor.AntiAffinity: "required anti-affinity"}[kind]
	f := report.NewFinding(code, confidence, p.subject(),
		fmt.Sprintf("%s of the %d nodes of NodePool %s (%s) cannot be deleted without a new one: each has a pod of %s that a %s keeps off every other node that would take it.",
			p.atLeast(len(of)), stay, p.pool.Name, some(names), workloads(pods), noun), of[0].Because...)
	for i, name := range names[1:min(len(names), mostNamed)] {
		e := of[i+1].Because[0]
		e.Means = "keeps node " + name
		f.Because = append(f.Because, e)
	}
	f.Arithmetic, f.Remedies = of[0].Arithmetic, of[0].Remedies
	return []report.Finding{f}
}

// atLeast is a number of nodes that was counted until there were too many pairs
// to look at.
func (c *Cluster) atLeast(n int) string {
	if c.bars > mostBars {
		return fmt.Sprintf("At least %d", n)
	}
	return fmt.Sprint(n)
}
