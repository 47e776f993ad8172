package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/noderes/kubectl-noderes/test/conformance"
)

// devices answers with the hints of the scenario.
type devices struct{ node *conformance.Node }

func (d devices) hints(pod *corev1.Pod, container string) map[string][]topologymanager.TopologyHint {
	var answer map[string][]topologymanager.TopologyHint
	for name, list := range d.node.DeviceHints(pod, container) {
		if answer == nil {
			answer = map[string][]topologymanager.TopologyHint{}
		}
		answer[name] = []topologymanager.TopologyHint{}
		for _, h := range list {
			to := topologymanager.TopologyHint{Preferred: h.Preferred}
			if h.NUMA != nil {
				to.NUMANodeAffinity, _ = bitmask.NewBitMask(h.NUMA...)
			}
			answer[name] = append(answer[name], to)
		}
	}
	return answer
}

func (d devices) GetTopologyHints(_ klog.Logger, p *corev1.Pod, c *corev1.Container, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return d.hints(p, c.Name)
}

func (d devices) GetPodTopologyHints(_ klog.Logger, p *corev1.Pod, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return d.hints(p, "")
}

func (devices) AllocatePod(klog.Logger, *corev1.Pod, lifecycle.Operation) error { return nil }

func (devices) Allocate(context.Context, *corev1.Pod, *corev1.Container, lifecycle.Operation) error {
	return nil
}
