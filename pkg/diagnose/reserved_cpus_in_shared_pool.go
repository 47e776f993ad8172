package diagnose

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/alloc/node"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const strictReservation = "strict-cpu-reservation"

// reservedPool is the part of the shared pool that is reserved for the system.
type reservedPool struct{ pool, reserved, both cpuset.Set }

// mostly: more than half of the pool is reserved.
func (r reservedPool) mostly() bool { return 2*r.both.Size() > r.pool.Size() }

// reservedPool is what the checkpoint and the configuration say of it; ok is
// false where no reserved CPU is in the pool, where that is not known, and where
// it is not by design: in a state that the kubelet refuses, or against the strict
// option.
func (n *nodeCase) reservedPool() (reservedPool, bool) {
	reserved, known := n.reservedCPUs()
	state, ok := n.cpuCheckpoint()
	if !known || !ok || state.PolicyName != "static" || n.config.CPUManagerPolicy != "static" {
		return reservedPool{}, false
	}
	if strict, err := strconv.ParseBool(n.config.CPUManagerPolicyOptions[strictReservation]); err == nil && strict || n.cpuStateRefused() {
		return reservedPool{}, false
	}
	r := reservedPool{pool: state.Default, reserved: reserved, both: state.Default.Intersection(reserved)}
	return r, !r.both.IsEmpty()
}

// cpuStateRefused says whether the kubelet's next start refuses the content of
// the CPU Manager's checkpoint: nothing it holds is then as the rules have it.
func (n *nodeCase) cpuStateRefused() bool {
	return slices.ContainsFunc(n.startFaults(), func(f startFault) bool {
		return f.code == report.KubeletCheckpointInvalid && f.stage == node.CPUManagerStart
	})
}

// nodeReservedInSharedPool says that pods without exclusive CPUs run on the
// reserved ones too: the static policy keeps these from exclusive use and leaves
// them in the default set (kubelet 1.34 to 1.37), unless strict-cpu-reservation.
func nodeReservedInSharedPool(n *nodeCase) []report.Finding {
	r, ok := n.reservedPool()
	if !ok {
		return nil
	}
	return []report.Finding{n.reservedFinding(r, n.subject(), fmt.Sprintf(
		"The reserved %s %s %s part of the shared pool %s, by design: pods without exclusive CPUs run on %s beside the system%s",
		noun(r.both.Size(), "CPU"), r.both, verb(r.both.Size(), "is", "are"), r.pool, verb(r.both.Size(), "it", "them"), r.only()))}
}

// only says what the pool consists of.
func (r reservedPool) only() string {
	switch own := r.pool.Difference(r.reserved); {
	case own.IsEmpty():
		return ", and on no others."
	case r.mostly():
		return fmt.Sprintf(", and on only %s besides (%s).", plural(own.Size(), "CPU"), own)
	default:
		return "."
	}
}

// podReservedInSharedPool says it of a pod whose pool is mostly reserved CPUs.
func podReservedInSharedPool(c *podCase) []report.Finding {
	r, ok := c.reservedPool()
	if !ok || !r.mostly() || !active(c.pod) {
		return nil
	}
	var names []string
	var live []report.Evidence
	for _, k := range c.containers() {
		if _, owns := c.ownedCPUs(c.uid, k.Name); owns || k.finished() {
			continue
		}
		if set, file, ok := c.liveCPUs(k.Name); ok {
			on, err := cpuset.Parse(set)
			if err != nil || on.Intersection(r.both).IsEmpty() {
				continue
			}
			live = append(live, c.fileEvidence(file, "", set, "the CPUs of container "+k.Name))
		}
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return nil
	}
	subject, who := c.subject(""), "Containers "+join(names)+" run"
	if len(names) == 1 {
		subject, who = c.subject(names[0]), "Container "+names[0]+" runs"
	}
	f := c.reservedFinding(r, subject, fmt.Sprintf(
		"%s in the shared pool %s, of which %s %s reserved for the system, by design: the system's daemons run there too%s",
		who, r.pool, r.both, verb(r.both.Size(), "is", "are"), r.onlyHere()))
	f.Because = append(f.Because, live...)
	return []report.Finding{f}
}

func (r reservedPool) onlyHere() string {
	if own := r.pool.Difference(r.reserved); !own.IsEmpty() {
		return fmt.Sprintf(", and of the pool only %s (%s) for pods alone.", plural(own.Size(), "CPU"), own)
	}
	return ", and exclusive containers hold all other CPUs."
}

func (n *nodeCase) reservedFinding(r reservedPool, subject report.Subject, summary string) report.Finding {
	f := report.NewFinding(report.ReservedInSharedPool, report.Proven, subject, summary,
		n.reservedEvidence(r.reserved),
		n.fileEvidence(cpuStatePath, "defaultCpuSet", r.pool.String(), "the shared pool"))
	option := "not set"
	if v, ok := n.config.CPUManagerPolicyOptions[strictReservation]; ok {
		option = v
	}
	f.Because = append(f.Because, n.configEvidence("cpuManagerPolicyOptions["+strictReservation+"]", option, "would take the reserved CPUs out of the pool"))
	f.Remedies = []report.Remedy{{
		Summary: "Set the CPU Manager's option strict-cpu-reservation=true if pods are to stay off the reserved CPUs.",
		Effect:  fmt.Sprintf("The shared pool would be %s.", orEmptySet(r.pool.Difference(r.reserved))),
		Caution: "The option takes effect with an empty checkpoint: drain the node, delete cpu_manager_state, restart the kubelet. " +
			"If exclusive containers then take up the whole pool, pods without exclusive CPUs still come, but the kubelet gives them no cpuset, so that they may run on all CPUs, exclusive ones too; " +
			"and its next start fails: default cpuset cannot be empty.",
	}}
	return f
}

func orEmptySet(s cpuset.Set) string {
	if s.IsEmpty() {
		return "empty"
	}
	return s.String()
}
