package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc"
	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/podresources"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/cadvisor"
	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/eviction"
	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/gap"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// nodeCase is what is known of one node, read once and only when asked for.
// Every reading that fails leaves a gap.
type nodeCase struct {
	snap  *snapshot.Snapshot
	at    time.Time
	name  string
	files *snapshot.Node
	fsys  fs.FS
	gaps  *gap.Log

	object *corev1.Node // nil: not in the snapshot
	pods   []corev1.Pod // those assigned to the node
	// podsErr says why they may not be all.
	podsErr error
	events  []corev1.Event

	rules      alloc.Rules // of the kubelet's version, or the nearest known
	rulesKnown bool        // false: the version is not known
	rulesExact bool        // false: outside the versions with rules of their own
	// supposedVersion is the kubelet's where a question supposes another than the node's.
	supposedVersion string

	first, last *snapshot.Sample // nil unless there are two
	wallUsec    uint64           // between them

	mode cgroup.Mode
	tree cgroup.Tree
	// treeErr says why there is no tree.
	treeErr error

	config    kubeletconfig.Config
	configErr error

	cpuState func() (checkpoint.CPUState, error)
	memState func() (checkpoint.MemoryState, error)
	topo     func() (*topology.Topology, error)
	// managers is what a replay of the kubelet's managers starts from.
	managers func() (managers, error)
	// pickedCPUs are the reserved ones that no setting names.
	pickedCPUs func() (cpuset.Set, bool)
	// past is what replaying the recorded placement came to.
	past func() (past, error)
	// devices are what the PodResources API told.
	devices func() (*podresources.Resources, error)
	kernel  func() (kernlog.Log, error)
	// pool is the CPUs that containers share; false where none is told.
	pool func() (poolState, bool)
	// processes are those of the node, read after the samples.
	processes func() ([]cgroup.Process, error)
	// stats is the kubelet's /stats/summary.
	stats func() (eviction.Summary, error)
	// cadvisor is the kubelet's /metrics/cadvisor, by cgroup.
	cadvisor func() (map[string]*cadvisor.Group, error)
}

func newNodeCase(s *snapshot.Snapshot, name string, at time.Time) *nodeCase {
	n := &nodeCase{snap: s, at: at, name: name, gaps: &gap.Log{}}
	if n.at.IsZero() {
		n.at = s.Manifest().CapturedAt
	}
	n.files = s.Node(name)
	n.fsys = n.files.Files()
	n.readObjects()
	n.readSamples()
	n.readTree()
	n.readConfig()
	n.rules = n.rules.With(n.config)
	n.cpuState = sync.OnceValues(n.readCPUState)
	n.memState = sync.OnceValues(n.readMemoryState)
	n.topo = sync.OnceValues(n.readTopology)
	n.managers = sync.OnceValues(n.readManagers)
	n.pickedCPUs = sync.OnceValues(n.pickReservedCPUs)
	n.past = sync.OnceValues(n.replayPast)
	n.devices = sync.OnceValues(n.readDevices)
	n.kernel = sync.OnceValues(n.readKernelLog)
	n.pool = sync.OnceValues(n.sharedPoolState)
	n.processes = sync.OnceValues(func() ([]cgroup.Process, error) { return cgroup.Processes(n.fsys) })
	n.stats = sync.OnceValues(n.readStats)
	n.cadvisor = sync.OnceValues(n.readCadvisor)
	return n
}

// newestKubelet stands in for a version that is not known.
const newestKubelet = "v1.37.0"

func (n *nodeCase) readObjects() {
	nodes, err := n.snap.Nodes()
	if err != nil {
		n.gaps.Miss("cluster/nodes.json", err, "the kubelet's version, capacity and allocatable are not known", "get nodes")
	}
	for i := range nodes {
		if nodes[i].Name == n.name {
			n.object = &nodes[i]
		}
	}
	pods, err := n.snap.Pods()
	if err != nil {
		n.gaps.Miss("cluster/pods.json", err, "the node's pods are not known", "list pods")
	}
	if n.podsErr = n.snap.Partial("nodes/" + n.name + "/pods.json"); n.podsErr != nil {
		n.gaps.Miss("nodes/"+n.name+"/pods.json", n.podsErr, "the other pods of the node are not known", "list pods")
	}
	for _, p := range pods {
		if n.name != "" && p.Spec.NodeName == n.name {
			n.pods = append(n.pods, p)
		}
	}
	if n.events, err = n.snap.Events(); err != nil {
		n.gaps.Miss("cluster/events.json", err, "what the kubelet said of kills, probes and evictions", "list events")
	}
	if n.object != nil {
		n.rules, n.rulesExact, err = alloc.RulesFor(n.object.Status.NodeInfo.KubeletVersion)
		n.rulesKnown = err == nil
	}
	if !n.rulesKnown {
		n.rules, _, _ = alloc.RulesFor(newestKubelet)
		n.rulesExact = false
	}
}

func (n *nodeCase) readSamples() {
	samples := n.files.Samples()
	if len(samples) < 2 {
		return
	}
	first, last := samples[0], samples[len(samples)-1]
	wall := last.Time.Sub(first.Time)
	if first.Uptime > 0 && last.Uptime > 0 {
		up := last.Uptime - first.Uptime
		// The clock may be set between the samples, by little.
		if first.HasTime && last.HasTime && (up-wall).Abs() > max(2*time.Second, up/5) {
			n.gaps.Lack(fmt.Sprintf("nodes/%s/samples/*/at.json", n.name), fmt.Sprintf("the samples are %s apart by the clock and %s by uptime", wall, up), "counters cannot be made into rates", "two new samples")
			return
		}
		wall = up
	} else if !first.HasTime || !last.HasTime {
		n.gaps.Lack(fmt.Sprintf("nodes/%s/samples/*/at.json", n.name), "the samples carry no time", "counters cannot be made into rates", "")
		return
	}
	if wall <= 0 {
		n.gaps.Lack(fmt.Sprintf("nodes/%s/samples/*/at.json", n.name), "the last sample is not later than the first", "counters cannot be made into rates", "")
		return
	}
	n.first, n.last, n.wallUsec = &first, &last, uint64(wall.Microseconds())
}

func (n *nodeCase) readTree() {
	if n.name == "" {
		n.treeErr = errNoNode
		return
	}
	mode, err := cgroup.Detect(n.fsys)
	n.mode, n.treeErr = mode, err
	switch {
	case err == nil && mode == cgroup.V2:
		n.tree, n.treeErr = cgroup.FindTree(n.fsys)
	case err == nil && mode == cgroup.None:
		n.treeErr = errNoTree
	}
	if n.treeErr == nil {
		return
	}
	const costs, fix = "limits and counters of the kernel: throttling, memory, kills", "the node pod, or exec into the container"
	if errors.Is(n.treeErr, fs.ErrNotExist) {
		n.gaps.Lack(n.filePath("sys/fs/cgroup"), "NotFound: no cgroup of the kubelet's there", costs, fix)
	}
	n.gaps.Miss(n.filePath("sys/fs/cgroup"), n.treeErr, costs, fix)
}

var errNoTree = errors.New("nothing there is a cgroup hierarchy")

func (n *nodeCase) readConfig() {
	if n.name == "" {
		n.configErr = errNoNode
		return
	}
	data, err := n.files.File("configz.json")
	if err == nil {
		n.config, err = kubeletconfig.Decode(data)
	}
	if n.configErr = err; err != nil {
		n.gaps.Miss("nodes/"+n.name+"/configz.json", err, "the kubelet's configuration: policies, reservations, CFS period", "get nodes/proxy (kubelet /configz)")
		n.config, _ = kubeletconfig.Decode([]byte("{}"))
	}
}

const kubeletDir = "var/lib/kubelet"

func (n *nodeCase) readCPUState() (checkpoint.CPUState, error) {
	path := kubeletDir + "/cpu_manager_state"
	data, err := fs.ReadFile(n.fsys, path)
	if err != nil {
		n.gaps.Miss(n.filePath(path), err, "who owns which CPUs", "the node pod")
		return checkpoint.CPUState{}, notReadError{err}
	}
	return checkpoint.ReadCPU(data)
}

// notReadError is a file that this side could not read: nothing follows from it
// for the kubelet, which reads its own.
type notReadError struct{ error }

func (e notReadError) Unwrap() error { return e.error }

func (n *nodeCase) readMemoryState() (checkpoint.MemoryState, error) {
	path := kubeletDir + "/memory_manager_state"
	data, err := fs.ReadFile(n.fsys, path)
	if err != nil {
		if n.configErr != nil || n.config.MemoryManagerPolicy == "Static" {
			n.gaps.Miss(n.filePath(path), err, "who has memory on which NUMA node", "the node pod")
		}
		return checkpoint.MemoryState{}, notReadError{err}
	}
	return checkpoint.ReadMemory(data)
}

func (n *nodeCase) readTopology() (*topology.Topology, error) {
	lscpu, err := n.files.File("lscpu.txt")
	if err != nil {
		lscpu = nil
	}
	t, err := topology.Read(uncollected{n.fsys}, lscpu)
	if err != nil {
		n.gaps.Miss(n.filePath("sys/devices/system/cpu"), err, "cores, NUMA nodes and caches behind the CPU numbers", "the node pod")
		return nil, err
	}
	var partial partialError
	if err := n.machineDoubt(t, lscpu); errors.As(err, &partial) {
		n.lackMachine(partial, "cores, NUMA nodes and caches behind the CPU numbers, and whether the kubelet starts with them")
		return nil, err
	}
	return t, nil
}

func (n *nodeCase) readKernelLog() (kernlog.Log, error) {
	data, err := n.files.File("kernel.log")
	if err != nil {
		n.gaps.Miss("nodes/"+n.name+"/kernel.log", err, "which limit an OOM kill met, when, and what filled the memory", "the node pod with --privileged")
		return kernlog.Log{}, err
	}
	return kernlog.Parse(data, n.boot()), nil
}

// boot is an instant known in both clocks, so that the kernel's stamps (seconds
// since boot) become times.
func (n *nodeCase) boot() kernlog.Boot {
	samples := n.files.Samples()
	for i := len(samples) - 1; i >= 0; i-- {
		if samples[i].HasTime && samples[i].Uptime > 0 {
			return kernlog.Boot{Wall: samples[i].Time, Uptime: samples[i].Uptime}
		}
	}
	return kernlog.Boot{}
}

// filePath is where a file of the node stands in the bundle.
func (n *nodeCase) filePath(path string) string {
	return "nodes/" + n.name + "/root/" + strings.TrimPrefix(path, "/")
}

// source names a file of the node, with the sample it was read from.
func (n *nodeCase) source(path string) string { return n.files.Source(path) }

// fileEvidence is a value of a node's file.
func (n *nodeCase) fileEvidence(path, field, value, means string) report.Evidence {
	return report.Evidence{Source: n.source(path), Field: field, Value: value, Means: means, At: n.readAt(path)}
}

// readAt is when the file was read: the time of its sample; not known for a
// file outside the samples.
func (n *nodeCase) readAt(path string) metav1.Time {
	source := n.source(path)
	for _, s := range n.files.Samples() {
		if s.HasTime && strings.HasSuffix(source, fmt.Sprintf("@%d", s.Index)) {
			return metav1.NewTime(s.Time)
		}
	}
	return metav1.Time{}
}

func (n *nodeCase) configEvidence(field, value, means string) report.Evidence {
	return report.Evidence{Source: "kubelet:/configz", Field: field, Value: value, Means: means}
}

func (n *nodeCase) apiEvidence(field, value, means string) report.Evidence {
	return report.Evidence{Source: "api:nodes/" + n.name, Field: field, Value: value, Means: means}
}

func (n *nodeCase) subject() report.Subject { return report.Subject{Kind: "Node", Name: n.name} }

// versions names what decided the answer.
func (n *nodeCase) versions() report.Versions {
	v := report.Versions{Replay: fmt.Sprintf("kubelet 1.%d rules", n.rules.Minor)}
	if n.object != nil {
		info := n.object.Status.NodeInfo
		v.Kubelet, v.Kernel, v.ContainerRuntime = info.KubeletVersion, info.KernelVersion, info.ContainerRuntimeVersion
	}
	switch {
	case !n.rulesKnown:
		v.Replay += " (the kubelet's version is not known)"
	case !n.rulesExact:
		v.Replay += " (the nearest to " + valueOr(n.supposedVersion, v.Kubelet) + ")"
	}
	return v
}

// gate says whether a kubelet feature gate is on; an unknown gate is off.
func (n *nodeCase) gate(name string) bool {
	on, _ := n.config.Gate(name, n.rules.Minor)
	return on
}

// staticCPU says whether the CPU Manager's policy is static; known is false
// where neither the configuration nor the checkpoint tells.
func (n *nodeCase) staticCPU() (static, known bool) {
	if n.configErr == nil {
		return n.config.CPUManagerPolicy == "static", true
	}
	if state, err := n.cpuState(); err == nil || errors.Is(err, checkpoint.ErrCorrupt) {
		return state.PolicyName == "static", state.PolicyName != ""
	}
	return false, false
}

// settings are what of configuration, version and checkpoint decides the
// content of a pod's cgroup files.
func (n *nodeCase) settings(uid string) cgroup.Settings {
	s := cgroup.Settings{
		Minor:                n.rules.Minor,
		Systemd:              n.tree.Driver == cgroup.Systemd,
		CFSQuota:             n.config.CPUCFSQuota,
		CFSPeriodUsec:        uint64(n.config.CPUCFSQuotaPeriod.Microseconds()),
		SingleProcessOOMKill: n.singleProcessOOMKill(),
		MemoryQoS:            n.gate("MemoryQoS"),
		PodLevelResources:    n.gate("PodLevelResources"),
		QuotaWithExclusive:   !n.gate("DisableCPUQuotaWithExclusiveCPUs"),
		TieredReservation:    n.config.MemoryReservationPolicy == "TieredReservation",
		PodPidsLimit:         n.config.PodPidsLimit,
		Swap:                 cgroup.SwapBehavior(n.config.MemorySwapBehavior),
		PageSize:             4096,
		Exclusive:            func(container string) bool { return n.ownsCPUs(uid, container) },
	}
	if factor, ok := n.config.ThrottlingFactor(n.rules.Minor); ok {
		s.MemoryThrottlingFactor = &factor
	}
	s.SwapCapacity = n.swapCapacity()
	if n.object != nil {
		s.CapacityMemory = n.object.Status.Capacity.Memory().Value()
		s.ReservableMemory = n.reservableMemory()
	}
	return s
}

// architecture is the node's, "" if it is not known.
func (n *nodeCase) architecture() string {
	if n.object == nil {
		return ""
	}
	return n.object.Status.NodeInfo.Architecture
}

// singleProcessOOMKill is false on cgroup v2 unless it is set.
func (n *nodeCase) singleProcessOOMKill() bool {
	return n.config.SingleProcessOOMKill != nil && *n.config.SingleProcessOOMKill
}

// ownsCPUs says whether the checkpoint books CPUs for the container.
func (n *nodeCase) ownsCPUs(uid, container string) bool {
	state, err := n.cpuState()
	if err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
		return false
	}
	_, owns := state.Entries[uid][container]
	return owns
}
