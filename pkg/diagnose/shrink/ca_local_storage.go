package shrink

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caLocalStorage: a pod with an emptyDir on disk or a hostPath holds its node
// (Cluster Autoscaler 1.36, simulator/drainability/rules/localstorage).
func caLocalStorage(a *caCase) []report.Finding {
	pods := a.heldBy(func(b autoscaler.Blocker) bool { return b.Reason == autoscaler.LocalStorage })
	if len(pods) == 0 {
		return nil
	}
	var texts []string
	for _, h := range pods {
		texts = append(texts, fmt.Sprintf("%s/%s (%s)", h.pod.Namespace, h.pod.Name, some(volumeTexts(h.blockers[0].Volumes))))
	}
	f := a.podsFinding(report.CALocalStorage, a.bound(autoscaler.FlagSkipLocalStorage),
		fmt.Sprintf("%s is kept by %s with local storage: %s.", a.kept(), plural(len(pods), "pod"), some(texts)), pods,
		func(h heldPod) report.Evidence {
			return podField(h.pod, "spec.volumes", some(volumeTexts(h.blockers[0].Volumes)), "its content is lost with the node, so the Cluster Autoscaler does not evict the pod")
		},
		func(h heldPod) []report.Remedy {
			names := volumeNames(h.blockers[0].Volumes)
			if except := h.pod.Annotations[autoscaler.SafeLocalVolumes]; except != "" {
				names = append(strings.Split(except, ","), names...)
			}
			value := strings.Join(names, ",")
			return []report.Remedy{{Summary: fmt.Sprintf("Say that what pod %s/%s keeps there may be lost, if it may.", h.pod.Namespace, h.pod.Name),
				Command: annotate(h.pod, autoscaler.SafeLocalVolumes, value),
				Effect: a.after(h.pod, func(p *corev1.Pod) {
					if p.Annotations == nil {
						p.Annotations = map[string]string{}
					}
					p.Annotations[autoscaler.SafeLocalVolumes] = value
				}),
				Caution: strings.TrimSpace("The content of these volumes is lost to the pod when it moves. " + toLast(h.pod))}}
		})
	f.Because = append(f.Because, a.setting(autoscaler.FlagSkipLocalStorage, "true", "whether local storage holds a node"))
	return []report.Finding{f}
}

func volumeTexts(volumes []corev1.Volume) []string {
	var out []string
	for _, v := range volumes {
		kind := "emptyDir"
		if v.HostPath != nil {
			kind = "hostPath " + cut(v.HostPath.Path, 100)
		}
		out = append(out, cut(v.Name, 70)+": "+kind)
	}
	return out
}

func volumeNames(volumes []corev1.Volume) []string {
	var out []string
	for _, v := range volumes {
		out = append(out, v.Name)
	}
	return out
}
