package shrink

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/disruption/autoscaler"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// caSystemPodWithoutPDB: a pod of kube-system that no PodDisruptionBudget
// selects holds its node, since 1.33 only for a time after its creation (Cluster
// Autoscaler 1.36, simulator/drainability/rules/system). One for which that time
// is over is told as possible, since a group of an older autoscaler waits on.
func caSystemPodWithoutPDB(a *caCase) []report.Finding {
	pods := a.heldBy(func(b autoscaler.Blocker) bool { return b.Reason == autoscaler.UnmovableSystemPod })
	if len(pods) == 0 {
		return nil
	}
	over := 0
	for _, h := range pods {
		if h.blockers[0].Over {
			over++
		}
	}
	confidence := a.bound(autoscaler.FlagSkipSystemPods)
	kept, lasts := "is kept by", "each holds it until a budget selects it or the pod is gone"
	if timeout := a.settings.SystemPodTimeout; timeout > 0 {
		lasts = fmt.Sprintf("each holds it for %s after the pod's creation", span(timeout))
		if a.version == "" {
			confidence = weaker(confidence, report.Likely)
			lasts += " since 1.33, before without an end"
		}
		if over == len(pods) {
			confidence, kept = report.Possible, "may be kept by"
			lasts = fmt.Sprintf("since 1.33 each holds it for %s after the pod's creation only, which is over; an older autoscaler, or one with a longer --%s, waits on", span(timeout), autoscaler.FlagSystemPodTimeout)
		}
	}
	f := a.podsFinding(report.CASystemPodWithoutPDB, confidence,
		fmt.Sprintf("%s %s %s of kube-system without a PodDisruptionBudget: %s; %s.", a.kept(), kept, plural(len(pods), "pod"), some(podNames(pods)), lasts), pods,
		func(h heldPod) report.Evidence {
			b := h.blockers[0]
			means := "no PodDisruptionBudget selects it; it is of no DaemonSet and not static"
			if !b.Until.IsZero() {
				means += "; by this version's rule it holds its node until " + utc(b.Until)
			}
			return podField(h.pod, "metadata.creationTimestamp", utc(h.pod.CreationTimestamp.Time), means)
		},
		func(h heldPod) []report.Remedy {
			if labels := h.pod.Labels; len(labels) > 0 {
				if key, value, ok := telling(labels); ok {
					return []report.Remedy{{Summary: fmt.Sprintf("Give pod %s/%s a PodDisruptionBudget.", h.pod.Namespace, h.pod.Name),
						Command: fmt.Sprintf("kubectl -n %s create poddisruptionbudget %s --selector=%s --max-unavailable=1", shellWord(h.pod.Namespace), shellWord(budgetName(value)), shellWord(key+"="+value)),
						Effect:  "once its status is counted: " + a.left(h.pod, lessReason(a.blockersOf(h), autoscaler.UnmovableSystemPod)),
						Caution: "It selects every pod of kube-system with the label " + key + "=" + value + "."}}
				}
			}
			return []report.Remedy{a.allowEviction(h, "Of a single replica nothing runs until its successor is ready.")}
		})
	f.Because = append(f.Because, a.setting(autoscaler.FlagSkipSystemPods, "true", "whether pods of kube-system hold a node"))
	if a.settings.SystemPodTimeout > 0 {
		f.Because = append(f.Because, a.setting(autoscaler.FlagSystemPodTimeout, span(a.settings.SystemPodTimeout), "how long, since 1.33"))
	}
	return []report.Finding{f}
}

// blockersOf are all rules that hold a pod.
func (a *caCase) blockersOf(h heldPod) []autoscaler.Blocker {
	for _, other := range a.held {
		if other.pod == h.pod {
			return other.blockers
		}
	}
	return nil
}

func lessReason(blockers []autoscaler.Blocker, reason autoscaler.Reason) []autoscaler.Blocker {
	return slices.DeleteFunc(slices.Clone(blockers), func(b autoscaler.Blocker) bool { return b.Reason == reason })
}

// telling is the label by which a pod is best told from others.
func telling(labels map[string]string) (key, value string, ok bool) {
	for _, key := range []string{"app.kubernetes.io/name", "k8s-app", "app"} {
		if labels[key] != "" {
			return key, labels[key], true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if labels[key] != "" && key != "pod-template-hash" && key != "controller-revision-hash" {
			return key, labels[key], true
		}
	}
	return "", "", false
}

// budgetName makes the name of an object of a label's value.
func budgetName(value string) string {
	out := []byte("pdb-")
	for _, r := range []byte(value) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			out = append(out, r)
		case r >= 'A' && r <= 'Z':
			out = append(out, r+'a'-'A')
		case out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	for out[len(out)-1] == '-' {
		out = out[:len(out)-1]
	}
	return string(out[:min(len(out), 60)])
}
