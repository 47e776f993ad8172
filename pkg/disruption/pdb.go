package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// PDBs are the PodDisruptionBudgets of a cluster (pkg/utils/pdb/pdb.go).
type PDBs []pdb

type pdb struct {
	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
}

// NewPDBs prepares the budgets. The error is that of a selector; Karpenter then evaluates no node at all.
func NewPDBs(objects []policyv1.PodDisruptionBudget) (PDBs, error) {
	out := make(PDBs, 0, len(objects))
	for i := range objects {
		selector, err := metav1.LabelSelectorAsSelector(objects[i].Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("PodDisruptionBudget %s/%s: %w", objects[i].Namespace, objects[i].Name, err)
		}
		out = append(out, pdb{&objects[i], selector})
	}
	slices.SortFunc(out, func(a, b pdb) int {
		return cmp.Or(cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
	})
	return out, nil
}

// Matching returns the budgets that select the pod. One with an empty selector selects its whole namespace.
func (p PDBs) Matching(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, item := range p {
		if item.object.Namespace == pod.Namespace && item.selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, item.object)
		}
	}
	return out
}

// Blocking returns the budgets because of which the pod cannot be evicted now; more than one if their number is what blocks. Each pod
// is looked at alone: two pods under a budget that allows one do not block.
func (p PDBs) Blocking(pod *corev1.Pod, now time.Time, rules karpenter.Rules) []*policyv1.PodDisruptionBudget {
	return p.holding(pod, now, rules, func(object *policyv1.PodDisruptionBudget) bool { return object.Status.DisruptionsAllowed == 0 })
}

// LeavesOut reports whether Karpenter leaves the pod out of its simulations, because it is protected or a budget never lets it go
// (IsCurrentlyReschedulable).
func (p PDBs) LeavesOut(pod *corev1.Pod, now time.Time, rules karpenter.Rules) bool {
	return isActive(pod) && DoNotDisruptOf(pod, rules).Holds(now) || len(p.holding(pod, now, rules, FullyBlocks)) > 0
}

func (p PDBs) holding(pod *corev1.Pod, now time.Time, rules karpenter.Rules, holds func(*policyv1.PodDisruptionBudget) bool) []*policyv1.PodDisruptionBudget {
	if !isEvictable(pod, now, rules) {
		return nil
	}
	matching := p.Matching(pod)
	if rules.SeveralPDBsBlock && len(matching) > 1 {
		return matching
	}
	for i, object := range matching {
		if alwaysAllows(object, pod) {
			return nil
		}
		if holds(object) {
			return matching[i : i+1]
		}
	}
	return nil
}

// alwaysAllows reports whether the budget lets the pod go because it is not ready.
func alwaysAllows(object *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	policy := object.Spec.UnhealthyPodEvictionPolicy
	if policy == nil || *policy != policyv1.AlwaysAllow {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}

// FullyBlocks reports whether the budget allows no eviction whatever the pods' state. Karpenter leaves pods under one out of its
// simulations.
func FullyBlocks(object *policyv1.PodDisruptionBudget) bool {
	isZero := func(v *intstr.IntOrString, text string) bool {
		return v != nil && v.Type == intstr.String && v.StrVal == text
	}
	unavailable := object.Spec.MaxUnavailable
	return unavailable != nil && unavailable.Type == intstr.Int && unavailable.IntVal == 0 ||
		isZero(unavailable, "0%") || isZero(object.Spec.MinAvailable, "100%")
}

func keysOf(objects []*policyv1.PodDisruptionBudget) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(objects))
	for _, object := range objects {
		keys = append(keys, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
	}
	return keys
}
