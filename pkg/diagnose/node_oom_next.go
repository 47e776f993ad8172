package diagnose

import (
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// nodeOOMNext says whom the kernel would kill first if the node as a whole ran
// out of memory now: the process with the highest badness (Linux, oom_badness),
// computed from /proc. It is no prediction that this will happen, and not the
// kubelet's order of eviction, which goes by requests and priorities.
func nodeOOMNext(n *nodeCase) []report.Finding {
	q, ok := n.oomQueue()
	if !ok {
		return nil
	}
	return []report.Finding{n.oomNextFinding(q)}
}

// podOOMNext says it on the report of the pod that would be hit.
func podOOMNext(c *podCase) []report.Finding {
	q, ok := c.oomQueue()
	if !ok || q.processes[0].uid != c.uid {
		return nil
	}
	return []report.Finding{c.oomNextFinding(q)}
}

func (n *nodeCase) oomNextFinding(q oomQueue) report.Finding {
	const rows = 5
	first := q.processes[0]
	subject := n.subject()
	if first.pod != nil {
		subject = report.Subject{Kind: "Pod", Namespace: first.pod.Namespace, Name: first.pod.Name, Container: first.container}
	}
	f := report.NewFinding(report.NodeOOMNext, report.Likely, subject, fmt.Sprintf(
		"If the node ran out of memory now, the kernel would kill process %d (%s) of %s first: %s, the highest of %s; no limit has to be met for that.",
		first.PID, quoteName(first.Name), first.name(), perMille(first.OOMTask(), q.total), processes(uint64(len(q.processes)))))
	f.Because = append(f.Because, n.oomRow(q, first, 1))
	f.Because = append(f.Because, n.fileEvidence(first.Dir()+"/oom_score_adj", "", fmt.Sprint(first.OOMScoreAdj), "as it is, in thousandths of all memory"))
	if score, ok := n.oomScore(first.PID); ok {
		f.Because = append(f.Because, n.fileEvidence(first.Dir()+"/oom_score", "", score,
			fmt.Sprintf("the kernel's own figure; (1000 + 1000 × points / pages) × 2 / 3 = %d", cgroup.OOMScore(first.badness, q.total))))
	}
	f.Because = append(f.Because, n.fileEvidence("proc/meminfo", "MemTotal", fmt.Sprintf("%d kB", q.mem["MemTotal"]/1024), ""))
	if swap := q.mem["SwapTotal"]; swap > 0 {
		f.Because = append(f.Because, n.fileEvidence("proc/meminfo", "SwapTotal", fmt.Sprintf("%d kB", swap/1024), "counts as memory here"))
	}
	seen := map[string]bool{first.scope: first.scope != ""}
	shown := 1
	for i, p := range q.processes {
		if shown == rows {
			break
		}
		if p.scope != "" && seen[p.scope] {
			continue // one process stands for its container
		}
		seen[p.scope] = true
		if i > 0 {
			shown++
			f.Because = append(f.Because, n.oomRow(q, p, i+1))
		}
	}
	f.Arithmetic = fmt.Sprintf("pages = (%d + %d) kB / 4 = %d; points = rss + swap + page tables / 4096 + oom_score_adj × (pages / 1000) = %s",
		q.mem["MemTotal"]/1024, q.mem["SwapTotal"]/1024, q.total, first.OOMTask().Arithmetic(q.total))
	if first.pod != nil && first.container != "" {
		c := newPodCase(n, first.pod)
		if adj, arithmetic, err := c.oomScoreAdj(first.container); err == nil && adj == first.OOMScoreAdj {
			f.Arithmetic += "; oom_score_adj by the kubelet: " + arithmetic
		}
		if g, ok := c.containerGroup(first.container); ok {
			if group, err := g.MemoryOOMGroup(); err == nil && group {
				f.Because = append(f.Because, n.fileEvidence(g.File("memory.oom.group"), "", "1", "all processes of the container die with it"))
			}
		}
	}
	if !q.host {
		n.gaps.Lack(n.filePath("proc"), "only processes of pods were read", "a process of the node's own, or of a user, with a higher oom_score_adj would die first", "the node pod, which sees all processes")
	}
	f.Remedies = []report.Remedy{{
		Summary: "Set the memory request near to use: for a Burstable container oom_score_adj is 1000 − 1000 × request / capacity; requests equal to limits give −997.",
		Effect:  "The kernel then prefers others. It does not make memory: evictionHard memory.available and systemReserved keep the node from getting there.",
	}}
	return f
}

// oomScore is /proc/PID/oom_score as it was read.
func (n *nodeCase) oomScore(pid int) (string, bool) {
	return n.oneLine(fmt.Sprintf("proc/%d/oom_score", pid))
}
