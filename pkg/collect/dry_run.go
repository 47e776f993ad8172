package collect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
)

// DryRun is what a run would make: the node pods as YAML, with the rights that
// they take in comments. With server the API server is asked what it would make of
// them, and which of the rights it grants; nothing is made either way. Without it,
// nothing is asked but on which nodes the pods are.
func DryRun(ctx context.Context, client *Client, want Request, server bool) (string, error) {
	if want.Access != AccessNode {
		return fmt.Sprintf("# --access=%s makes no pod.\n", want.Access), nil
	}
	nodes := slices.Clone(want.Nodes)
	for _, name := range want.Pods {
		if err := segments(name.Namespace, name.Name); err != nil {
			return "", err
		}
		pod, err := client.getPod(ctx, name.Namespace, name.Name)
		if err != nil {
			return "", subjectError(err, fmt.Sprintf("pods %q not found in namespace %q", name.Name, name.Namespace), fmt.Sprintf("get pods in namespace %q", name.Namespace))
		}
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) == 0 {
		return "# No pod would be made: the subjects are on no node.\n", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What would be made, and deleted again within %d s at most.\n# Rights that it takes in namespace %s:\n",
		int(nodepod.MaxLife.Seconds()), want.NodePods.Namespace)
	var denied []nodepod.Right
	if server {
		denied = client.denied(ctx, want.NodePods.Namespace, nodepod.Rights)
	}
	for _, right := range nodepod.Rights {
		answer := ""
		switch {
		case slices.Contains(denied, right):
			answer = ": denied"
		case server:
			answer = ": granted"
		}
		fmt.Fprintf(&b, "#   %s%s\n", right, answer)
	}
	for _, node := range nodes {
		if err := segments(node); err != nil {
			return "", err
		}
		pod := nodepod.Pod(want.NodePods.Options, nodepod.Run{Node: node, ID: want.NodePods.RunID(), Life: nodepod.MaxLife})
		if server {
			made, err := client.createDry(ctx, want.NodePods.Options, pod)
			if err != nil {
				return "", fmt.Errorf("node %s: %w", node, err)
			}
			made.TypeMeta = pod.TypeMeta
			pod = made
		}
		text, err := podYAML(pod)
		if err != nil {
			return "", err
		}
		b.WriteString("---\n" + text)
	}
	return b.String(), nil
}

// podYAML leaves out what only a pod that exists has.
func podYAML(pod *corev1.Pod) (string, error) {
	pod = pod.DeepCopy()
	pod.ManagedFields, pod.UID, pod.ResourceVersion = nil, "", ""
	data, err := yaml.Marshal(pod)
	if err != nil {
		return "", err
	}
	var object map[string]any
	if err := yaml.Unmarshal(data, &object); err != nil {
		return "", err
	}
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	data, err = yaml.Marshal(object)
	return string(data), err
}
