package shrink

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Where nothing known keeps a node, and Karpenter has just said that something
// does, its word stands beside the verdict.
func TestRefused(t *testing.T) {
	const likely, possible = "probably-removable@x likely", "probably-removable@x possible"
	quiet := quietFor(8 * time.Minute)
	room := func() *world {
		return newWorld().pool("a").node("a", "x", quiet).node("a", "y", quiet).pod("x", "p").pod("y", "q", cpus("3"))
	}
	const gone = "Pdb prevents pod evictions (PodDisruptionBudget=[shop/gone])"
	checkRules(t, []ruleCase{
		{name: "silence", world: room(), want: []string{likely}, lacks: []string{"Karpenter said"}},
		{name: "a budget that is not there", world: room().event("Node", "x", disruptionBlocked, gone, 90*time.Second), want: []string{possible},
			text: []string{"but at 2026-07-14T08:58:30Z Karpenter said of it \"" + gone + "\", which the objects do not show", "last seen 1m30s before"}},
		{name: "too long ago", world: room().event("Node", "x", disruptionBlocked, gone, 5*time.Minute+time.Second), want: []string{likely}, lacks: []string{"Karpenter said"}},
		{name: "before it became consolidatable", world: newWorld().pool("a").node("a", "x", quietFor(time.Minute)).event("Node", "x", disruptionBlocked, gone, 2*time.Minute), want: []string{likely}},
		{name: "a pod that would not schedule", world: room().event("NodeClaim", "x-claim", unconsolidatable, "Not all pods would schedule, shop/p => exceeds", 4*time.Minute), want: []string{possible}, text: []string{"Not all pods would schedule"}},
		{name: "a nomination that is over", world: room().event("Node", "x", disruptionBlocked, "Node is nominated for a pending pod", time.Minute), want: []string{likely}},
		{name: "pods that are gone", world: newWorld().pool("a").node("a", "x", quiet).event("Node", "x", unconsolidatable, noCheaper, 4*time.Minute), want: []string{likely}},
		{name: "pods that are there", world: newWorld().pool("a").node("a", "x", quiet).pod("x", "p").event("Node", "x", unconsolidatable, noCheaper, 4*time.Minute), want: []string{"no-cheaper-replacement@x likely"}},
	}, report.ProbablyRemovable, report.NoCheaperReplacement)
}

// What keeps a node from being chosen counts no more for one that the Cluster
// Autoscaler removes.
func TestRemovedByAutoscaler(t *testing.T) {
	tainted := func(key string) *world {
		return newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 1)).node("", "n1", func(n *corev1.Node, c *karpenter.NodeClaim) {
			inGroup("workers")(n, c)
			marked(key, now.Add(-time.Minute))(n, c)
		}).pod("n1", "p", bare)
	}
	checkRules(t, []ruleCase{
		{name: "going", world: tainted(autoscaler.ToBeDeletedTaint), node: "n1", want: []string{"already-disrupting@n1 proven"}, text: []string{"is being removed by the Cluster Autoscaler since 2026-07-14T08:59:00Z (for 1m): it evicts", "spec.taints"}},
		{name: "a candidate", world: tainted(autoscaler.DeletionCandidateTaint), node: "n1", want: []string{"ca-pod-without-controller@n1 proven"}},
	}, report.AlreadyDisrupting, report.CAPodWithoutController)
}
