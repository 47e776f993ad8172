package diagnose

import (
	"errors"

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
}

// world is the node now, or with other settings as its kubelet's start with
// them leaves it: the state files are kept where that kubelet takes them, else
// removed as one has to; then the pods are admitted again in the order of their
// creation. A *node.StartError: that kubelet does not start.
func (q *whatIf) world(n *nodeCase) (world, error) {
	if n.configErr == nil && n.config.CPUManagerPolicy == "none" && n.config.MemoryManagerPolicy == "None" && n.config.TopologyManagerPolicy == "none" {
		return world{none: true}, nil
	}
	m, err := n.managers()
	if err != nil {
		return world{}, err
	}
	if n == q.now {
		_, err := m.start()
		return world{managers: m}, err
	}
	w := world{managers: m, readmitted: &report.Readmitted{}}
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
