// Package history asks whether what a node's managers have recorded follows from the pods that are there, and if not, what pods since
// gone can have held. The state at a pod's admission is not recorded, so that an answer holds for the order that was assumed: it shows
// that the record can have come about so, never that it did.
package history

import (
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// MaxRuns bounds the admissions that are tried for one node.
const MaxRuns = 10000

// Pod is a pod with the moments between which it held what it got.
type Pod struct {
	node.Pod
	// Admitted is when the kubelet first saw it; zero if nobody wrote it down.
	Admitted time.Time
	// Ended is zero for an active pod.
	Ended time.Time
}

// Input is a node at one moment.
type Input struct {
	Config   node.Config
	Recorded node.State
	Active   []Pod
	// Ended are pods that are over and still known, with both moments.
	Ended []Pod
	// Devices adds the hints of the device manager to a pod, as they were while the pods with these UIDs held theirs, and others that are
	// gone held these. May be nil.
	Devices func(p node.Pod, holders map[string]bool, gone []podresources.Device) node.Pod
	// FreeDevices are those that a pod's hints are about and that others can have held when it came. Nil where Devices is.
	FreeDevices func(p node.Pod, holders map[string]bool) []podresources.Device
}

// Verdict is how a pod's record came out.
type Verdict int

const (
	// Nothing was recorded for the pod, and it asks for nothing.
	Nothing Verdict = iota
	// Follows from the pods that came before and are still there.
	Follows
	// FollowsListed: it follows if pods count that have ended, but are still listed or still in the record.
	FollowsListed
	// NeedsHeld: it does not follow from the known pods, and does if others, which are gone, held Held and HeldMemory then, or HeldDevices.
	NeedsHeld
	// NotFound: nothing that was tried explains it.
	NotFound
	// Never: no state of the node gives it; Why says so.
	Never
)

// Step is one pod's admission.
type Step struct {
	Pod     Pod
	Verdict Verdict
	// Recorded are the CPUs of its containers by the record, Replayed those that it gets where Verdict is not Follows.
	Recorded, Replayed map[string]cpuset.Set
	RecordedMemory     map[string][]memorymanager.Block
	ReplayedMemory     map[string][]memorymanager.Block
	// Refusal is the kubelet's message where the replay refuses it.
	Refusal string
	Why     string
	// Held are CPUs with which the record follows if pods since gone held them; HeldMemory likewise.
	Held       cpuset.Set
	HeldMemory []memorymanager.Block
	// HeldDevices are devices that do instead; beside Held where DevicesBeside.
	HeldDevices   []podresources.Device
	DevicesBeside bool
	// Fewest: every smaller choice of CPUs (whole cores first) was tried. Only: none of the same size does as well.
	Fewest, Only bool
	// Exhausted: with NotFound, every choice of CPUs that others can have held was tried.
	Exhausted bool
	// Trace is the run that gives the record; nil for NotFound and Never.
	Trace *trace.Trace

	before []Pod
}

// Order is by what pods were put in the order of admission.
type Order string

const (
	ByAdmission Order = "status.startTime"
	ByCreation  Order = "metadata.creationTimestamp"
)

// Explanation is the answer for a node.
type Explanation struct {
	Order Order
	// Steps are in the order that was assumed.
	Steps []Step
	// Reserved are the CPUs that no container gets, Shared the pool that the record's entries leave.
	Reserved, Shared cpuset.Set
	// Runs is how many admissions were tried.
	Runs int
	// Cut: the machine has so many NUMA nodes that fewer than MaxRuns could be tried, and more were wanted.
	Cut bool
}

// All reports whether every record is of one of the verdicts.
func (e *Explanation) All(verdicts ...Verdict) bool {
	for i := range e.Steps {
		if !slices.Contains(verdicts, e.Steps[i].Verdict) {
			return false
		}
	}
	return true
}

// Step returns a pod's.
func (e *Explanation) Step(uid string) (Step, bool) {
	for _, s := range e.Steps {
		if string(s.Pod.UID) == uid {
			return s, true
		}
	}
	return Step{}, false
}

// Explain replays a node. The error is the start's of an empty node: its configuration does not suit the machine.
func Explain(in Input) (Explanation, error) {
	r, err := newReplay(in)
	if err != nil {
		return Explanation{}, err
	}
	var best Explanation
	found := false
	for _, o := range r.orders() {
		e := Explanation{Order: o.by, Steps: r.follow(o.groups), Reserved: r.reserved}
		if !found || e.open() < best.open() {
			best, found = e, true
		}
		if best.open() == 0 {
			break
		}
	}
	for i := range best.Steps {
		if s := &best.Steps[i]; s.Verdict == NotFound {
			r.search(s)
		}
	}
	best.Runs, best.Shared = r.runs, r.shared()
	best.Cut = r.cut && r.most < MaxRuns
	return best, nil
}

func (e *Explanation) open() int {
	n := 0
	for i := range e.Steps {
		if e.Steps[i].Verdict == NotFound {
			n++
		}
	}
	return n
}

type order struct {
	by     Order
	groups [][]Pod // pods of one moment have no order
}

// orders are those that the data name: by admission where it is known of all pods, and by creation.
func (r *replay) orders() []order {
	var out []order
	if !slices.ContainsFunc(r.in.Active, func(p Pod) bool { return p.Admitted.IsZero() }) {
		out = append(out, order{ByAdmission, grouped(r.in.Active, func(p Pod) time.Time { return p.Admitted })})
	}
	byCreation := order{ByCreation, grouped(r.in.Active, func(p Pod) time.Time { return p.CreationTimestamp.Time })}
	return append(out, byCreation)
}

func grouped(pods []Pod, at func(Pod) time.Time) [][]Pod {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b Pod) int { return at(a).Compare(at(b)) })
	var groups [][]Pod
	for i, p := range pods {
		if i > 0 && at(p).Equal(at(pods[i-1])) {
			groups[len(groups)-1] = append(groups[len(groups)-1], p)
			continue
		}
		groups = append(groups, []Pod{p})
	}
	return groups
}

// wants are what the record has for a pod, and whether it has or should have anything.
func (r *replay) wants(p Pod) (Step, bool) {
	s := Step{Pod: p, Verdict: NotFound}
	uid := string(p.UID)
	if r.in.Recorded.CPU != nil {
		s.Recorded = r.in.Recorded.CPU.Entries[uid]
	}
	if r.in.Recorded.Memory != nil {
		s.RecordedMemory = r.in.Recorded.Memory.Entries[uid]
	}
	if len(s.Recorded) > 0 || len(s.RecordedMemory) > 0 {
		return s, true
	}
	requests := alloc.RequestsOf(p.Pod.Pod, r.in.Config.Rules)
	for _, c := range requests.Containers {
		if c.CPUs > 0 && r.cpuStatic || len(c.Memory) > 0 && r.memoryStatic {
			return s, !requests.Unmanaged
		}
	}
	s.Verdict = Nothing
	return s, false
}
