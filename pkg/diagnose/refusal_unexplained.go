package diagnose

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// refusal says whether a pod's status is that of a refused one: the kubelet
// begins its message so, or gives one of the reasons of its admission handlers.
func refusal(s corev1.PodStatus) bool {
	switch s.Reason {
	case "TopologyAffinityError", "SMTAlignmentError", "EmptyPodSharedPoolError", "UnexpectedAdmissionError", "NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "UnexpectedPredicateFailureType", "PodOSNotSupported", "AppArmor", "NodeShutdown":
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
