package diagnose

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// countable says whether the kubelet's int64 holds an amount: of cpu in
// thousandths, of all else in whole units. A binary amount beyond 2^63-1 is
// read as just that, which therefore does not count as held.
func countable(name corev1.ResourceName, q resource.Quantity) bool {
	most := resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	if name == corev1.ResourceCPU {
		most = resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
	}
	return q.Sign() >= 0 && !immense(q) && q.Cmp(*most) < 0
}

// immense: so many zeros that to compare the amount would take long.
func immense(q resource.Quantity) bool { return q.Sign() != 0 && q.AsDec().Scale() < -64 }

// countedIn is the unit of countable.
func countedIn(name corev1.ResourceName) string {
	if name == corev1.ResourceCPU {
		return "2^63-1 thousandths"
	}
	return "2^63-1"
}

func tooMuch(field string, name corev1.ResourceName, q resource.Quantity) error {
	amount := q.String()
	if !immense(q) && q.CmpInt64(math.MaxInt64) == 0 {
		amount = "2^63-1 or more" // the text may have named more
	}
	return fmt.Errorf("%s[%s] %s is more than the kubelet can count (it must be below %s)", field, clip(string(name)), amount, countedIn(name))
}

// roundUp raises a pod's amounts to whole thousandths, as the API server does
// before it checks them (SetDefaults_ResourceList).
func roundUp(pod *corev1.Pod) {
	lists := []corev1.ResourceList{pod.Spec.Overhead}
	for _, of := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range of {
			lists = append(lists, of[i].Resources.Requests, of[i].Resources.Limits)
		}
	}
	if r := pod.Spec.Resources; r != nil {
		lists = append(lists, r.Requests, r.Limits)
	}
	for _, list := range lists {
		for name, q := range list {
			q.RoundUp(resource.Milli)
			list[name] = q
		}
	}
}

// validAmounts refuses amounts below zero, as the API server does, and parts of
// what comes whole.
func validAmounts(field string, list corev1.ResourceList) error {
	for _, name := range sortedNames(list) {
		q := list[name]
		switch {
		case immense(q):
			return tooMuch(field, name, q)
		case q.Sign() < 0:
			return fmt.Errorf("%s[%s] %s is negative", field, clip(string(name)), q.String())
		case isDevice(name) && q.MilliValue()%1000 != 0:
			return fmt.Errorf("%s[%s] %s is not a whole number", field, clip(string(name)), q.String())
		}
	}
	return nil
}

// countableRequests refuses requests that the kubelet's sums could not hold,
// by themselves or together: it would count them wrapped around.
func countableRequests(pod *corev1.Pod) error {
	sums := corev1.ResourceList{}
	add := func(field string, list corev1.ResourceList, but corev1.ResourceList) error {
		for _, name := range sortedNames(list) {
			q := list[name]
			if _, has := but[name]; has {
				continue
			}
			if !countable(name, q) {
				return tooMuch(field, name, q)
			}
			sum := sums[name].DeepCopy()
			sum.Add(q)
			if sums[name] = sum; !countable(name, sum) {
				return fmt.Errorf("the requests for %s add up to %s, more than the kubelet can count (below %s)", clip(string(name)), sum.String(), countedIn(name))
			}
		}
		return nil
	}
	resources := func(field string, r corev1.ResourceRequirements) error {
		if err := add(field+"resources.requests", r.Requests, nil); err != nil {
			return err
		}
		return add(field+"resources.limits", r.Limits, r.Requests) // a request that is missing is the limit
	}
	for _, list := range []struct {
		field string
		of    []corev1.Container
	}{{"spec.initContainers", pod.Spec.InitContainers}, {"spec.containers", pod.Spec.Containers}} {
		for i := range list.of {
			if err := resources(fmt.Sprintf("%s[%s].", list.field, clip(list.of[i].Name)), list.of[i].Resources); err != nil {
				return err
			}
		}
	}
	if err := add("spec.overhead", pod.Spec.Overhead, nil); err != nil {
		return err
	}
	clear(sums) // the pod-level amounts stand for the containers'
	return resources("spec.", podResources(pod))
}

// uncountable names an amount among the pods' requests that the kubelet's sums
// do not hold; "" if there is none. The API server takes none below zero.
func (n *nodeCase) uncountable(pods ...*corev1.Pod) string {
	sums := corev1.ResourceList{}
	for _, p := range pods {
		options := helper.PodResourcesOptions{SkipPodLevelResources: true}
		for _, list := range []corev1.ResourceList{helper.PodRequests(p, options), n.countedRequests(p)} {
			for _, name := range sortedNames(list) {
				if q := list[name]; !countable(name, q) {
					return fmt.Sprintf("pod %s/%s requests %s of %s", p.Namespace, p.Name, q.String(), clip(string(name)))
				}
			}
		}
		for name, q := range n.countedRequests(p) {
			sum := sums[name].DeepCopy()
			sum.Add(q)
			sums[name] = sum
		}
	}
	for _, name := range sortedNames(sums) {
		if q := sums[name]; !countable(name, q) {
			return fmt.Sprintf("the node's active pods request %s of %s", q.String(), clip(string(name)))
		}
	}
	return ""
}
