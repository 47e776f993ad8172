package cgroup

import "math/bits"

// MemoryStat is memory.stat. Its amounts are bytes, its pg*, workingset_*,
// thp_* and numa_* keys are counts. The kernel flushes it lazily (up to 2 s
// old) and charges in batches, so no sum of it equals memory.current exactly.
type MemoryStat struct{ flatKeyed }

// MemoryStat reads memory.stat, descendants included. The root has it too.
func (g Group) MemoryStat() (MemoryStat, error) {
	return readFile(g, "memory.stat", parseMemoryStat)
}

// Anon is anonymous memory in bytes: heap, stacks, huge pages, swap cache.
func (s MemoryStat) Anon() (uint64, bool) { return s.Get("anon") }

// File is the page cache in bytes, Shmem included.
func (s MemoryStat) File() (uint64, bool) { return s.Get("file") }

// Shmem is tmpfs, memory-backed emptyDir and shared anonymous memory in bytes.
// Only swapping can reclaim it.
func (s MemoryStat) Shmem() (uint64, bool) { return s.Get("shmem") }

// Sock is network buffers in bytes.
func (s MemoryStat) Sock() (uint64, bool) { return s.Get("sock") }

// InactiveFile is the part of the page cache that is reclaimed first, bytes.
func (s MemoryStat) InactiveFile() (uint64, bool) { return s.Get("inactive_file") }

// ActiveFile is the rest of the evictable page cache, bytes.
func (s MemoryStat) ActiveFile() (uint64, bool) { return s.Get("active_file") }

// Unevictable is memory that cannot be reclaimed, anonymous or file, in bytes:
// mlocked, ramfs, secretmem.
func (s MemoryStat) Unevictable() (uint64, bool) { return s.Get("unevictable") }

// SlabReclaimable is dentries, inodes and the like in bytes.
func (s MemoryStat) SlabReclaimable() (uint64, bool) { return s.Get("slab_reclaimable") }

// SlabUnreclaimable is the kernel's other small objects in bytes.
func (s MemoryStat) SlabUnreclaimable() (uint64, bool) { return s.Get("slab_unreclaimable") }

// KernelStack is the stacks of the group's threads in bytes.
func (s MemoryStat) KernelStack() (uint64, bool) { return s.Get("kernel_stack") }

// PageTables is page tables in bytes.
func (s MemoryStat) PageTables() (uint64, bool) { return s.Get("pagetables") }

// PerCPU is the kernel's per-CPU memory in bytes.
func (s MemoryStat) PerCPU() (uint64, bool) { return s.Get("percpu") }

// FileMapped is the page cache that processes have mapped, bytes.
func (s MemoryStat) FileMapped() (uint64, bool) { return s.Get("file_mapped") }

// FileDirty is page cache that has to be written before it can go, bytes.
func (s MemoryStat) FileDirty() (uint64, bool) { return s.Get("file_dirty") }

// FileWriteback is page cache that is being written, bytes.
func (s MemoryStat) FileWriteback() (uint64, bool) { return s.Get("file_writeback") }

// Kernel is all kernel memory of the group in bytes. Kernels before 5.18 do not
// print it; then summed is true and bytes is slab + kernel_stack + pagetables +
// percpu, of those two last what the kernel prints: less than the whole.
func (s MemoryStat) Kernel() (bytes uint64, summed, ok bool) {
	if value, ok := s.Get("kernel"); ok {
		return value, false, true
	}
	slab, okSlab := s.Get("slab")
	stack, okStack := s.KernelStack()
	if !okSlab || !okStack {
		return 0, false, false
	}
	tables, _ := s.PageTables()
	perCPU, _ := s.PerCPU()
	if bytes, ok = checkedSum(slab, stack, tables, perCPU); !ok {
		return 0, false, false
	}
	return bytes, true, true
}

// WorkingSet is memory.current less inactive_file, at least 0: the kubelet's
// and cAdvisor's working set (cAdvisor setMemoryStats). It is false when
// memory.stat has no inactive_file.
func WorkingSet(current uint64, st MemoryStat) (uint64, bool) {
	inactive, ok := st.InactiveFile()
	if !ok {
		return 0, false
	}
	return minusFloor(current, inactive), true
}

func parseMemoryStat(data []byte) (MemoryStat, error) {
	f, err := parseFilledFlatKeyed(data)
	return MemoryStat{f}, err
}

func minusFloor(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}

// checkedSum is false when the sum does not fit: a file may hold anything.
func checkedSum(values ...uint64) (uint64, bool) {
	var sum uint64
	for _, value := range values {
		var carry uint64
		if sum, carry = bits.Add64(sum, value, 0); carry != 0 {
			return 0, false
		}
	}
	return sum, true
}
