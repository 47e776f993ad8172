package cgroup

// MemoryMax reads memory.max. The root group has no limit files.
func (g Group) MemoryMax() (Limit, error) { return readFile(g, "memory.max", parseLimit) }

// MemoryHigh reads memory.high.
func (g Group) MemoryHigh() (Limit, error) { return readFile(g, "memory.high", parseLimit) }

// MemoryLow reads memory.low.
func (g Group) MemoryLow() (Limit, error) { return readFile(g, "memory.low", parseLimit) }

// MemoryMin reads memory.min.
func (g Group) MemoryMin() (Limit, error) { return readFile(g, "memory.min", parseLimit) }

// MemorySwapMax reads memory.swap.max. The swap files are absent in a kernel
// without swap accounting.
func (g Group) MemorySwapMax() (Limit, error) { return readFile(g, "memory.swap.max", parseLimit) }

// MemorySwapHigh reads memory.swap.high.
func (g Group) MemorySwapHigh() (Limit, error) { return readFile(g, "memory.swap.high", parseLimit) }

// MemoryCurrent reads memory.current in bytes. The root group has no such file.
func (g Group) MemoryCurrent() (uint64, error) { return readFile(g, "memory.current", parseValue) }

// MemoryPeak reads memory.peak in bytes, page cache included (kernel 5.19 and
// later).
func (g Group) MemoryPeak() (uint64, error) { return readFile(g, "memory.peak", parseValue) }

// MemorySwapCurrent reads memory.swap.current in bytes.
func (g Group) MemorySwapCurrent() (uint64, error) {
	return readFile(g, "memory.swap.current", parseValue)
}

// MemorySwapPeak reads memory.swap.peak in bytes.
func (g Group) MemorySwapPeak() (uint64, error) { return readFile(g, "memory.swap.peak", parseValue) }

// MemoryOOMGroup reads memory.oom.group: whether an OOM kill in the group takes
// all of its processes.
func (g Group) MemoryOOMGroup() (bool, error) { return readFile(g, "memory.oom.group", parseFlag) }
