package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// workloads are made once for all tests, in the namespace default.
var workloads sync.Once

// withWorkloads makes a workload of each kind on a node of its own: deploy/live, sts/live, ds/live, job/live, and rs/stray, whose pod
// has the labels of deploy/live.
func (c *cluster) withWorkloads(t *testing.T) {
	t.Helper()
	workloads.Do(func() { c.makeWorkloads(t) })
	if t.Failed() {
		t.FailNow()
	}
}

func (c *cluster) makeWorkloads(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("20")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "works", Labels: map[string]string{"works": "yes"}}}
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room}
	two := int32(2)
	template := func(set map[string]string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set}, Spec: corev1.PodSpec{
			NodeSelector: node.Labels, Containers: []corev1.Container{{Name: "app", Image: "app.invalid/app:1"}},
		}}
	}
	by := func(set map[string]string) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: set} }
	meta := metav1.ObjectMeta{Name: "live"}
	live, stray := map[string]string{"app": "live"}, map[string]string{"app": "live", "stray": "yes"}
	sts, ds := map[string]string{"app": "sts"}, map[string]string{"app": "ds"}
	job := template(nil)
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	apps, create := c.admin.AppsV1(), metav1.CreateOptions{}
	for _, make := range []func() error{
		func() error { _, err := c.admin.CoreV1().Nodes().Create(ctx, node, create); return err },
		func() error {
			_, err := apps.ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "stray", Labels: map[string]string{"of": "nobody"}},
				Spec: appsv1.ReplicaSetSpec{Selector: by(stray), Template: template(stray)}}, create)
			return err
		},
		func() error {
			_, err := apps.Deployments("default").Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: by(live), Template: template(live)}}, create)
			return err
		},
		func() error {
			_, err := apps.StatefulSets("default").Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: by(sts), Template: template(sts)}}, create)
			return err
		},
		func() error {
			_, err := apps.DaemonSets("default").Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: by(ds), Template: template(ds)}}, create)
			return err
		},
		func() error {
			_, err := c.admin.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: job}}, create)
			return err
		},
	} {
		if err := make(); err != nil {
			t.Error(err)
			return
		}
	}
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods, err := c.admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=works,status.phase=Running"})
		return err == nil && len(pods.Items) == 6, nil
	}); err != nil {
		t.Error("the workloads' pods do not run")
	}
}

// selectionList is what the tests read of a list of reports.
type selectionList struct {
	Kind      string
	Items     []report
	Selection struct{ Of string }
}

func (l selectionList) names() []string {
	var names []string
	for _, item := range l.Items {
		names = append(names, item.Metadata.Name)
	}
	return names
}

// TestWorkloads: the pods of a workload of each kind are those that its controller made, and no others that have its labels.
func TestWorkloads(t *testing.T) {
	live.withWorkloads(t)
	user := live.userWith(t, rightsOf(apiOnly(t)))
	explain := func(args ...string) selectionList {
		t.Helper()
		out, errs, err := live.noderes(t, user, append([]string{"explain", "-o", "json", "-n", "default"}, args...)...)
		if err != nil || len(errs) > 0 {
			t.Fatalf("%v: %v\n%s", args, err, errs)
		}
		return mustJSON[selectionList](t, out)
	}
	sets, err := live.admin.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=live"})
	if err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d ReplicaSets of the Deployment: %v", len(sets.Items), err)
	}
	for argument, want := range map[string]struct {
		pods int
		name string
	}{
		"deploy/live": {2, sets.Items[0].Name + "-"}, "rs/" + sets.Items[0].Name: {2, sets.Items[0].Name + "-"}, "rs/stray": {1, "stray-"},
		"sts/live": {1, "live-0"}, "ds/live": {1, "live-"}, "job/live": {1, "live-"},
	} {
		list := explain(argument)
		if list.Kind != "PodReportList" || len(list.Items) != want.pods {
			t.Errorf("%s: %s of %q", argument, list.Kind, list.names())
		}
		for _, name := range list.names() {
			if !strings.HasPrefix(name, want.name) {
				t.Errorf("%s: pod %s", argument, name)
			}
		}
	}
	if names := explain("pod", "-l", "app=live").names(); len(names) != 3 || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "stray-") }) {
		t.Errorf("by its labels: %q", names)
	}

	// The worst of a cluster, beside pods that run and are fine: refused ones, then those that die again and again.
	worst := explain("pod", "-A", "--max-pods", "6")
	if len(worst.Items) != 6 || worst.Selection.Of != "pods of all namespaces" {
		t.Fatalf("of all namespaces: %q of %s", worst.names(), worst.Selection.Of)
	}
	for _, name := range worst.names() {
		if !slices.ContainsFunc(live.pods, func(p corev1.Pod) bool { return p.Name == name }) {
			t.Errorf("%s is among the worst: %q", name, worst.names())
		}
	}
	if worst.Items[0].Findings[0].Code != "smt-alignment-refused" && worst.Items[0].Findings[0].Code != "topology-affinity-refused" {
		t.Errorf("the worst: %s of %s", worst.Items[0].Findings[0].Code, worst.names()[0])
	}
}

// TestWorkloadBundle: the report of a workload is that of its bundle.
func TestWorkloadBundle(t *testing.T) {
	live.withWorkloads(t)
	user := live.userWith(t, rightsOf(apiOnly(t)))
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if _, errs, err := live.noderes(t, user, "collect", "deploy/live", "-n", "default", "-o", bundle); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	for _, format := range []string{"text", "json"} {
		args := []string{"explain", "deploy/live", "-n", "default", "-o", format, "--at", "2026-01-02T03:04:05Z"}
		got, errs, err := live.noderes(t, user, args...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		want, errs, err := live.noderes(t, "", append(args, "--from", bundle)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		if !bytes.Equal(got, want) || !bytes.Contains(got, []byte("deployment default/live")) {
			t.Errorf("%s: live\n%s\nfrom the bundle\n%s", format, got, want)
		}
	}
}

// TestNoSuchWorkload: one line tells what is not there, and what is near.
func TestNoSuchWorkload(t *testing.T) {
	live.withWorkloads(t)
	user := live.userWith(t, rightsOf(apiOnly(t)))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "ds/gone"}, `error: daemonsets.apps "gone" not found in namespace "default"`},
		{[]string{"explain", "pod", "live"}, `error: pods "live" not found in namespace "default"; nearest: live-`},
		{[]string{"explain", "pod", "-l", "app=liev"}, `error: there are no pods with app=liev of namespace "default"; label app is there with live`},
	} {
		out, errs, err := live.noderes(t, user, append(c.args, "-n", "default")...)
		if err == nil || len(out) > 0 || !bytes.HasPrefix(errs, []byte(c.want)) || bytes.Count(errs, []byte("\n")) != 1 {
			t.Errorf("%v: %v\n%s%s", c.args, err, out, errs)
		}
	}
}
