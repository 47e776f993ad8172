package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Shares from which memory is worth a finding; conventions of this project.
const (
	// nearLimitShare of the limit, not to be taken back, is near an OOM.
	nearLimitShare = 0.9
	// stalledShare of the time spent waiting for memory (PSI some) is where
	// reclaim has become a cost.
	stalledShare = 0.01
	// atHigh of memory.high is throttled: pages are charged in batches.
	atHigh = 0.95
	// littleLeft of what is used is too little for reclaim to live on.
	littleLeft = 0.05
)

// memoryGroup is the memory controller of a container's or of the pod's group.
type memoryGroup struct {
	group cgroup.Group
	who   string // "container app", "the pod's cgroup"
	// container is the one that findings speak of: for the pod's group the only
	// one whose limit it repeats, else none.
	container string
	events    groupEvents

	current    uint64
	currentErr error
	limit      cgroup.Limit
	limitErr   error
	stat       cgroup.MemoryStat
	statErr    error
}

// memoryGroups are the groups of the pod's containers, then the pod's own.
func (c *podCase) memoryGroups() []memoryGroup {
	if c.groupsErr != nil || c.ended() {
		return nil
	}
	e := c.oom()
	var out []memoryGroup
	for _, k := range c.containers() {
		if g, ok := c.containerGroup(k.Name); ok {
			out = append(out, c.memoryGroup(g, "container "+k.Name, k.Name, e.scopes[k.Name]))
		}
	}
	only := ""
	for _, k := range c.containers() {
		if c.sliceRepeatsLimit(k) {
			only = k.Name
		}
	}
	return append(out, c.memoryGroup(c.groups.Pod, "the pod's cgroup", only, e.slice))
}

func (c *podCase) memoryGroup(g cgroup.Group, who, container string, events groupEvents) memoryGroup {
	m := memoryGroup{group: g, who: who, container: container, events: events}
	m.current, m.currentErr = g.MemoryCurrent()
	m.limit, m.limitErr = g.MemoryMax()
	m.stat, m.statErr = g.MemoryStat()
	return m
}

// isPod says whether it is the pod's own group.
func (m memoryGroup) isPod(c *podCase) bool { return m.group.Path == c.groups.Pod.Path }

// limited says whether the group has a memory limit.
func (m memoryGroup) limited() bool { return m.limitErr == nil && !m.limit.Max && m.limit.Bytes > 0 }

// count is an event of the group itself, or where memory.events.local was not
// read of the group and those below. local says which.
func (m memoryGroup) count(key string) (value uint64, local, ok bool) {
	if value, ok = m.events.inLocal(key); ok {
		return value, true, true
	}
	value, ok = m.events.inTree(key)
	return value, false, ok
}

// countEvidence quotes an event with what was added to it in the sample.
// memoryCount quotes an event with what the sample added to it.
func (c *podCase) memoryCount(m memoryGroup, key, what string) []report.Evidence {
	value, local, ok := m.count(key)
	if !ok {
		return nil
	}
	file := "memory.events"
	if local {
		file = "memory.events.local"
	}
	means := what + " since the cgroup was made"
	if grown, ok := c.grownEvent(m, key); ok {
		means = fmt.Sprintf("+%d in the sample: %s", grown, what)
	}
	return []report.Evidence{c.fileEvidence(m.group.File(file), key, fmt.Sprint(value), means)}
}

// grown is by how much a counter of a group grew between the two samples. ok is
// false without two readings, and for a counter that went backwards.
func (n *nodeCase) grown(g cgroup.Group, read func(cgroup.Group) (uint64, bool)) (uint64, bool) {
	if n.first == nil {
		return 0, false
	}
	before, okA := read(cgroup.Group{FS: n.first.Files, Path: g.Path})
	after, okB := read(cgroup.Group{FS: n.last.Files, Path: g.Path})
	if !okA || !okB || after < before {
		return 0, false
	}
	return after - before, true
}

// grownEvent is the growth of the counter that count reads.
func (c *podCase) grownEvent(m memoryGroup, key string) (uint64, bool) {
	_, local, ok := m.count(key)
	if !ok {
		return 0, false
	}
	return c.grown(m.group, func(g cgroup.Group) (uint64, bool) {
		read := g.MemoryEvents
		if local {
			read = g.MemoryEventsLocal
		}
		e, err := read()
		return counter(e, err, key)
	})
}

// grownStat is the growth of a key of memory.stat.
func (c *podCase) grownStat(m memoryGroup, key string) (uint64, bool) {
	return c.grown(m.group, func(g cgroup.Group) (uint64, bool) {
		s, err := g.MemoryStat()
		if err != nil {
			return 0, false
		}
		return s.Get(key)
	})
}

// stall is how much of the time tasks of a group waited for memory (PSI):
// shares of the sample, or without one of the kernel's last 10 seconds.
type stall struct {
	some, full float64
	over       string // "of the sample", "of the last 10 s"
	evidence   []report.Evidence
}

// memoryStall is false where the kernel keeps no such figures, or they were not
// read.
func (c *podCase) memoryStall(g cgroup.Group) (stall, bool) {
	now, err := g.Pressure("memory")
	if err != nil {
		c.gaps.Miss(c.filePath(g.File("memory.pressure")), err, "how much time reclaim costs", "")
		return stall{}, false
	}
	s := stall{over: "of the last 10 s"}
	for _, kind := range []string{"some", "full"} {
		line := pressureLine(now, kind)
		if line == nil {
			continue
		}
		who := map[string]string{"some": "some thread", "full": "every thread"}[kind]
		share := min(line.Avg10/100, 1)
		e := c.fileEvidence(g.File("memory.pressure"), kind+" avg10", fmt.Sprintf("%.2f", line.Avg10), "percent of 10 s that "+who+" waited for memory")
		if waited, ok := c.grown(g, stalledUsec(kind)); ok {
			share, s.over = min(float64(waited)/float64(c.wallUsec), 1), "of the sample"
			e = c.fileEvidence(g.File("memory.pressure"), kind+" total", fmt.Sprint(line.Total), fmt.Sprintf("+%d µs in the sample of %s: %s waited for memory", waited, usec(float64(c.wallUsec)), who))
		}
		if kind == "some" {
			s.some = share
		} else {
			s.full = share
		}
		s.evidence = append(s.evidence, e)
	}
	return s, len(s.evidence) > 0
}

func stalledUsec(kind string) func(cgroup.Group) (uint64, bool) {
	return func(g cgroup.Group) (uint64, bool) {
		p, err := g.Pressure("memory")
		if err != nil {
			return 0, false
		}
		line := pressureLine(p, kind)
		if line == nil {
			return 0, false
		}
		return line.Total, true
	}
}

func pressureLine(p cgroup.Pressure, kind string) *cgroup.PressureLine {
	if kind == "some" {
		return p.Some
	}
	return p.Full
}

// most is the larger share: a file may lack a line.
func (s stall) most() float64 { return max(s.some, s.full) }

// swapRoom is how many bytes of the group's anonymous memory could still go to
// swap. The pod's own group has no limit of swap; what is charged there is its
// containers', so that theirs count.
func (c *podCase) swapRoom(m memoryGroup) (room uint64, known bool) {
	if !m.isPod(c) {
		return c.swapRoomOf(m.group)
	}
	for _, k := range c.groups.Containers {
		own, ok := c.swapRoomOf(k.Group)
		if !ok {
			return 0, false
		}
		room += min(own, math.MaxUint64-room)
	}
	if len(c.groups.Containers) > 0 {
		return room, true
	}
	if c.noSwap() {
		return 0, true
	}
	return c.swapRoomOf(m.group)
}

// noSwap says whether the kubelet gives no container any swap.
func (n *nodeCase) noSwap() bool {
	return n.configErr == nil && n.config.MemorySwapBehavior != string(cgroup.LimitedSwap)
}

// swapRoomOf goes by the group's own limit and by what the node has free. A
// kernel without swap accounting has no such limit, and its files are absent.
func (n *nodeCase) swapRoomOf(g cgroup.Group) (room uint64, known bool) {
	info, infoErr := cgroup.ReadMeminfo(n.fsys)
	if total, ok := info["SwapTotal"]; infoErr == nil && ok && total == 0 {
		return 0, true
	}
	limit, err := g.MemorySwapMax()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		limit.Max = true
	case err != nil:
		return 0, n.noSwap()
	case !limit.Max && limit.Bytes == 0:
		return 0, true
	}
	if infoErr != nil {
		return 0, false
	}
	free, ok := info["SwapFree"]
	if !ok || limit.Max {
		return free, ok
	}
	used, err := g.MemorySwapCurrent()
	if err != nil {
		return 0, false
	}
	return min(free, limit.Bytes-min(used, limit.Bytes)), true
}
