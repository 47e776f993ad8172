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
	if c.groupsErr != nil || c.ended() || c.memoryTrouble() {
		return nil
	}
	e := c.oom()
	for _, key := range []string{"oom", "oom_kill", "high"} {
		n, inPod := e.slice.inTree(key)
		if n > 0 {
			return nil
		}
		for _, k := range c.containers() {
			if _, stands := c.containerGroup(k.Name); !stands {
				continue
			}
			if n, known := e.scopes[k.Name].inTree(key); n > 0 || !known && !inPod {
				return nil
			}
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
	if len(parts) == 0 || !c.podHasRoom() {
		return nil
	}
	return []report.Finding{report.NewFinding(report.MemoryHealthy, report.Proven, c.subject(""),
		fmt.Sprintf("No OOM kill and no memory pressure at a limit: %s.", strings.Join(parts, "; ")), dedupe(because)...)}
}

// memoryTrouble says whether a warning of the pod's memory or processes stands
// that needs no OOM.
func (c *podCase) memoryTrouble() bool {
	for _, find := range []func(*podCase) []report.Finding{memoryReclaimThrash, memoryHighThrottled, memoryNearLimit, pidsLimitReached} {
		if len(find(c)) > 0 {
			return true
		}
	}
	return false
}

// podHasRoom says whether the pod's own group is well below its limit, as far
// as it was read: what a container left behind is charged there, and so are all
// containers together.
func (c *podCase) podHasRoom() bool {
	m := c.memoryGroup(c.groups.Pod, "the pod's cgroup", "", c.oom().slice)
	if !m.limited() || m.statErr != nil {
		return true
	}
	held, ok := m.stat.Held()
	return !ok || float64(held.Bytes) < nearLimit*float64(m.limit.Bytes)
}

// memoryWell says whether a container has room: what cannot be taken back
// stays below nearLimit of its limit. Page cache fills a limit without harm.
func (c *podCase) memoryWell(name string, g cgroup.Group) (string, []report.Evidence, bool) {
	current, err := g.MemoryCurrent()
	if err != nil {
		c.gaps.Miss(c.filePath(g.File("memory.current")), err, "how much memory container "+name+" uses", "")
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
		if h, ok := stat.Held(); ok && !h.Floor && h.Bytes <= current {
			held, text = h.Bytes, "that cannot be taken back"
			because = append(because, c.fileEvidence(g.File("memory.stat"), "anon + shmem + kernel − slab_reclaimable + sock + unevictable", fmt.Sprint(h.Bytes), "what the kernel cannot take back without swap: "+h.Arithmetic))
		}
	}
	usage := c.usageOfGroup(c.memoryGroup(g, "container "+name, name, groupEvents{}))
	because = append(because, usage.because...)
	if usage.top != "" {
		text += ", kubectl top shows " + usage.top
	}
	if float64(held) >= nearLimit*float64(limit.Bytes) {
		return "", nil, false
	}
	return fmt.Sprintf("container %s holds %s of its limit of %s (%s), %s %s", name, bothBytes(current), bothBytes(limit.Bytes),
		percent(float64(current)/float64(limit.Bytes)), bytes(held), text), because, true
}
