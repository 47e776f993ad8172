package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"

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

func (d devices) GetTopologyHints(p *corev1.Pod, c *corev1.Container) map[string][]topologymanager.TopologyHint {
	return d.hints(p, c.Name)
}

func (d devices) GetPodTopologyHints(p *corev1.Pod) map[string][]topologymanager.TopologyHint {
	return d.hints(p, "")
}

func (devices) Allocate(*corev1.Pod, *corev1.Container) error { return nil }

func (devices) AllocatePod(*corev1.Pod) error { return nil }
