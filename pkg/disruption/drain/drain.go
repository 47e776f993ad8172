// Package drain decides as `kubectl drain` and the eviction API decide what
// becomes of the pods of a node that a person empties. It is pure: API objects
// in, values out.
//
// Rules follow Kubernetes 1.37: k8s.io/kubectl/pkg/drain/filters.go, and
// pkg/registry/core/pod/storage/eviction.go of the API server.
package drain

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Flags without which kubectl drain refuses some pods.
const (
	IgnoreDaemonSets   = "--ignore-daemonsets"
	DeleteEmptyDirData = "--delete-emptydir-data"
	Force              = "--force"
)

// Plan is what draining a node comes to.
type Plan struct {
	// Flags are those without which it does not begin, in the order IgnoreDaemonSets, DeleteEmptyDirData, Force.
	Flags []string
	// Evicted are the pods that are moved or ended, in the order of the input. Those of the following lists are among them.
	Evicted []*corev1.Pod
	// Lost have no controller, or a DaemonSet that is gone: nobody makes them again.
	Lost []*corev1.Pod
	// Emptied lose the content of their emptyDirs.
	Emptied []*corev1.Pod
	// Kept stay on the node: pods of DaemonSets, and mirrors of static pods.
	KeptDaemonSet, KeptStatic []*corev1.Pod
	// Held are the evicted pods that the eviction API refuses for now.
	Held []Held
}

// Held is a pod that cannot be evicted now.
type Held struct {
	Pod *corev1.Pod
	// PDBs is the one that allows none, or all that select the pod where they are several.
	PDBs []*policyv1.PodDisruptionBudget
}

// Several: the eviction API refuses a pod of more than one budget whatever they allow, and kubectl gives up on it; with one it tries
// again until its --timeout.
func (h Held) Several() bool { return len(h.PDBs) > 1 }

// Lookup is what the API server would be asked for. Nil: not known.
type Lookup struct {
	// PDBs are those that select the pod.
	PDBs func(*corev1.Pod) []*policyv1.PodDisruptionBudget
	// HasDaemonSet tells whether the DaemonSet that controls a pod is there; nil takes it to be.
	HasDaemonSet func(namespace, name string) bool
}

// PlanOf goes through the pods of a node. What holds them is left out where Lookup knows no budgets.
func PlanOf(pods []*corev1.Pod, o Lookup) Plan {
	var p Plan
	needs := map[string]bool{}
	for _, pod := range pods {
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		controller := metav1.GetControllerOf(pod)
		orphan := false
		if controller != nil && controller.Kind == "DaemonSet" && controller.APIVersion == "apps/v1" && !finished {
			if orphan = o.HasDaemonSet != nil && !o.HasDaemonSet(pod.Namespace, controller.Name); !orphan {
				p.KeptDaemonSet = append(p.KeptDaemonSet, pod)
				needs[IgnoreDaemonSets] = true
				continue
			}
			needs[Force] = true // asked for before the pod's other traits are looked at
		}
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			p.KeptStatic = append(p.KeptStatic, pod)
			continue
		}
		p.Evicted = append(p.Evicted, pod)
		if len(EmptyDirs(pod)) > 0 && !finished {
			p.Emptied = append(p.Emptied, pod)
			needs[DeleteEmptyDirData] = true
		}
		if (controller == nil || orphan) && !finished {
			p.Lost = append(p.Lost, pod)
			needs[Force] = true
		}
		if o.PDBs != nil {
			if held := holds(pod, o.PDBs(pod)); held != nil {
				p.Held = append(p.Held, Held{pod, held})
			}
		}
	}
	for _, flag := range []string{IgnoreDaemonSets, DeleteEmptyDirData, Force} {
		if needs[flag] {
			p.Flags = append(p.Flags, flag)
		}
	}
	return p
}

// Command is the command line; node has to be quoted for the shell already.
func (p Plan) Command(node string) string {
	return strings.Join(append([]string{"kubectl drain", node}, p.Flags...), " ")
}

// EmptyDirs are the names of the pod's volumes that go with it. kubectl counts those in memory too, and no hostPath.
func EmptyDirs(pod *corev1.Pod) []string {
	var out []string
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir != nil {
			out = append(out, v.Name)
		}
	}
	return out
}

// holds returns the budgets because of which the eviction API refuses the pod. It asks none for a pod that runs nothing.
func holds(pod *corev1.Pod, pdbs []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return nil
	}
	if pod.DeletionTimestamp != nil || len(pdbs) == 0 {
		return nil
	}
	if len(pdbs) > 1 {
		return pdbs
	}
	pdb := pdbs[0]
	if !ready(pod) {
		always := pdb.Spec.UnhealthyPodEvictionPolicy != nil && *pdb.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		if always || pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy && pdb.Status.DesiredHealthy > 0 {
			return nil
		}
	}
	if pdb.Status.DisruptionsAllowed > 0 {
		return nil
	}
	return pdbs
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
