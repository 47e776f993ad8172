package cgroup

// MemoryEvents is memory.events, memory.events.local or memory.swap.events.
type MemoryEvents struct{ flatKeyed }

// MemoryEvents reads memory.events, descendants included unless the hierarchy
// is mounted with memory_localevents. The root group has no such file. A
// group's counters vanish with it; the pod's group keeps the totals of its
// containers over their restarts.
func (g Group) MemoryEvents() (MemoryEvents, error) {
	return readFile(g, "memory.events", parseMemoryEvents)
}

// MemoryEventsLocal reads memory.events.local: events at this group alone.
func (g Group) MemoryEventsLocal() (MemoryEvents, error) {
	return readFile(g, "memory.events.local", parseMemoryEvents)
}

// MemorySwapEvents reads memory.swap.events: keys high, max, fail.
func (g Group) MemorySwapEvents() (MemoryEvents, error) {
	return readFile(g, "memory.swap.events", parseMemoryEvents)
}

// Low counts reclaim from the group although it was below memory.low.
func (e MemoryEvents) Low() (uint64, bool) { return e.Get("low") }

// High counts how often memory.high (or memory.swap.high) made the group
// reclaim and wait.
func (e MemoryEvents) High() (uint64, bool) { return e.Get("high") }

// Max counts how often the group's own memory.max (or memory.swap.max) was hit.
func (e MemoryEvents) Max() (uint64, bool) { return e.Get("max") }

// OOM counts how often the group's limit could not be met by reclaim.
func (e MemoryEvents) OOM() (uint64, bool) { return e.Get("oom") }

// OOMKill counts processes of the group killed by any OOM, a node-wide one too.
// With memory.oom.group the first victim counts twice.
func (e MemoryEvents) OOMKill() (uint64, bool) { return e.Get("oom_kill") }

// OOMGroupKill counts how often memory.oom.group of this group was applied.
// Older kernels do not print it.
func (e MemoryEvents) OOMGroupKill() (uint64, bool) { return e.Get("oom_group_kill") }

// Fail counts failed swap allocations; only memory.swap.events has it.
func (e MemoryEvents) Fail() (uint64, bool) { return e.Get("fail") }

func parseMemoryEvents(data []byte) (MemoryEvents, error) {
	f, err := parseFilledFlatKeyed(data)
	return MemoryEvents{f}, err
}
