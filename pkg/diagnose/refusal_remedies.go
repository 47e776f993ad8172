package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Remedies of a refusal are those only with which the replay admits the pod, on
// the state on which it refused it.

const replayedEffect = "The managers then admit the pod (replayed)."

// asker is the container whose request a remedy can change: the refused one, or
// of the whole pod the only one that asks for the resource.
func (a *attempt) asker(container string, name corev1.ResourceName) (string, bool) {
	if container != "" {
		return container, true
	}
	var asking []string
	for _, list := range [][]corev1.Container{a.pod.Spec.InitContainers, a.pod.Spec.Containers} {
		for i := range list {
			if q, ok := list[i].Resources.Requests[name]; ok && q.Sign() > 0 {
				asking = append(asking, list[i].Name)
			}
		}
	}
	if len(asking) != 1 {
		return "", false
	}
	return asking[0], true
}

// requesting is a pod with another request of a container; a limit that equals
// the request goes along.
func requesting(pod *corev1.Pod, container string, name corev1.ResourceName, q resource.Quantity) *corev1.Pod {
	p := pod.DeepCopy()
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				asAllocated(&list[i].Resources, corev1.ResourceList{name: q})
			}
		}
	}
	return p
}

// requestRemedy is a request with which the pod would be admitted; none if it
// would not.
func (a *attempt) requestRemedy(container string, name corev1.ResourceName, q resource.Quantity) []report.Remedy {
	container, ok := a.asker(container, name)
	if !ok || q.Sign() <= 0 || !a.from.admits(node.Pod{Pod: requesting(a.pod.Pod, container, name, q), Devices: a.pod.Devices}) {
		return nil
	}
	r := report.Remedy{Summary: fmt.Sprintf("Ask for %s %s in container %s, in requests and limits.", name, q.String(), container), Effect: replayedEffect}
	if name == corev1.ResourceCPU && q.MilliValue()%1000 != 0 {
		r.Effect = "The container then shares CPUs, and the managers admit the pod (replayed)."
	}
	return []report.Remedy{r}
}

// cpuRemedies try whole numbers of CPUs from a first one on in steps.
func (a *attempt) cpuRemedies(container string, first, step int) []report.Remedy {
	const most = 64
	for size, tries := first, 0; size > 0 && size <= a.from.config.Topology.NumCPUs && tries < most; size, tries = size+step, tries+1 {
		if r := a.requestRemedy(container, corev1.ResourceCPU, cpuQuantity(size)); len(r) > 0 {
			return r
		}
	}
	return nil
}

// memoryRemedies try the most that a NUMA node has free, of each type of memory
// of which it is less than asked for.
func (a *attempt) memoryRemedies(container string) []report.Remedy {
	var out []report.Remedy
	for _, r := range a.container(container).Memory {
		w := wish{name: string(r.Type), need: r.Size}
		w.free, w.total = a.memoryByNode(w.name)
		if most, _ := w.most(1); most < r.Size && most < 1<<62 {
			out = append(out, a.requestRemedy(container, r.Type, *resource.NewQuantity(int64(most), resource.BinarySI))...)
		}
	}
	return out
}

// policyRemedies are other settings of the Topology Manager, on the same state.
func (a *attempt) policyRemedies() []report.Remedy {
	var out []report.Remedy
	try := func(field, value string) {
		m := a.from
		if field == "topologyManagerScope" {
			m.config.Kubelet.TopologyManagerScope = value
		} else {
			m.config.Kubelet.TopologyManagerPolicy = value
		}
		if m.admits(a.pod) {
			out = append(out, report.Remedy{Summary: "Set " + field + "=" + value + ".", Effect: replayedEffect,
				Caution: "It needs a restart of the kubelet and concerns all pods of the node" + map[bool]string{true: "; best-effort places pods across NUMA nodes.", false: "."}[value == "best-effort"]})
		}
	}
	// Hints of devices are known for the present scope only.
	if scope := a.from.config.Kubelet.TopologyManagerScope; !a.hasDevices() {
		try("topologyManagerScope", map[string]string{"container": "pod", "pod": "container"}[scope])
	}
	if a.from.config.Kubelet.TopologyManagerPolicy != "best-effort" {
		try("topologyManagerPolicy", "best-effort")
	}
	return out
}

func (a *attempt) hasDevices() bool { return len(a.pod.Devices.Containers)+len(a.pod.Devices.Pod) > 0 }

func cpuQuantity(cpus int) resource.Quantity {
	return *resource.NewQuantity(int64(cpus), resource.DecimalSI)
}

// roomMakers are the active pods of which each alone, once deleted, would let
// the pod in: found by running it.
func (a *attempt) roomMakers(n *nodeCase) []string {
	const most = 64
	var names []string
	tried := 0
	for _, p := range a.from.pods {
		uid := string(p.UID)
		holds := len(a.node.CPU.State.Entries[uid]) > 0 || len(a.node.Memory.State.Entries[uid]) > 0 || asksDevices(p.Pod)
		if !holds || uid == string(a.pod.UID) {
			continue
		}
		if tried++; tried > most {
			break
		}
		if a.from.without(uid).admits(n.newPodDevices(a.pod, p.UID)) {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

// roomRemedies are the pods whose end would make room.
func (a *attempt) roomRemedies(n *nodeCase) []report.Remedy {
	const most = 6
	names := a.roomMakers(n)
	switch shown := names[:min(most, len(names))]; {
	case len(names) == 1:
		return []report.Remedy{{Summary: "Delete or move " + names[0] + ".", Effect: replayedEffect}}
	case len(names) > 1:
		text := strings.Join(shown, ", ")
		if len(names) > most {
			text += fmt.Sprintf(" and %d more", len(names)-most)
		}
		return []report.Remedy{{Summary: "Delete or move any one of " + text + ".", Effect: "The managers then admit the pod (replayed for each)."}}
	}
	return nil
}
