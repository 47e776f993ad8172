package shrink

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// now is the moment of every world.
var now = time.Date(2026, 7, 14, 9, 0, 0, 0, time.UTC)

// world is a cluster to ask questions about. Its objects are what an API server
// gives; a nil list is a file that was not collected.
type world struct {
	Pools       []karpenter.NodePool
	Claims      []karpenter.NodeClaim
	Nodes       []corev1.Node
	Pods        []corev1.Pod
	PDBs        []policyv1.PodDisruptionBudget
	Events      []corev1.Event
	DaemonSets  []appsv1.DaemonSet
	Deployments []appsv1.Deployment
	Volumes     []corev1.PersistentVolume
	Claimed     []corev1.PersistentVolumeClaim
	// files are others of the bundle, by path.
	files map[string]string
}

// newWorld has nothing in it, and was asked for all of it.
func newWorld() *world {
	return &world{Pools: []karpenter.NodePool{}, Claims: []karpenter.NodeClaim{}, Nodes: []corev1.Node{}, Pods: []corev1.Pod{},
		PDBs: []policyv1.PodDisruptionBudget{}, Events: []corev1.Event{}, DaemonSets: []appsv1.DaemonSet{}, Deployments: []appsv1.Deployment{},
		Volumes: []corev1.PersistentVolume{}, Claimed: []corev1.PersistentVolumeClaim{}, files: map[string]string{}}
}

// pool adds a NodePool that consolidates after 30 s without any limit.
func (w *world) pool(name string, edit ...func(*karpenter.NodePool)) *world {
	p := karpenter.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pool-" + name)}}
	p.Spec.Disruption = &karpenter.Disruption{ConsolidationPolicy: karpenter.WhenEmptyOrUnderutilized,
		ConsolidateAfter: karpenter.NillableDuration{Duration: 30 * time.Second, Set: true, Text: "30s"}, Budgets: []karpenter.Budget{}}
	for _, e := range edit {
		e(&p)
	}
	w.Pools = append(w.Pools, p)
	return w
}

// node adds a node of a pool with its NodeClaim, ready, initialized an hour
// ago, consolidatable, with 4 CPUs and 16 GiB; one of no pool has no NodeClaim.
func (w *world) node(pool, name string, edit ...func(*corev1.Node, *karpenter.NodeClaim)) *world {
	since := metav1.NewTime(now.Add(-time.Hour))
	n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), CreationTimestamp: since,
		Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "zone-a", corev1.LabelInstanceTypeStable: "m-4x", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}}
	n.Spec.ProviderID = "test:///" + name
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: since}}
	c := karpenter.NodeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"}, ObjectMeta: metav1.ObjectMeta{Name: name + "-claim", UID: types.UID("claim-" + name), CreationTimestamp: since}}
	if pool != "" {
		for key, value := range map[string]string{karpenter.NodePoolLabel: pool, karpenter.RegisteredLabel: "true", karpenter.InitializedLabel: "true", karpenter.CapacityTypeLabel: "on-demand"} {
			n.Labels[key] = value
		}
		c.Labels = n.Labels
		c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, name
		c.Status.Allocatable, c.Status.Capacity = n.Status.Allocatable, n.Status.Capacity
		for _, condition := range []string{karpenter.ConditionLaunched, karpenter.ConditionRegistered, karpenter.ConditionInitialized, "Ready", karpenter.ConditionConsolidatable} {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition, LastTransitionTime: since})
		}
	}
	for _, e := range edit {
		e(&n, &c)
	}
	w.Nodes = append(w.Nodes, n)
	if pool != "" {
		w.Claims = append(w.Claims, c)
	}
	return w
}

// pod adds a running pod of a ReplicaSet in the namespace shop, which asks for
// one CPU and 1 GiB.
func (w *world) pod(node, name string, edit ...func(*corev1.Pod)) *world {
	start := metav1.NewTime(now.Add(-time.Hour))
	yes := true
	p := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("pod-" + name), CreationTimestamp: start,
		Labels:          map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs-web", Controller: &yes}}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}}}}
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &start
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	for _, e := range edit {
		e(&p)
	}
	w.Pods = append(w.Pods, p)
	return w
}

// event adds one about an object, last seen some time ago.
func (w *world) event(kind, name, reason, message string, ago time.Duration) *world {
	at := metav1.NewTime(now.Add(-ago))
	w.Events = append(w.Events, corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s.%d", name, len(w.Events))},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Reason: reason, Message: message, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: at, LastTimestamp: at, Source: corev1.EventSource{Component: "karpenter"}})
	return w
}

// open makes a snapshot of the world.
func (w *world) open(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	files := fstest.MapFS{"bundle.json": {Data: []byte(`{"formatVersion":1,"capturedAt":"` + now.Format(time.RFC3339) + `","tool":"test","server":"v1.37.2"}`)}}
	for name, text := range w.files {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	list(t, files, "nodepools.karpenter.sh", written(t, w.Pools))
	list(t, files, "nodeclaims.karpenter.sh", w.Claims)
	list(t, files, "nodes", w.Nodes)
	list(t, files, "pods", w.Pods)
	list(t, files, "poddisruptionbudgets", w.PDBs)
	list(t, files, "events", w.Events)
	list(t, files, "daemonsets", w.DaemonSets)
	list(t, files, "deployments", w.Deployments)
	list(t, files, "persistentvolumes", w.Volumes)
	list(t, files, "persistentvolumeclaims", w.Claimed)
	s, err := snapshot.FromFS(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written are pools with their empty lists of budgets, which encoding drops.
func written(t testing.TB, pools []karpenter.NodePool) []any {
	if pools == nil {
		return nil
	}
	out := []any{}
	for _, p := range pools {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		if d := p.Spec.Disruption; d != nil && d.Budgets != nil && len(d.Budgets) == 0 {
			object["spec"].(map[string]any)["disruption"].(map[string]any)["budgets"] = []any{}
		}
		out = append(out, object)
	}
	return out
}

func list[T any](t testing.TB, files fstest.MapFS, resource string, items []T) {
	if items == nil {
		return
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	files["cluster/"+resource+".json"] = &fstest.MapFile{Data: data}
}

// read is the world as the rules see it, at a moment (now if none is given).
func (w *world) read(t testing.TB, at ...time.Time) *Cluster {
	return Read(w.open(t), append(at, now)[0], &gap.Log{}, Options{})
}

// spelled are findings as tests write them: "code@name confidence", sorted.
func spelled(findings []report.Finding) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%s@%s %s", f.Code, f.Subject.Name, f.Confidence))
	}
	slices.Sort(out)
	return out
}

func TestReadVersion(t *testing.T) {
	tag := func(image string) *world {
		w := newWorld().pod("n", "karpenter-0", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app.kubernetes.io/name": "karpenter"}
			p.Spec.Containers[0].Name, p.Spec.Containers[0].Image = "controller", image
		})
		w.files[metricsFile] = "karpenter_build_info{commit=\"x\",goversion=\"go1.26.8\",version=\"1.6.4\"} 1\n"
		return w
	}
	for _, c := range []struct {
		name     string
		world    *world
		supposed string
		want     string
	}{
		{"image before metrics", tag("public.example/karpenter/controller:1.11.0@sha256:00"), "1.0.8", "1.11.0 by api:pods/shop/karpenter-0, 1.11"},
		{"an image without a tag", tag("public.example:5000/karpenter/controller"), "", "1.6.4 by karpenter:metrics, 1.6"},
		{"a tag that is no version", tag("controller:latest"), "", "1.6.4 by karpenter:metrics, 1.6"},
		{"the question's", newWorld(), "1.0.8", "1.0.8 by flag:--karpenter-version, 1.0"},
		{"nothing tells it", newWorld(), "", " by , 1.14"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := Read(c.world.open(t), now, &gap.Log{}, Options{KarpenterVersion: c.supposed})
			got := fmt.Sprintf("%s by %s, 1.%d", k.version.text, k.version.evidence.Source, k.version.rules.Minor)
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A world is read as Karpenter would see it.
func TestReadWorld(t *testing.T) {
	c := newWorld().pool("a").node("a", "n1").node("", "other").pod("n1", "p").read(t)
	if got := c.NodePools(); !slices.Equal(got, []string{"a"}) || c.NodePoolsError() != nil || c.claimsErr != nil {
		t.Errorf("pools %v, errors %v, %v", got, c.poolsErr, c.claimsErr)
	}
	if len(c.karpenter.Nodes) != 2 || !c.karpenter.Nodes[0].Managed() || c.karpenter.Nodes[1].Managed() || len(c.karpenter.Nodes[0].Pods) != 1 {
		t.Errorf("nodes %+v", c.karpenter.Nodes)
	}
	if blockers := c.karpenter.Blockers(c.karpenter.Nodes[0], now); len(blockers) != 0 {
		t.Errorf("blockers %+v", blockers)
	}
}

// Of lists that hold a part the rest is not known.
func TestReadPartialLists(t *testing.T) {
	w := newWorld().pool("a").node("a", "n1").pod("n1", "p")
	w.files["gaps.json"] = `[{"path":"cluster/nodes.json","reason":"Refused"},{"path":"cluster/pods.json","reason":"Refused"},{"path":"nodes/n1","reason":"Refused"}]`
	c := w.read(t)
	if snapshot.Reason(c.nodesErr) != snapshot.ReasonRefused || snapshot.Reason(c.podsErr) != snapshot.ReasonRefused || c.poolsErr != nil || len(c.pods) != 1 {
		t.Errorf("nodes %v, pods %v, pools %v", c.nodesErr, c.podsErr, c.poolsErr)
	}
	if c := newWorld().node("a", "n1").read(t); c.nodesErr != nil || c.podsErr != nil {
		t.Errorf("whole lists: nodes %v, pods %v", c.nodesErr, c.podsErr)
	}
	// Events about what was asked for are all there are to have, unless some were refused.
	for reason, want := range map[string]string{"Refused": "", "Forbidden": "Forbidden"} {
		w.files["gaps.json"] = `[{"path":"cluster/events.json","reason":"` + reason + `"}]`
		if c := w.read(t); snapshot.Reason(c.eventsErr) != want {
			t.Errorf("events %s: %v", reason, c.eventsErr)
		}
	}
}

func newDeployment(name string) appsv1.Deployment {
	return appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
