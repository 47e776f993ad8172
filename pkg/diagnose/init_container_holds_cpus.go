package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podInitHolds says that CPUs stay booked for an init container that is done,
// because no later container of the pod took them over: the kubelet frees them
// with the pod (policy_static.go, updateCPUsToReuse). A pod that was refused is
// told of the other pods' too.
func podInitHolds(c *podCase) []report.Finding {
	if !active(c.pod) {
		if refusedByManagers(c) {
			return nodeInitHolds(c.nodeCase)
		}
		return nil
	}
	var apps, inits cpuset.Set
	var names []string
	var because []report.Evidence
	for _, k := range c.containers() {
		set, ok := c.ownedCPUs(c.uid, k.Name)
		switch {
		case !ok:
		case c.initDone(k):
			inits, names = inits.Union(set), append(names, k.Name)
			because = append(because, c.ownershipEvidence(k.Name)...)
			if k.finished() {
				because = append(because, c.endEvidence(k, "the init container is done"))
			}
		default:
			apps = apps.Union(set)
			because = append(because, c.ownershipEvidence(k.Name)...)
		}
	}
	left := inits.Difference(apps)
	if left.IsEmpty() || apps.IsEmpty() {
		return nil
	}
	f := report.NewFinding(report.InitContainerHoldsCPUs, report.Proven, c.subject(names[0]), fmt.Sprintf(
		"%s %s of pod %s/%s %s booked for %s %s, which %s done: no later container of the pod took %s over, and no other pod can have %s until this one is gone.",
		noun(left.Size(), "CPU"), left, c.pod.Namespace, c.pod.Name, verb(left.Size(), "stays", "stay"), noun(len(names), "init container"), join(names),
		verb(len(names), "is", "are"), verb(left.Size(), "it", "them"), verb(left.Size(), "it", "them")), because...)
	f.Arithmetic = fmt.Sprintf("%s of init containers − %s of the others = %s", inits, apps, left)
	f.Remedies = []report.Remedy{{
		Summary: "Give the init container the CPU request of the first app container, or a fractional one.",
		Effect:  "With as many CPUs, or on the same cores, the app container takes all of them over; with a fraction none are booked.",
		Caution: "A fraction keeps the pod Guaranteed as long as requests equal limits.",
	}}
	return []report.Finding{f}
}

// initDone says whether an init container is over: by its own status, or because
// a container of the app has started after it.
func (c *podCase) initDone(k container) bool {
	return k.finished() || k.init && !k.sidecar && k.status == nil && slices.ContainsFunc(c.containers(), func(other container) bool {
		return !other.init && (other.running() || other.end() != nil)
	})
}

// nodeInitHolds asks it of every pod of the node.
func nodeInitHolds(n *nodeCase) []report.Finding {
	var out []report.Finding
	for i := range n.pods {
		if active(&n.pods[i]) {
			out = append(out, podInitHolds(newPodCase(n, &n.pods[i]))...)
		}
	}
	return out
}

// refusedByManagers says whether the kubelet's CPU, Memory or Topology Manager
// refused the pod.
func refusedByManagers(c *podCase) bool {
	switch c.pod.Status.Reason {
	case "UnexpectedAdmissionError", "SMTAlignmentError", "TopologyAffinityError":
		return true
	}
	return false
}
