package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is not there is said in words.
func TestNothingIsSaid(t *testing.T) {
	if got := (wish{name: "example.com/nic", need: 2}).wanted(""); got != "example.com/nic on no NUMA node" {
		t.Error(got)
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	if got := requestsText(pod); got != "app: none" {
		t.Error(got)
	}
}
