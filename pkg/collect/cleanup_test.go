package collect

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
)

// Only what is a node pod through and through is found and deleted.
func TestLeftovers(t *testing.T) {
	s := newPodServer(t)
	for i, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {},
		func(p *corev1.Pod) { p.Annotations = nil },
		func(p *corev1.Pod) { p.Labels[nodepod.RunID] = "x" },
	} {
		pod := nodepod.Pod(nodepod.Options{Namespace: "default"}, nodepod.Run{Node: "n1", ID: fmt.Sprintf("run%d", i)})
		pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint(i)), metav1.NewTime(time.Now().Add(-time.Hour))
		change(pod)
		s.pods[pod.Name] = pod
	}
	for _, remove := range []bool{false, true} {
		found, err := Leftovers(t.Context(), s.client, "", remove)
		if err != nil || len(found) != 1 || found[0].Name != "noderes-n1-run0" || found[0].Err != nil || found[0].Age < 59*time.Minute {
			t.Errorf("%+v, %v", found, err)
		}
		if want := map[bool]int{false: 3, true: 2}[remove]; len(s.pods) != want {
			t.Errorf("left %d pods, want %d", len(s.pods), want)
		}
	}
}

func TestDryRun(t *testing.T) {
	s := newPodServer(t)
	s.denied = []string{"delete pods"}
	want := Request{Pods: web.Pods, Nodes: []string{"n9"}, Access: AccessNode, NodePods: NodePods{Options: nodepod.Options{Namespace: "default", Image: "i"}, RunID: func() string { return "run1" }}}
	for _, server := range []bool{false, true} {
		text, err := DryRun(t.Context(), s.client, want, server)
		if err != nil {
			t.Fatal(err)
		}
		for part, there := range map[string]bool{
			"nodeName: n1\n": true, "nodeName: n9\n": true, "#   create pods/exec": true, "delete pods: denied": server, "get pods: granted": server,
			"status": false, "creationTimestamp": false,
		} {
			if strings.Contains(text, part) != there {
				t.Errorf("server %v: %q in\n%s", server, part, text)
			}
		}
	}
	s.gone(t, 0)
	s.refuse = func(w http.ResponseWriter) bool {
		w.WriteHeader(403)
		fmt.Fprint(w, `{"kind":"Status","message":"violates PodSecurity"}`)
		return true
	}
	if _, err := DryRun(t.Context(), s.client, want, true); err == nil || !strings.Contains(err.Error(), "Pod Security") {
		t.Errorf("%v", err)
	}
}
