package diagnose

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// isolatedCPUsInSet says that a container's CPUs are isolated by the kernel's
// isolcpus: the scheduler does not move threads between them, all stay where
// they started. The kubelet does not look at isolcpus.
func isolatedCPUsInSet(c *podCase) []report.Finding {
	isolatedCPUs, source, known := c.isolatedCPUs()
	if !known || !active(c.pod) {
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
		isolated := set.Intersection(isolatedCPUs)
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
		f := report.NewFinding(report.IsolatedCPUsInSet, report.Proven, c.subject(k.Name), fmt.Sprintf(
			"Container %s %s %s, of which the kernel isolates %s (isolcpus): it balances no load between isolated CPUs, so that threads stay on the CPU they start on while others idle.",
			k.Name, whose, set, isolated), evidence...)
		f.Because = append(f.Because, source)
		f.Remedies = []report.Remedy{{
			Summary: "Leave isolcpus out where the kubelet hands out CPUs, or let the application pin each of its threads itself (sched_setaffinity).",
			Effect:  "The static policy isolates by cpuset; the kernel then balances inside each container's set.",
		}}
		out = append(out, f)
	}
	return out
}

// isolatedCPUs are those between which the kernel balances no load, by sysfs or
// else by its command line.
func (n *nodeCase) isolatedCPUs() (cpuset.Set, report.Evidence, bool) {
	if topo, err := n.topo(); err == nil && topo.Kernel.Isolated.Known {
		set := topo.Kernel.Isolated.CPUs
		return set, n.fileEvidence("sys/devices/system/cpu/isolated", "", set.String(), "isolated by the kernel's command line"), true
	}
	line, err := fs.ReadFile(n.fsys, "proc/cmdline")
	if err != nil {
		return cpuset.Set{}, report.Evidence{}, false
	}
	set, text, ok := isolcpus(string(line))
	return set, n.fileEvidence("proc/cmdline", "isolcpus", text, "isolated by the kernel's command line"), ok
}

// isolcpus reads isolcpus=[flag,…]list of a kernel command line, the last one if
// there are several. Without the flag domain, others alone leave the balancing
// as it is (kernel-parameters.txt).
func isolcpus(cmdline string) (set cpuset.Set, text string, ok bool) {
	for _, word := range strings.Fields(cmdline) {
		list, found := strings.CutPrefix(word, "isolcpus=")
		if !found {
			continue
		}
		text = clip(list)
		domain, flags := false, false
		for list != "" && (list[0] < '0' || list[0] > '9') {
			flag, rest, _ := strings.Cut(list, ",")
			domain, flags, list = domain || flag == "domain", true, rest
		}
		parsed, err := cpuset.Parse(list)
		if set, ok = parsed, err == nil; flags && !domain {
			set = cpuset.Set{}
		}
	}
	return set, text, ok
}
