package floor

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"github.com/noderes/kubectl-noderes/pkg/disruption"
)

// amounts are in thousandths of a resource's unit.
type amounts map[corev1.ResourceName]int64

// most is the most that is computed with (a PiB of bytes). What is more, or negative, is odd.
const most = 1 << 60

// thousandths of a quantity, rounded up; exact is false where it was. ok is false where the quantity is odd.
func thousandths(q resource.Quantity) (amount int64, exact, ok bool) {
	if q.Sign() < 0 || q.CmpInt64(most/1000) > 0 {
		return 0, false, false
	}
	amount = q.MilliValue()
	return amount, q.Cmp(*resource.NewMilliQuantity(amount, q.Format)) == 0, true
}

// requests are the least that a pod requests, where its status and its specification differ, itself included. Odd ones are left out.
func requests(pod *corev1.Pod) amounts {
	out := amounts{corev1.ResourcePods: 1000}
	byStatus := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
	bySpec := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	for name, q := range bySpec {
		if other := byStatus[name]; other.Cmp(q) < 0 {
			q = other
		}
		amount, exact, ok := thousandths(q)
		if !exact {
			amount--
		}
		if ok && amount > 0 && name != corev1.ResourcePods {
			out[name] = amount
		}
	}
	return out
}

// room is what a node has for pods that can go elsewhere: what is allocatable less what its DaemonSet and static pods request.
type room struct {
	amounts
	// unknown: what the node does not tell of, it may have without end.
	unknown bool
}

func roomOf(n *disruption.Node) room {
	r := room{amounts: amounts{}, unknown: !n.Initialized()}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
		r.amounts[name] = endless
	}
	for name, q := range n.Node.Status.Allocatable {
		r.amounts[name] = endless
		if amount, _, ok := thousandths(q); ok {
			r.amounts[name] = amount
		}
	}
	for _, pod := range n.Pods {
		if !bound(pod) {
			continue
		}
		for name, amount := range requests(pod) {
			if has, ok := r.amounts[name]; ok && has < endless {
				r.amounts[name] = has - amount
			}
		}
	}
	return r
}

func (r room) of(name corev1.ResourceName) int64 {
	amount, known := r.amounts[name]
	if !known && r.unknown {
		return endless
	}
	return amount
}

// bound: the pod belongs to its node, and holds what it requests there.
func bound(pod *corev1.Pod) bool {
	return !ended(pod) && (disruption.IsDaemonSetPod(pod) || disruption.IsStaticPod(pod))
}

// ended: the pod has ended, or is about to.
func ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
