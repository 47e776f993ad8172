package diagnose

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// podCPUSetDrift compares the cpuset of each running container's cgroup with
// the CPU Manager's checkpoint: its own set, or the shared pool. The kubelet
// repairs a set only when its own wish changes, not when someone else writes
// the file.
func podCPUSetDrift(c *podCase) []report.Finding {
	state, ok := c.cpuCheckpoint()
	if !ok || state.PolicyName != "static" || c.groupsErr != nil || !active(c.pod) {
		return nil
	}
	var out []report.Finding
	for _, k := range c.containers() {
		if !k.running() {
			continue
		}
		live, file, ok := c.liveCPUs(k.Name)
		if !ok {
			continue
		}
		have, err := cpuset.Parse(live)
		if err != nil {
			continue
		}
		want, owns := c.ownedCPUs(c.uid, k.Name)
		what := "its own CPUs"
		if !owns {
			want, what = state.Default, "the shared pool"
		}
		if have == want {
			continue
		}
		// An offline CPU is missing from the effective set without drift.
		if strings.HasSuffix(file, ".effective") {
			if online, ok := c.onlineCPUs(); ok && have == want.Intersection(online) {
				continue
			}
		}
		confidence := report.Proven
		summary := fmt.Sprintf("Container %s runs on CPUs %s, where the checkpoint says %s (%s)", k.Name, orNothing(live), orNothing(want.String()), what)
		started := k.status.State.Running.StartedAt.Time
		readAt := c.readAt(file).Time
		if readAt.IsZero() {
			readAt = c.snap.Manifest().CapturedAt // the end of the reading
		}
		if age := readAt.Sub(started); age < c.reconcilePeriod() {
			confidence = report.Possible
			summary += fmt.Sprintf("; it started %s before the reading, within one reconcile period of %s", age.Round(time.Second), c.reconcilePeriod())
		}
		f := report.NewFinding(report.CPUSetDrift, confidence, c.subject(k.Name), summary+".",
			c.fileEvidence(file, "", live, "the cgroup"))
		if owns {
			f.Because = append(f.Because, c.ownershipEvidence(k.Name)...)
		} else {
			f.Because = append(f.Because, c.fileEvidence(cpuStatePath, "defaultCpuSet", state.Default.String(), "the shared pool"))
		}
		f.Remedies = []report.Remedy{{
			Summary: "Find who else writes the cpuset (an NRI plugin, a tuning agent, a hand edit), then restart the container.",
			Effect:  "The kubelet compares with the set it wrote last, not with the cgroup: it will not repair this by itself.",
		}}
		out = append(out, f)
	}
	return out
}

func orNothing(set string) string {
	if set == "" {
		return "none"
	}
	return set
}

// reconcilePeriod is how often the CPU Manager writes sets that changed.
func (n *nodeCase) reconcilePeriod() time.Duration {
	if n.config.CPUManagerReconcilePeriod > 0 {
		return n.config.CPUManagerReconcilePeriod
	}
	return 10 * time.Second
}

// onlineCPUs are the CPUs online now.
func (n *nodeCase) onlineCPUs() (cpuset.Set, bool) {
	data, err := fs.ReadFile(n.fsys, "sys/devices/system/cpu/online")
	if err != nil {
		return cpuset.Set{}, false
	}
	set, err := cpuset.Parse(strings.TrimSpace(string(data)))
	return set, err == nil
}

// nodeCPUSetDrift asks the same of every pod of the node.
func nodeCPUSetDrift(n *nodeCase) []report.Finding {
	if state, ok := n.cpuCheckpoint(); !ok || state.PolicyName != "static" || n.treeErr != nil {
		return nil
	}
	var out []report.Finding
	for i := range n.pods {
		out = append(out, podCPUSetDrift(newPodCase(n, &n.pods[i]))...)
	}
	return out
}
