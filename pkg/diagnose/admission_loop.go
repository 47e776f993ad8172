package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// longestPause is the longest that a controller waits before it replaces a
// failed pod: a DaemonSet's, whose pauses double up to it; a Job's end at 10 min
// and a ReplicaSet does not wait. Refusals further apart are no loop.
const longestPause = 15 * time.Minute

// refusedGroup is the last run of refused pods of one controller, each within
// longestPause of the one before; oldest first.
type refusedGroup struct {
	owner     metav1.OwnerReference
	namespace string
	pods      []*corev1.Pod
	// recovered: a later pod of the controller was not refused.
	recovered bool
	// gone are the refused pods that only events still tell of.
	gone []goneRefused
	// first and last are when the first and last of them came.
	first, last time.Time
}

// goneRefused is a refused pod that is deleted, and when an event last spoke of it.
type goneRefused struct {
	name string
	at   time.Time
}

// refusedGroups are the refused pods by controller. A refused pod has failed,
// and its controller makes a new one, which the scheduler may well send to the
// same node: it knows nothing of NUMA nodes and cores.
func (n *nodeCase) refusedGroups(pods []corev1.Pod) []refusedGroup {
	groups := map[string]*refusedGroup{}
	key := func(p *corev1.Pod) (string, *metav1.OwnerReference) {
		o := metav1.GetControllerOf(p)
		if o == nil {
			return "", nil
		}
		return strings.Join([]string{p.Namespace, o.Kind, o.Name, string(o.UID)}, "/"), o
	}
	for i := range pods {
		p := &pods[i]
		k, owner := key(p)
		if owner == nil || !refusedByKubelet(p) {
			continue
		}
		if groups[k] == nil {
			groups[k] = &refusedGroup{owner: *owner, namespace: p.Namespace}
		}
		groups[k].pods = append(groups[k].pods, p)
	}
	var out []refusedGroup
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		g := groups[k]
		slices.SortStableFunc(g.pods, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		last := g.pods[len(g.pods)-1].CreationTimestamp
		known := map[string]bool{}
		for i := range pods {
			p := &pods[i]
			known[p.Namespace+"/"+p.Name] = true
			if other, _ := key(p); other == k && p.CreationTimestamp.After(last.Time) && p.Spec.NodeName != "" && p.Status.Phase != corev1.PodPending && !refusedByKubelet(p) {
				g.recovered = true
			}
		}
		g.gone = n.goneRefused(*g, known)
		g.keepLastRun()
		out = append(out, *g)
	}
	return out
}

// keepLastRun leaves only the refused pods from which on none is further than
// longestPause from the next.
func (g *refusedGroup) keepLastRun() {
	var times []time.Time
	for _, p := range g.pods {
		times = append(times, p.CreationTimestamp.Time)
	}
	for _, p := range g.gone {
		times = append(times, p.at)
	}
	slices.SortFunc(times, time.Time.Compare)
	g.last = times[len(times)-1]
	g.first = g.last
	for _, at := range slices.Backward(times) {
		if g.first.Sub(at) > longestPause {
			break
		}
		g.first = at
	}
	g.pods = slices.DeleteFunc(g.pods, func(p *corev1.Pod) bool { return p.CreationTimestamp.Time.Before(g.first) })
	g.gone = slices.DeleteFunc(g.gone, func(p goneRefused) bool { return p.at.Before(g.first) })
}

// goneRefused are the refused pods of a controller that events tell of and the
// API no longer has: those whose name begins with the controller's.
func (n *nodeCase) goneRefused(g refusedGroup, known map[string]bool) []goneRefused {
	reasons := map[string]bool{}
	for _, p := range g.pods {
		reasons[p.Status.Reason] = true
	}
	names := map[string]time.Time{}
	for i := range n.events {
		o := n.events[i].InvolvedObject
		at := lastSeen(n.events[i])
		if o.Kind != "Pod" || o.Namespace != g.namespace || !reasons[n.events[i].Reason] || known[o.Namespace+"/"+o.Name] || at.IsZero() {
			continue
		}
		if rest, ok := strings.CutPrefix(o.Name, g.owner.Name+"-"); ok && !strings.Contains(rest, "-") && at.After(names[o.Name]) {
			names[o.Name] = at
		}
	}
	var out []goneRefused
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, goneRefused{name, names[name]})
	}
	return out
}

// refusedByKubelet says whether the kubelet refused the pod before it ran.
func refusedByKubelet(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && p.Status.Reason != reasonEvicted && refusal(p.Status) && !(&podCase{pod: p}).everStarted()
}

// admissionLoop speaks of a controller that keeps creating pods which the
// kubelet of this node refuses.
func admissionLoop(n *nodeCase) []report.Finding {
	var out []report.Finding
	for _, g := range n.refusedGroups(n.pods) {
		if f, ok := n.loop(g, n.subject()); ok {
			out = append(out, f)
		}
	}
	return out
}

// podAdmissionLoop says it of one of these pods; its fellows can be on other
// nodes.
func podAdmissionLoop(c *podCase) []report.Finding {
	if !refusedByKubelet(c.pod) {
		return nil
	}
	pods, err := c.snap.Pods()
	if err != nil {
		return nil
	}
	for _, g := range c.refusedGroups(pods) {
		if !slices.ContainsFunc(g.pods, func(p *corev1.Pod) bool { return p.Namespace == c.pod.Namespace && p.Name == c.pod.Name }) {
			continue
		}
		if f, ok := c.loop(g, c.subject("")); ok {
			return []report.Finding{f}
		}
	}
	return nil
}

// loop makes the finding. Two refused pods can be two replicas that came at
// once; a third, or one that was created after another's refusal, shows that
// the controller tries again. Where the last came longer ago than any
// controller waits, it is over for all that is known.
func (n *nodeCase) loop(g refusedGroup, subject report.Subject) (report.Finding, bool) {
	count := len(g.pods) + len(g.gone)
	if count < 2 || len(g.pods) == 0 || g.recovered {
		return report.Finding{}, false
	}
	first, last := g.pods[0], g.pods[len(g.pods)-1]
	again := g.last.After(g.first)
	quiet := n.at.Sub(g.last)
	confidence := report.Proven
	switch {
	case !again && len(g.gone) == 0, quiet > longestPause:
		confidence = report.Possible
	case count == 2 || g.owner.Kind == "Job":
		confidence = report.Likely
	}
	nodes := map[string]bool{}
	reasons := map[string]int{}
	for _, p := range g.pods {
		nodes[p.Spec.NodeName] = true
		reasons[p.Status.Reason]++
	}
	what := fmt.Sprintf("%s %s/%s", g.owner.Kind, g.namespace, g.owner.Name)
	of := join(slices.Sorted(maps.Keys(nodes)))
	does := fmt.Sprintf("%s keeps creating pods that the kubelet of %s refuses: %d so far%s, %s.", what, of, count, within(g.first, g.last), reasonCounts(reasons))
	if quiet > longestPause {
		does = fmt.Sprintf("%s created pods that the kubelet of %s refused: %d%s, %s. The last came %s before the reading, and no controller waits so long with the next: it has stopped, or what it made since is gone.",
			what, of, count, within(g.first, g.last), reasonCounts(reasons), quiet.Round(time.Second))
	}
	f := report.NewFinding(report.AdmissionLoop, confidence, subject,
		fmt.Sprintf("%s A refused pod is not tried again; the controller replaces it, and the scheduler, which sees sums and not NUMA nodes or cores, can send the next one to the same place.", does))
	f.Because = append(f.Because, report.Evidence{Source: "api:pods/" + first.Namespace + "/" + first.Name, Field: "metadata.ownerReferences[controller]", Value: g.owner.Kind + " " + g.owner.Name, Means: fmt.Sprintf("of %s", plural(len(g.pods), "refused pod"))})
	const most = 5
	for i, p := range g.pods {
		if i >= most-1 && i < len(g.pods)-1 {
			continue
		}
		e := report.Evidence{Source: "api:pods/" + p.Namespace + "/" + p.Name, Field: "status.reason", Value: p.Status.Reason, Means: "created " + utc(p.CreationTimestamp.Time), At: p.CreationTimestamp}
		f.Because = append(f.Because, e)
	}
	if len(g.gone) > 0 {
		var shown []string
		for _, p := range g.gone[:min(most, len(g.gone))] {
			shown = append(shown, p.name)
		}
		f.Because = append(f.Because, report.Evidence{Source: "api:events/" + g.namespace, Field: "involvedObject.name", Value: strings.Join(shown, ", "), Means: fmt.Sprintf("%s since deleted, by events", plural(len(g.gone), "refused pod"))})
	}
	f.Because = append(f.Because, n.bySums(last)...)
	f.Arithmetic = fmt.Sprintf("%d refused pods of one controller", count)
	scale := fmt.Sprintf("kubectl scale -n %s %s/%s --replicas=0", g.namespace, strings.ToLower(g.owner.Kind), g.owner.Name)
	stop := report.Remedy{Summary: "Stop it: mend the requests in the pod template, or scale the controller down, until the cause of the refusals is gone.", Effect: "The cause stands in the report of one of its pods."}
	if g.owner.Kind == "ReplicaSet" || g.owner.Kind == "StatefulSet" {
		stop.Command = scale
	}
	if g.owner.Kind == "ReplicaSet" {
		stop.Caution = "A ReplicaSet of a Deployment is scaled through the Deployment."
	}
	f.Remedies = []report.Remedy{stop, {
		Summary: "Then remove the failed pods.",
		Command: fmt.Sprintf("kubectl delete pods -n %s --field-selector status.phase=Failed,spec.nodeName=%s", g.namespace, last.Spec.NodeName),
		Effect:  "They hold no CPUs; they fill the API.", Caution: "It deletes every failed pod of the namespace on that node.",
	}, {Summary: "A scheduler that knows of NUMA nodes (NodeResourceTopologyMatch) does not choose such a node."}}
	return f, true
}

// bySums shows why the scheduler chooses the node: by sums the pod fits.
func (n *nodeCase) bySums(pod *corev1.Pod) []report.Evidence {
	if n.object == nil || pod.Spec.NodeName != n.name {
		return nil
	}
	room, ok := n.object.Status.Allocatable[corev1.ResourceCPU]
	if !ok {
		return nil
	}
	left := room.DeepCopy()
	for i := range n.pods {
		if active(&n.pods[i]) {
			used := n.countedRequests(&n.pods[i])[corev1.ResourceCPU]
			left.Sub(used)
		}
	}
	wants := n.countedRequests(pod)[corev1.ResourceCPU]
	if wants.Cmp(left) > 0 {
		return nil
	}
	return []report.Evidence{n.apiEvidence("status.allocatable.cpu", room.String(), fmt.Sprintf("%s by the requests of the active pods are left, the pod asks for %s: for the scheduler it fits", left.String(), wants.String()))}
}

// within is " within 4s", or where all came in the same second nothing.
func within(first, last time.Time) string {
	d := last.Sub(first)
	if d <= 0 {
		return ""
	}
	return " within " + d.Round(time.Second).String()
}

// reasonCounts is "TopologyAffinityError" or "3 TopologyAffinityError, 2 OutOfcpu".
func reasonCounts(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	if len(names) == 1 {
		return names[0]
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
