package placement

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// most is the most of anything that is computed with, in thousandths of a unit (a PiB of bytes). What is more, or negative, is odd:
// nothing follows from it.
const most = 1 << 60

// thousandths of a quantity, rounded up and down; ok is false where it is odd.
func thousandths(q resource.Quantity) (up, down int64, ok bool) {
	if q.Sign() < 0 || q.CmpInt64(most/1000) > 0 {
		return 0, 0, false
	}
	up = q.MilliValue()
	if down = up; q.Cmp(*resource.NewMilliQuantity(up, q.Format)) < 0 {
		down--
	}
	return up, down, true
}

// vector holds amounts in thousandths by the planner's index of resources, which grows.
type vector []int64

func (v vector) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// add adds to what is there; a sum never gets beyond 2^62.
func (v *vector) add(i int, amount int64) {
	for len(*v) <= i {
		*v = append(*v, 0)
	}
	(*v)[i] = min((*v)[i]+amount, math.MaxInt64/2)
}

func (v *vector) addAll(other vector) {
	for i, amount := range other {
		v.add(i, amount)
	}
}

// need is what a pod requests, itself included: at least and at most, where its status and its specification differ or an amount is
// finer than a thousandth. odd: an amount cannot be computed with, and is left out of least.
type need struct {
	least, most vector
	odd         bool
}

// needOf follows pkg/utils/resources/resources.go:Ceiling, which takes what the status says is allocated where that is more.
func (p *Planner) needOf(pod *corev1.Pod) need {
	var n need
	byStatus := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
	bySpec := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	names := make([]corev1.ResourceName, 0, len(byStatus))
	for name := range byStatus {
		names = append(names, name)
	}
	for name := range bySpec {
		if _, both := byStatus[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		up, down, ok := thousandths(byStatus[name])
		specUp, specDown, specOK := thousandths(bySpec[name])
		if !ok || !specOK {
			n.odd = true
			continue
		}
		i := p.resource(name)
		n.least.add(i, min(down, specDown))
		n.most.add(i, max(up, specUp))
	}
	i := p.resource(corev1.ResourcePods)
	n.least.add(i, 1000)
	n.most.add(i, 1000)
	return n
}

// resource is the index of a resource.
func (p *Planner) resource(name corev1.ResourceName) int {
	i, known := p.index[name]
	if !known {
		i = len(p.names)
		p.index[name] = i
		p.names = append(p.names, name)
	}
	return i
}
