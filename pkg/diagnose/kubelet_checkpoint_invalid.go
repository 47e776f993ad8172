package diagnose

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// checkpointInvalid speaks of a checkpoint that the kubelet refuses at its
// next start: corrupt, unreadable, of a form that this version does not read,
// written under another policy, or with a content that is not this machine's.
func checkpointInvalid(n *nodeCase) []report.Finding {
	var out []report.Finding
	state, err := n.cpuState()
	if f, bad := n.checkpointFinding(cpuStatePath, "CPU manager", "", err, state.PolicyName, n.config.CPUManagerPolicy, "cpuManagerPolicy"); bad {
		out = append(out, f)
	} else if f, bad := n.cpuFormUnreadable(state, err); bad {
		out = append(out, f)
	}
	mem, err := n.memState()
	if f, bad := n.checkpointFinding(memoryStatePath, "memory manager", "[memorymanager] ", err, mem.PolicyName, n.config.MemoryManagerPolicy, "memoryManagerPolicy"); bad {
		out = append(out, f)
	} else if f, bad := n.memoryFormUnreadable(mem, err); bad {
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, n.stateFindings()...)
	}
	if len(out) == 0 {
		return nil
	}
	for _, fault := range n.startFaults() {
		if fault.code != report.KubeletConfigInvalid {
			continue
		}
		for i := range out {
			out[i].Summary += fmt.Sprintf(" It comes to that only with another %s, which it refuses before it reads a checkpoint.", valueOr(fault.field, "configuration"))
		}
		break
	}
	return out
}

// podCheckpointInvalid says it in a pod's report too: the placement of its
// containers then cannot be told.
func podCheckpointInvalid(c *podCase) []report.Finding {
	if c.name == "" || c.ended() {
		return nil
	}
	return checkpointInvalid(c.nodeCase)
}

// absent says whether a file was not there to be judged, for whatever reason.
func isAbsent(err error) bool {
	var gap *snapshot.GapError
	var unread notReadError
	return errors.As(err, &unread) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, snapshot.ErrNotCollected) || errors.As(err, &gap)
}

func (n *nodeCase) checkpointFinding(path, manager, prefix string, err error, written, configured, field string) (report.Finding, bool) {
	file := "/" + path
	says := func(reason string) string { return notRestored(reason, manager, file) }
	remedy := drainAndDelete(file)
	subject := n.subject()
	switch {
	case err != nil && isAbsent(err):
		return report.Finding{}, false
	case errors.Is(err, checkpoint.ErrCorrupt):
		f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, subject,
			fmt.Sprintf("The %s's checkpoint %s is corrupt (%v): the kubelet refuses it at its next start.", manager, file, err),
			n.fileEvidence(path, "checksum", err.Error(), says("checkpoint is corrupted")))
		f.Because = append(f.Because, n.logEvidence("checkpoint is corrupted")...)
		f.Remedies = remedy
		return f, true
	case err != nil:
		f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, subject,
			fmt.Sprintf("The %s's checkpoint %s cannot be read: %v.", manager, file, err),
			n.fileEvidence(path, "", err.Error(), "the kubelet refuses a checkpoint it cannot read"))
		f.Remedies = remedy
		return f, true
	case n.configErr == nil && written != "" && configured != "" && written != configured:
		reason := fmt.Sprintf("%sconfigured policy %q differs from state checkpoint policy %q", prefix, configured, written)
		f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, subject,
			fmt.Sprintf("The %s's checkpoint %s was written under policy %q, the kubelet is configured for %q: it refuses to start.", manager, file, written, configured),
			n.fileEvidence(path, "policyName", written, says(reason)),
			n.configEvidence(field, configured, ""))
		f.Because = append(f.Because, n.logEvidence(reason)...)
		f.Remedies = remedy
		return f, true
	}
	return report.Finding{}, false
}

// notRestored is the kubelet's message for a checkpoint that it cannot take over.
func notRestored(reason, manager, file string) string {
	return fmt.Sprintf("could not restore state from checkpoint: %s, please drain this node and delete the %s checkpoint file %q before restarting Kubelet", reason, manager, file)
}

func drainAndDelete(file string) []report.Remedy {
	caution := "Without a drain running containers keep CPUs that the new checkpoint gives away."
	if file == "/"+memoryStatePath {
		caution = "Without a drain running containers stay on their NUMA nodes, whose memory the new checkpoint can book for others."
	}
	return []report.Remedy{{
		Summary: "Drain the node, delete the file, restart the kubelet: it then writes a new one.",
		Command: "rm " + file,
		Caution: caution,
	}}
}
