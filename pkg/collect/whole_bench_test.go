package collect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkWholeCluster reads what a pool's report is made of: 1,000 nodes with
// 30,000 pods of usual size, managed fields included.
func BenchmarkWholeCluster(b *testing.B) {
	const nodes, perNode, pageSize = 1000, 30, 500
	var pods corev1.PodList
	var all corev1.NodeList
	claims := make([]string, nodes)
	for n := range nodes {
		name := fmt.Sprintf("n%d", n)
		var node corev1.Node
		mustDecode(b, usualNode(name), &node)
		all.Items = append(all.Items, node)
		claims[n] = fmt.Sprintf(`{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":"c%d","labels":{"karpenter.sh/nodepool":"default"}},"spec":{},"status":{"providerID":"x://%s","nodeName":%q}}`, n, name, name)
		for p := range perNode {
			var pod corev1.Pod
			mustDecode(b, usualPod(fmt.Sprintf("web-%d-%d", n, p), name), &pod)
			pods.Items = append(pods.Items, pod)
		}
	}
	pages := map[string][][]byte{}
	for start := 0; start < len(pods.Items); start += pageSize {
		page := corev1.PodList{Items: pods.Items[start:min(start+pageSize, len(pods.Items))]}
		page.Continue = nextPage(start+pageSize, len(pods.Items))
		pages["/api/v1/pods"] = append(pages["/api/v1/pods"], enveloped(b, &page))
	}
	for start := 0; start < len(all.Items); start += pageSize {
		page := corev1.NodeList{Items: all.Items[start:min(start+pageSize, len(all.Items))]}
		page.Continue = nextPage(start+pageSize, len(all.Items))
		pages["/api/v1/nodes"] = append(pages["/api/v1/nodes"], enveloped(b, &page))
	}
	list := func(items ...string) [][]byte {
		return [][]byte{[]byte(`{"kind":"List","metadata":{},"items":[` + strings.Join(items, ",") + `]}`)}
	}
	pages["/apis/karpenter.sh/v1/nodeclaims"] = list(claims...)
	pages["/apis/karpenter.sh/v1/nodepools"] = list(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},"spec":{"template":{"spec":{}},"disruption":{"consolidateAfter":"0s","budgets":[{"nodes":"10%"}]}}}`)
	s := newServer(b)
	s.absent = nil
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		answers, ok := pages[r.URL.Path]
		if !ok || r.URL.Query().Has("labelSelector") {
			return false
		}
		start := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &start)
		_, _ = w.Write(answers[start/pageSize])
		return true
	}
	for b.Loop() {
		client := s.client(b)
		snap, _, err := Collect(b.Context(), client, Request{Removal: WholeCluster, Tool: "test"})
		if err != nil {
			b.Fatal(err)
		}
		got, err := snap.Pods()
		if err != nil || len(got) != nodes*perNode || snap.Partial("cluster/pods.json") != nil || snap.Partial("cluster/nodes.json") != nil {
			b.Fatal(len(got), err)
		}
		data, _ := snap.File("cluster/pods.json")
		requests, bytes := client.Cost()
		b.ReportMetric(float64(requests), "requests")
		b.ReportMetric(float64(bytes), "bytes")
		b.ReportMetric(float64(len(data)), "bytes-kept")
	}
}

func mustDecode(b *testing.B, text string, object any) {
	if err := json.Unmarshal([]byte(text), object); err != nil {
		b.Fatal(err)
	}
}

func nextPage(start, count int) string {
	if start >= count {
		return ""
	}
	return fmt.Sprint(start)
}

// enveloped is a list as an API server answers in protobuf.
func enveloped(b *testing.B, list interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := list.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	envelope := runtime.Unknown{Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func usualNode(name string) string {
	var images []string
	for i := range 50 {
		images = append(images, fmt.Sprintf(`{"names":["registry.example/team/app-%d@sha256:%064d","registry.example/team/app-%d:v1.2.%d"],"sizeBytes":123456789}`, i, i, i, i))
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":"u-%s","labels":{"karpenter.sh/nodepool":"default","karpenter.sh/registered":"true","karpenter.sh/initialized":"true","node.kubernetes.io/instance-type":"m5.2xlarge","topology.kubernetes.io/zone":"a","karpenter.sh/capacity-type":"spot","kubernetes.io/hostname":%q}},
		"spec":{"providerID":"x://%s"},"status":{"capacity":{"cpu":"8","memory":"32Gi","pods":"58"},"allocatable":{"cpu":"7910m","memory":"30Gi","pods":"58"},"conditions":[{"type":"Ready","status":"True"}],"images":[%s],"nodeInfo":{"kubeletVersion":"v1.37.2"}}}`, name, name, name, name, strings.Join(images, ","))
}

// usualPod is some 7 KB long.
func usualPod(name, node string) string {
	var env, mounts []string
	for i := range 12 {
		env = append(env, fmt.Sprintf(`{"name":"SETTING_%d","value":"some value of usual length %d"}`, i, i))
	}
	for i := range 4 {
		mounts = append(mounts, fmt.Sprintf(`{"name":"volume-%d","mountPath":"/var/run/secrets/volume-%d","readOnly":true}`, i, i))
	}
	managed := strings.Repeat(`{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{},"f:image":{},"f:imagePullPolicy":{},"f:resources":{}}}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-07-14T08:59:00Z"},`, 4)
	conditions := strings.Repeat(`{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-07-14T08:59:00Z"},`, 5)
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","uid":"u-%s","generateName":"web-","labels":{"app":"web","pod-template-hash":"78d4df98df","team":"shop"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-78d4df98df","uid":"0a1b2c3d","controller":true,"blockOwnerDeletion":true}],"managedFields":[%s]},
		"spec":{"nodeName":%q,"volumes":[{"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]}}],"containers":[{"name":"app","image":"registry.example/team/app:v1.2.3","env":[%s],"volumeMounts":[%s],"resources":{"requests":{"cpu":"200m","memory":"512Mi"},"limits":{"memory":"512Mi"}},"livenessProbe":{"httpGet":{"path":"/healthz","port":8080},"periodSeconds":10},"readinessProbe":{"httpGet":{"path":"/ready","port":8080}},"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true}}],"serviceAccountName":"web","tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]},
		"status":{"phase":"Running","conditions":[%s],"hostIP":"10.0.0.1","podIP":"10.1.0.1","startTime":"2026-07-14T08:59:00Z","containerStatuses":[{"name":"app","state":{"running":{"startedAt":"2026-07-14T08:59:00Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"registry.example/team/app:v1.2.3","imageID":"registry.example/team/app@sha256:%064d","containerID":"containerd://%064d","started":true}]}}`,
		name, name, strings.TrimSuffix(managed, ","), node, strings.Join(env, ","), strings.Join(mounts, ","), strings.TrimSuffix(conditions, ","), 7, 8)
}
