// Command kubelet compares the replay of the kubelet's resource managers with those of kubelet 1.37. See package conformance.
package main

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/noderes/kubectl-noderes/test/conformance"
)

func main() {
	// Nothing of the kubelet's log, and no flags of its own: it has one line for each hint.
	klog.SetLogger(logr.Discard())
	conformance.Main(&conformance.Kubelet{
		Version: "1.37",
		Start:   start,
		Unsaved: startUnsaved,
		SetGates: func(gates map[string]bool) (func(), error) {
			return conformance.SetGates(utilfeature.DefaultMutableFeatureGate.(featuregate.MutableVersionedFeatureGate), gates)
		},
		QOS: func(pod *corev1.Pod) corev1.PodQOSClass { return qos.GetPodQOS(pod) },
	})
}
