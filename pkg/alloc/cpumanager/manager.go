package cpumanager

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/alloc/trace"
)

// Config is what the CPU manager is started with.
type Config struct {
	Policy  string // none or static
	Options map[string]string
	// ReservedCPUs is reservedSystemCPUs. Empty: the manager chooses Reserved CPUs itself.
	ReservedCPUs cpuset.Set
	// ReservedMilli is the reservation of the node in thousandths of a CPU. HasReserved false: there is none.
	ReservedMilli  int64
	HasReserved    bool
	TopologyPolicy string // of the topology manager
}

// Manager is a CPU manager. It is not for concurrent use.
type Manager struct {
	State State
	// Reserved are the CPUs that no container gets, and All those of the machine.
	Reserved cpuset.Set

	static           bool
	options          options
	rules            alloc.Rules
	machine          *machine
	reservedPhysical cpuset.Set
	reuse            reuse
	acc              *accumulator
	dist             distribution
	hints            []hint.Hint
}

// reuse is what init containers leave to the later containers of their pod.
type reuse struct {
	uid  string
	cpus cpuset.Set
}

func (r *reuse) of(uid string) cpuset.Set {
	if r.uid == uid {
		return r.cpus
	}
	return cpuset.Set{}
}

// New returns a manager that has no state yet. The errors are the possible ones; the kubelet's is one of them.
func New(t *topology.Topology, c Config, r alloc.Rules) (*Manager, []error) {
	if t.NumCPUs == 0 {
		return nil, []error{errors.New("could not detect number of cpus")}
	}
	m := &Manager{rules: r, machine: newMachine(t)}
	switch c.Policy {
	case "none":
		if len(c.Options) > 0 {
			//lint:ignore ST1005 the words are the kubelet's
			return nil, []error{fmt.Errorf("new none policy error: %w", fmt.Errorf("None policy: received unsupported options=%v", c.Options))} //nolint:staticcheck // the kubelet's text
		}
		return m, nil
	case "static":
	default:
		return nil, []error{fmt.Errorf("unknown policy: \"%s\"", c.Policy)}
	}
	switch {
	case !c.HasReserved:
		return nil, []error{alloc.ErrNoCPUReservation}
	case c.ReservedMilli == 0:
		return nil, []error{errors.New("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")}
	}
	m.static = true
	if errs := m.init(t, c); len(errs) > 0 {
		for i, err := range errs {
			if crash := (*hint.Crash)(nil); !errors.As(err, &crash) {
				errs[i] = fmt.Errorf("new static policy error: %w", err)
			}
		}
		return nil, errs
	}
	return m, nil
}

func (m *Manager) init(t *topology.Topology, c Config) []error {
	var errs []error
	if m.options, errs = parseOptions(c.Options, m.rules); len(errs) > 0 {
		return errs
	}
	if err := m.options.checkMachine(t, c.TopologyPolicy); err != nil {
		return []error{err}
	}
	m.acc = newAccumulator(m.machine)
	m.acc.spread = m.options.acrossCores
	m.dist = distribution{rules: &m.rules, bySocket: m.options.bySocket}

	n := int((c.ReservedMilli + 999) / 1000)
	m.Reserved = c.ReservedCPUs
	if m.Reserved.IsEmpty() {
		set, err := m.take(m.machine.all, n)
		if crash := (*hint.Crash)(nil); errors.As(err, &crash) || errors.Is(err, hint.ErrWouldHang) {
			return []error{err}
		}
		m.Reserved = set
	}
	if m.Reserved.Size() != n {
		return []error{fmt.Errorf("[cpumanager] unable to reserve the required amount of CPUs (size of %s did not equal %d)", m.Reserved, n)}
	}
	if unknown := m.Reserved.Difference(m.machine.all); !unknown.IsEmpty() {
		id, _ := unknown.First()
		return []error{fmt.Errorf("[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: %d", id)}
	}
	m.reservedPhysical = t.WholeCores(m.Reserved)
	return nil
}

// All returns the CPUs of the machine.
func (m *Manager) All() cpuset.Set { return m.machine.all }

// Allocatable returns the CPUs that containers can get; none with the policy none.
func (m *Manager) Allocatable() cpuset.Set {
	if !m.static {
		return cpuset.Set{}
	}
	return m.machine.all.Difference(m.Reserved)
}

// Start takes over a state, or an empty one. The errors are the possible ones.
func (m *Manager) Start(s State) []error {
	m.State = s
	if m.State.Entries == nil {
		m.State.Entries = map[string]map[string]cpuset.Set{}
	}
	if !m.rules.PodLevelResourceManagers {
		m.State.PodEntries = nil
	}
	if !m.static {
		return nil
	}
	return m.validate()
}

// Get returns the CPUs of a container; own is false for the shared pool.
func (m *Manager) Get(uid, container string) (set cpuset.Set, own bool) {
	if set, own = m.State.get(uid, container); own {
		return set, true
	}
	return m.State.Default, false
}

func (m *Manager) take(available cpuset.Set, n int) (cpuset.Set, error) {
	if !m.options.acrossNUMA {
		return m.acc.packed(available, n, m.options.byUncore)
	}
	group := 1
	if m.options.fullPCPUsOnly {
		group = m.machine.perCore
	}
	return m.dist.distributed(m.acc, available, n, group)
}

// SMTAlignmentError is the refusal of full-pcpus-only.
type SMTAlignmentError struct {
	Requested, CPUsPerCore int
	AvailablePhysical      int
	lacking                bool
}

func (e SMTAlignmentError) Error() string {
	if e.lacking {
		return fmt.Sprintf("SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d",
			e.AvailablePhysical, e.Requested, e.CPUsPerCore)
	}
	return fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", e.Requested, e.CPUsPerCore)
}

// Reason is the reason of a pod refused by it.
func (SMTAlignmentError) Reason() string { return "SMTAlignmentError" }

func (m *Manager) enforceSMT(n int) error {
	if !m.options.fullPCPUsOnly {
		return nil
	}
	if m.machine.perCore == 0 {
		return hint.ErrDivide
	}
	if n%m.machine.perCore != 0 {
		return SMTAlignmentError{Requested: n, CPUsPerCore: m.machine.perCore}
	}
	if free := m.State.Default.Difference(m.reservedPhysical).Size(); n > free {
		return SMTAlignmentError{Requested: n, CPUsPerCore: m.machine.perCore, AvailablePhysical: free, lacking: true}
	}
	return nil
}

// Allocate gives a container its CPUs. near is the topology manager's hint.
func (m *Manager) Allocate(p *alloc.PodRequests, c *alloc.ContainerRequests, near hint.Hint, tr *trace.Trace) error {
	if !m.static || c.CPUs == 0 {
		return nil
	}
	if m.rules.SMTCheckFirst {
		if err := m.enforceSMT(c.CPUs); err != nil {
			return err
		}
	}
	if set, ok := m.State.get(p.UID, c.Name); ok {
		m.updateReuse(p.UID, c.Kind, &set)
		return nil
	}
	if !m.rules.SMTCheckFirst {
		if err := m.enforceSMT(c.CPUs); err != nil {
			return err
		}
	}
	set, err := m.allocate(c.CPUs, near, m.reuse.of(p.UID), tr)
	if err != nil {
		return err
	}
	m.State.set(p.UID, c.Name, set)
	m.updateReuse(p.UID, c.Kind, &set)
	return nil
}

func (m *Manager) updateReuse(uid string, kind alloc.Kind, set *cpuset.Set) {
	if m.reuse.uid != uid {
		m.reuse = reuse{uid: uid}
	}
	if kind == alloc.Init {
		m.reuse.cpus = m.reuse.cpus.Union(*set)
	} else {
		m.reuse.cpus = m.reuse.cpus.Difference(*set)
	}
}

// allocate takes n CPUs out of the shared pool and what can be reused: first near the hint, then anywhere.
func (m *Manager) allocate(n int, near hint.Hint, reusable cpuset.Set, tr *trace.Trace) (cpuset.Set, error) {
	m.acc.trace = tr
	available := m.State.Default.Difference(m.Reserved).Union(reusable)
	var set cpuset.Set
	if near.Aligned {
		aligned := available.Intersection(m.near(near.Mask))
		var err error
		if set, err = m.take(aligned, min(n, aligned.Size())); err != nil {
			return cpuset.Set{}, err
		}
	}
	rest, err := m.take(available.Difference(set), n-set.Size())
	if err != nil {
		return cpuset.Set{}, err
	}
	set = set.Union(rest)
	m.State.Default = m.State.Default.Difference(set)
	return set, nil
}

// near returns the CPUs of the nodes in the mask, or with align-by-socket of the sockets that they touch.
func (m *Manager) near(mask hint.Mask) cpuset.Set {
	if !m.options.bySocket {
		return m.machine.inNodes(mask)
	}
	var set cpuset.Set
	touched := m.machine.socketsOf(mask)
	for s := range touched.All() {
		set = set.Union(m.machine.sockets[s].set)
	}
	return set
}

// Remove releases what a container holds, but for what other containers of its pod hold too.
func (m *Manager) Remove(uid, container string) {
	set, ok := m.State.get(uid, container)
	if !m.static || !ok {
		return
	}
	m.State.delete(uid, container)
	if pod, ok := m.State.PodEntries[uid]; ok && m.rules.PodLevelResourceManagers {
		if len(m.State.Entries[uid]) == 0 {
			m.State.Default = m.State.Default.Union(pod)
			delete(m.State.PodEntries, uid)
		}
		return
	}
	for _, other := range m.State.Entries[uid] {
		set = set.Difference(other)
	}
	m.State.Default = m.State.Default.Union(set)
}

// RemoveStale releases the entries that active does not know, in the order of pod UID and container name.
func (m *Manager) RemoveStale(active func(uid, container string) bool) {
	if !m.static {
		return
	}
	type entry struct{ uid, container string }
	var stale []entry
	for uid, containers := range m.State.Entries {
		for name := range containers {
			if !active(uid, name) {
				stale = append(stale, entry{uid, name})
			}
		}
	}
	slices.SortFunc(stale, func(a, b entry) int {
		if a.uid != b.uid {
			return strings.Compare(a.uid, b.uid)
		}
		return strings.Compare(a.container, b.container)
	})
	for _, e := range stale {
		m.Remove(e.uid, e.container)
	}
}
