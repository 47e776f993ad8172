package history

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/memorymanager"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
)

// search looks for what pods since gone can have held when a pod came: the fewest CPUs, whole cores before single ones, then memory.
func (r *replay) search(s *Step) {
	if s.Why = r.mismatch(s); s.Why != "" {
		s.Verdict = Never
		return
	}
	h := &hunt{replay: r, step: s, known: r.holders(s.before)}
	for _, set := range s.Recorded {
		h.own = h.own.Union(set)
	}
	before, ok := r.situation(h.known...)
	if !ok {
		return
	}
	free := before.shared.Difference(r.reserved).Difference(h.own)
	for _, core := range r.in.Config.Topology.Cores {
		if part := core.CPUs.Intersection(free); !part.IsEmpty() {
			h.cores = append(h.cores, part)
		}
	}
	for id := range free.All() {
		h.cpus = append(h.cpus, cpuset.Of(id))
	}
	devices := h.deviceOnly()
	if !h.cpuOnly(free) && !h.memory(free) && !devices && !h.devicesAndCPUs() {
		s.Exhausted = h.exhausted && len(h.choosable()) == 0
		return
	}
	s.Verdict = NeedsHeld
}

// mismatch says why no state of the node can give the record: a size that the pod does not ask for, an entry that it is not entitled to.
func (r *replay) mismatch(s *Step) string {
	requests := alloc.RequestsOf(s.Pod.Pod.Pod, r.in.Config.Rules)
	if requests.PodLevel {
		return ""
	}
	for _, c := range requests.Containers {
		want := c.CPUs
		if requests.Unmanaged || !r.cpuStatic {
			want = 0
		}
		set, has := s.Recorded[c.Name]
		switch {
		case want == 0 && has:
			return "container " + c.Name + " is entitled to no CPUs of its own and holds " + set.String()
		case want > 0 && !has:
			return "container " + c.Name + " is entitled to CPUs of its own and holds none"
		case set.Size() != want:
			return "container " + c.Name + " holds " + set.String() + ", which is not the number it asks for"
		}
	}
	return ""
}

// hunt is the search for one pod.
type hunt struct {
	*replay
	step  *Step
	known []held
	own   cpuset.Set
	// cores and cpus are what others can have held: the free part of each core, and each free CPU.
	cores, cpus []cpuset.Set
	// exhausted: every choice of them was tried.
	exhausted bool
	// gone are devices that others are taken to have held.
	gone []podresources.Device
}

func (h *hunt) with(set cpuset.Set, blocks ...memorymanager.Block) (outcome, bool) {
	s, ok := h.situation(append(slices.Clone(h.known), held{cpus: set, blocks: blocks})...)
	if !ok {
		return outcome{failed: true}, false
	}
	o := h.run(h.admission(h.step.Pod, h.step.before, h.gone...), s, nil)
	return o, h.gives(h.step, o)
}

// settle keeps an answer, with the trace of its run.
func (h *hunt) settle(set cpuset.Set, blocks []memorymanager.Block) bool {
	h.step.Held, h.step.HeldMemory = set, blocks
	h.runs = min(h.runs, h.most-1)
	h.try(h.step, append(slices.Clone(h.known), held{cpus: set, blocks: blocks}), h.gone...)
	return true
}

func (h *hunt) cpuOnly(free cpuset.Set) bool {
	found, ok := h.greedy(nil)
	if !ok {
		if _, ok = h.with(free); ok {
			found = slices.Clone(h.cores)
		}
	}
	if ok {
		found = h.thin(found, nil)
		h.fewer(len(found), &found)
		return h.settle(union(found), nil)
	}
	// No lead: every choice of whole cores, then of single CPUs, as far as the bound allows.
	for _, units := range [][]cpuset.Set{h.cores, h.cpus} {
		for size := 1; size <= len(units); size++ {
			n, complete := h.choices(units, size, 1, func(set cpuset.Set) { found = []cpuset.Set{set} })
			if n > 0 {
				h.step.Fewest = complete
				return h.settle(found[0], nil)
			}
			if !complete {
				return false
			}
		}
	}
	h.exhausted = true
	return false
}

// greedy takes away what the replay gives and the record does not have, core by core, until the replay gives the record.
func (h *hunt) greedy(blocks []memorymanager.Block) ([]cpuset.Set, bool) {
	var taken []cpuset.Set
	for range len(h.cores) + 1 {
		o, ok := h.with(union(taken), blocks...)
		if ok {
			return taken, true
		}
		wrong := o.all.cpus.Difference(h.own)
		i := slices.IndexFunc(h.cores, func(core cpuset.Set) bool {
			return !core.Intersection(wrong).IsEmpty() && !slices.Contains(taken, core)
		})
		if o.failed || i < 0 {
			return nil, false
		}
		taken = append(taken, h.cores[i])
	}
	return nil, false
}

// thin drops cores that are not needed, one after the other.
func (h *hunt) thin(cores []cpuset.Set, blocks []memorymanager.Block) []cpuset.Set {
	for i := 0; i < len(cores); {
		fewer := slices.Delete(slices.Clone(cores), i, i+1)
		if _, ok := h.with(union(fewer), blocks...); ok {
			cores = fewer
			continue
		}
		i++
	}
	return cores
}

// fewer tries every choice of fewer cores than found has, and whether another of as many does as well.
func (h *hunt) fewer(most int, found *[]cpuset.Set) {
	for size := 1; size < most; size++ {
		n, complete := h.choices(h.cores, size, 1, func(set cpuset.Set) { *found = []cpuset.Set{set} })
		if !complete && n == 0 {
			return
		}
		if n > 0 {
			most = size
			break
		}
	}
	h.step.Fewest = true
	n, complete := h.choices(h.cores, most, 2, func(cpuset.Set) {})
	h.step.Only = complete && n == 1
}

// choices runs every choice of size units, in the order of their ids, until enough were found. complete is false if the bound came first.
func (h *hunt) choices(units []cpuset.Set, size, enough int, found func(cpuset.Set)) (n int, complete bool) {
	if !affordable(len(units), size, h.most-h.runs) {
		h.cut = true
		return 0, false
	}
	var walk func(from, missing int, set cpuset.Set)
	walk = func(from, missing int, set cpuset.Set) {
		if n >= enough {
			return
		}
		if missing == 0 {
			if _, ok := h.with(set); ok {
				n++
				found(set)
			}
			return
		}
		for i := from; i <= len(units)-missing; i++ {
			walk(i+1, missing-1, set.Union(units[i]))
		}
	}
	walk(0, size, cpuset.Set{})
	return n, true
}

// affordable reports whether there are at most so many choices of k out of n.
func affordable(n, k, most int) bool {
	if k > n {
		return true
	}
	choices := 1
	for i := 1; i <= min(k, n-k); i++ {
		if choices = choices * (n - i + 1) / i; choices > most {
			return false
		}
	}
	return choices <= most
}

func union(sets []cpuset.Set) cpuset.Set {
	var all cpuset.Set
	for _, s := range sets {
		all = all.Union(s)
	}
	return all
}

// memory looks for memory that others held: all that is free on as few nodes as do, and of that as little as does. CPUs go along where
// it takes them.
func (h *hunt) memory(free cpuset.Set) bool {
	s, ok := h.situation(h.known...)
	if !ok || len(s.memory) == 0 {
		return false
	}
	var ids []int
	for _, n := range s.memory {
		ids = append(ids, n.ID)
	}
	masks, err := hint.Subsets(ids)
	if err != nil {
		return false
	}
	types := map[corev1.ResourceName]bool{}
	for _, c := range alloc.RequestsOf(h.step.Pod.Pod.Pod, h.in.Config.Rules).Containers {
		for _, m := range c.Memory {
			types[m.Type] = true
		}
	}
	names := slices.Sorted(maps.Keys(types))
	for _, mask := range masks {
		if h.runs >= h.most {
			return false
		}
		var blocks []memorymanager.Block
		for _, n := range s.memory {
			for _, t := range n.Tables {
				if mask.Has(n.ID) && slices.Contains(names, t.Type) {
					on, _ := hint.MaskOf(n.ID)
					blocks = append(blocks, memorymanager.Block{Nodes: on, Type: t.Type, Size: t.Free})
				}
			}
		}
		cores, ok := h.greedy(blocks)
		if !ok {
			continue
		}
		cores = h.thin(cores, blocks)
		for i := range blocks {
			h.least(cores, blocks, i)
		}
		blocks = slices.DeleteFunc(blocks, func(b memorymanager.Block) bool { return b.Size == 0 })
		if _, ok := h.with(union(cores), blocks...); ok {
			return h.settle(union(cores), blocks)
		}
	}
	return false
}

// least makes a block as small as it can be.
func (h *hunt) least(cores []cpuset.Set, blocks []memorymanager.Block, i int) {
	low, high := uint64(0), blocks[i].Size
	for low < high {
		blocks[i].Size = low + (high-low)/2
		if _, ok := h.with(union(cores), blocks...); ok {
			high = blocks[i].Size
		} else {
			low = blocks[i].Size + 1
		}
	}
	blocks[i].Size = high
}
