package cgroup

import (
	"fmt"
	"math"
	"testing"
)

func memoryStat(t *testing.T, text string) MemoryStat {
	t.Helper()
	s, err := parseMemoryStat([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemoryStatKernel(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    uint64
		sum, ok bool
	}{
		"printed":                     {"kernel 397312\nkernel_stack 131072\npagetables 86016\npercpu 160\nslab 160920\n", 397312, false, true},
		"printed and 0 is not summed": {"kernel 0\nkernel_stack 1\npagetables 2\npercpu 3\nslab 4\n", 0, false, true},
		"summed":                      {"kernel_stack 1\npagetables 20\npercpu 300\nslab 4000\n", 4321, true, true},
		"older still":                 {"kernel_stack 1\nslab 4000\n", 4001, true, true},
		"no slab":                     {"kernel_stack 1\npagetables 20\npercpu 300\n", 0, false, false},
		"no kernel_stack":             {"slab 1\n", 0, false, false},
		"overflow":                    {"kernel_stack 18446744073709551615\nslab 1\n", 0, false, false},
	} {
		got, sum, ok := memoryStat(t, tc.text).Kernel()
		if got != tc.want || sum != tc.sum || ok != tc.ok {
			t.Errorf("%s: %d, %t, %t", name, got, sum, ok)
		}
	}
}

func TestWorkingSet(t *testing.T) {
	for _, tc := range []struct {
		current uint64
		text    string
		want    uint64
		ok      bool
	}{
		{1000, "inactive_file 300\n", 700, true},
		{300, "inactive_file 300\n", 0, true},
		{200, "inactive_file 300\n", 0, true},
		{math.MaxUint64, "inactive_file 0\n", math.MaxUint64, true},
		{1000, "active_file 300\n", 0, false},
	} {
		if got, ok := WorkingSet(tc.current, memoryStat(t, tc.text)); got != tc.want || ok != tc.ok {
			t.Errorf("%d, %q: %d, %t", tc.current, tc.text, got, ok)
		}
	}
}

// checkAccessors gives each key of a file a value of its own.
func checkAccessors[T any](t *testing.T, parse func([]byte) (T, error), accessors map[string]func(T) (uint64, bool)) {
	t.Helper()
	text, want := "", map[string]uint64{}
	for key := range accessors {
		want[key] = uint64(len(want) + 1)
		text += fmt.Sprintf("%s %d\n", key, want[key])
	}
	full, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	other, err := parse([]byte("other 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for key, get := range accessors {
		if got, ok := get(full); !ok || got != want[key] {
			t.Errorf("%s: %d, %t, want %d", key, got, ok, want[key])
		}
		if got, ok := get(other); ok || got != 0 {
			t.Errorf("absent %s: %d, %t", key, got, ok)
		}
	}
}

func TestMemoryAccessors(t *testing.T) {
	checkAccessors(t, parseMemoryStat, map[string]func(MemoryStat) (uint64, bool){
		"anon": MemoryStat.Anon, "file": MemoryStat.File, "shmem": MemoryStat.Shmem, "sock": MemoryStat.Sock,
		"inactive_file": MemoryStat.InactiveFile, "active_file": MemoryStat.ActiveFile, "unevictable": MemoryStat.Unevictable,
		"slab_reclaimable": MemoryStat.SlabReclaimable, "slab_unreclaimable": MemoryStat.SlabUnreclaimable,
		"kernel_stack": MemoryStat.KernelStack, "pagetables": MemoryStat.PageTables, "percpu": MemoryStat.PerCPU,
		"file_mapped": MemoryStat.FileMapped, "file_dirty": MemoryStat.FileDirty, "file_writeback": MemoryStat.FileWriteback,
	})
	checkAccessors(t, parseMemoryEvents, map[string]func(MemoryEvents) (uint64, bool){
		"low": MemoryEvents.Low, "high": MemoryEvents.High, "max": MemoryEvents.Max, "oom": MemoryEvents.OOM,
		"oom_kill": MemoryEvents.OOMKill, "oom_group_kill": MemoryEvents.OOMGroupKill, "fail": MemoryEvents.Fail,
	})
	checkAccessors(t, parsePIDsEvents, map[string]func(PIDsEvents) (uint64, bool){"max": PIDsEvents.Max})
}
