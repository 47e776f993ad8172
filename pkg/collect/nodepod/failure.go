package nodepod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Refusal explains an answer of the API server that is no pod: what refused it,
// and the way round.
func Refusal(o Options, code int, message string) string {
	lower := strings.ToLower(message)
	switch {
	case strings.Contains(lower, "violates podsecurity"):
		return fmt.Sprintf("Pod Security refuses the node pod in namespace %s (%s); name a namespace that may hold one with --node-pod-namespace, "+
			"or let this one: kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged; or do without: --access=api",
			o.Namespace, short(message), o.Namespace)
	case strings.Contains(lower, "exceeded quota"), strings.Contains(lower, "must specify limits"), strings.Contains(lower, "failed quota"):
		return fmt.Sprintf("a ResourceQuota of namespace %s refuses the node pod (%s); name another namespace with --node-pod-namespace, or do without: --access=api",
			o.Namespace, short(message))
	case strings.Contains(lower, "limitrange"), strings.Contains(lower, "usage per container"), strings.Contains(lower, "usage per pod"):
		return fmt.Sprintf("a LimitRange of namespace %s refuses the node pod (%s); name another namespace with --node-pod-namespace, or do without: --access=api",
			o.Namespace, short(message))
	case strings.Contains(lower, "admission webhook"), strings.Contains(lower, "validatingadmissionpolicy"), strings.Contains(lower, "failed calling webhook"):
		return fmt.Sprintf("an admission policy refuses the node pod (%s); name a namespace that it leaves out with --node-pod-namespace, or do without: --access=api",
			short(message))
	case strings.Contains(lower, "no priorityclass with name"):
		return fmt.Sprintf("there is no such priority class (%s); see --node-pod-priority-class", short(message))
	case strings.Contains(lower, "namespaces") && strings.Contains(lower, "not found"):
		return fmt.Sprintf("namespace %s does not exist; see --node-pod-namespace", o.Namespace)
	case strings.Contains(lower, "error looking up service account"), strings.Contains(lower, "serviceaccount"):
		return fmt.Sprintf("namespace %s has no service account for pods yet (%s)", o.Namespace, short(message))
	case code == 403 || code == 401:
		return fmt.Sprintf("needs %s in namespace %s", Rights[0], o.Namespace)
	}
	return fmt.Sprintf("the API server refuses the node pod (%s)", short(message))
}

// Waits explains what keeps a pod that is there from running; "" if nothing is
// known to. Final says that it will not run any more. Events are those about
// the pod, where they may be listed.
func Waits(o Options, pod *corev1.Pod, events []corev1.Event) (reason string, final bool) {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		return ended(pod), true
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			switch w.Reason {
			case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
				return fmt.Sprintf("the node cannot pull the image %s (%s: %s); name one that it can with --node-pod-image or NODERES_NODE_POD_IMAGE, "+
					"and what it needs with --node-pod-pull-secret or --node-pod-pull-policy", o.Image, short(w.Reason), short(w.Message)), true
			case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
				return fmt.Sprintf("the node cannot start the container (%s: %s)", w.Reason, short(w.Message)), true
			}
		}
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("the container ended with status %d (%s)", t.ExitCode, short(t.Reason+" "+t.Message)), true
		}
	}
	for _, e := range slices.Backward(events) {
		switch e.Reason {
		case "FailedMount", "FailedCreatePodSandBox", "FailedScheduling", "NetworkNotReady", "FailedCreatePodContainer":
			return fmt.Sprintf("the node cannot start the pod (%s: %s)", e.Reason, short(e.Message)), false
		}
	}
	return "", false
}

// ended explains a pod that the kubelet refused, or whose life is over.
func ended(pod *corev1.Pod) string {
	what := short(pod.Status.Reason + ": " + pod.Status.Message)
	switch reason := pod.Status.Reason; {
	case strings.HasPrefix(reason, "OutOf"):
		return fmt.Sprintf("the node has no room for the node pod (%s)", what)
	case reason == "DeadlineExceeded":
		return "the node pod's time is over"
	case reason == "Evicted":
		return fmt.Sprintf("the node evicted the node pod (%s)", what)
	case reason == "PodOSNotSupported":
		return "the node does not run Linux"
	case reason != "":
		return fmt.Sprintf("the kubelet refused or ended the node pod (%s)", what)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("the container ended with status %d (%s)", t.ExitCode, short(t.Reason+" "+t.Message))
		}
	}
	return "the node pod ended"
}

// Lacks are the mounted files that, by a FailedMount event, the node does not
// have: the kubelet's folder is elsewhere, or holds no state.
func Lacks(events []corev1.Event) []string {
	var paths []string
	for _, path := range Optional() {
		for _, e := range events {
			if e.Reason == "FailedMount" && strings.Contains(e.Message, "hostPath type check failed: "+path+" ") {
				paths = append(paths, path)
				break
			}
		}
	}
	return paths
}

// short is a stranger's text, cut to what a message can bear.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	text = strings.Trim(text, ": ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
