package diagnose

import (
	"fmt"
	"strings"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// memoryHealthy says what was checked of a pod's memory and the numbers that
// show it well: no OOM at any level of the pod, none in its status, nothing
// throttled by memory.high, and room left that the kernel need not make first.
func memoryHealthy(c *podCase) []report.Finding {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	e := c.oom()
	for _, key := range []string{"oom", "oom_kill", "high"} {
		if n, ok := e.slice.inTree(key); ok && n > 0 {
			return nil
		}
	}
	if len(e.kills) > 0 {
		return nil
	}
	var because []report.Evidence
	because = append(because, c.eventsEvidence(e.slice, false, "the pod's cgroup", "oom", "oom_kill", "max")...)
	var parts []string
	for _, k := range c.containers() {
		if end := k.end(); end != nil && (end.Reason == reasonOOMKilled || end.ExitCode == 137 || c.startFailed(k)) {
			return nil
		}
		g, ok := c.containerGroup(k.Name)
		if !ok {
			continue
		}
		scope := e.scopes[k.Name]
		for _, key := range []string{"oom", "oom_kill", "high"} {
			n, ok := scope.inTree(key)
			if !ok && !e.known || n > 0 {
				return nil
			}
		}
		text, evidence, well := c.memoryWell(k.Name, g)
		if !well {
			return nil
		}
		parts = append(parts, text)
		because = append(because, evidence...)
		if !e.known {
			because = append(because, c.eventsEvidence(scope, false, "container "+k.Name, "oom", "oom_kill", "max")...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []report.Finding{newFinding(report.MemoryHealthy, report.Proven, c.subject(""),
		fmt.Sprintf("No OOM kill and no memory pressure at a limit: %s.", strings.Join(parts, "; ")), because...)}
}

// memoryWell says whether a container has room: what cannot be taken back
// stays below nearLimit of its limit. Page cache fills a limit without harm.
func (c *podCase) memoryWell(name string, g cgroup.Group) (string, []report.Evidence, bool) {
	current, err := g.MemoryCurrent()
	if err != nil {
		c.gaps.miss(c.filePath(g.File("memory.current")), err, "how much memory container "+name+" uses", "")
		return "", nil, false
	}
	because := []report.Evidence{c.fileEvidence(g.File("memory.current"), "", fmt.Sprint(current), "container "+name)}
	limit, err := g.MemoryMax()
	if err != nil {
		return "", nil, false
	}
	because = append(because, c.fileEvidence(g.File("memory.max"), "", limit.String(), "its limit"))
	if limit.Max {
		return fmt.Sprintf("container %s holds %s without a limit", name, bothBytes(current)), because, true
	}
	held, text := current, "in use"
	if stat, err := g.MemoryStat(); err == nil {
		if n, ok := stat.NonReclaimable(); ok && n <= current {
			held, text = n, "that cannot be taken back"
			because = append(because, c.fileEvidence(g.File("memory.stat"), "anon + shmem + kernel − slab_reclaimable + sock + unevictable", fmt.Sprint(n), "what the kernel cannot take back without swap"))
		}
	}
	if float64(held) >= nearLimit*float64(limit.Bytes) {
		return "", nil, false
	}
	return fmt.Sprintf("container %s holds %s of its limit of %s (%s), %s %s", name, bothBytes(current), bothBytes(limit.Bytes),
		percent(float64(current)/float64(limit.Bytes)), bytes(held), text), because, true
}
