package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestNodeGroup(t *testing.T) {
	ca := func(args ...string) *world {
		return newWorld().autoscaler("v1.36.1", append([]string{"ca"}, args...)...)
	}
	grown := func(w *world) *world {
		for i := range 30 {
			name := fmt.Sprintf("n%02d", i)
			w.node("", name, inGroup("workers")).pod(name, "p"+name, bare)
		}
		return w.status(group("workers", 30, 30))
	}
	for _, c := range []struct {
		name   string
		world  *world
		group  string
		want   []string // of the group
		bounds []string // of `budgets`
		text   string
	}{
		{"nothing holds it", ca().status(group("workers", 5, 3)).node("", "n", inGroup("workers")), "workers",
			[]string{"budgets-open@workers proven"}, []string{"budgets-open@workers proven"}, "may lose 2 of 5 nodes, to its minimum of 3; the Cluster Autoscaler has no disruption budgets: it removes at most 10 nodes at once, and of those with pods to evict 1"},
		{"its own flags", ca("--max-scale-down-parallelism=3", "--max-drain-parallelism=5").status(group("workers", 5, 3)), "workers",
			[]string{"budgets-open@workers proven"}, []string{"budgets-open@workers proven"}, "at most 3 nodes at once, and of those with pods to evict 3"},
		{"flags that are not known", newWorld().status(group("workers", 5, 3)), "workers", []string{"budgets-open@workers likely"}, []string{"budgets-open@workers likely"}, ""},
		{"at its minimum", ca().status(group("workers", 3, 3)).node("", "n", inGroup("workers")), "workers",
			[]string{"ca-min-size@workers proven"}, []string{"ca-min-size@workers proven"}, "3 wanted - 3 minimum = 0 that may go"},
		{"paused", ca().status(group("workers", 5, 3)).caEvent("TriggeredScaleUp", 4*time.Minute), "workers",
			[]string{"ca-cooldown@cluster-autoscaler likely"}, []string{"ca-cooldown@cluster-autoscaler likely"}, "until 2026-07-14T09:06:00Z"},
		{"unhealthy", ca().statusOf("Unhealthy", 6, group("workers", 5, 3)), "workers",
			[]string{"ca-unready@cluster-autoscaler proven"}, []string{"ca-unready@cluster-autoscaler proven"}, "2 of 6 nodes ready"},
		{"told to remove nothing", ca("--scale-down-enabled=false").status(group("workers", 5, 3)), "workers",
			[]string{"ca-scale-down-disabled@cluster-autoscaler proven"}, []string{"ca-scale-down-disabled@cluster-autoscaler proven"}, "--scale-down-enabled=false"},
		{"a pod of a node of its own, not of another's", ca().status(group("workers", 5, 3), group("others", 2, 0)).node("", "n", inGroup("workers")).pod("n", "p", bare).
			node("", "m", inGroup("others")).pod("m", "q", bare), "workers",
			[]string{"budgets-open@workers proven", "ca-pod-without-controller@n proven"}, []string{"budgets-open@workers proven"}, "shop/p"},
		{"by the last part of a URL", ca().status(group("https://example/zones/z/instanceGroups/gke-c-pool-1a2b-grp", 5, 3)), "gke-c-pool-1a2b-grp",
			[]string{"budgets-open@https://example/zones/z/instanceGroups/gke-c-pool-1a2b-grp proven"}, []string{"budgets-open@https://example/zones/z/instanceGroups/gke-c-pool-1a2b-grp proven"}, ""},
		{"many nodes alike", grown(ca()), "workers",
			[]string{"ca-min-size@workers proven", "ca-pod-without-controller@n00 proven", "ca-pod-without-controller@n01 proven"}, []string{"ca-min-size@workers proven"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := c.world.read(t)
			answer, ok := k.NodeGroup(c.group)
			if !ok {
				t.Fatalf("there is no group %s among %q", c.group, k.NodeGroups())
			}
			if got := spelled(answer.Findings); c.name != "many nodes alike" && !slices.Equal(got, c.want) {
				t.Errorf("the group: got %q, want %q", got, c.want)
			} else if c.name == "many nodes alike" && (len(got) > mostOfNodes+2 || !strings.Contains(strings.Join(got, " "), "ca-pod-without-controller@workers")) {
				t.Errorf("30 nodes are not folded: %q", got)
			}
			bounds, _ := c.world.read(t).GroupBudgets(c.group)
			if got := spelled(bounds.Findings); !slices.Equal(got, c.bounds) {
				t.Errorf("its budgets: got %q, want %q", got, c.bounds)
			}
			said := ""
			for _, f := range answer.Findings {
				said += f.Summary + f.Arithmetic
			}
			if !strings.Contains(said, c.text) {
				t.Errorf("%q lacks %q", said, c.text)
			}
		})
	}
}

func TestNodeGroups(t *testing.T) {
	k := newWorld().status(group("b", 1, 0), group("https://x/y/a", 1, 0), group("https://x/1/twin", 1, 0), group("https://x/2/twin", 1, 0)).read(t)
	if got := strings.Join(k.NodeGroups(), " "); got != "a b https://x/1/twin https://x/2/twin" {
		t.Errorf("groups %q", got)
	}
	for _, name := range []string{"twin", "", "none"} {
		if _, ok := k.NodeGroup(name); ok {
			t.Errorf("%q is taken for a group", name)
		}
	}
	if note := k.AutoscalerNote(); note != "" {
		t.Errorf("with a status: %q", note)
	}
	if note := newWorld().read(t).AutoscalerNote(); note != "" {
		t.Errorf("without an autoscaler: %q", note)
	}
	if note := newWorld().autoscaler("v1.36.1", "ca").read(t).AutoscalerNote(); !strings.Contains(note, "pods/kube-system/cluster-autoscaler-0") || !strings.Contains(note, autoscalerStatusFile) {
		t.Errorf("without a status: %q", note)
	}
}

// A group whose nodes cannot all be told leaves a gap.
func TestNodeGroupMembersUnknown(t *testing.T) {
	for name, lacks := range map[string]bool{"workers": true, "others": false} {
		gaps := &gap.Log{}
		k := Read(newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 2, 0), group("others", 1, 0)).
			node("", "n", inGroup("workers")).node("", "m", inGroup("others")).open(t), now, gaps, Options{})
		k.NodeGroup(name)
		if got := slices.ContainsFunc(gaps.List(), func(g report.Gap) bool { return g.Wanted == "nodes of node group "+name }); got != lacks {
			t.Errorf("%s: gap %v, want %v", name, got, lacks)
		}
	}
}

// Without Karpenter and an autoscaler the node is nobody's, as a live cluster tells it:
// with the pods of the node alone.
func TestNotManagedLive(t *testing.T) {
	w := newWorld().node("", "n").pod("n", "p", bare)
	w.Pools, w.Claims, w.Deployments, w.PDBs, w.DaemonSets = nil, nil, nil, nil, nil
	w.files["gaps.json"] = `[{"path":"cluster/nodepools.karpenter.sh.json","reason":"NotFound"},{"path":"cluster/cluster-autoscaler-status.yaml","reason":"NotFound"},{"path":"cluster/pods.json","reason":"Refused"}]`
	found := w.read(t).Node("n")
	if got := spelled(found); !slices.Equal(got, []string{"not-managed@n likely"}) || found[0].Remedies[0].Command != "kubectl drain n --force" {
		t.Fatalf("got %q: %+v", got, found)
	}
	if effect := found[0].Remedies[0].Effect; !strings.Contains(effect, "what PodDisruptionBudgets refuse is not known") {
		t.Errorf("effect %q", effect)
	}
	w.files["gaps.json"] = `[{"path":"cluster/pods.json","reason":"Refused"}]`
	if got := spelled(w.read(t).Node("n")); len(got) > 0 {
		t.Errorf("nobody was asked for NodePools: %q", got)
	}
	w.files["gaps.json"] = `[{"path":"cluster/nodepools.karpenter.sh.json","reason":"NotFound"},{"path":"nodes/n/pods.json","reason":"Forbidden"}]`
	if found := w.read(t).Node("n"); len(found) != 1 || len(found[0].Remedies) > 0 {
		t.Errorf("a drain is planned without the pods: %+v", found)
	}
}
