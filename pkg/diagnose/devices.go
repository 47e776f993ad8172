package diagnose

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// readDevices is what the PodResources API told of the node, if it was asked.
func (n *nodeCase) readDevices() (*podresources.Resources, error) {
	data, err := n.files.File("podresources.json")
	if err != nil {
		return nil, err
	}
	r, err := podresources.Read(data)
	if err != nil {
		n.gaps.Miss("nodes/"+n.name+"/podresources.json", err, "where the node's devices are", "")
	}
	return r, err
}

// withDevices adds the hints of the device manager to a pod, as they are while
// the pods that holds reports have their devices. Without PodResources, or
// where the pod asks for no device, there are none. besides are devices that
// others hold.
func (n *nodeCase) withDevices(p node.Pod, holds func(namespace, name string) bool, besides ...podresources.Device) node.Pod {
	r, err := n.devices()
	if err != nil {
		return p
	}
	topo, err := n.topo()
	if err != nil {
		return p
	}
	m := podresources.Machine{HostingNodesOnly: n.rules.Minor >= 37}
	for _, node := range topo.NUMANodes {
		m.NUMANodes = append(m.NUMANodes, node.ID)
	}
	if hints, err := r.Hints(p.Pod, m, holds, besides...); err == nil {
		p.Devices = hints
	}
	return p
}

// newPodDevices are the hints for a pod that would come now: all others hold
// theirs, but for those that are gone.
func (n *nodeCase) newPodDevices(p node.Pod, gone ...types.UID) node.Pod {
	ended := map[types.NamespacedName]bool{{Namespace: p.Namespace, Name: p.Name}: true}
	for i := range n.pods {
		if other := &n.pods[i]; len(gone) > 0 && slices.Contains(gone, types.UID(cgroup.PodUID(other))) {
			ended[types.NamespacedName{Namespace: other.Namespace, Name: other.Name}] = true
		}
	}
	return n.withDevices(p, func(namespace, name string) bool {
		return !ended[types.NamespacedName{Namespace: namespace, Name: name}]
	})
}

// asksDevices says whether a pod has devices, whose end frees them.
func asksDevices(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits {
				if isDevice(name) {
					return true
				}
			}
		}
	}
	return false
}

// podResourcesCPUs is the set that PodResources lists for a container: it leaves
// out normal init containers and the shared pool, so that no entry says nothing.
func (c *podCase) podResourcesCPUs(name string) (cpuset.Set, bool) {
	r, err := c.devices()
	if err != nil {
		return cpuset.Set{}, false
	}
	held, ok := r.Find(c.pod.Namespace, c.pod.Name, name)
	if !ok || len(held.CPUs) == 0 {
		return cpuset.Set{}, false
	}
	var set cpuset.Set
	for _, id := range held.CPUs {
		if id < 0 || id >= cpuset.MaxCPUs || !set.Add(int(id)) {
			return cpuset.Set{}, false
		}
	}
	return set, true
}

const podResourcesSource = "kubelet:podresources"

// podResourcesEvidence holds it against the checkpoint's set.
func (c *podCase) podResourcesEvidence(name string, recorded cpuset.Set) []report.Evidence {
	set, ok := c.podResourcesCPUs(name)
	if !ok {
		return nil
	}
	means := "PodResources names the same"
	if set != recorded {
		means = "PodResources names others than the checkpoint: the two were not read at the same time, or one is wrong"
	}
	return []report.Evidence{{Source: podResourcesSource, Field: "list cpu_ids [" + name + "]", Value: set.String(), Means: means}}
}

// unknownDevices are the extended resources that a pod asks for and whose
// devices PodResources does not name: hints about them cannot be replayed.
func (n *nodeCase) unknownDevices(pod *corev1.Pod) []string {
	known := map[string]bool{}
	if r, err := n.devices(); err == nil && r.HasAllocatable {
		for _, d := range r.Devices {
			known[d.Resource] = true
		}
	}
	var out []string
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name, q := range list[i].Resources.Limits {
				if isDevice(name) && q.Value() > 0 && !known[string(name)] {
					out = append(out, string(name))
				}
			}
		}
	}
	return sortedSet(out)
}

// isDevice says whether a resource is an extended one, which a device plugin
// may serve.
func isDevice(name corev1.ResourceName) bool {
	domain, _, ok := strings.Cut(string(name), "/")
	return ok && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
