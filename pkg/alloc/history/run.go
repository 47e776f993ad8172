package history

import (
	"maps"
	"slices"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpumanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// replay runs single admissions on states that are put together from the record.
type replay struct {
	in       Input
	empty    node.State // of a node without pods
	reserved cpuset.Set
	node     *node.Node
	runs     int
	// most is how many there may be; cut: more were wanted.
	most int
	cut  bool

	cpuStatic, memoryStatic bool
}

func newReplay(in Input) (*replay, error) {
	n, err := node.Start(in.Config, node.State{})
	if err != nil {
		return nil, err
	}
	r := &replay{in: in, empty: n.State(), reserved: n.CPU.Reserved, node: n, most: MaxRuns,
		cpuStatic: in.Config.Kubelet.CPUManagerPolicy == "static", memoryStatic: in.Config.Kubelet.MemoryManagerPolicy == "Static"}
	if r.memoryStatic || in.Config.Kubelet.TopologyManagerPolicy != "none" {
		r.most = affordableRuns(len(in.Config.Topology.NUMANodes))
	}
	return r, nil
}

// affordableRuns lowers MaxRuns where one run goes through very many sets of NUMA nodes.
func affordableRuns(numaNodes int) int {
	const cheap = 11 // nodes
	return max(1, MaxRuns>>min(max(0, numaNodes-cheap), 62))
}

// held is what someone holds.
type held struct {
	cpus   cpuset.Set
	blocks []memorymanager.Block
}

// recordOf is what the record books for a pod.
func (r *replay) recordOf(uid string) held { return heldBy(r.in.Recorded, uid) }

func heldBy(s node.State, uid string) held {
	var h held
	if s.CPU != nil {
		h.cpus = s.CPU.PodEntries[uid]
		for _, set := range s.CPU.Entries[uid] {
			h.cpus = h.cpus.Union(set)
		}
	}
	if s.Memory != nil {
		if pod, ok := s.Memory.PodEntries[uid]; ok {
			h.blocks = pod
			return h
		}
		entries := s.Memory.Entries[uid]
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			h.blocks = append(h.blocks, entries[name]...)
		}
	}
	return h
}

// shared is the pool that all entries of the record leave.
func (r *replay) shared() cpuset.Set {
	pool := r.empty.CPU.Default
	if r.in.Recorded.CPU == nil {
		return pool
	}
	for uid := range r.in.Recorded.CPU.Entries {
		pool = pool.Difference(r.recordOf(uid).cpus)
	}
	return pool
}

// situation is a node's state before an admission.
type situation struct {
	shared cpuset.Set
	memory []memorymanager.Node
}

// situation puts together the state in which these hold what they hold. ok is false if the record does not fit the machine.
func (r *replay) situation(holders ...held) (situation, bool) {
	memory := r.empty.Memory.Clone()
	s := situation{shared: r.empty.CPU.Default}
	for _, h := range holders {
		s.shared = s.shared.Difference(h.cpus)
		if memory.Book(h.blocks) != nil {
			return s, false
		}
	}
	s.memory = memory.Nodes
	return s, true
}

// outcome is what an admission gave.
type outcome struct {
	cpus    map[string]cpuset.Set
	memory  map[string][]memorymanager.Block
	all     held
	refusal string
	failed  bool // the replay itself came to no end
}

// run admits a pod. Without budget it fails.
func (r *replay) run(p node.Pod, s situation, tr *trace.Trace) outcome {
	if r.runs >= r.most {
		r.cut = true
		return outcome{failed: true}
	}
	r.runs++
	n := r.node
	// What init containers leave for reuse stays in a manager's memory from one run of a pod to the next.
	if len(p.Spec.InitContainers) > 0 {
		fresh, err := node.Start(r.in.Config, node.State{})
		if err != nil {
			return outcome{failed: true}
		}
		n = fresh
	}
	n.CPU.State = cpumanager.State{Default: s.shared, Entries: map[string]map[string]cpuset.Set{}}
	n.Memory.State = memorymanager.State{Nodes: s.memory, Entries: map[string]map[string][]memorymanager.Block{}}.Clone()
	result, err := n.Admit(p, tr)
	if err != nil {
		return outcome{failed: true, refusal: err.Error()}
	}
	uid := string(p.UID)
	o := outcome{refusal: result.Message}
	if result.Admit {
		o.cpus, o.memory = maps.Clone(n.CPU.State.Entries[uid]), maps.Clone(n.Memory.State.Entries[uid])
		o.all = heldBy(node.State{CPU: &n.CPU.State, Memory: &n.Memory.State}, uid)
		o.all.blocks = slices.Clone(o.all.blocks)
	}
	n.Remove(uid)
	return o
}

// gives reports whether an outcome is what the record has. The memory manager forgets init containers once a later one starts.
func (r *replay) gives(s *Step, o outcome) bool {
	if o.failed || o.refusal != "" || !maps.Equal(o.cpus, s.Recorded) {
		return false
	}
	for name, blocks := range s.RecordedMemory {
		if !slices.Equal(blocks, o.memory[name]) {
			return false
		}
	}
	requests := alloc.RequestsOf(s.Pod.Pod.Pod, r.in.Config.Rules)
	for name, blocks := range o.memory {
		_, recorded := s.RecordedMemory[name]
		forgotten := slices.ContainsFunc(requests.Containers, func(c alloc.ContainerRequests) bool { return c.Name == name && c.Kind == alloc.Init })
		if !recorded && len(blocks) > 0 && !forgotten {
			return false
		}
	}
	return true
}

// admission is the pod with the hints about devices of that moment.
func (r *replay) admission(p Pod, before []Pod, gone ...podresources.Device) node.Pod {
	if r.in.Devices == nil {
		return p.Pod
	}
	return r.in.Devices(p.Pod, uidsOf(before), gone)
}

func uidsOf(pods []Pod) map[string]bool {
	uids := map[string]bool{}
	for _, p := range pods {
		uids[string(p.UID)] = true
	}
	return uids
}

func (r *replay) holders(pods []Pod) []held {
	var out []held
	for _, p := range pods {
		out = append(out, r.recordOf(string(p.UID)))
	}
	return out
}

// try runs a step's admission among these holders, and says whether it gives the record.
func (r *replay) try(s *Step, holders []held, gone ...podresources.Device) bool {
	before, ok := r.situation(holders...)
	if !ok {
		return false
	}
	var tr trace.Trace
	o := r.run(r.admission(s.Pod, s.before, gone...), before, &tr)
	if r.gives(s, o) {
		s.Trace = &tr
		return true
	}
	if s.Replayed == nil && s.Refusal == "" {
		s.Replayed, s.ReplayedMemory, s.Refusal = o.cpus, o.memory, o.refusal
	}
	return false
}

// follow goes through the groups in their order. Each pod finds what the record says that those before it hold.
func (r *replay) follow(groups [][]Pod) []Step {
	var steps []Step
	var before []Pod
	for _, g := range groups {
		for _, s := range r.followGroup(g, before) {
			steps = append(steps, s)
			before = append(before, s.Pod)
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.Verdict == NotFound && r.followListed(s) {
			s.Verdict = FollowsListed
		}
	}
	return steps
}

// followGroup finds an order of pods of one moment in which each follows; without one those that do not come last.
func (r *replay) followGroup(group, before []Pod) []Step {
	const mostTries = 2000
	tries := 0
	dead := map[string]bool{} // sets of pods from which no order leads on
	var walk func(left []Pod, done []Step) []Step
	walk = func(left []Pod, done []Step) []Step {
		best := done
		if len(left) == 0 || dead[key(left)] {
			return best
		}
		for i, p := range left {
			if tries++; tries > mostTries {
				return best
			}
			s, holds := r.wants(p)
			s.before = slices.Clone(before)
			for _, d := range done {
				s.before = append(s.before, d.Pod)
			}
			if holds {
				if !r.try(&s, r.holders(s.before)) {
					continue
				}
				s.Verdict = Follows
			}
			rest := slices.Delete(slices.Clone(left), i, i+1)
			found := walk(rest, append(slices.Clone(done), s))
			if len(found) > len(best) {
				best = found
			}
			if len(best) == len(group) || !holds {
				return best
			}
		}
		dead[key(left)] = true
		return best
	}
	steps := walk(group, nil)
	for _, p := range group {
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Pod.UID == p.UID }) {
			continue
		}
		s, holds := r.wants(p)
		s.before = slices.Clone(before)
		for _, d := range steps {
			s.before = append(s.before, d.Pod)
		}
		if holds && r.try(&s, r.holders(s.before)) {
			s.Verdict = Follows
		}
		steps = append(steps, s)
	}
	return steps
}

func key(pods []Pod) string {
	k := ""
	for _, p := range pods {
		k += string(p.UID) + " "
	}
	return k
}

// followListed counts what is known of pods that are over: those in the record whose pods are not active, and ended ones, which are
// admitted at their time.
func (r *replay) followListed(s *Step) bool {
	stale := r.stale()
	if len(stale) > 0 && r.try(s, append(r.holders(s.before), stale...)) {
		return true
	}
	at := s.Pod.Admitted
	if at.IsZero() {
		at = s.Pod.CreationTimestamp.Time
	}
	ended := r.endedAt(at, s.before)
	return len(ended) > 0 && r.try(s, append(r.holders(s.before), ended...))
}

// stale are the record's entries of pods that are not active.
func (r *replay) stale() []held {
	uids := map[string]bool{}
	if r.in.Recorded.CPU != nil {
		for uid := range r.in.Recorded.CPU.Entries {
			uids[uid] = true
		}
	}
	if r.in.Recorded.Memory != nil {
		for uid := range r.in.Recorded.Memory.Entries {
			uids[uid] = true
		}
	}
	for _, p := range r.in.Active {
		delete(uids, string(p.UID))
	}
	var out []held
	for _, uid := range slices.Sorted(maps.Keys(uids)) {
		out = append(out, r.recordOf(uid))
	}
	return out
}

// endedAt replays what the ended pods held at a moment.
func (r *replay) endedAt(at time.Time, before []Pod) []held {
	pods := slices.Clone(r.in.Ended)
	slices.SortStableFunc(pods, func(a, b Pod) int { return a.Admitted.Compare(b.Admitted) })
	type got struct {
		pod Pod
		held
	}
	var all []got
	for _, p := range pods {
		if p.Admitted.After(at) {
			break
		}
		var holders []held
		var earlier []Pod
		for _, b := range before {
			if !b.Admitted.After(p.Admitted) {
				holders, earlier = append(holders, r.recordOf(string(b.UID))), append(earlier, b)
			}
		}
		for _, g := range all {
			if g.pod.Ended.After(p.Admitted) {
				holders = append(holders, g.held)
			}
		}
		s, ok := r.situation(holders...)
		if !ok {
			continue
		}
		if o := r.run(r.admission(p, earlier), s, nil); !o.failed && o.refusal == "" {
			all = append(all, got{p, o.all})
		}
	}
	var out []held
	for _, g := range all {
		if !g.pod.Ended.Before(at) {
			out = append(out, g.held)
		}
	}
	return out
}
