package eviction

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/resource"
)

// Candidate is a pod as the kubelet weighs it for eviction.
type Candidate struct {
	Pod *corev1.Pod
	// Known is false for a pod of which the kubelet has no statistics. Such a pod
	// goes first, whatever it uses.
	Known bool
	// Usage and Request are of the resource that is short: bytes, inodes (whose
	// request is 0) or processes.
	Usage, Request int64
}

// Exceeds says whether the pod uses more than it asked for.
func (c Candidate) Exceeds() bool { return c.Known && c.Usage > c.Request }

// Excess is the use above the request, negative below it.
func (c Candidate) Excess() int64 { return c.Usage - c.Request }

// Priority is the pod's, 0 where it has none.
func (c Candidate) Priority() int32 {
	if c.Pod.Spec.Priority == nil {
		return 0
	}
	return *c.Pod.Spec.Priority
}

// Critical says whether the kubelet never evicts the pod, though it stands in
// the ranking: static and mirror pods, and priorities from 2000000000 on
// (kubelet types.IsCriticalPod).
func Critical(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	if source, ok := pod.Annotations["kubernetes.io/config.source"]; ok && source != "api" {
		return true
	}
	const systemCritical = 2_000_000_000
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}

// Rank sorts pods as the kubelet does, the one to evict first in front: pods
// without statistics, then those above their request, then the lower priority,
// then the larger use above the request (rankMemoryPressure,
// rankDiskPressureFunc). For processes priority and number alone count
// (rankPIDPressure). Pods that the kubelet cannot tell apart stay in the order
// given; the kubelet's own order of those is arbitrary.
func Rank(pods []Candidate, processes bool) []Candidate {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b Candidate) int { return compare(a, b, processes) })
	return out
}

// Tied says whether the kubelet cannot tell the two apart.
func Tied(a, b Candidate, processes bool) bool { return compare(a, b, processes) == 0 }

func compare(a, b Candidate, processes bool) int {
	priority := cmp.Compare(a.Priority(), b.Priority())
	known := boolCompare(a.Known, b.Known)
	if processes {
		return cmp.Or(priority, known, cmp.Compare(b.Usage, a.Usage))
	}
	if known != 0 {
		return known
	}
	if !a.Known {
		return priority
	}
	return cmp.Or(boolCompare(!a.Exceeds(), !b.Exceeds()), priority, cmp.Compare(b.Excess(), a.Excess()))
}

// boolCompare puts false in front.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// Request is what the kubelet holds a pod's use against, overhead included; with
// pod-level resources those alone count (kubelet GetResourceRequestQuantity).
// podLevel is the gate PodLevelResources.
func Request(pod *corev1.Pod, name corev1.ResourceName, podLevel bool) int64 {
	list := helper.PodRequests(pod, helper.PodResourcesOptions{
		SkipContainerLevelResources: podLevel && helper.IsPodLevelResourcesSet(pod),
		SkipPodLevelResources:       !podLevel,
		ExcludeOverhead:             true,
	})
	q, ok := list[name]
	if !ok || q.IsZero() {
		return 0
	}
	sum := q.Value()
	if overhead, ok := pod.Spec.Overhead[name]; ok {
		if o := overhead.Value(); o <= 0 || sum <= math.MaxInt64-o {
			sum += o
		}
	}
	return sum
}

// MemoryAvailable is the signal memory.available on cgroup v2: all memory less
// the root's working set, which is anonymous memory and page cache without its
// inactive part (kubelet summary, cAdvisor rootStatsFromMeminfo). Kernel memory
// does not lower it. All amounts are bytes; the result is at least 0.
func MemoryAvailable(memTotal, anon, file, inactiveFile uint64) int64 {
	working := anon + file
	if working < anon {
		return 0
	}
	working -= min(working, inactiveFile)
	return int64(min(memTotal-min(memTotal, working), math.MaxInt64))
}

// LocalVolumes are the pod's volumes that the kubelet counts as its use of the
// node's disk.
func LocalVolumes(pod *corev1.Pod) []string {
	var out []string
	for _, v := range pod.Spec.Volumes {
		emptyDir := v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
		if v.HostPath != nil || v.GitRepo != nil || emptyDir || v.ConfigMap != nil {
			out = append(out, v.Name)
		}
	}
	return out
}
