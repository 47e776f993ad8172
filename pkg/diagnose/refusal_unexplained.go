package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// refusalUnexplained reports a pod that the kubelet refused, in the kubelet's
// own words: without a replay of its managers nothing more can be proven.
func refusalUnexplained(c *podCase) []report.Finding {
	s := c.pod.Status
	if s.Phase != corev1.PodFailed || s.Reason == "Evicted" || !refusal(s) || c.everStarted() {
		return nil
	}
	f := newFinding(report.RefusalUnexplained, report.Proven, c.subject(""),
		fmt.Sprintf("The kubelet of %s refused the pod: %s. Why its managers came to that is not replayed.", c.name, s.Reason),
		c.podField("status.reason", s.Reason, ""), c.podField("status.message", s.Message, "the kubelet's own words"))
	f.Remedies = []report.Remedy{{Summary: "A refused pod is not tried again: its controller has to make a new one, which may meet the same refusal."}}
	return []report.Finding{f}
}

// refusal says whether a pod's status is that of a refused one: the kubelet
// begins its message so, or gives one of the reasons of its admission handlers.
func refusal(s corev1.PodStatus) bool {
	switch s.Reason {
	case "TopologyAffinityError", "SMTAlignmentError", "EmptyPodSharedPoolError", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "UnexpectedPredicateFailureType", "PodOSNotSupported", "AppArmor", "NodeShutdown":
		return true
	}
	return strings.HasPrefix(s.Reason, "OutOf") || s.Reason != "" && strings.HasPrefix(s.Message, "Pod was rejected")
}

// everStarted says whether any container ran: then it is no refusal.
func (c *podCase) everStarted() bool {
	for _, k := range c.containers() {
		if k.status == nil {
			continue
		}
		if k.running() || k.status.RestartCount > 0 || k.end() != nil && k.end().Reason != "ContainerStatusUnknown" {
			return true
		}
	}
	return false
}
