package shrink

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/disruption/placement"
)

// cpus lets a pod request so many.
func cpus(n string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(n)
	}
}

func TestElsewhere(t *testing.T) {
	two := func() *world { return newWorld().pool("a").node("a", "n1").node("a", "n2").pod("n1", "p") }
	missing := func(edit func(*world)) *world { w := two(); edit(w); return w }
	for _, c := range []struct {
		name  string
		world *world
		want  placement.Outcome
	}{
		{"room on the other", two(), placement.ProbablyRemovable},
		{"no room on the other", two().pod("n2", "q", cpus("3500m")), placement.CannotDelete},
		{"not Karpenter's, but a place", newWorld().pool("a").node("a", "n1").node("", "n2").pod("n1", "p"), placement.ProbablyRemovable},
		{"room that a pending pod takes", two().pod("n2", "q", cpus("2")).pod("", "r", cpus("2")), placement.Unknown},
		{"nodes that are not all known", missing(func(w *world) { w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"}]` }), placement.Unknown},
		{"no NodeClaims", missing(func(w *world) { w.Claims = nil }), placement.Unknown},
		{"no list of DaemonSets", missing(func(w *world) { w.DaemonSets = nil }), placement.ProbablyRemovable},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.world.read(t)
			n := k.nodeOf(k.karpenter.Nodes[0])
			if got := n.elsewhere(); got.Outcome != c.want || got != n.elsewhere() {
				t.Errorf("got %v, want %v: %+v", got.Outcome, c.want, got)
			}
		})
	}
}
