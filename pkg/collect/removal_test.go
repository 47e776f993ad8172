package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/disruption/price"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// karpenterServer has Karpenter with two controllers, the second of which leads,
// a pool of one node, and the autoscaler's status.
func karpenterServer(t *testing.T) *server {
	s := newServer(t)
	s.absent = nil
	labelled := func(resource, namespace, name string, labels map[string]string, more map[string]any) {
		s.add(resource, namespace, name, more)
		of := s.objects[resource]
		of[len(of)-1]["metadata"].(map[string]any)["labels"] = labels
	}
	ofPool := map[string]string{poolLabel: "default"}
	labelled("nodes", "", "k1", ofPool, map[string]any{"spec": map[string]any{"providerID": "x://k1"}, "status": map[string]any{"images": []any{map[string]any{"names": []any{"hush"}}}}})
	labelled("nodeclaims", "", "default-1", ofPool, map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": map[string]any{"future": "kept"}, "status": map[string]any{"providerID": "x://k1"}})
	s.add("nodepools", "", "default", map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "spec": map[string]any{"disruption": map[string]any{"consolidateAfter": "0s", "budgets": []any{map[string]any{"nodes": "1"}}}}})
	for _, name := range []string{"karpenter-a", "karpenter-b"} {
		labelled("pods", "kube-system", name, map[string]string{"app.kubernetes.io/name": "karpenter"}, map[string]any{
			"spec": map[string]any{"nodeName": "n2", "containers": []any{map[string]any{"name": "controller", "image": "karpenter:1.14.3",
				"ports": []any{map[string]any{"name": "http-metrics", "containerPort": 8000}},
				"env":   []any{map[string]any{"name": "FEATURE_GATES", "value": "NodeRepair=true"}, map[string]any{"name": "TOKEN", "value": "hush"}}}}},
			"status": map[string]any{"phase": "Running"}})
	}
	s.add("leases", "kube-system", leaderLease, map[string]any{"spec": map[string]any{"holderIdentity": "karpenter-b_1-2-3"}})
	s.metrics = map[string]string{
		"karpenter-a:8000": "stale 1\n",
		"karpenter-b:8000": "# HELP " + price.PoolCost + " hush\nother_total{hush=\"1\"} 2\n" + price.PoolCost + "_more 1\n" + price.PoolCost + "{nodepool=\"default\"} 0.5\n",
	}
	s.add("configmaps", "kube-system", autoscalerStatus, map[string]any{"data": map[string]any{"status": "time: now\n", "other": "hush"}})
	s.add("configmaps", "kube-system", "other", map[string]any{"data": map[string]any{"hush": "hush"}})
	s.add("events", "shop", "web-0.2", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "web-0"}, "reason": "Nominated", "reportingComponent": "karpenter"})
	s.add("events", "default", "default.1", map[string]any{"involvedObject": map[string]any{"kind": "NodePool", "name": "default"}, "reason": "DisruptionBlocked", "reportingComponent": "karpenter"})
	s.add("events", "shop", "other.2", map[string]any{"involvedObject": map[string]any{"kind": "Pod", "name": "other"}, "reason": "Killing", "reportingComponent": "kubelet"})
	return s
}

func file(t *testing.T, s *snapshot.Snapshot, path string) string {
	t.Helper()
	data, err := s.File(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What decides whether nodes go is there whole, without secrets, and the nodes
// and pods beside the subject without what is not read of them.
func TestWholeCluster(t *testing.T) {
	s := karpenterServer(t)
	s.page = 2
	// Of another run, on a node beside the subject: no load of it.
	other := nodepod.Pod(nodepod.Options{Namespace: "default"}, nodepod.Run{Node: "k1", ID: "hush"})
	s.add("pods", other.Namespace, other.Name, map[string]any{
		"metadata": map[string]any{"namespace": other.Namespace, "name": other.Name, "labels": other.Labels, "annotations": other.Annotations}, "spec": other.Spec,
	})
	snap := s.collect(t, Request{Nodes: []string{"n1"}, Removal: WholeCluster})
	var all strings.Builder
	for _, name := range []string{"pods", "nodes", "events", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "poddisruptionbudgets", "persistentvolumes", "persistentvolumeclaims", "deployments", "daemonsets"} {
		path := "cluster/" + name + ".json"
		all.WriteString(file(t, snap, path))
		if partial := snap.Partial(path); (partial != nil) != (name == "events") {
			t.Errorf("%s is a part: %v", path, partial)
		}
	}
	status, metrics := file(t, snap, statusFile), file(t, snap, karpenterMetrics)
	all.WriteString(status + metrics)
	if status != "time: now\n" || metrics != price.PoolCost+"{nodepool=\"default\"} 0.5\n" {
		t.Errorf("status %q, metrics %q", status, metrics)
	}
	if strings.Contains(all.String(), "hush") {
		t.Errorf("kept what must not be kept: %s", all.String())
	}
	for _, kept := range []string{`"future":"kept"`, `"FEATURE_GATES","value":"NodeRepair=true"`, `"reason":"Nominated"`, `"reason":"DisruptionBlocked"`, `"kind":"NodePool"`} {
		if !strings.Contains(all.String(), kept) {
			t.Errorf("%s is missing", kept)
		}
	}
	if strings.Contains(all.String(), `"Killing"`) {
		t.Error("read what the kubelet said of another pod")
	}
	pods, err := snap.Pods()
	if err != nil || len(pods) != 5 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	for _, p := range pods {
		// The subject's pods are whole, those beside it are not.
		if whole := p.Spec.Containers[0].LivenessProbe != nil; whole != (p.Spec.NodeName == "n1") && p.Namespace == "shop" {
			t.Errorf("%s on %s, whole: %v", p.Name, p.Spec.NodeName, whole)
		}
	}
}

// Without Karpenter and autoscaler the rest of the cluster is not read, and it is
// known that there is neither.
func TestNothingRemovesNodes(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	snap, failed, err := Collect(t.Context(), client, Request{Nodes: []string{"n1"}, Removal: WholeCluster})
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	if requests, _ := client.Cost(); requests != 9 {
		t.Errorf("%d requests", requests)
	}
	if got := podNames(t, snap); !slices.Equal(got, []string{"other", "web-0"}) {
		t.Errorf("pods %v", got)
	}
	for _, path := range []string{"cluster/nodepools.karpenter.sh.json", statusFile} {
		if _, err := snap.File(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Budgets are counted over the nodes of their pools alone, whatever else there
// is.
func TestBudgetsOnly(t *testing.T) {
	cost := func(others int) (requests int, bytes int64) {
		s := karpenterServer(t)
		for i := range others {
			s.add("nodes", "", fmt.Sprint("m", i), nil)
			s.pod(fmt.Sprint("p", i), fmt.Sprint("m", i))
		}
		client := s.client(t)
		snap, failed, err := Collect(t.Context(), client, Request{Removal: BudgetsOnly, NodePools: []string{"default"}})
		if err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		c := shrink.Read(snap, snap.Manifest().CapturedAt, &gap.Log{}, shrink.Options{})
		if answer, ok := c.Budgets("default"); !ok || answer.Budgets[0].Nodes == nil || c.Version() != "1.14.3" {
			t.Errorf("version %q, %+v", c.Version(), answer.Budgets)
		}
		return client.Cost()
	}
	few, fewBytes := cost(10)
	many, manyBytes := cost(1000)
	if few != 6 || many != few || manyBytes != fewBytes {
		t.Errorf("%d requests and %d bytes beside 10 nodes, %d and %d beside 1000", few, fewBytes, many, manyBytes)
	}
}

// Each source refused in turn leaves its gap, which names the right, and nothing
// taken for empty.
func TestRefusedRemovalSources(t *testing.T) {
	for path, want := range map[string][2]string{
		"/apis/karpenter.sh/v1/nodeclaims":     {"cluster/nodeclaims.karpenter.sh.json", "list nodeclaims.karpenter.sh"},
		"/api/v1/nodes":                        {"cluster/nodes.json", "list nodes"},
		"/api/v1/persistentvolumes":            {"cluster/persistentvolumes.json", "list persistentvolumes"},
		"/api/v1/persistentvolumeclaims":       {"cluster/persistentvolumeclaims.json", "list persistentvolumeclaims of all namespaces"},
		"/apis/policy/v1/poddisruptionbudgets": {"cluster/poddisruptionbudgets.json", "list poddisruptionbudgets.policy of all namespaces"},
		"/apis/apps/v1/deployments":            {"cluster/deployments.json", "list deployments.apps of all namespaces"},
		"/apis/apps/v1/daemonsets":             {"cluster/daemonsets.json", "list daemonsets.apps of all namespaces"},
		"/api/v1/events":                       {"cluster/events.json", "list events of all namespaces"},
		"/api/v1/pods":                         {"cluster/pods.json", "list pods of all namespaces"},
		"/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status":                  {statusFile, "get configmaps/cluster-autoscaler-status in namespace kube-system"},
		"/api/v1/namespaces/kube-system/pods/karpenter-b:8000/proxy/metrics":                   {karpenterMetrics, "get pods/proxy in namespace kube-system"},
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election": {karpenterMetrics, "get leases.coordination.k8s.io/karpenter-leader-election in namespace kube-system"},
	} {
		t.Run(path, func(t *testing.T) {
			s := karpenterServer(t)
			s.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == path {
					refuse(w, http.StatusForbidden)
				}
				return r.URL.Path == path
			}
			snap := s.collect(t, Request{Nodes: []string{"n1"}, Removal: WholeCluster})
			gaps, _ := snap.Gaps()
			if !slices.Contains(gaps, snapshot.Gap{Path: want[0], Reason: snapshot.ReasonForbidden, Detail: "needs " + want[1]}) {
				t.Errorf("no gap %v in %+v", want, gaps)
			}
			if _, err := snap.File(want[0]); err == nil && snap.Partial(want[0]) == nil {
				t.Errorf("%s seems to be whole", want[0])
			}
		})
	}
	s := karpenterServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/nodepools") {
			refuse(w, http.StatusForbidden)
			return true
		}
		return false
	}
	_, failed, err := Collect(t.Context(), s.client(t), Request{Removal: BudgetsOnly})
	if err != nil || failed[NodePools] == nil || !strings.Contains(failed[NodePools].Error(), "needed: list nodepools.karpenter.sh") {
		t.Errorf("%v, %v", err, failed)
	}
}

// Of a command line and of variables the settings stay, of no other program.
func TestSettings(t *testing.T) {
	const spec = `"spec":{"containers":[{"args":["--scale-down-enabled=false","--skip-nodes-with-local-storage","--scale-down-unneeded-time","5m","--aws-key=hush","--max-nodes-total=hush;hush"],"env":[{"name":"FEATURE_GATES","value":"A=true"}],"name":"c"}]}`
	for label, want := range map[string]string{
		"cluster-autoscaler":     `{"args":["--scale-down-enabled=false","--skip-nodes-with-local-storage","--scale-down-unneeded-time","5m"],"env":[{"name":"FEATURE_GATES"}],"name":"c"}`,
		"aws-cluster-autoscaler": `{"args":["--scale-down-enabled=false","--skip-nodes-with-local-storage","--scale-down-unneeded-time","5m"],"env":[{"name":"FEATURE_GATES"}],"name":"c"}`,
		"karpenter":              `{"args":[],"env":[{"name":"FEATURE_GATES","value":"A=true"}],"name":"c"}`,
		"web":                    `{"args":[],"env":[{"name":"FEATURE_GATES"}],"name":"c"}`,
	} {
		got, _, err := redact([]byte(`{"metadata":{"name":"p","labels":{"app":"`+label+`"}},`+spec+`}`), "pods", own)
		if err != nil || !strings.Contains(string(got), `"containers":[`+want+`]`) {
			t.Errorf("%s: %s, %v", label, got, err)
		}
	}
}
