package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// owner is whom a process belongs to.
type owner struct {
	pod       *corev1.Pod // nil: none that the API knows on this node
	uid       string      // of the pod in the cgroup path, "" outside of pods
	container string      // "" for the sandbox and for containers that the API does not show
	scope     string      // the container's cgroup, "" outside of containers
}

// name says it in words.
func (o owner) name() string {
	switch {
	case o.pod != nil && o.container != "":
		return fmt.Sprintf("container %s of pod %s/%s", o.container, o.pod.Namespace, o.pod.Name)
	case o.pod != nil:
		return fmt.Sprintf("a container of pod %s/%s", o.pod.Namespace, o.pod.Name)
	case o.uid != "":
		return "a pod that the API does not show (" + o.uid + ")"
	default:
		return "the node itself"
	}
}

// ownerOf tells by its cgroup path whom a process belongs to: by the pod's UID
// and the container's id.
func (n *nodeCase) ownerOf(path string) owner {
	info := cgroup.ParsePath(path)
	o := owner{uid: info.PodUID}
	if info.PodUID == "" {
		return o
	}
	if info.ContainerID != "" {
		o.scope = info.ContainerID
	}
	for i := range n.pods {
		if cgroup.PodUID(&n.pods[i]) != info.PodUID {
			continue
		}
		o.pod = &n.pods[i]
		for _, k := range (&podCase{pod: o.pod}).containers() {
			if slices.Contains(k.ids(), info.ContainerID) {
				o.container = k.Name
			}
		}
	}
	return o
}

// inQueue is a process as the kernel would weigh it if the node ran out of
// memory now.
type inQueue struct {
	cgroup.Process
	owner
	badness int64
}

// oomQueue is the queue of a node that runs out of memory, the first to die in
// front, of those processes whose memory and oom_score_adj were read.
type oomQueue struct {
	total     uint64 // pages: all memory and swap
	mem       cgroup.Meminfo
	processes []inQueue
	read      int  // processes read, kernel threads and those never killed included
	host      bool // processes outside of pods are among them
}

// oomQueue computes it; ok is false where the data do not allow.
func (n *nodeCase) oomQueue() (oomQueue, bool) {
	all, err := n.processes()
	if err != nil || len(all) == 0 {
		return oomQueue{}, false
	}
	var q oomQueue
	if q.mem, err = cgroup.ReadMeminfo(n.fsys); err != nil {
		n.gaps.Miss(n.filePath("proc/meminfo"), err, "whom the kernel would kill first if the node ran out of memory", "the node pod")
		return oomQueue{}, false
	}
	q.total, q.read = q.mem.TotalPages(), len(all)
	for _, p := range all {
		// PID 1 and kernel threads are never killed.
		if p.PID == 1 || !p.HasMemory || !p.HasOOMScoreAdj || !p.OOMTask().Killable() {
			continue
		}
		o := n.ownerOf(p.Cgroup)
		q.host = q.host || p.Cgroup != "" && o.uid == ""
		q.processes = append(q.processes, inQueue{Process: p, owner: o, badness: p.OOMTask().Badness(q.total)})
	}
	// Of equals the kernel takes the later one in its list, most often the younger.
	slices.SortStableFunc(q.processes, func(a, b inQueue) int {
		return cmp.Or(cmp.Compare(b.badness, a.badness), cmp.Compare(b.PID, a.PID))
	})
	return q, len(q.processes) > 0
}

// oomRow quotes a process of the queue.
func (n *nodeCase) oomRow(q oomQueue, p inQueue, place int) report.Evidence {
	return n.fileEvidence(p.Dir()+"/status", "VmRSS, VmSwap, VmPTE",
		fmt.Sprintf("%d kB, %d kB, %d kB; oom_score_adj %d", p.RSSKB, p.SwapKB, p.PgtablesKB, p.OOMScoreAdj),
		fmt.Sprintf("place %d: %s of %s, %d points = %s", place, quoteName(p.Name), p.name(), p.badness, perMille(p.OOMTask(), q.total)))
}

// perMille is badness on the kernel's scale: thousandths of all memory, to which
// oom_score_adj is added as it is.
func perMille(t cgroup.OOMTask, total uint64) string {
	sign, adj := "+", t.Adj
	if adj < 0 {
		sign, adj = "−", -adj
	}
	usage := 0.0
	if total > 0 {
		usage = float64(t.Usage()) * 1000 / float64(total)
	}
	return fmt.Sprintf("use %s ‰ %s %d = %s ‰", oneDecimal(usage), sign, adj, oneDecimal(usage+float64(t.Adj)))
}

func oneDecimal(v float64) string { return trimZeros(fmt.Sprintf("%.1f", v)) }

// quoteName shows a name that a process chose itself.
func quoteName(name string) string {
	for _, r := range name {
		if r < '!' || r > '~' {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}
