package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podCase is what the rules know of one pod on its node.
type podCase struct {
	*nodeCase
	pod *corev1.Pod
	// uid is the kubelet's, which names the cgroup (a static pod's differs
	// from metadata.uid).
	uid string

	groups    cgroup.PodGroups
	groupsErr error // no cgroup of the pod was found

	shared func() []*cpuLevel // the pod's level and those above it
	cpu    func() []containerCPU
	// contended are the containers that wait for CPUs, not for a quota.
	contended func() []contention
	oom       func() oomEvidence
}

func newPodCase(n *nodeCase, pod *corev1.Pod) *podCase {
	c := &podCase{nodeCase: n, pod: pod, uid: cgroup.PodUID(pod), groupsErr: n.treeErr}
	switch {
	case n.treeErr != nil:
	case n.mode != cgroup.V2:
		c.groupsErr = errNotV2
	default:
		if c.groups, c.groupsErr = n.tree.Pod(pod); c.groupsErr != nil && !c.ended() {
			n.gaps.Miss(n.filePath("sys/fs/cgroup/…/pod"+c.uid), c.groupsErr, "limits and counters of this pod", "the node pod")
		}
	}
	c.shared = sync.OnceValue(c.sharedLevels)
	c.cpu = sync.OnceValue(c.analyseCPU)
	c.contended = sync.OnceValue(c.contentions)
	c.oom = sync.OnceValue(c.gatherOOM)
	return c
}

var errNotV2 = errors.New("cgroup v1 or hybrid")

// ended says whether the pod's containers are gone for good.
func (c *podCase) ended() bool {
	return c.pod.Status.Phase == corev1.PodFailed || c.pod.Status.Phase == corev1.PodSucceeded
}

// subject is the pod, or one container of it.
func (c *podCase) subject(container string) report.Subject {
	return report.Subject{Kind: "Pod", Namespace: c.pod.Namespace, Name: c.pod.Name, Container: container}
}

// podField is a value of the pod's object.
func (c *podCase) podField(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:pods/" + c.pod.Namespace + "/" + c.pod.Name, Field: field, Value: clip(value), Means: clip(means)}
}

// container is a container of the spec with its status.
type container struct {
	corev1.Container
	init    bool // in spec.initContainers
	sidecar bool // init with restartPolicy Always
	index   int
	status  *corev1.ContainerStatus // nil: the API has none
}

// field names the container's place in the pod's spec or status.
func (k container) field(list string) string {
	kind := "containers"
	if k.init {
		kind = "initContainers"
	}
	if list == "status" {
		return fmt.Sprintf("status.%sStatuses[%s]", strings.TrimSuffix(kind, "s"), k.Name)
	}
	return fmt.Sprintf("spec.%s[%s]", kind, k.Name)
}

// containers lists init containers, then app containers, in the spec's order.
func (c *podCase) containers() []container {
	var out []container
	for i, k := range c.pod.Spec.InitContainers {
		sidecar := k.RestartPolicy != nil && *k.RestartPolicy == corev1.ContainerRestartPolicyAlways
		out = append(out, container{Container: k, init: true, sidecar: sidecar, index: i, status: statusOf(c.pod.Status.InitContainerStatuses, k.Name)})
	}
	for i, k := range c.pod.Spec.Containers {
		out = append(out, container{Container: k, index: i, status: statusOf(c.pod.Status.ContainerStatuses, k.Name)})
	}
	return out
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// running says whether the API sees the container run.
func (k container) running() bool { return k.status != nil && k.status.State.Running != nil }

// end is the container's last exit: its present state, else the one before.
func (k container) end() *corev1.ContainerStateTerminated {
	if k.status == nil {
		return nil
	}
	if t := k.status.State.Terminated; t != nil {
		return t
	}
	return k.status.LastTerminationState.Terminated
}

// endField names where end was read.
func (k container) endField() string {
	if k.status != nil && k.status.State.Terminated != nil {
		return k.field("status") + ".state.terminated"
	}
	return k.field("status") + ".lastState.terminated"
}

// endEvidence quotes the container's last exit.
func (c *podCase) endEvidence(k container, means string) report.Evidence {
	t := k.end()
	e := c.podField(k.endField(), fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode), means)
	e.At = t.FinishedAt
	return e
}

// ids are the runtime's ids of the container that the API still shows.
func (k container) ids() []string {
	if k.status == nil {
		return nil
	}
	var out []string
	add := func(id string) {
		if id = cgroup.ContainerID(id); id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	add(k.status.ContainerID)
	for _, s := range []corev1.ContainerState{k.status.State, k.status.LastTerminationState} {
		if s.Terminated != nil {
			add(s.Terminated.ContainerID)
		}
	}
	return out
}

func hasContainer(pod *corev1.Pod, name string) bool {
	return slices.Contains(containerNames(pod), name)
}

func containerNames(pod *corev1.Pod) []string {
	var out []string
	for _, k := range pod.Spec.InitContainers {
		out = append(out, k.Name)
	}
	for _, k := range pod.Spec.Containers {
		out = append(out, k.Name)
	}
	return out
}

// containerGroup is the cgroup of the container that the API names, if it
// stands in the tree.
func (c *podCase) containerGroup(name string) (cgroup.Group, bool) {
	if c.groupsErr != nil {
		return cgroup.Group{}, false
	}
	for _, g := range c.groups.Containers {
		if g.Name == name {
			return g.Group, true
		}
	}
	return cgroup.Group{}, false
}

// podEvents are the events of this pod with one of the reasons, oldest first.
func (c *podCase) podEvents(reasons ...string) []corev1.Event {
	return c.eventsOf(func(e *corev1.Event) bool {
		o := e.InvolvedObject
		return o.Kind == "Pod" && o.Namespace == c.pod.Namespace && o.Name == c.pod.Name && (o.UID == "" || o.UID == c.pod.UID || string(o.UID) == c.uid)
	}, reasons...)
}

// eventsOf selects events, oldest first by their last time.
func (n *nodeCase) eventsOf(match func(*corev1.Event) bool, reasons ...string) []corev1.Event {
	var out []corev1.Event
	for i := range n.events {
		if slices.Contains(reasons, n.events[i].Reason) && match(&n.events[i]) {
			out = append(out, n.events[i])
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	return out
}

// lastSeen is when an event last happened.
func lastSeen(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.FirstTimestamp.Time
	}
}

// eventEvidence quotes an event.
func eventEvidence(e corev1.Event, means string) report.Evidence {
	return report.Evidence{Source: "api:events/" + e.Namespace + "/" + e.Name, Field: e.Reason, Value: clip(e.Message), Means: means, At: metav1.NewTime(lastSeen(e))}
}

// eventContainer is the container an event speaks of ("spec.containers{app}").
func eventContainer(e corev1.Event) string {
	_, rest, ok := strings.Cut(e.InvolvedObject.FieldPath, "{")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(rest, "}")
}
