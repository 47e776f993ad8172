package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/history"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
)

// errRecordInvalid: the kubelet itself refuses the record, so that nothing
// follows from it.
var errRecordInvalid = errors.New("the recorded state is not valid")

// past is what replaying the recorded placement came to. Invalid is why the next
// start of the kubelet would refuse the record, although the replay gives
// exactly that.
type past struct {
	history.Explanation
	invalid error
}

// replayPast asks whether the recorded placement follows from the node's pods.
func (n *nodeCase) replayPast() (past, error) {
	in, invalid, err := n.pastInput()
	if err != nil {
		return past{}, err
	}
	e, err := history.Explain(in)
	if err != nil {
		return past{}, err
	}
	n.noteCut(e.Cut, "replay", "what pods that are gone can have held, where a placement does not follow from those that are there")
	holds := slices.ContainsFunc(e.Steps, func(s history.Step) bool { return s.Verdict == history.Follows })
	pool := in.Recorded.CPU != nil && in.Recorded.CPU.Default == e.Shared
	if invalid != nil && !(holds && pool && e.All(history.Follows, history.Nothing)) {
		return past{}, fmt.Errorf("%w: %w", errRecordInvalid, invalid)
	}
	return past{e, invalid}, nil
}

// pastInput gathers it; invalid is the kubelet's word for a record that it would
// refuse.
func (n *nodeCase) pastInput() (in history.Input, invalid, err error) {
	m, err := n.managers()
	if err != nil {
		n.gaps.Lack("nodes/"+n.name+" (replay)", err.Error(), "whether the kubelet's rules give the recorded placement", "")
		return in, nil, err
	}
	if _, err := n.snap.Pods(); err != nil {
		return in, nil, err // a gap already
	}
	if n.podsErr != nil {
		return in, nil, n.podsErr // likewise
	}
	if _, err := node.Start(m.config, m.recorded, m.pods...); !node.MayStart(err) {
		invalid = err
	}
	in = history.Input{Config: m.config, Recorded: m.recorded}
	in.Devices, in.FreeDevices = n.devicesThen(m)
	for _, p := range m.pods {
		if admitted := startTime(p.Pod); !waiting(p.Pod) || n.recorded(m, string(p.UID)) {
			in.Active = append(in.Active, history.Pod{Pod: p, Admitted: admitted})
		}
	}
	for i := range n.pods {
		if p, ok := ended(&n.pods[i]); ok {
			in.Ended = append(in.Ended, p)
		}
	}
	return in, invalid, nil
}

func (n *nodeCase) recorded(m managers, uid string) bool {
	return m.recorded.CPU != nil && len(m.recorded.CPU.Entries[uid]) > 0 || m.recorded.Memory != nil && len(m.recorded.Memory.Entries[uid]) > 0
}

// waiting says whether the kubelet has not seen the pod yet.
func waiting(pod *corev1.Pod) bool {
	return pod.Status.StartTime == nil && pod.Status.Phase == corev1.PodPending &&
		len(pod.Status.ContainerStatuses) == 0 && len(pod.Status.InitContainerStatuses) == 0
}

func startTime(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime == nil {
		return time.Time{}
	}
	return pod.Status.StartTime.Time
}

// ended gives a pod that ran and is over, with the time of its last container's
// end. One that was refused never held anything for long.
func ended(pod *corev1.Pod) (history.Pod, bool) {
	if active(pod) || pod.Status.StartTime == nil {
		return history.Pod{}, false
	}
	var end time.Time
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if t := s.State.Terminated; t != nil && !t.StartedAt.IsZero() && t.FinishedAt.After(end) {
				end = t.FinishedAt.Time
			}
		}
	}
	return history.Pod{Pod: kubeletPod(pod), Admitted: startTime(pod), Ended: end}, !end.IsZero()
}

// devicesThen gives the device hints for a pod while those with these UIDs had
// their devices, and which devices others can have held beside them: those that
// neither the pod nor they hold, of the resources that it asks for.
func (n *nodeCase) devicesThen(m managers) (hints func(node.Pod, map[string]bool, []podresources.Device) node.Pod, free func(node.Pod, map[string]bool) []podresources.Device) {
	r, err := n.devices()
	if err != nil {
		return nil, nil
	}
	type name struct{ namespace, name string }
	uids := map[name]string{}
	for _, p := range m.pods {
		uids[name{p.Namespace, p.Name}] = string(p.UID)
	}
	hints = func(p node.Pod, holders map[string]bool, gone []podresources.Device) node.Pod {
		return n.withDevices(p, func(namespace, pod string) bool { return holders[uids[name{namespace, pod}]] }, gone...)
	}
	free = func(p node.Pod, holders map[string]bool) []podresources.Device {
		asked := deviceRequests(p.Pod)
		held := func(d podresources.Device) bool {
			return slices.ContainsFunc(r.Pods, func(h podresources.Pod) bool {
				uid := uids[name{h.Namespace, h.Name}]
				return (uid == string(p.UID) || holders[uid]) && slices.ContainsFunc(h.Containers, func(c podresources.Container) bool {
					return slices.ContainsFunc(c.Devices, func(o podresources.Device) bool { return o.Resource == d.Resource && o.ID == d.ID })
				})
			})
		}
		return slices.DeleteFunc(slices.Clone(r.Devices), func(d podresources.Device) bool { return !asked[d.Resource] || held(d) })
	}
	return hints, free
}

// deviceRequests are the resources that a pod asks for and that devices can be
// of.
func deviceRequests(pod *corev1.Pod) map[string]bool {
	asked := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name, q := range list[i].Resources.Limits {
				if q.Value() > 0 {
					asked[string(name)] = true
				}
			}
		}
	}
	return asked
}

// pastStep is this pod's admission in it.
func (c *podCase) pastStep() (past, history.Step, bool) {
	e, err := c.past()
	if err != nil {
		return e, history.Step{}, false
	}
	s, ok := e.Step(cgroup.PodUID(c.pod))
	return e, s, ok && s.Verdict != history.Nothing
}
