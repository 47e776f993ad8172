package shrink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// autoscaled adds a node of a group that its provider ID names, in a cluster
// with an autoscaler whose flags are known.
func autoscaled(args ...string) *world {
	return newWorld().autoscaler("v1.36.1", append([]string{"./cluster-autoscaler"}, args...)...).status(group("workers", 3, 1)).
		node("", "n1", inGroup("workers"))
}

// autoscaler adds the controller's pod on another node.
func (w *world) autoscaler(tag string, command ...string) *world {
	return w.pod("elsewhere", "cluster-autoscaler-0", func(p *corev1.Pod) {
		p.Namespace, p.Labels = "kube-system", map[string]string{"app": "cluster-autoscaler"}
		p.Spec.Containers[0].Name, p.Spec.Containers[0].Image, p.Spec.Containers[0].Command = "cluster-autoscaler", "example/cluster-autoscaler:"+tag, command
	})
}

// status adds the autoscaler's, written 10 s ago, of groups.
func (w *world) status(groups ...string) *world {
	return w.statusOf("Healthy", len(w.Nodes), groups...)
}

func (w *world) statusOf(health string, nodes int, groups ...string) *world {
	w.files[autoscalerStatusFile] = fmt.Sprintf("time: %q\nautoscalerStatus: Running\nclusterWide:\n  health: {status: %s, nodeCounts: {registered: {total: %d, ready: 2, unready: {total: 4}}}}\nnodeGroups:\n%s",
		now.Add(-10*time.Second).Format(time.RFC3339), health, nodes, strings.Join(groups, ""))
	return w
}

func group(name string, target, least int) string {
	return fmt.Sprintf("- name: %s\n  health: {status: Healthy, nodeCounts: {registered: {total: %d}}, cloudProviderTarget: %d, minSize: %d, maxSize: 9}\n", name, target, target, least)
}

func inGroup(name string) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(n *corev1.Node, _ *karpenter.NodeClaim) {
		n.Spec.ProviderID = "azure:///scaleSets/" + name + "/machines/" + n.Name
	}
}

func small(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { small(p); p.Annotations = map[string]string{key: value} }
}

func bare(p *corev1.Pod) { small(p); p.OwnerReferences = nil }

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		small(p)
		p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = kind, name
	}
}

func volume(v corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { small(p); p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: v}} }
}

var emptyDir = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}

func system(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		small(p)
		p.Namespace, p.CreationTimestamp = "kube-system", metav1.NewTime(now.Add(-age))
	}
}

func marked(key string, since time.Time) func(*corev1.Node, *karpenter.NodeClaim) {
	return func(n *corev1.Node, _ *karpenter.NodeClaim) {
		n.Spec.Taints = []corev1.Taint{{Key: key, Value: fmt.Sprint(since.Unix()), Effect: corev1.TaintEffectPreferNoSchedule}}
	}
}

func notReady(n *corev1.Node, _ *karpenter.NodeClaim) {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
}

// budgetOf adds one of kube-system or shop that selects app=web.
func (w *world) budgetOf(namespace, name string, allowed int32) *world {
	w.PDBs = append(w.PDBs, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}})
	return w
}

// Each code with data that give it, and a neighbour that does not.
func TestAutoscalerRules(t *testing.T) {
	disabled := func(value string) func(*corev1.Node, *karpenter.NodeClaim) {
		return func(n *corev1.Node, c *karpenter.NodeClaim) {
			inGroup("workers")(n, c)
			n.Annotations = map[string]string{autoscaler.ScaleDownDisabled: value}
		}
	}
	for _, c := range []struct {
		name  string
		world *world
		want  []string
	}{
		{"nothing holds it", autoscaled().pod("n1", "p", small), nil},

		{"excepted", newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 1)).node("", "n1", disabled("true")), []string{"ca-scale-down-disabled@n1 proven"}},
		{"excepted by another value", newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 1)).node("", "n1", disabled("True")), nil},
		{"no node is removed", autoscaled("--scale-down-enabled=false"), []string{"ca-scale-down-disabled@cluster-autoscaler proven"}},

		{"not safe to evict", autoscaled().pod("n1", "p", annotated(autoscaler.SafeToEvict, "false")), []string{"ca-pod-not-safe-to-evict@n1 proven"}},
		{"until it is complete", autoscaled().pod("n1", "p", annotated(autoscaler.SafeToEvict, "on-completion")), []string{"ca-pod-not-safe-to-evict@n1 proven"}},
		{"another value", autoscaled().pod("n1", "p", annotated(autoscaler.SafeToEvict, "no")), nil},
		{"of a DaemonSet", autoscaled().daemonSet("d").pod("n1", "p", ownedBy("DaemonSet", "d"), func(p *corev1.Pod) { p.Annotations = map[string]string{autoscaler.SafeToEvict: "false"} }), nil},
		{"of a DaemonSet that is gone", autoscaled().pod("n1", "p", ownedBy("DaemonSet", "d")), []string{"ca-pod-without-controller@n1 proven"}},

		{"bare", autoscaled().pod("n1", "p", bare), []string{"ca-pod-without-controller@n1 proven"}},
		{"bare, and may go", autoscaled().pod("n1", "p", bare, func(p *corev1.Pod) { p.Annotations = map[string]string{autoscaler.SafeToEvict: "true"} }), nil},
		{"bare and finished", autoscaled().pod("n1", "p", bare, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), nil},
		{"of an unknown kind", autoscaled().pod("n1", "p", ownedBy("Rollout", "r")), []string{"ca-pod-without-controller@n1 proven"}},
		{"of an unknown kind that may go", autoscaled("--skip-nodes-with-custom-controller-pods=false").pod("n1", "p", ownedBy("Rollout", "r")), nil},
		{"of a Job", autoscaled().pod("n1", "p", ownedBy("Job", "j")), nil},

		{"emptyDir", autoscaled().pod("n1", "p", volume(emptyDir)), []string{"ca-local-storage@n1 proven"}},
		{"hostPath", autoscaled().pod("n1", "p", volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}})), []string{"ca-local-storage@n1 proven"}},
		{"emptyDir in memory", autoscaled().pod("n1", "p", volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}})), nil},
		{"emptyDir that may go", autoscaled().pod("n1", "p", volume(emptyDir), func(p *corev1.Pod) { p.Annotations = map[string]string{autoscaler.SafeLocalVolumes: "other,data"} }), nil},
		{"emptyDir with the flag off", autoscaled("--skip-nodes-with-local-storage=false").pod("n1", "p", volume(emptyDir)), nil},

		{"a system pod", autoscaled().pod("n1", "p", system(10*time.Minute)), []string{"ca-system-pod-without-pdb@n1 proven"}},
		{"a system pod whose hour is over", autoscaled().pod("n1", "p", system(2*time.Hour)), []string{"ca-system-pod-without-pdb@n1 possible"}},
		{"a system pod with more time", autoscaled("--blocking-system-pod-distruption-timeout=3h").pod("n1", "p", system(2*time.Hour)), []string{"ca-system-pod-without-pdb@n1 proven"}},
		{"a system pod before 1.33", newWorld().autoscaler("v1.32.0", "ca").status(group("workers", 3, 1)).node("", "n1", inGroup("workers")).pod("n1", "p", system(2*time.Hour)), []string{"ca-system-pod-without-pdb@n1 proven"}},
		{"a system pod with a budget", autoscaled().budgetOf("kube-system", "b", 1).pod("n1", "p", system(10*time.Minute)), nil},
		{"a system pod with the flag off", autoscaled("--skip-nodes-with-system-pods=false").pod("n1", "p", system(10*time.Minute)), nil},
		{"a closed budget", autoscaled().budgetOf("shop", "b", 0).pod("n1", "p", small), []string{"pdb-blocks@n1 proven"}},
		{"two budgets", autoscaled().budgetOf("shop", "b", 1).budgetOf("shop", "c", 1).pod("n1", "p", small), []string{"several-pdbs@p proven"}},

		{"half of it is requested", autoscaled().pod("n1", "p").pod("n1", "q").pod("n1", "r", small), []string{"ca-not-underutilized@n1 likely"}},
		{"exactly the threshold", autoscaled().pod("n1", "p").pod("n1", "q"), []string{"ca-not-underutilized@n1 possible"}},
		{"below a higher threshold", autoscaled("--scale-down-utilization-threshold=0.6").pod("n1", "p").pod("n1", "q").pod("n1", "r", small), nil},

		{"at the minimum", newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 3)).node("", "n1", inGroup("workers")), []string{"ca-min-size@n1 proven"}},
		{"one above", newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 4, 3)).node("", "n1", inGroup("workers")), nil},

		{"unneeded for 4 minutes", autoscaled().node("", "n2", marked(autoscaler.DeletionCandidateTaint, now.Add(-4*time.Minute))), []string{"ca-cooldown@n2 likely"}},
		{"unneeded for longer", autoscaled().node("", "n2", marked(autoscaler.DeletionCandidateTaint, now.Add(-11*time.Minute))), nil},
		{"it has just added nodes", autoscaled().caEvent("TriggeredScaleUp", 4*time.Minute), []string{"ca-cooldown@cluster-autoscaler likely"}},
		{"it added nodes long ago", autoscaled().caEvent("TriggeredScaleUp", 11*time.Minute), nil},
		{"it just failed", autoscaled().caEvent("ScaleDownFailed", 2*time.Minute), []string{"ca-cooldown@cluster-autoscaler likely"}},
		{"it failed a while ago", autoscaled().caEvent("ScaleDownFailed", 4*time.Minute), nil},

		{"not ready", newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 1)).node("", "n1", inGroup("workers"), notReady), []string{"ca-unready@n1 proven"}},
		{"the cluster is not", autoscaled().statusOf("Unhealthy", 6, group("workers", 3, 1)), []string{"ca-unready@cluster-autoscaler proven"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := c.world.Nodes[len(c.world.Nodes)-1].Name
			found := c.world.read(t).Node(name)
			got := spelled(found)
			if !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			noteData(t, found, autoscalerCodes...)
		})
	}
}

var autoscalerCodes = []report.Code{report.CAScaleDownDisabled, report.CAPodNotSafeToEvict, report.CAPodWithoutController, report.CALocalStorage,
	report.CASystemPodWithoutPDB, report.CANotUnderutilized, report.CAMinSize, report.CACooldown, report.CAUnready}

func (w *world) daemonSet(name string) *world {
	w.DaemonSets = append(w.DaemonSets, appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	return w
}

// caEvent adds an event of the autoscaler about a pod.
func (w *world) caEvent(reason string, ago time.Duration) *world {
	w.event("Pod", "pending", reason, "pod triggered scale-up", ago)
	w.Events[len(w.Events)-1].Source.Component = autoscaler.EventSource
	return w
}

// How surely a node is in a node group, by what ties it to one.
func TestBelongs(t *testing.T) {
	disabled := func(n *corev1.Node, _ *karpenter.NodeClaim) {
		n.Annotations = map[string]string{autoscaler.ScaleDownDisabled: "true"}
	}
	label := func(key, value string) func(*corev1.Node, *karpenter.NodeClaim) {
		return func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Labels[key] = value }
	}
	ca := func() *world { return newWorld().autoscaler("v1.36.1", "ca") }
	for _, c := range []struct {
		name  string
		world *world
		want  string
	}{
		{"a provider ID that names its group", ca().status(group("workers", 1, 0)).node("", "n", disabled, inGroup("workers")), "proven"},
		{"the taint of a candidate", ca().node("", "n", disabled, marked(autoscaler.DeletionCandidateTaint, now.Add(-time.Hour))), "proven"},
		{"an event", ca().node("", "n", disabled).caEventOn("n"), "proven"},
		{"a label with the name of its group", ca().status(group("eks-workers-0aaaaaaa-1bbb-2ccc-3ddd-4eeeeeeeeeee", 1, 0)).node("", "n", disabled, label("eks.amazonaws.com/nodegroup", "workers")), "likely"},
		{"an autoscaler, and no status", ca().node("", "n", disabled), "likely"},
		{"a control plane, and no status", ca().node("", "n", disabled, label("node-role.kubernetes.io/control-plane", "")), "possible"},
		{"every node is in a group by the counts", ca().node("", "n", disabled).status(group("workers", 1, 0)), "likely"},
		{"not every node is", ca().node("", "n", disabled).node("", "m", disabled).status(group("workers", 1, 0)), "possible"},
		{"other nodes fill the groups", ca().node("", "n", disabled).node("", "m", inGroup("workers")).status(group("workers", 1, 0)), ""},
		{"no groups", ca().node("", "n", disabled).status(), ""},
		{"no autoscaler", newWorld().node("", "n", disabled), ""},
		{"a node of Karpenter's", ca().pool("a").node("a", "n", disabled), ""},
		{"one of Karpenter's whose NodeClaims are not known", func() *world { w := ca().pool("a").node("a", "n", disabled); w.Claims = nil; return w }(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, f := range c.world.read(t).Node("n") {
				if f.Code == report.CAScaleDownDisabled {
					got = string(f.Confidence)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func (w *world) caEventOn(node string) *world {
	w.event("Node", node, "ScaleDownFailed", "failed to drain the node", time.Hour)
	w.Events[len(w.Events)-1].Source.Component = autoscaler.EventSource
	return w
}

// What is not known is a gap, and what depends on it no more than likely.
func TestAutoscalerUnknown(t *testing.T) {
	w := newWorld().autoscaler("v1.36.1").status(group("workers", 3, 1)).node("", "n", inGroup("workers")).pod("n", "p", volume(emptyDir))
	gaps := &gap.Log{}
	got := spelled(Read(w.open(t), now, gaps, Options{}).Node("n"))
	if !slices.Equal(got, []string{"ca-local-storage@n likely"}) {
		t.Errorf("flags not known: %q", got)
	}
	if !slices.ContainsFunc(gaps.List(), func(g report.Gap) bool { return g.Wanted == "flags of the Cluster Autoscaler" }) {
		t.Errorf("no gap for the flags: %+v", gaps.List())
	}
	w = autoscaled().pod("n1", "p", system(time.Minute))
	w.PDBs = nil
	if got := spelled(w.read(t).Node("n1")); len(got) > 0 {
		t.Errorf("without budgets a system pod is said to hold: %q", got)
	}
	w = newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 3)).node("", "n", inGroup("workers"))
	later := now.Add(time.Hour)
	if got := spelled(w.read(t, later).Node("n")); !slices.Equal(got, []string{"ca-min-size@n likely"}) {
		t.Errorf("a status an hour old: %q", got)
	}
	for _, text := range []string{"Cluster-autoscaler status at 2023", "{", ""} {
		w := newWorld().autoscaler("v1.29.0", "ca").node("", "n").pod("n", "p", bare)
		w.files[autoscalerStatusFile] = text
		gaps := &gap.Log{}
		if got := spelled(Read(w.open(t), now, gaps, Options{}).Node("n")); !slices.Equal(got, []string{"ca-pod-without-controller@n likely"}) {
			t.Errorf("status %q: %q", text, got)
		}
		if !slices.ContainsFunc(gaps.List(), func(g report.Gap) bool { return g.Wanted == autoscalerStatusFile }) {
			t.Errorf("status %q: no gap: %+v", text, gaps.List())
		}
	}
}

// The effects of remedies are computed by the same rules.
func TestAutoscalerRemedies(t *testing.T) {
	w := autoscaled().pod("n1", "p", volume(emptyDir), annotateToo(autoscaler.SafeToEvict, "false")).pod("n1", "q", bare)
	found := w.read(t).Node("n1")
	for code, want := range map[report.Code]string{
		report.CALocalStorage:         "the pod still holds the node by NotSafeToEvictAnnotation; 1 other pod still does",
		report.CAPodNotSafeToEvict:    "the pod still holds the node by LocalStorageRequested; 1 other pod still does",
		report.CAPodWithoutController: "the pod then holds the node no longer; 1 other pod still does",
	} {
		i := slices.IndexFunc(found, func(f report.Finding) bool { return f.Code == code })
		if i < 0 || len(found[i].Remedies) == 0 || found[i].Remedies[0].Effect != want {
			t.Errorf("%s: %+v, want the effect %q", code, found[max(i, 0)].Remedies, want)
		}
	}
	w = newWorld().autoscaler("v1.36.1", "ca").status(group("workers", 3, 1)).node("", "n", inGroup("workers")).pod("n", "p", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2300m"), corev1.ResourceMemory: resource.MustParse("2Gi")}
	})
	f := w.read(t).Node("n")[0]
	if f.Arithmetic != "CPU: 2.3 / 4 = 57.5 %; memory: 2Gi / 16Gi = 12.5 %; the greater decides, 57.5 % ≥ 50 %" {
		t.Errorf("arithmetic %q", f.Arithmetic)
	}
	f = autoscaled().node("", "n2", marked(autoscaler.DeletionCandidateTaint, now.Add(-4*time.Minute))).read(t).Node("n2")[0]
	if !strings.Contains(f.Summary, "at 2026-07-14T09:06:00Z (in 6m)") {
		t.Errorf("summary %q", f.Summary)
	}
}

func annotateToo(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func TestNotManaged(t *testing.T) {
	node := func() *world { return newWorld().node("", "n") }
	mirror := func(p *corev1.Pod) {
		p.OwnerReferences[0].Kind, p.Annotations = "Node", map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	unknown := func(w *world, edit func(*world)) *world { edit(w); return w }
	for _, c := range []struct {
		name    string
		world   *world
		want    []string
		command string
		texts   []string
	}{
		{"nothing on it", node(), []string{"not-managed@n likely"}, "kubectl drain n", []string{"draining it would evict 0 pods."}},
		{"a pod", node().pod("n", "p"), []string{"not-managed@n likely"}, "kubectl drain n", []string{"evicts 1 pod: shop/p"}},
		{"of every kind", node().daemonSet("there").pod("n", "a", bare).pod("n", "b", volume(emptyDir)).pod("n", "c", ownedBy("DaemonSet", "there")).pod("n", "d", mirror), []string{"not-managed@n likely"}, "kubectl drain n --ignore-daemonsets --delete-emptydir-data --force",
			[]string{"4 pods = 2 evicted + 1 of DaemonSets + 1 static", "loses the emptyDirs of 1 pod: shop/b (data)", "loses 1 pod that nobody makes again: shop/a", "leaves 1 of DaemonSets and 1 static on the node: shop/c and shop/d"}},
		{"a closed budget", node().budgetOf("shop", "b", 0).pod("n", "p"), []string{"not-managed@n likely", "pdb-blocks@n proven"}, "kubectl drain n",
			[]string{"of them 1 refused by PodDisruptionBudgets", "waits, until its --timeout, for 1 pod whose budget allows no eviction: shop/p (shop/b)"}},
		{"several budgets", node().budgetOf("shop", "b", 1).budgetOf("shop", "c", 1).pod("n", "p"), []string{"not-managed@n likely", "several-pdbs@p proven"}, "kubectl drain n",
			[]string{"fails on 1 pod of several budgets: shop/p (shop/b and shop/c)"}},
		{"a budget for one of two", node().budgetOf("shop", "b", 1).pod("n", "p").pod("n", "q"), []string{"not-managed@n likely"}, "kubectl drain n",
			[]string{"budget shop/b allows 1 of the 2 pods on the node that it selects"}},
		{"in no group of an autoscaler", node().node("", "m", inGroup("workers")).autoscaler("v1.36.1", "ca").status(group("workers", 1, 0)), []string{"not-managed@n likely"}, "kubectl drain n", nil},
		{"perhaps in one", node().node("", "m").autoscaler("v1.36.1", "ca").status(group("workers", 1, 0)), []string{"not-managed@n possible"}, "kubectl drain n", nil},
		{"in one", node().autoscaler("v1.36.1", "ca").status(group("workers", 1, 0)), []string{}, "", nil},
		{"Karpenter's", newWorld().pool("a").node("a", "n", func(n *corev1.Node, _ *karpenter.NodeClaim) { n.Annotations = map[string]string{} }), nil, "", nil},
		{"nobody was asked for", unknown(node(), func(w *world) { w.Claims, w.Pools, w.Deployments = nil, nil, nil }), []string{}, "", nil},
		{"pods not known", unknown(node(), func(w *world) { w.Pods = nil }), []string{"not-managed@n likely"}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := c.world.read(t).Node("n")
			defer noteData(t, found, report.NotManaged)
			if c.want == nil {
				for _, f := range found {
					if f.Code == report.NotManaged || strings.HasPrefix(string(f.Code), "ca-") {
						t.Errorf("found %s", f.Code)
					}
				}
				return
			}
			if got := spelled(found); !slices.Equal(got, c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			command, said := "", ""
			for _, f := range found {
				if f.Code == report.NotManaged {
					said += f.Summary + f.Arithmetic
					for _, r := range f.Remedies {
						command, said = r.Command, said+r.Effect+r.Caution
					}
				}
			}
			if command != c.command {
				t.Errorf("command %q, want %q", command, c.command)
			}
			for _, text := range c.texts {
				if !strings.Contains(said, text) {
					t.Errorf("%q lacks %q", said, text)
				}
			}
		})
	}
}
