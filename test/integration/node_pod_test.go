package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// nodePods finds node pods by their labels.
const nodePods = "app.kubernetes.io/managed-by=kubectl-noderes,app.kubernetes.io/component=node-pod"

// roleOf is a role that the documentation ships.
func roleOf(t *testing.T, file string) []right {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		t.Fatal(err)
	}
	return rightsOf(role.Rules)
}

// nodeUser is the kubeconfig of a new user with the role that reads the API server, and with these rights in a namespace.
func (c *cluster) nodeUser(t *testing.T, namespace string, rights []right) string {
	t.Helper()
	return c.nodeUserWith(t, rightsOf(apiOnly(t)), namespace, rights)
}

// nodeUserWith is nodeUser with other rights in all namespaces.
func (c *cluster) nodeUserWith(t *testing.T, everywhere []right, namespace string, rights []right) string {
	t.Helper()
	file := c.userWith(t, everywhere)
	user := userName(t)
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rules = append(rules, r.rule())
	}
	ctx, rbac := t.Context(), c.admin.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := rbac.Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if _, err := rbac.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after := context.WithoutCancel(ctx)
		_ = rbac.RoleBindings(namespace).Delete(after, user, metav1.DeleteOptions{})
		_ = rbac.Roles(namespace).Delete(after, user, metav1.DeleteOptions{})
	})
	one := c.as(t, user)
	for _, rule := range rules {
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			return allowedIn(ctx, one, namespace, rule)
		}); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// noLeftover fails if a node pod is there, and removes it.
func (c *cluster) noLeftover(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	list, err := c.admin.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: nodePods})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		t.Errorf("left behind: pod %s, %s", pod.Name, pod.Status.Phase)
		_ = c.admin.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
	}
}

// TestNodePod: with the roles of the documentation the node's files are read, the report is that of the bundle and has the verdicts of
// the recording, and nothing is left.
func TestNodePod(t *testing.T) {
	defer live.noLeftover(t)
	user := live.nodeUser(t, "default", roleOf(t, "node.yaml"))
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	namespace := live.pods[0].Namespace
	begin := time.Now()
	if _, errs, err := live.noderes(t, user, "collect", "pod/throttled", "pod/oom", "pod/excl-a", "-n", namespace, "-o", bundle, "--access=node", "--sample=1s"); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	t.Logf("a bundle with two samples 1 s apart took %s", time.Since(begin).Round(time.Millisecond))
	live.noLeftover(t)
	for path, gap := range missing(t, bundle) {
		if gap.Reason != snapshot.ReasonNotFound {
			t.Errorf("%s: %+v", path, gap)
		}
	}
	s, err := snapshot.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	node := s.Node(recording)
	if samples := node.Samples(); len(samples) != 2 || !samples[1].HasTime {
		t.Errorf("samples %+v", samples)
	}
	if log, err := node.File("kernel.log"); err != nil || !bytes.Contains(log, []byte("Killed process")) {
		t.Errorf("kernel log of %d bytes, %v", len(log), err)
	}
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if strings.HasPrefix(pods[i].Name, "noderes-") {
			t.Errorf("the bundle has the node pod %s", pods[i].Name)
		}
	}
	at := live.recorded.Manifest().CapturedAt.Format(time.RFC3339)
	codes := map[string][]string{}
	for _, pod := range []string{"throttled", "oom", "excl-a"} {
		args := []string{"explain", "pod", pod, "-n", namespace, "-o", "json", "--at", at}
		got, errs, err := live.noderes(t, user, append(args, "--access=node", "--sample=1s")...)
		if err != nil || len(errs) > 0 {
			t.Fatalf("%v: %v\n%s", args, err, errs)
		}
		want, errs, err := live.noderes(t, "", append(args, "--from", bundle)...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: live\n%s\nfrom the bundle\n%s", pod, got, want)
		}
		for _, f := range mustJSON[report](t, got).Findings {
			codes[pod] = append(codes[pod], f.Code)
		}
	}
	for pod, want := range map[string][]string{
		"throttled": {"cpu-quota-throttled"},
		"oom":       {"container-memory-limit-oom"},
		"excl-a":    {"exclusive-cpus"},
	} {
		for _, code := range want {
			if !slices.Contains(codes[pod], code) {
				t.Errorf("%s: %v without %s", pod, codes[pod], code)
			}
		}
	}
}

// TestNodePodRightsAreNeeded: without one of its rights no node pod is made, and the gap names just that right.
func TestNodePodRightsAreNeeded(t *testing.T) {
	all := roleOf(t, "node.yaml")
	for _, without := range all {
		t.Run(strings.ReplaceAll(without.verb+"-"+without.resource, "/", "-"), func(t *testing.T) {
			defer live.noLeftover(t)
			others := func(rights []right) []right {
				return slices.DeleteFunc(rights, func(r right) bool { return r == without })
			}
			// The role that reads the API server has get pods for all namespaces.
			user := live.nodeUserWith(t, others(rightsOf(apiOnly(t))), "default", others(slices.Clone(all)))
			bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
			if _, errs, err := live.noderes(t, user, "collect", recording, "-o", bundle, "--access=node", "--sample=0"); err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			gap := missing(t, bundle)["nodes/"+recording+"/root"]
			if want := fmt.Sprintf("needs %s %s in namespace default", without.verb, without.resource); gap.Reason != snapshot.ReasonForbidden || gap.Detail != want {
				t.Errorf("%+v, want %s", gap, want)
			}
		})
	}
}

// TestNodePodRefused: what an API server may have against a node pod is explained with the way round.
func TestNodePodRefused(t *testing.T) {
	defer live.noLeftover(t)
	const namespace = "guarded"
	ctx := t.Context()
	guarded := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}}}
	if _, err := live.admin.CoreV1().Namespaces().Create(ctx, guarded, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := live.admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	user := live.nodeUser(t, namespace, roleOf(t, "node.yaml"))
	refused := func(want string, args ...string) {
		t.Helper()
		gaps := missing(t, live.collect(t, user, append([]string{"--access=node", "--sample=0", "--node-pod-namespace=" + namespace}, args...)...))
		if gap := gaps["nodes/"+recording+"/root"]; !strings.Contains(gap.Detail, want) {
			t.Errorf("%+v, want %s", gap, want)
		}
		out, errs, err := live.noderes(t, user, "explain", "node", recording, "--access=node", "--dry-run=server", "--node-pod-namespace="+namespace)
		if err == nil || len(out) > 0 || !bytes.HasPrefix(errs, []byte("error: ")) {
			t.Errorf("dry run: %v\n%s%s", err, out, errs)
		}
	}
	refused("kubectl label namespace guarded pod-security.kubernetes.io/enforce=privileged")
	guarded.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	if _, err := live.admin.CoreV1().Namespaces().Update(ctx, guarded, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	if _, err := live.admin.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		q, err := live.admin.CoreV1().ResourceQuotas(namespace).Get(ctx, "none", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	refused("ResourceQuota of namespace guarded")
	if err := live.admin.CoreV1().ResourceQuotas(namespace).Delete(ctx, "none", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestNodePodFaults: whatever becomes of a node pod, there is a bundle with what arrived and the reason, in time, and nothing is left.
func TestNodePodFaults(t *testing.T) {
	user := live.nodeUser(t, "default", roleOf(t, "node.yaml"))
	defer live.kubelet.CutExec(-1)
	collect := func(t *testing.T, args ...string) map[string]snapshot.Gap {
		t.Helper()
		bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
		args = append([]string{"collect", "pod/throttled", "-n", live.pods[0].Namespace, "-o", bundle, "--access=node"}, args...)
		if _, errs, err := live.within(t, 6*time.Second, user, args...); err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		live.noLeftover(t)
		return missing(t, bundle)
	}
	root := "nodes/" + recording + "/root"
	t.Run("cut", func(t *testing.T) {
		for _, after := range []int{0, 1, 20, rand.IntN(100_000), 400_000} {
			live.kubelet.CutExec(after)
			if gap := collect(t, "--sample=0")[root]; gap.Reason != snapshot.ReasonUnreadable || !strings.Contains(gap.Detail, "ended early") {
				t.Errorf("cut after %d bytes: %+v", after, gap)
			}
		}
		live.kubelet.CutExec(-1)
	})
	t.Run("hangs", func(t *testing.T) {
		_, release := live.kubelet.HoldExec(1000)
		defer release()
		if gap := collect(t, "--sample=0")[root]; gap.Reason != snapshot.ReasonTimeout && gap.Reason != snapshot.ReasonUnreadable {
			t.Errorf("%+v", gap)
		}
		live.kubelet.CutExec(-1)
	})
	t.Run("evicted", func(t *testing.T) {
		began, release := live.kubelet.HoldExec(1000)
		go func() {
			<-began
			ctx := context.WithoutCancel(t.Context())
			list, err := live.admin.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: nodePods})
			if err == nil && len(list.Items) == 1 {
				pod := &list.Items[0]
				pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
				_, _ = live.admin.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			}
			release() // which breaks the connection
		}()
		if gap := collect(t, "--sample=0")[root]; gap.Reason != snapshot.ReasonUnreadable {
			t.Errorf("%+v", gap)
		}
		live.kubelet.CutExec(-1)
	})
	t.Run("image missing", func(t *testing.T) {
		if gap := collect(t, "--sample=0", "--node-pod-image=missing:1")[root]; gap.Reason != snapshot.ReasonUnreadable || !strings.Contains(gap.Detail, "--node-pod-image") {
			t.Errorf("%+v", gap)
		}
	})
	t.Run("never starts", func(t *testing.T) {
		if gap := collect(t, "--sample=0", "--node-pod-image=pending:1")[root]; gap.Reason != snapshot.ReasonTimeout || !strings.Contains(gap.Detail, "did not start") {
			t.Errorf("%+v", gap)
		}
	})
	t.Run("two at once", func(t *testing.T) {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
				_, errs, err := live.within(t, 20*time.Second, user, "collect", recording, "-o", bundle, "--access=node", "--sample=1s")
				if err != nil {
					t.Errorf("%v\n%s", err, errs)
					return
				}
				if gap, ok := missing(t, bundle)[root]; ok {
					t.Errorf("%+v", gap)
				}
			})
		}
		both.Wait()
		live.noLeftover(t)
	})
}

// TestNodePodInterrupted sends SIGINT at ten random moments: no pod is left, and the run ends soon.
func TestNodePodInterrupted(t *testing.T) {
	user := live.nodeUser(t, "default", roleOf(t, "node.yaml"))
	cut, longest := 0, time.Duration(0)
	for range 10 {
		after := time.Duration(rand.IntN(3000)) * time.Millisecond
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), live.plugin, "collect", "pod/throttled", "-n", live.pods[0].Namespace, "-o", filepath.Join(dir, "b.tar.gz"), "--access=node", "--sample=2s")
		cmd.Env = []string{"HOME=" + dir, "KUBECONFIG=" + user}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after)
		sent := time.Now()
		_ = cmd.Process.Signal(os.Interrupt)
		err := cmd.Wait()
		if took := time.Since(sent); err != nil {
			cut++
			longest = max(longest, took)
			if took > 3*time.Second || errs.String() != "error: interrupted\n" && errs.Len() > 0 {
				t.Errorf("after %s: took %s more: %v: %s", after, took, err, errs.Bytes())
			}
		}
		live.noLeftover(t)
	}
	t.Logf("%d of 10 runs were cut, the last was gone %s after the signal", cut, longest.Round(time.Millisecond))
	if cut < 3 {
		t.Errorf("only %d of 10 runs were cut", cut)
	}
}

// TestCleanup: what a killed run left is found by its labels, and nothing else is.
func TestCleanup(t *testing.T) {
	user := live.nodeUser(t, "default", append(roleOf(t, "node.yaml"), right{verb: "list", resource: "pods"}))
	began, release := live.kubelet.HoldExec(1000)
	defer live.kubelet.CutExec(-1)
	defer release()
	cmd := exec.CommandContext(t.Context(), live.plugin, "collect", recording, "-o", filepath.Join(t.TempDir(), "b"), "--access=node")
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + user}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-began
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	decoy := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "noderes-decoy", Namespace: "default", Labels: map[string]string{"app.kubernetes.io/managed-by": "kubectl-noderes", "app.kubernetes.io/component": "node-pod"}},
		Spec: corev1.PodSpec{NodeName: recording, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := live.admin.CoreV1().Pods("default").Create(t.Context(), decoy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = live.admin.CoreV1().Pods("default").Delete(context.WithoutCancel(t.Context()), decoy.Name, *metav1.NewDeleteOptions(0))
	}()
	for _, args := range [][]string{{"cleanup", "--dry-run"}, {"cleanup", "-A"}} {
		out, errs, err := live.noderes(t, user, args...)
		if err != nil || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte("pod default/noderes-smt2-")) {
			t.Errorf("%v: %v\n%s%s", args, err, out, errs)
		}
	}
	list, err := live.admin.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: nodePods})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != decoy.Name {
		t.Errorf("left are %d pods, %v", len(list.Items), err)
	}
}
