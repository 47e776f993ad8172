package diagnose

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// world is the managers of a node that a pod comes to.
type world struct {
	managers
	// none: the policies are all none, so that the managers admit every pod.
	none bool
	// readmitted is set where the kubelet was started anew with other settings.
	readmitted *report.Readmitted
	// nextStart is why the kubelet, which runs, would not start again.
	nextStart error
	// podsUnknown: there is no list of pods. What the state files book is then
	// taken as held.
	podsUnknown bool
}

// world is the node now, or with other settings as its kubelet's start with
// them leaves it: the state files are kept where that kubelet takes them, else
// removed as one has to; then the pods are admitted again in the order of their
// creation. A *node.StartError: that kubelet does not start.
func (q *whatIf) world(n *nodeCase) (world, error) {
	if n.configErr == nil && n.config.CPUManagerPolicy == "none" && n.config.MemoryManagerPolicy == "None" && n.config.TopologyManagerPolicy == "none" {
		_, podsErr := n.snap.Pods()
		return world{none: true, podsUnknown: podsErr != nil}, nil
	}
	m, err := n.managers()
	if err != nil {
		return world{}, err
	}
	_, podsErr := n.snap.Pods()
	if podsErr != nil {
		m.pods = holders(m.recorded)
	}
	if n == q.now {
		w := world{managers: m, podsUnknown: podsErr != nil}
		if _, err := node.Start(m.config, m.recorded, m.pods...); !node.MayStart(err) {
			w.nextStart = err
		}
		_, err := m.start()
		return w, err
	}
	w := world{managers: m, readmitted: &report.Readmitted{}, podsUnknown: podsErr != nil}
	var nd *node.Node
	for {
		nd, err = node.Start(w.config, w.recorded, w.pods...)
		var start *node.StartError
		if !errors.As(err, &start) || node.MayStart(err) {
			break
		}
		switch {
		case start.Stage == node.CPUManagerStart && w.recorded.CPU != nil:
			w.recorded.CPU = nil
			w.readmitted.CheckpointsRemoved = append(w.readmitted.CheckpointsRemoved, "/"+cpuStatePath)
		case start.Stage == node.MemoryManagerStart && w.recorded.Memory != nil:
			w.recorded.Memory = nil
			w.readmitted.CheckpointsRemoved = append(w.readmitted.CheckpointsRemoved, "/"+memoryStatePath)
		default:
			return w, err
		}
	}
	pods := w.pods
	w.pods = nil
	for _, p := range pods {
		result, err := nd.Admit(p, nil)
		if err != nil {
			return w, err
		}
		if !result.Admit {
			w.readmitted.Refused = append(w.readmitted.Refused, report.ReadmitRefusal{Namespace: p.Namespace, Pod: p.Name, Reason: result.Reason, Message: result.Message})
			continue
		}
		w.readmitted.Admitted++
		w.pods = append(w.pods, p)
	}
	if err := nd.Collect(); err != nil {
		return w, err
	}
	w.recorded = nd.State()
	return w, nil
}

// holders are the pods that the state files know, of which no more is known than
// that their containers hold something.
func holders(s node.State) []node.Pod {
	containers := map[string]map[string]bool{}
	add := func(uid, name string) {
		if containers[uid] == nil {
			containers[uid] = map[string]bool{}
		}
		containers[uid][name] = true
	}
	if s.CPU != nil {
		for uid, entries := range s.CPU.Entries {
			for name := range entries {
				add(uid, name)
			}
		}
	}
	if s.Memory != nil {
		for uid, entries := range s.Memory.Entries {
			for name := range entries {
				add(uid, name)
			}
		}
	}
	var out []node.Pod
	for _, uid := range slices.Sorted(maps.Keys(containers)) {
		p := &corev1.Pod{}
		p.Name, p.UID = "uid "+uid, types.UID(uid)
		for _, name := range slices.Sorted(maps.Keys(containers[uid])) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		out = append(out, node.Pod{Pod: p})
	}
	return out
}

// startFindings are those of a kubelet that does not start.
func startFindings(n *nodeCase) []report.Finding {
	var out []report.Finding
	for _, find := range []func(*nodeCase) []report.Finding{reservedMemoryMismatch, tooManyNUMANodes, checkpointInvalid, kubeletConfigInvalid, nodeWouldHang} {
		out = append(out, find(n)...)
	}
	return out
}
