package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// proxied asks a node's kubelet through the API server.
func proxied(ctx context.Context, client kubernetes.Interface, node, path string) ([]byte, error) {
	return client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix(path).DoRaw(ctx)
}

// TestRecordedObjects: what the API server has is what was recorded.
func TestRecordedObjects(t *testing.T) {
	recorded, err := live.recorded.Pods()
	if err != nil {
		t.Fatal(err)
	}
	for i := range recorded {
		want := recorded[i].DeepCopy()
		standin.Complete(&want.Spec)
		got, err := live.admin.CoreV1().Pods(want.Namespace).Get(t.Context(), want.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.UID != live.uids[want.UID] || got.UID == want.UID {
			t.Errorf("%s has the UID %s", want.Name, got.UID)
		}
		if !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("%s: spec, recorded and in the cluster:\n%s", want.Name, diff.Diff(want.Spec, got.Spec))
		}
		if !equality.Semantic.DeepEqual(got.Status, want.Status) {
			t.Errorf("%s: status, recorded and in the cluster:\n%s", want.Name, diff.Diff(want.Status, got.Status))
		}
	}
	events, err := live.recorded.Events()
	if err != nil {
		t.Fatal(err)
	}
	list, err := live.admin.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) == 0 || len(events) == 0 || len(list.Items) < len(events) {
		t.Errorf("%d pods and %d events on record, %d events in the cluster", len(recorded), len(events), len(list.Items))
	}
}

// TestKwokKeepsAlive: a Deployment's pod comes by the controller manager, the scheduler and kwok, and goes again; the nodes
// stay Ready past the controller manager's grace period only by the leases that kwok renews.
func TestKwokKeepsAlive(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}
	spare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "spare", Labels: map[string]string{"spare": "yes"}}}
	spare.Status = corev1.NodeStatus{Capacity: room, Allocatable: room}
	if _, err := live.admin.CoreV1().Nodes().Create(ctx, spare, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "alive"}
	made, err := live.admin.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "alive"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: spare.Labels,
					Containers:   []corev1.Container{{Name: "app", Image: "app.invalid/app:1"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := func() []corev1.Pod {
		list, err := live.admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=alive"})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	until := func(what string, is func() bool) {
		t.Helper()
		if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return is(), nil }); err != nil {
			t.Fatalf("%s: %v; pods %+v", what, err, pods())
		}
	}
	until("running", func() bool {
		p := pods()
		return len(p) == 1 && p[0].Spec.NodeName == "spare" && p[0].Status.Phase == corev1.PodRunning
	})
	if err := live.admin.AppsV1().Deployments("default").Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("gone", func() bool { return len(pods()) == 0 })
	until("leases", func() bool {
		leases, err := live.admin.CoordinationV1().Leases("kube-node-lease").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]bool{}
		for _, l := range leases.Items {
			held[l.Name] = l.Spec.RenewTime != nil && time.Since(l.Spec.RenewTime.Time) < 40*time.Second
		}
		return held["spare"] && held[recording]
	})
	nodes, err := live.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		ready := corev1.ConditionUnknown
		for _, c := range nodes.Items[i].Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready = c.Status
			}
		}
		if ready != corev1.ConditionTrue {
			t.Errorf("node %s: Ready is %s", nodes.Items[i].Name, ready)
		}
	}
}

// TestKubeletThroughAPI: the stand-in answers by the way of the API server, and speaks of the cluster's pods.
func TestKubeletThroughAPI(t *testing.T) {
	recorded, err := live.recorded.Pods()
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string][]byte{}
	for _, path := range []string{standin.Configz, standin.Summary, standin.CAdvisor, standin.Pods} {
		before := live.kubelet.Asked(path)
		body, err := proxied(t.Context(), live.admin, recording, path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if n := live.kubelet.Asked(path) - before; n != 1 {
			t.Errorf("%s was asked for %d times", path, n)
		}
		bodies[path] = body
	}
	configz, err := live.recorded.Node(recording).File("configz.json")
	if err != nil || !bytes.Equal(bodies[standin.Configz], configz) {
		t.Errorf("configz: %v\n%s", err, bodies[standin.Configz])
	}
	if pods := mustJSON[corev1.PodList](t, bodies[standin.Pods]).Items; len(pods) != len(recorded) {
		t.Errorf("%d pods of %d", len(pods), len(recorded))
	}
	for _, p := range recorded {
		if p.Name != "throttled" {
			continue
		}
		uid := string(live.uids[p.UID])
		if !bytes.Contains(bodies[standin.Summary], []byte(uid)) || !bytes.Contains(bodies[standin.CAdvisor], []byte(strings.ReplaceAll(uid, "-", "_"))) {
			t.Errorf("%s is not in the kubelet's answers", uid)
		}
		for path, body := range bodies {
			if bytes.Contains(body, []byte(p.UID)) || bytes.Contains(body, []byte(strings.ReplaceAll(string(p.UID), "-", "_"))) {
				t.Errorf("%s has the UID on record", path)
			}
		}
	}
}

// TestKubeletFaults: what the stand-in is told to do reaches the client.
func TestKubeletFaults(t *testing.T) {
	live.kubelet.Fail(standin.Summary, http.StatusInternalServerError)
	defer live.kubelet.Fail(standin.Summary, 0)
	if _, err := proxied(t.Context(), live.admin, recording, standin.Summary); !apierrors.IsInternalError(err) {
		t.Errorf("a kubelet that fails: %v", err)
	}
	live.kubelet.Delay(30 * time.Second)
	defer live.kubelet.Delay(0)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := proxied(ctx, live.admin, recording, standin.Configz); ctx.Err() == nil || err == nil {
		t.Errorf("a slow kubelet: %v", err)
	}
}

// TestAPIServerKilled: clients learn of it at once, and what was in the cluster is there when the API server is back.
func TestAPIServerKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	live.KillAPI()
	begin := time.Now()
	if _, err := proxied(ctx, live.admin, recording, standin.Configz); err == nil || time.Since(begin) > 5*time.Second {
		t.Errorf("without an API server: %v after %s", err, time.Since(begin))
	}
	if err := live.StartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := proxied(ctx, live.admin, recording, standin.Configz); err != nil {
		t.Error(err)
	}
	for i := range live.pods {
		p := &live.pods[i]
		if got, err := live.admin.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{}); err != nil || got.UID != p.UID {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

// TestRights: rights are asked for, and one that is granted is enough.
func TestRights(t *testing.T) {
	ctx := t.Context()
	user, err := live.client("reader", "readers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proxied(ctx, user, recording, standin.Configz); !apierrors.IsForbidden(err) {
		t.Fatalf("without a right: %v", err)
	}
	live.grant(t, "reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}})
	if _, err := proxied(ctx, user, recording, standin.Configz); err != nil {
		t.Errorf("with get on nodes/proxy: %v", err)
	}
	if _, err := user.CoreV1().Nodes().Get(ctx, recording, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get on nodes: %v", err)
	}
}

// grant gives a user a role of just these rules for the time of the test.
func (c *cluster) grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	ctx, rbac := t.Context(), c.admin.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after := context.WithoutCancel(ctx)
		if err := rbac.ClusterRoleBindings().Delete(after, user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := rbac.ClusterRoles().Delete(after, user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// The API server reads roles from a watch.
	one := c.as(t, user)
	for _, rule := range rules {
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			return allowed(ctx, one, rule)
		}); err != nil {
			t.Fatalf("%s does not get its role: %v", user, err)
		}
	}
}
