package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// isolatedCPUsInSet says that a container's CPUs are isolated by the kernel's
// isolcpus: the scheduler does not move threads between them, all stay where
// they started. The kubelet does not look at isolcpus.
func isolatedCPUsInSet(c *podCase) []report.Finding {
	topo, err := c.topo()
	if err != nil || !active(c.pod) || !topo.Kernel.Isolated.Known {
		return nil
	}
	state, ok := c.cpuCheckpoint()
	if !ok || state.PolicyName != "static" {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if k.finished() {
			continue
		}
		set, owns := c.ownedCPUs(c.uid, k.Name)
		if !owns {
			set = state.Default
		}
		isolated := set.Intersection(topo.Kernel.Isolated.CPUs)
		// One CPU needs no balancing.
		if isolated.IsEmpty() || set.Size() < 2 {
			continue
		}
		whose := "owns"
		evidence := c.ownershipEvidence(k.Name)
		if !owns {
			whose = "runs in the shared pool"
			evidence = []report.Evidence{c.fileEvidence(cpuStatePath, "defaultCpuSet", set.String(), "the shared pool")}
		}
		f := newFinding(report.IsolatedCPUsInSet, report.Proven, c.subject(k.Name), fmt.Sprintf(
			"Container %s %s %s, of which the kernel isolates %s (isolcpus): it balances no load between isolated CPUs, so that threads stay on the CPU they start on while others idle.",
			k.Name, whose, set, isolated), evidence...)
		f.Because = append(f.Because, c.isolatedEvidence(topo.Kernel.Isolated.CPUs))
		f.Remedies = []report.Remedy{{
			Summary: "Leave isolcpus out where the kubelet hands out CPUs, or let the application pin each of its threads itself (sched_setaffinity).",
			Effect:  "The static policy isolates by cpuset; the kernel then balances inside each container's set.",
		}}
		out = append(out, f)
	}
	return out
}

func (n *nodeCase) isolatedEvidence(isolated cpuset.Set) report.Evidence {
	return n.fileEvidence("sys/devices/system/cpu/isolated", "", isolated.String(), "isolated by the kernel's command line")
}
