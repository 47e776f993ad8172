package standin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Load creates the recorded nodes, pods and events with their status through the API. It returns the pods as they are in the cluster,
// and their UIDs by those on record: UIDs and times of creation are the API server's to give.
func Load(ctx context.Context, client kubernetes.Interface, recorded *snapshot.Snapshot) ([]corev1.Pod, map[types.UID]types.UID, error) {
	nodes, err := recorded.Nodes()
	if err != nil {
		return nil, nil, err
	}
	for i := range nodes {
		node := nodes[i].DeepCopy()
		node.ObjectMeta = fresh(node.ObjectMeta)
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return nil, nil, err
		}
	}
	pods, err := recorded.Pods()
	if err != nil {
		return nil, nil, err
	}
	present, uids := make([]corev1.Pod, 0, len(pods)), map[types.UID]types.UID{}
	for i := range pods {
		if err := namespace(ctx, client, pods[i].Namespace); err != nil {
			return nil, nil, err
		}
		pod := pods[i].DeepCopy()
		pod.ObjectMeta = fresh(pod.ObjectMeta)
		Complete(&pod.Spec)
		made, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		made.Status = pods[i].Status
		if made, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return nil, nil, fmt.Errorf("status of pod %s: %w", pod.Name, err)
		}
		present, uids[pods[i].UID] = append(present, *made), made.UID
	}
	events, err := recorded.Events()
	if err != nil {
		return nil, nil, err
	}
	for i := range events {
		event := events[i].DeepCopy()
		event.ObjectMeta = fresh(event.ObjectMeta)
		if uid, ok := uids[event.InvolvedObject.UID]; ok {
			event.InvolvedObject.UID = uid
		}
		event.InvolvedObject.ResourceVersion = ""
		if err := namespace(ctx, client, event.Namespace); err != nil {
			return nil, nil, err
		}
		if _, err := client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			return nil, nil, fmt.Errorf("event %s: %w", event.Name, err)
		}
	}
	return present, uids, nil
}

// Complete fills in the commands of probes and hooks, which no recording keeps and the API server wants.
func Complete(spec *corev1.PodSpec) {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil {
				command(probe.Exec)
			}
		}
		if c.Lifecycle != nil {
			for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
				if hook != nil {
					command(hook.Exec)
				}
			}
		}
	}
}

func command(exec *corev1.ExecAction) {
	if exec != nil && len(exec.Command) == 0 {
		exec.Command = []string{"left-out"}
	}
}

// fresh leaves out what the API server gives.
func fresh(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
}

// namespace makes a namespace, and waits for the service account without which it takes no pod.
func namespace(ctx context.Context, client kubernetes.Interface, name string) error {
	if _, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{}); err == nil {
		return nil
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
