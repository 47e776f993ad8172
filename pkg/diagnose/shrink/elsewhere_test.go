package shrink

import (
	"slices"
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

// What the answer lacks is a gap, where a pod depends on it.
func TestElsewhereGaps(t *testing.T) {
	base := func(edit ...func(*corev1.Pod)) *world {
		w := newWorld().pool("a").node("a", "n1").node("a", "n2").pod("n1", "p", edit...)
		w.Volumes, w.Claimed, w.DaemonSets = nil, nil, nil
		return w
	}
	for _, c := range []struct {
		name  string
		world *world
		want  []string
	}{
		{"a pod with a claim", base(claim("vol")), []string{"cluster/persistentvolumeclaims.json", "cluster/persistentvolumes.json"}},
		{"a pod without", base(), []string{"cluster/daemonsets.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.world.read(t)
			k.nodeOf(k.karpenter.Nodes[0]).elsewhere()
			var got []string
			for _, g := range k.gaps.List() {
				got = append(got, g.Wanted)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
