package cgroup

import (
	"fmt"
	"strings"
)

// Held is what reclaim cannot free of a group on a node without swap, in bytes.
type Held struct {
	Bytes uint64
	// Floor means that memory.stat lacks keys: it is at least that much.
	Floor bool
	// Arithmetic is the sum, key by key.
	Arithmetic string
}

// Held is anon + shmem + kernel − slab_reclaimable + sock + the unevictable page
// cache, or where keys are absent the sum of those parts that are there. The
// result is false without anon.
func (s MemoryStat) Held() (Held, bool) {
	anon, ok := s.Anon()
	if !ok {
		return Held{}, false
	}
	h := Held{Bytes: anon}
	terms := []string{fmt.Sprintf("anon %d", anon)}
	addTerm := func(term string, bytes uint64) {
		sum, ok := checkedSum(h.Bytes, bytes)
		if !ok {
			h.Floor = true
			return
		}
		h.Bytes = sum
		terms = append(terms, "+ "+term)
	}
	add := func(key string, bytes uint64) { addTerm(fmt.Sprintf("%s %d", key, bytes), bytes) }
	if shmem, ok := s.Shmem(); ok {
		add("shmem", shmem)
	} else {
		h.Floor = true
	}
	kernel, summed, okKernel := s.Kernel()
	slab, okSlab := s.SlabReclaimable()
	switch {
	case okKernel && okSlab:
		name := fmt.Sprintf("kernel %d", kernel)
		if summed {
			name, h.Floor = fmt.Sprintf("slab, kernel_stack, pagetables, percpu %d", kernel), true
		}
		addTerm(fmt.Sprintf("(%s − slab_reclaimable %d)", name, slab), minusFloor(kernel, slab))
	default:
		h.Floor = true
		for _, key := range []string{"slab_unreclaimable", "kernel_stack", "pagetables", "percpu"} {
			if bytes, ok := s.Get(key); ok {
				add(key, bytes)
			}
		}
	}
	if sock, ok := s.Sock(); ok {
		add("sock", sock)
	} else {
		h.Floor = true
	}
	if file, ok := s.unevictableFile(); !ok {
		h.Floor = true
	} else if file > 0 {
		add("unevictable page cache", file)
	}
	h.Arithmetic = fmt.Sprintf("%s = %d", strings.Join(terms, " "), h.Bytes)
	return h, true
}

// unevictableFile is the page cache that cannot be reclaimed: file less shmem
// and less the two file lists, and at most unevictable. The kernel prints no
// such key.
func (s MemoryStat) unevictableFile() (uint64, bool) {
	values := map[string]uint64{}
	for _, key := range []string{"file", "shmem", "inactive_file", "active_file", "unevictable"} {
		var ok bool
		if values[key], ok = s.Get(key); !ok {
			return 0, false
		}
	}
	evictable, ok := checkedSum(values["shmem"], values["inactive_file"], values["active_file"])
	if !ok {
		return 0, false
	}
	return min(minusFloor(values["file"], evictable), values["unevictable"]), true
}

// Evictable is what reclaim can take without swap, in bytes, dirty pages after
// they are written: the page cache less shmem and less what is mlocked, and
// slab_reclaimable where the kernel prints it. The result is false without file.
func (s MemoryStat) Evictable() (uint64, bool) {
	file, ok := s.File()
	if !ok {
		return 0, false
	}
	shmem, _ := s.Shmem()
	cache := minusFloor(file, shmem)
	if locked, ok := s.unevictableFile(); ok {
		cache = minusFloor(cache, locked)
	}
	slab, _ := s.SlabReclaimable()
	return checkedSum(cache, slab)
}
