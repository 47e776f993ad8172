package diagnose

import (
	"fmt"
	"slices"

	"github.com/noderes/kubectl-noderes/pkg/alloc/checkpoint"
	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

func (n *nodeCase) strictReservation() bool {
	return n.configErr == nil && n.config.CPUManagerPolicyOptions["strict-cpu-reservation"] == "true"
}

// explainFullPool says how a shared pool gets empty: with strict-cpu-reservation
// the reserved CPUs are not part of it, so that exclusive containers can own it
// all. The kubelet admits the last of them, and refuses the file when it starts.
func (n *nodeCase) explainFullPool(f *report.Finding, state checkpoint.CPUState) {
	names := map[string]string{}
	for i := range n.pods {
		if p := &n.pods[i]; active(p) {
			names[string(kubeletPod(p).UID)] = p.Namespace + "/" + p.Name
		}
	}
	var owned cpuset.Set
	var owners []string
	const most = 8
	for _, a := range state.Assignments() {
		owned = owned.Union(a.CPUs)
		means := "the container's own"
		if name := names[a.PodUID]; name != "" {
			means += ", of pod " + name
			if !slices.Contains(owners, name) {
				owners = append(owners, name)
			}
		}
		if len(f.Because) < most {
			f.Because = append(f.Because, n.fileEvidence(cpuStatePath, "entries["+a.PodUID+"]["+a.Container+"]", a.CPUs.String(), means))
		}
	}
	f.Because = append(f.Because, n.configEvidence("cpuManagerPolicyOptions[strict-cpu-reservation]", "true", "keeps the reserved CPUs out of the pool"))
	f.Summary += fmt.Sprintf(" With strict-cpu-reservation the pool is what neither is reserved nor owned by a container, and containers own all of that: %s %s.", noun(owned.Size(), "CPU"), owned)
	if _, up, known := n.ready(); known && up && len(owners) > 0 {
		which := "pod " + owners[0]
		if len(owners) > 1 {
			which = "any one of the pods " + join(owners[:min(len(owners), most)])
		}
		f.Remedies = append([]report.Remedy{{
			Summary: fmt.Sprintf("While the kubelet runs, end %s: its CPUs go back to the pool, and the file is one that the kubelet takes.", which),
			Caution: "Leave a CPU of the pool to pods without CPUs of their own: a new exclusive pod of that size fills it again.",
		}}, f.Remedies...)
		return
	}
	f.Remedies[0].Caution += " With the same pods the pool fills up again, and the start after that one fails."
}
