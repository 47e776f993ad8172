package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// Drain is how far a node has come that is being deleted (pkg/controllers/node/termination). All that time it consumes budget.
type Drain struct {
	Stage   DrainStage
	Started time.Time
	// Ends is when the pods are deleted whatever holds them; zero where there is no termination grace period and a drain may last for ever.
	Ends time.Time
	// Waiting are the pods that the drain waits for, in the order in which they are evicted: group by group.
	Waiting []WaitingPod
	// Err is that the end, which stands in an annotation, cannot be read.
	Err error
}

// DrainStage is what the deletion waits for.
type DrainStage string

// Stages of a deletion, in their order.
const (
	DrainPods     DrainStage = "Pods"
	DrainVolumes  DrainStage = "Volumes"  // VolumeAttachments must be gone
	DrainInstance DrainStage = "Instance" // the provider is taking the machine away
)

// WaitingPod is a pod that a drain waits for.
type WaitingPod struct {
	Pod   *corev1.Pod
	Group DrainGroup
	// Turn: the pod's group is the one being evicted. Those of later groups wait for it.
	Turn        bool
	Terminating bool
	// Holds are what keeps it from being evicted: its annotation, or its budgets.
	Holds []Blocker
	// DeletedAt is when it is deleted in spite of them, early enough for its own grace period; zero where it is not.
	DeletedAt time.Time
}

// DrainGroup is one of the groups that are evicted one after the other.
type DrainGroup int

// The groups in their order. Critical are the pods of the two system priority classes.
const (
	NonCritical DrainGroup = iota
	NonCriticalDaemonSet
	Critical
	CriticalDaemonSet
)

var drainGroups = [...]string{"non-critical", "non-critical DaemonSet", "critical", "critical DaemonSet"}

func (g DrainGroup) String() string {
	if g < 0 || int(g) >= len(drainGroups) {
		return fmt.Sprintf("DrainGroup(%d)", int(g))
	}
	return drainGroups[g]
}

func drainGroupOf(pod *corev1.Pod) DrainGroup {
	group := NonCritical
	if pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical" {
		group = Critical
	}
	if IsDaemonSetPod(pod) {
		group++
	}
	return group
}

// DrainOf describes the deletion of a node. ok is false where its NodeClaim is not being deleted.
func (c *Cluster) DrainOf(n *Node, now time.Time) (drain Drain, ok bool) {
	if n.NodeClaim == nil || n.NodeClaim.DeletionTimestamp == nil {
		return Drain{}, false
	}
	drain.Started = n.NodeClaim.DeletionTimestamp.Time
	drain.Ends, drain.Err = terminationTime(n.NodeClaim)
	holds := map[*corev1.Pod][]Blocker{}
	for _, b := range c.PodBlockers(n, now) {
		for _, pod := range n.Pods {
			if pod.Namespace == b.Pod.Namespace && pod.Name == b.Pod.Name {
				holds[pod] = append(holds[pod], b)
			}
		}
	}
	for group := NonCritical; group <= CriticalDaemonSet; group++ {
		for _, pod := range n.Pods {
			if drainGroupOf(pod) != group || isTerminal(pod) || !isDrainable(pod, now) {
				continue
			}
			drain.Waiting = append(drain.Waiting, WaitingPod{
				Pod: pod, Group: group, Turn: len(drain.Waiting) == 0 || drain.Waiting[0].Group == group,
				Terminating: isTerminating(pod), Holds: holds[pod], DeletedAt: deletedAt(pod, drain.Ends),
			})
		}
	}
	drain.Stage = stageOf(n, len(drain.Waiting))
	return drain, true
}

func stageOf(n *Node, waiting int) DrainStage {
	switch {
	case n.NodeClaim.IsTrue(karpenter.ConditionInstanceTerminating), n.Node == nil:
		return DrainInstance
	case waiting > 0:
		return DrainPods
	case n.NodeClaim.IsTrue(karpenter.ConditionVolumesDetached):
		return DrainInstance
	}
	return DrainVolumes
}

// terminationTime is the end that Karpenter wrote down, or will write down as the deletion and the grace period after it.
func terminationTime(claim *karpenter.NodeClaim) (time.Time, error) {
	if text, ok := claim.Annotations[karpenter.TerminationTimestampAnnotation]; ok {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, fmt.Errorf("annotation %s: %w", karpenter.TerminationTimestampAnnotation, err)
		}
		return t, nil
	}
	if claim.Spec.TerminationGracePeriod == nil {
		return time.Time{}, nil
	}
	return claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration), nil
}

func deletedAt(pod *corev1.Pod, ends time.Time) time.Time {
	if ends.IsZero() || pod.Spec.TerminationGracePeriodSeconds == nil {
		return time.Time{}
	}
	return ends.Add(-time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second)
}
