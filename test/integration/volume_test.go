package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Size of the cluster that the recorded node is then one of.
const (
	otherNodes  = 100
	podsOnOther = 20
)

// TestCostDoesNotGrow: what is read to explain a pod is the same beside a hundred nodes as beside none.
func TestCostDoesNotGrow(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	requests, bytes := live.cost(t, user)
	begin := time.Now()
	live.fill(t)
	filled := time.Since(begin)
	moreRequests, moreBytes := live.cost(t, user)
	t.Logf("alone: %d requests, %d bytes; beside %d nodes with %d pods, made in %.1f s: %d requests, %d bytes",
		requests, bytes, otherNodes, otherNodes*podsOnOther, filled.Seconds(), moreRequests, moreBytes)
	if requests == 0 || moreRequests != requests {
		t.Errorf("%d requests, in a cluster of %d nodes %d", requests, otherNodes+1, moreRequests)
	}
	// Versions of objects have more digits by then.
	if bytes == 0 || moreBytes > bytes+bytes/50 {
		t.Errorf("%d bytes, in a cluster of %d nodes %d", bytes, otherNodes+1, moreBytes)
	}
}

// cost is what the plugin says that it read for a pod.
func (c *cluster) cost(t *testing.T, user string) (requests, bytes int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	_, errs, err := c.noderes(t, user, "collect", "pod/throttled", "-n", c.pods[0].Namespace, "-o", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if _, err := fmt.Sscanf(string(errs), file+": read %d bytes with %d requests", &bytes, &requests); err != nil {
		t.Fatalf("%v in %q", err, errs)
	}
	return requests, bytes
}

// fill makes the other nodes and their pods.
func (c *cluster) fill(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	room := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	var work sync.WaitGroup
	free := make(chan struct{}, 16)
	for n := range otherNodes {
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", n)}, Status: corev1.NodeStatus{Capacity: room, Allocatable: room}}
			if _, err := c.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			for p := range podsOnOther {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node.Name, p)},
					Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "app", Image: "app.invalid/app:1"}}},
				}
				// The namespace of the recorded pods: its lists are the longer for it.
				if _, err := c.admin.CoreV1().Pods(c.pods[0].Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}
