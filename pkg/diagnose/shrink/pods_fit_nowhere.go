package shrink

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// mostStuck is how many pods of a node are told of one by one.
const mostStuck = 3

// mostReasons is how many reasons of nodes, and NodePools, are told for a pod.
const mostReasons = 5

// podsFitNowhere: a pod of the node fits on no other node and no NodePool can
// make one for it, so that Karpenter neither deletes nor replaces the node
// (Karpenter 1.14, pkg/controllers/disruption/helpers.go:SimulateScheduling).
// Where the objects do not prove it, Karpenter's event makes it likely. For pods
// that count for nothing it looks for no place.
func podsFitNowhere(n *nodeCase) []report.Finding {
	if !n.node.Managed() || n.node.Node == nil || n.going() || n.pool != nil && (n.pool.pool.IsStatic() || n.podsErr == nil && n.empty()) {
		return nil
	}
	answer := n.elsewhere()
	nowhere := answer.Nowhere()
	switch {
	case answer.NowhereTogether():
		return []report.Finding{n.nowhereTogether(answer)}
	case len(nowhere) == 0:
		return n.saidNotToSchedule(answer)
	}
	first := nowhere[0]
	f := report.NewFinding(report.PodsFitNowhere, report.Proven, n.subject(),
		fmt.Sprintf("Pod %s%s of node %s %s (%s), and %s: the node can neither be deleted nor replaced.", podName(first.Pod), others(len(nowhere)-1), n.node.Name(),
			fitsNone(len(answer.Targets)), told(first.Reasons), n.noNewNode(first.NewNode)))
	var sums []string
	for i, pod := range nowhere {
		if i == mostStuck {
			sums = append(sums, plural(len(nowhere)-i, "more pod")+" like these")
			break
		}
		because, sum := n.stuckEvidence(pod)
		f.Because = append(f.Because, because...)
		sums = append(sums, sum)
	}
	f.Arithmetic = strings.Join(sums, "; ")
	if e, ok := n.notToSchedule(); ok {
		f.Because = append(f.Because, n.eventEvidence(e, "Karpenter found the same; it names what it met with each NodePool"))
	}
	f.Remedies = n.makeRoom(first)
	return []report.Finding{f}
}

// others counts pods beside the one that is named.
func others(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %s)", plural(n, "other pod"))
}

func podName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func fitsNone(nodes int) string {
	switch nodes {
	case 0:
		return "fits on no other node, for there is none"
	case 1:
		return "does not fit on the only other node"
	}
	return fmt.Sprintf("fits on none of the %d other nodes", nodes)
}

// told are the reasons of nodes, folded: "5 nodes: cpu 2 wanted, at most 1.3 free".
func told(reasons []placement.Reason) string {
	if len(reasons) == 0 {
		return "no node stays"
	}
	var out []string
	for _, r := range reasons {
		out = append(out, plural(r.Nodes, "node")+": "+why(r))
	}
	if len(out) > mostReasons {
		out = append(out[:mostReasons], fmt.Sprintf("and %s", plural(len(out)-mostReasons, "more reason")))
	}
	return strings.Join(out, "; ")
}

func why(r placement.Reason) string {
	switch r.Check {
	case placement.Resources:
		return fmt.Sprintf("%s %s wanted, at most %s free", r.Resource, thousandths(r.Resource, r.Need), thousandths(r.Resource, r.Free))
	case placement.Taints:
		return "taint " + cut(r.Taint.ToString(), 150) + " not tolerated"
	case placement.HostPorts:
		return fmt.Sprintf("host port %d taken", r.Port)
	case placement.NodeAffinity:
		if r.Label != "" {
			return fmt.Sprintf("not %s=%s", cut(r.Label, 100), cut(r.Value, 100))
		}
		return "not what its required node affinity selects"
	case placement.VolumeZone:
		return fmt.Sprintf("volume %s can be attached in %s only", cut(r.Volume, 100), some(r.Zones))
	}
	return r.Check.String()
}

// noNewNode says why no pool makes a node, in words.
func (n *nodeCase) noNewNode(none placement.NewNode) string {
	if len(none.Pools) == 0 {
		return "there is no NodePool to make a new one"
	}
	var out []string
	for _, p := range none.Pools {
		out = append(out, fmt.Sprintf("%s (%s)", p.Name, barredBy(p)))
	}
	return "no new node can be made for it by NodePool " + some(out)
}

func barredBy(p placement.BarredPool) string {
	switch p.Bar {
	case placement.BarLimits:
		return fmt.Sprintf("spec.limits.%s %s leaves %s beside its other nodes", p.Resource, thousandths(p.Resource, p.Limit), thousandths(p.Resource, p.Left))
	case placement.BarTaints:
		return "taint " + cut(p.Taint.ToString(), 150) + " not tolerated"
	case placement.BarRequirements:
		return "excluded by " + cut(p.Label, 150)
	case placement.BarZone:
		return "not in the zone of volume " + cut(p.Volume, 100)
	}
	return strings.TrimPrefix(string(p.Bar), "it is ")
}

// stuckEvidence is what shows that a pod has no place, and its sum.
func (n *nodeCase) stuckEvidence(pod placement.Pod) (because []report.Evidence, sum string) {
	var sums []string
	for _, r := range pod.Reasons[:min(len(pod.Reasons), mostReasons)] {
		if r.Check != placement.Resources {
			because = append(because, report.Evidence{Source: "api:nodes/" + r.Example.Name(), Field: fieldOf(r.Check), Value: why(r), Means: fmt.Sprintf("so of %s for pod %s", plural(r.Nodes, "node"), podName(pod.Pod))})
			continue
		}
		need, free := thousandths(r.Resource, r.Need), thousandths(r.Resource, r.Free)
		because = append(because,
			podField(pod.Pod, "spec.containers[].resources.requests."+string(r.Resource), need, "what it requests"),
			report.Evidence{Source: "api:nodes/" + r.Example.Name(), Field: "status.allocatable." + string(r.Resource), Value: quantity(r.Example.Node.Status.Allocatable, r.Resource), Means: fmt.Sprintf("of the %s that lack it the one with the most left: %s", plural(r.Nodes, "node"), free)})
		sums = append(sums, fmt.Sprintf("%s on %s: %s allocatable - %s requested by its pods = %s < %s", r.Resource, r.Example.Name(), thousandths(r.Resource, r.Allocatable), thousandths(r.Resource, r.Used), free, need))
	}
	for _, p := range pod.NewNode.Pools[:min(len(pod.NewNode.Pools), mostReasons)] {
		if p.Bar != placement.BarLimits {
			because = append(because, report.Evidence{Source: "api:nodepools.karpenter.sh/" + p.Name, Field: poolField(p.Bar), Value: barredBy(p), Means: string(p.Bar)})
			continue
		}
		limit := thousandths(p.Resource, p.Limit)
		because = append(because, report.Evidence{Source: "api:nodepools.karpenter.sh/" + p.Name, Field: "spec.limits." + string(p.Resource), Value: limit, Means: "no node is made that would go beyond it"})
		sums = append(sums, fmt.Sprintf("%s of NodePool %s: limit %s - %s capacity of its nodes that stay = %s < %s", p.Resource, p.Name, limit, thousandths(p.Resource, p.Used), thousandths(p.Resource, p.Left), thousandths(p.Resource, p.Need)))
	}
	if len(sums) == 0 {
		return because, podName(pod.Pod) + ": " + told(pod.Reasons)
	}
	return because, podName(pod.Pod) + ": " + strings.Join(sums, "; ")
}

func fieldOf(check placement.Check) string {
	switch check {
	case placement.Uninitialized:
		return "metadata.labels[karpenter.sh/initialized]"
	case placement.Taints:
		return "spec.taints"
	case placement.HostPorts:
		return "pods' hostPort"
	}
	return "metadata.labels"
}

func poolField(bar placement.Bar) string {
	switch bar {
	case placement.BarStatic:
		return "spec.replicas"
	case placement.BarDeleting:
		return "metadata.deletionTimestamp"
	case placement.BarNotReady:
		return "status.conditions[Ready]"
	case placement.BarTaints:
		return "spec.template.spec.taints"
	}
	return "spec.template.spec.requirements"
}

// makeRoom are changes after which the pod passes the checks that it fails now.
func (n *nodeCase) makeRoom(pod placement.Pod) []report.Remedy {
	var out []report.Remedy
	for _, p := range pod.NewNode.Pools[:min(len(pod.NewNode.Pools), mostReasons)] {
		if p.Bar == placement.BarLimits {
			least := thousandths(p.Resource, p.Used+p.Need)
			out = append(out, report.Remedy{Summary: fmt.Sprintf("Raise spec.limits.%s of NodePool %s to %s or more.", p.Resource, p.Name, least), Command: "kubectl edit nodepools.karpenter.sh " + shellWord(p.Name),
				Effect:  fmt.Sprintf("the limit then leaves %s, what the pod requests, for a new node", thousandths(p.Resource, p.Need)),
				Caution: "A node is larger than the pods that it is made for, and Karpenter takes a replacement only if it is cheaper: leave room for a whole instance."})
		}
	}
	for _, r := range pod.Reasons[:min(len(pod.Reasons), mostReasons)] {
		if r.Enough {
			out = append(out, report.Remedy{Summary: fmt.Sprintf("Let pod %s request at most %s of %s, if it needs no more.", podName(pod.Pod), thousandths(r.Resource, r.Free), r.Resource),
				Effect:  "node " + r.Example.Name() + " then has room for it by what it requests",
				Caution: "Change it in the pod's controller; this says nothing of spreads, anti-affinities and other volumes."})
		}
	}
	return out
}

var notScheduled = regexp.MustCompile(`^Not all pods would schedule, (\S+/\S+) => `)

// notToSchedule is Karpenter's last word on the node, if it can still hold and
// is that a pod would not schedule. That of drift is repeated each pass, at most
// every two minutes.
func (n *nodeCase) notToSchedule() (corev1.Event, bool) {
	if e, ok := n.lastVerdict(); ok && notScheduled.MatchString(e.Message) {
		return e, true
	}
	return n.said(func(e corev1.Event) bool {
		return e.Reason == disruptionBlocked && n.at.Sub(lastSeen(e)) <= 5*time.Minute && notScheduled.MatchString(e.Message)
	})
}

// saidNotToSchedule goes by the event alone. It is over where the pod that it
// names is gone, or has a place by now; and nodes inside their consolidateAfter
// that would take the pods are a cause of their own.
func (n *nodeCase) saidNotToSchedule(answer *placement.Answer) []report.Finding {
	e, ok := n.notToSchedule()
	if !ok || answer.Outcome == placement.ProbablyRemovable || len(answer.Protected) > 0 {
		return nil
	}
	name := notScheduled.FindStringSubmatch(e.Message)[1]
	var pod *placement.Pod
	for i := range answer.Pods {
		if podName(answer.Pods[i].Pod) == name {
			pod = &answer.Pods[i]
		}
	}
	if pod == nil && n.podsErr == nil {
		return nil
	}
	f := report.NewFinding(report.PodsFitNowhere, report.Likely, n.subject(),
		fmt.Sprintf("At %s Karpenter found that pod %s of node %s would not schedule if the node went.", utc(lastSeen(e)), name, n.node.Name()),
		n.eventEvidence(e, "Karpenter names what it met with each NodePool, and at most five pods"))
	if pod != nil && pod.Stuck {
		because, sum := n.stuckEvidence(*pod)
		f.Because, f.Arithmetic = append(f.Because, because...), sum
		f.Summary = strings.TrimSuffix(f.Summary, ".") + fmt.Sprintf(": it %s (%s).", fitsNone(len(answer.Targets)), told(pod.Reasons))
		f.Remedies = n.makeRoom(*pod)
	}
	return []report.Finding{f}
}
