package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/alloc/hint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/kubeletconfig"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/alloc/topology"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// startFault is one thing on which the kubelet's next start fails.
type startFault struct {
	code report.Code
	// stage is where the start fails; "" before the managers.
	stage node.Stage
	// field and value are of the configuration; "" where no single one is at fault.
	field, value string
	message      string // the kubelet's
	// luck: by the random order of a map the kubelet can start as well.
	luck bool
}

// startFaults are all things on which the kubelet's next start fails: where it
// would stop at the first, the later stages are tried as if that one were
// mended. Checkpoints are judged here only by their content; whether they can
// be read at all is kubelet-checkpoint-invalid's own question.
func (n *nodeCase) startFaults() []startFault {
	if n.name == "" {
		return nil
	}
	var fields *kubeletconfig.FieldsError
	if errors.As(n.configErr, &fields) {
		return fieldFaults(fields)
	}
	if n.configErr != nil {
		return nil
	}
	var faults []startFault
	minor := n.rules.Minor
	if !n.rulesExact {
		minor = 0 // the gates of that version are not known
	}
	for _, i := range n.config.Invalid(minor) {
		faults = append(faults, startFault{code: report.KubeletConfigInvalid, field: i.Field, value: i.Value, message: i.Message})
	}
	topo, topoErr := n.topo()
	if reserved := n.config.ReservedSystemCPUs; topoErr == nil && !reserved.IsSubsetOf(topo.AllCPUs()) {
		return append(faults, startFault{code: report.KubeletConfigInvalid, field: "reservedSystemCPUs", value: reserved.String(),
			message: fmt.Sprintf("reserved-cpus: %s is not a subset of online-cpus: %s", reserved, topo.AllCPUs())})
	}
	capacity := n.capacity()
	reservation, err := n.config.Reservation(capacity)
	if err != nil {
		return append(faults, reservationFaults(err)...)
	}
	if topoErr != nil || len(faults) > 0 {
		return faults
	}
	list := corev1.ResourceList{}
	for name, r := range reservation {
		list[name] = r.Quantity
	}
	if _, known := capacity[corev1.ResourceMemory]; !known && n.config.MemoryManagerPolicy == "Static" {
		n.gaps.Lack("cluster/nodes.json", "the node's memory is not known", "whether reservedMemory agrees with the node's reservation", "get nodes")
		return faults
	}
	return n.managerFaults(node.Config{Topology: n.withRecordedMemory(topo), Kubelet: n.config, Reservation: list, Rules: n.rules})
}

// fieldFaults are values that are not of their field's type.
func fieldFaults(fields *kubeletconfig.FieldsError) []startFault {
	var faults []startFault
	for _, err := range fields.Fields {
		if errors.Is(err, kubeletconfig.ErrTwice) {
			continue
		}
		field, _, _ := strings.Cut(err.Error(), ": ")
		faults = append(faults, startFault{code: report.KubeletConfigInvalid, field: field, message: "failed to load kubelet config file: " + err.Error()})
	}
	return faults
}

// reservationFaults are amounts and thresholds that the kubelet cannot parse.
func reservationFaults(err error) []startFault {
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	var faults []startFault
	for _, e := range list {
		field, why, _ := strings.Cut(e.Error(), ": ")
		message := why
		switch {
		case strings.HasPrefix(field, "kubeReserved"):
			message = "--kube-reserved value failed to parse: " + why
		case strings.HasPrefix(field, "systemReserved"):
			message = "--system-reserved value failed to parse: " + why
		}
		faults = append(faults, startFault{code: report.KubeletConfigInvalid, field: field, message: message})
	}
	return faults
}

// managerFaults starts the managers again and again, without what failed.
func (n *nodeCase) managerFaults(c node.Config) []startFault {
	var faults []startFault
	state, readable := n.startState()
	for range 8 { // each round takes one manager, option or state out
		_, err := node.Start(c, state)
		var start *node.StartError
		if !errors.As(err, &start) {
			return faults
		}
		f := startFault{code: report.KubeletCheckpointInvalid, stage: start.Stage, luck: node.MayStart(err)}
		for _, e := range start.Possible {
			if e != nil && f.message == "" {
				f.message = e.Error()
			}
		}
		k := &c.Kubelet
		switch start.Stage {
		case node.TopologyManager:
			f.code, f.field, f.value = report.KubeletConfigInvalid, "topologyManagerPolicyOptions", options(k.TopologyManagerPolicyOptions)
			if strings.HasPrefix(f.message, "unsupported on machines with more than") {
				f.code, f.field, f.value = report.TooManyNUMANodes, "topologyManagerPolicy", k.TopologyManagerPolicy
			}
			k.TopologyManagerPolicy = "none"
		case node.CPUManager:
			f.code, f.field, f.value = report.KubeletConfigInvalid, "cpuManagerPolicyOptions", options(k.CPUManagerPolicyOptions)
			switch {
			case errors.Is(err, hint.ErrWouldHang):
				f.code = report.KubeletWouldHang
			case strings.HasPrefix(f.message, "unknown policy"):
				f.field, f.value = "cpuManagerPolicy", k.CPUManagerPolicy
			case strings.Contains(f.message, "reserve"):
				f.field, f.value = cpuReservationField(k)
			}
			k.CPUManagerPolicy, k.CPUManagerPolicyOptions, state.CPU = "none", nil, nil
		case node.MemoryManager:
			f.code, f.field, f.value = report.KubeletConfigInvalid, "memoryManagerPolicy", k.MemoryManagerPolicy
			switch {
			case strings.HasPrefix(f.message, "the reserved memory configuration"), strings.HasPrefix(f.message, "could not covert"):
				f.field, f.value = "reservedMemory", reservedMemoryText(k.ReservedMemory)
			case k.MemoryManagerPolicy == "Static":
				f.code, f.field, f.value = report.ReservedMemoryMismatch, "reservedMemory", reservedMemoryText(k.ReservedMemory)
			}
			k.MemoryManagerPolicy, state.Memory = "None", nil
		case node.CPUManagerStart:
			f.field = "cpu_manager_state"
			if state.CPUPolicy != k.CPUManagerPolicy {
				readable.cpu = false // said by the file's own check
			}
			state.CPU = nil
			if !readable.cpu {
				continue
			}
		case node.MemoryManagerStart:
			f.field = "memory_manager_state"
			skip := !readable.memory || state.MemoryPolicy != k.MemoryManagerPolicy || !n.memoryKnown(c.Topology)
			state.Memory = nil
			if skip {
				continue
			}
		}
		if start.Stage == node.TopologyManager && strings.Contains(f.message, "NUMA distances") && !n.distancesKnown(c.Topology) {
			n.gaps.Lack(n.filePath("sys/devices/system/node/node*/distance"), "not collected", "whether the kubelet finds the distances that prefer-closest-numa-nodes needs", "the node pod")
			continue
		}
		faults = append(faults, f)
	}
	return faults
}

type readableStates struct{ cpu, memory bool }

// startState is what of the checkpoints can be read; the rest is as if there
// were no file.
func (n *nodeCase) startState() (node.State, readableStates) {
	var s node.State
	state, err := n.recordedState()
	var r readableStates
	if _, e := n.cpuState(); e == nil && state.CPU != nil {
		s.CPU, s.CPUPolicy, r.cpu = state.CPU, state.CPUPolicy, true
	}
	if _, e := n.memState(); e == nil && err == nil && state.Memory != nil {
		s.Memory, s.MemoryPolicy, r.memory = state.Memory, state.MemoryPolicy, true
	}
	return s, r
}

func cpuReservationField(k *kubeletconfig.Config) (field, value string) {
	if !k.ReservedSystemCPUs.IsEmpty() {
		return "reservedSystemCPUs", k.ReservedSystemCPUs.String()
	}
	value = "none"
	var parts []string
	if v, ok := k.KubeReserved["cpu"]; ok {
		parts = append(parts, "kubeReserved "+v)
	}
	if v, ok := k.SystemReserved["cpu"]; ok {
		parts = append(parts, "systemReserved "+v)
	}
	if len(parts) > 0 {
		value = join(parts)
	}
	return "kubeReserved.cpu, systemReserved.cpu", value
}

// distancesKnown says whether it is known of every NUMA node without distances
// that it has none.
func (n *nodeCase) distancesKnown(t *topology.Topology) bool {
	for _, node := range t.NUMANodes {
		if node.HasDistances {
			continue
		}
		_, err := fs.Stat(n.fsys, fmt.Sprintf("sys/devices/system/node/node%d/distance", node.ID))
		if !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return t.Source == topology.Sysfs || len(t.NUMANodes) > 0
}
