package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func TestKindOf(t *testing.T) {
	for name, want := range map[string]string{
		"deploy": "deployments", "Deployment": "deployments", "deployments.apps": "deployments", "deployments.v1.apps": "deployments",
		"sts": "statefulsets", "ds": "daemonsets", "daemonsets": "daemonsets", "job": "jobs", "jobs.batch": "jobs", "rs": "replicasets",
		"deployments.batch": "", "jobs.apps": "", "po": "", "": "", "cronjob": "",
	} {
		k, ok := KindOf(name)
		if k.Resource != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", name, k.Resource, ok)
		}
	}
}

// meta is an object that one of a kind controls.
func meta(name, apiVersion, kind, owner, uid string, set map[string]string) *metav1.ObjectMeta {
	yes := true
	return &metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: set,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID(uid), Controller: &yes}}}
}

func hashed(hash string) map[string]string { return map[string]string{"pod-template-hash": hash} }

func TestOwns(t *testing.T) {
	deploy := Owner{Ref: Ref{Deployment, "shop", "web"}, UID: "d1", Sets: map[types.UID]bool{"r1": true}}
	byName := Owner{Ref: Ref{Deployment, "shop", "web"}}
	sts := Owner{Ref: Ref{StatefulSet, "shop", "db"}, UID: "s1"}
	notController := meta("p", "apps/v1", "StatefulSet", "db", "s1", nil)
	notController.OwnerReferences[0].Controller = nil
	elsewhere := meta("p", "apps/v1", "StatefulSet", "db", "s1", nil)
	elsewhere.Namespace = "blue"
	for _, c := range []struct {
		name  string
		owner Owner
		pod   *metav1.ObjectMeta
		want  bool
	}{
		{"by a ReplicaSet of its own", deploy, meta("p", "apps/v1", "ReplicaSet", "web-1", "r1", nil), true},
		{"another ReplicaSet of the right name and labels", deploy, meta("p", "apps/v1", "ReplicaSet", "web-1", "r2", hashed("1")), false},
		{"its labels without a controller", deploy, &metav1.ObjectMeta{Namespace: "shop", Labels: hashed("1")}, false},
		{"no ReplicaSets", Owner{Ref: deploy.Ref, Sets: map[types.UID]bool{}}, meta("p", "apps/v1", "ReplicaSet", "web-1", "r1", hashed("1")), false},
		{"by name", byName, meta("p", "apps/v1", "ReplicaSet", "web-1", "r9", hashed("1")), true},
		{"by the name of a longer one", byName, meta("p", "apps/v1", "ReplicaSet", "web-api-1", "r9", hashed("1")), false},
		{"by name without a hash", byName, meta("p", "apps/v1", "ReplicaSet", "web-1", "r9", nil), false},
		{"a ReplicaSet of another group", byName, meta("p", "other.io/v1", "ReplicaSet", "web-1", "r9", hashed("1")), false},
		{"direct", sts, meta("p", "apps/v1", "StatefulSet", "db", "s1", nil), true},
		{"of an older version of the API", sts, meta("p", "apps/v1beta2", "StatefulSet", "db", "s1", nil), true},
		{"one that is gone", sts, meta("p", "apps/v1", "StatefulSet", "db", "s0", nil), false},
		{"one that is gone, by name", Owner{Ref: sts.Ref}, meta("p", "apps/v1", "StatefulSet", "db", "s0", nil), true},
		{"another kind", sts, meta("p", "apps/v1", "DaemonSet", "db", "s1", nil), false},
		{"an owner that is no controller", sts, notController, false},
		{"another namespace", sts, elsewhere, false},
		{"any namespace", Owner{Ref: Ref{StatefulSet, "", "db"}}, elsewhere, true},
	} {
		if got := c.owner.Owns(c.pod); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if set := meta("web-1", "apps/v1", "Deployment", "web", "d1", nil); !deploy.OwnsSet(set) || (Owner{Ref: deploy.Ref, UID: "d2"}).OwnsSet(set) || sts.OwnsSet(set) {
		t.Error("a ReplicaSet's Deployment")
	}
}

func TestOf(t *testing.T) {
	for want, pod := range map[string]*metav1.ObjectMeta{
		"deploy/web": meta("p", "apps/v1", "ReplicaSet", "web-1", "r", hashed("1")),
		"rs/web-1":   meta("p", "apps/v1", "ReplicaSet", "web-1", "r", hashed("2")),
		"job/import": meta("p", "batch/v1", "Job", "import", "r", nil),
		"":           meta("p", "v1", "Node", "n1", "r", nil),
	} {
		ref, ok := Of(pod)
		if ok != (want != "") || ok && (ref.Argument() != want || ref.Namespace != "shop") {
			t.Errorf("%s: %v, %t", want, ref, ok)
		}
	}
}

func TestNearest(t *testing.T) {
	many := make([]string, 0, 40)
	for i := range 40 {
		many = append(many, "web-"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	for _, c := range []struct {
		names []string
		asked string
		want  []string
	}{
		{[]string{"web", "api", "worker"}, "wbe", []string{"web"}},
		{[]string{"web-7d9-x1", "db-0"}, "web", []string{"web-7d9-x1"}},
		{[]string{"checkout", "checkouts", "chekout"}, "checkout", []string{"checkout", "checkouts", "chekout"}},
		{[]string{"api"}, "web", nil},
		{nil, "web", nil},
		{[]string{"web"}, "", nil},
		{[]string{strings.Repeat("w", 300)}, "w", nil},
		{many, "web", []string{"web-aa", "web-ab", "web-ba", "web-bb", "web-ca"}},
	} {
		if got := Nearest(c.names, c.asked); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.asked, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"wbe", "web", 1}, {"abcd", "badc", 2}} {
		if edits(c.a, c.b) != c.want || edits(c.b, c.a) != c.want {
			t.Errorf("%q, %q: %d", c.a, c.b, edits(c.a, c.b))
		}
	}
}

// The order in which pods are worth a look.
func TestLook(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
	ended := func(reason string, code int32, minute int) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, FinishedAt: at(minute)}
	}
	pod := func(name string, phase corev1.PodPhase, ready bool, statuses ...corev1.ContainerStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase, ContainerStatuses: statuses}}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return p
	}
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	refused := pod("refused", corev1.PodFailed, false)
	refused.Status.Reason = "UnexpectedAdmissionError"
	want := []struct {
		pod   *corev1.Pod
		state string
	}{
		{pod("f", corev1.PodFailed, false), "Failed"},
		{refused, "UnexpectedAdmissionError"},
		{pod("loop", corev1.PodRunning, false, corev1.ContainerStatus{RestartCount: 9, State: waits("CrashLoopBackOff"), LastTerminationState: corev1.ContainerState{Terminated: ended("OOMKilled", 137, 1)}}), "CrashLoopBackOff"},
		{pod("image", corev1.PodPending, false, corev1.ContainerStatus{State: waits("ImagePullBackOff")}), "ImagePullBackOff"},
		{pod("often", corev1.PodRunning, true, corev1.ContainerStatus{RestartCount: 7, LastTerminationState: corev1.ContainerState{Terminated: ended("OOMKilled", 137, 1)}}), "OOMKilled"},
		{pod("late", corev1.PodRunning, true, corev1.ContainerStatus{RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: ended("OOMKilled", 137, 9)}}), "OOMKilled"},
		{pod("early", corev1.PodRunning, true, corev1.ContainerStatus{RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: ended("OOMKilled", 137, 3)}}), "OOMKilled"},
		{pod("exit", corev1.PodRunning, true, corev1.ContainerStatus{RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended("Error", 1, 3)}}), "Restarted"},
		{pod("a", corev1.PodPending, false, corev1.ContainerStatus{State: waits("ContainerCreating")}), "Pending"},
		{pod("b", "", false), "Unknown"},
		{pod("c", corev1.PodRunning, false), "NotReady"},
		{pod("d", corev1.PodRunning, true), "Running"},
		{pod("e", corev1.PodRunning, true, corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: ended("Completed", 0, 3)}}), "Running"},
		{pod("0", corev1.PodSucceeded, false, corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended("Error", 1, 3)}}), "Succeeded"},
	}
	// By their state, then what is more and later comes first: e's exit is later.
	want[11], want[12] = want[12], want[11]
	var looks []Look
	for i := range want {
		looks = append(looks, LookAt(want[i].pod))
		if looks[i].State != want[i].state {
			t.Errorf("%s: %s, want %s", want[i].pod.Name, looks[i].State, want[i].state)
		}
	}
	slices.Reverse(looks)
	slices.SortFunc(looks, Look.Compare)
	for i, l := range looks {
		if l.name != want[i].pod.Name {
			t.Errorf("place %d: %s, want %s", i, l.name, want[i].pod.Name)
		}
	}
}

func TestErrors(t *testing.T) {
	selector, err := labels.Parse("app=wbe,tier!=x")
	if err != nil {
		t.Fatal(err)
	}
	sel := &Selection{Namespace: "shop", Labels: selector}
	why := OtherValues(selector, []labels.Set{{"app": "web"}, {"app": "web"}, {"app": "api"}, {"other": "wbe"}})
	for want, err := range map[string]error{
		`deployments.apps "wbe" not found in namespace "shop"; nearest: web, web-api`:             &NotFoundError{Ref: Ref{Deployment, "shop", "wbe"}, Nearest: []string{"web", "web-api"}},
		`jobs.batch "x" not found in the bundle`:                                                  &NotFoundError{Ref: Ref{Job, "", "x"}, In: "the bundle"},
		`there are no pods with app=wbe,tier!=x of namespace "shop"; label app is there with web`: &NoPodsError{Selection: sel, Why: why},
		`deployment shop/web has no pods; its spec.replicas is 0`:                                 &NoPodsError{Workload: Ref{Deployment, "shop", "web"}, Why: "its spec.replicas is 0"},
		`there are no pods of all namespaces`:                                                     &NoPodsError{Selection: &Selection{}},
	} {
		if err.Error() != want {
			t.Errorf("%s\nwant %s", err, want)
		}
	}
	if got := OtherValues(selector, []labels.Set{{"app": "zzzzz"}, {"app": "yyyyy"}}); got != "label app is there with yyyyy, zzzzz" {
		t.Errorf("no value is near: %q", got)
	}
}

func TestWhyNoPods(t *testing.T) {
	zero := int32(0)
	o := &Object{}
	if o.WhyNoPods() != "" || o.Selects() != nil {
		t.Error("of nothing something")
	}
	o.Spec.Replicas = &zero
	if got := o.WhyNoPods(); got != "its spec.replicas is 0" {
		t.Error(got)
	}
	o.Spec.Replicas = nil
	o.Status.Conditions = append(o.Status.Conditions, struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}{"ReplicaFailure", "False", "", ""})
	if got := o.WhyNoPods(); got != "" {
		t.Error(got)
	}
	o.Status.Conditions[0].Status, o.Status.Conditions[0].Reason, o.Status.Conditions[0].Message = "True", "FailedCreate", "exceeded quota"
	if got := o.WhyNoPods(); got != "its condition ReplicaFailure (FailedCreate): exceeded quota" {
		t.Error(got)
	}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	if s := o.Selects(); s == nil || s.String() != "app=web" {
		t.Errorf("selects %v", s)
	}
	o.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}
	if o.Selects() != nil {
		t.Error("a selector that is none narrows")
	}
}
