package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// cpuFormUnreadable speaks of a checkpoint in a form that this version of the
// kubelet does not read (cpumanager/state, restoreState): 1.37 reads forms 2, 3
// and 4; 1.36 reads 2, and 3 with PodLevelResourceManagers; 1.34 and 1.35 read 1
// and 2. Form 4 repeats its content as form 2 for the older ones.
func (n *nodeCase) cpuFormUnreadable(state checkpoint.CPUState, err error) (report.Finding, bool) {
	if err != nil || !n.rulesExact || n.configErr != nil {
		return report.Finding{}, false
	}
	var why string
	switch r := n.rules; {
	case state.Version == 1 && r.Minor >= 37:
		why = "entries by container id, as kubelets before 1.18 wrote them"
	case state.Version == 3 && r.Minor <= 36 && !r.PodLevelResourceManagers:
		why = "the form with pod entries, which only a kubelet with PodLevelResourceManagers or from 1.37 on reads"
	case state.Version == 4 && r.Minor <= 36 && repeatsWrong(state.Checksums):
		why = "the form of 1.37, whose repetition for older kubelets has a wrong checksum"
	default:
		return report.Finding{}, false
	}
	return n.formFinding(cpuStatePath, "CPU manager", state.Version, why), true
}

// memoryFormUnreadable does the same for the memory manager's, whose forms 1, 2
// and 3 are the CPU manager's 2, 3 and 4.
func (n *nodeCase) memoryFormUnreadable(state checkpoint.MemoryState, err error) (report.Finding, bool) {
	if err != nil || !n.rulesExact || n.configErr != nil {
		return report.Finding{}, false
	}
	var why string
	switch r := n.rules; {
	case state.Version == 2 && r.Minor <= 36 && !r.PodLevelResourceManagers:
		why = "the form with pod entries, which only a kubelet with PodLevelResourceManagers or from 1.37 on reads"
	case state.Version == 3 && r.Minor <= 36 && repeatsWrong(state.Checksums):
		why = "the form of 1.37, whose repetition for older kubelets has a wrong checksum"
	default:
		return report.Finding{}, false
	}
	return n.formFinding(memoryStatePath, "memory manager", state.Version, why), true
}

// repeatsWrong says whether the fields beside data, the second checksum's, are
// not those of that checksum.
func repeatsWrong(sums []checkpoint.Checksum) bool { return len(sums) > 1 && !sums[1].OK }

func (n *nodeCase) formFinding(path, manager string, version int, why string) report.Finding {
	file := "/" + path
	f := report.NewFinding(report.KubeletCheckpointInvalid, report.Proven, n.subject(),
		fmt.Sprintf("The %s's checkpoint %s is of form %d (%s): a kubelet of 1.%d does not read it and does not start.", manager, file, version, why, n.rules.Minor),
		n.fileEvidence(path, "form", fmt.Sprint(version), notRestored(checkpoint.ErrCorrupt.Error(), manager, file)))
	if n.object != nil {
		f.Because = append(f.Because, n.apiEvidence("status.nodeInfo.kubeletVersion", n.object.Status.NodeInfo.KubeletVersion, fmt.Sprintf("the rules of 1.%d apply", n.rules.Minor)))
	}
	f.Remedies = drainAndDelete(file)
	return f
}
