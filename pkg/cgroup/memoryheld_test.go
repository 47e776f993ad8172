package cgroup

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMemoryStatHeld(t *testing.T) {
	const whole = "anon 1000\nfile 500\nkernel 300\nsock 7\nshmem 200\ninactive_file 150\nactive_file 50\nunevictable 400\nslab_reclaimable 100\n"
	for name, tc := range map[string]struct {
		text  string
		want  uint64
		floor bool
		sum   string
	}{
		"all keys": {whole, 1000 + 200 + 200 + 7 + 100, false,
			"anon 1000 + shmem 200 + (kernel 300 − slab_reclaimable 100) + sock 7 + unevictable page cache 100 = 1507"},
		"lists that exceed file": {"anon 1\nfile 5\nkernel 3\nsock 0\nshmem 2\ninactive_file 150\nactive_file 50\nunevictable 400\nslab_reclaimable 100\n", 1 + 2, false,
			"anon 1 + shmem 2 + (kernel 3 − slab_reclaimable 100) + sock 0 = 3"},
		"anon is what is unevictable": {"anon 1\nfile 500\nkernel 3\nsock 0\nshmem 0\ninactive_file 0\nactive_file 0\nunevictable 6\nslab_reclaimable 1\n", 1 + 2 + 6, false,
			"anon 1 + shmem 0 + (kernel 3 − slab_reclaimable 1) + sock 0 + unevictable page cache 6 = 9"},
		"a bug report's few keys": {"anon 468713472\nfile 40960\nshmem 0\nkernel 4000000\n", 468713472, true, "anon 468713472 + shmem 0 = 468713472"},
		"kernel unknown, its parts not": {"anon 10\nshmem 1\nslab_unreclaimable 100\npercpu 1000\nsock 0\n", 1111, true,
			"anon 10 + shmem 1 + slab_unreclaimable 100 + percpu 1000 + sock 0 = 1111"},
		"an old kernel without the sum": {"anon 10\nshmem 1\nslab 100\nkernel_stack 5\nslab_reclaimable 60\nsock 0\nfile 0\ninactive_file 0\nactive_file 0\nunevictable 0\n", 56, true,
			"anon 10 + shmem 1 + (slab, kernel_stack, pagetables, percpu 105 − slab_reclaimable 60) + sock 0 = 56"},
		"a term that overflows": {"anon 18446744073709551615\nshmem 5\n", 1<<64 - 1, true, "anon 18446744073709551615 = 18446744073709551615"},
	} {
		got, ok := memoryStat(t, tc.text).Held()
		if !ok || got.Bytes != tc.want || got.Floor != tc.floor || got.Arithmetic != tc.sum {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	if got, ok := memoryStat(t, "file 1\nshmem 2\n").Held(); ok {
		t.Errorf("without anon: %+v", got)
	}
}

// With every key it is the sum, and with fewer never more than that.
func TestHeldIsTheSum(t *testing.T) {
	keys := []string{"anon", "file", "kernel", "sock", "shmem", "inactive_file", "active_file", "unevictable", "slab_reclaimable"}
	rapid.Check(t, func(t *rapid.T) {
		values := map[string]int64{}
		var all, some strings.Builder
		for _, key := range keys {
			values[key] = rapid.Int64Range(0, 1<<40).Draw(t, key)
			line := fmt.Sprintf("%s %d\n", key, values[key])
			all.WriteString(line)
			if key == "anon" || rapid.Bool().Draw(t, "has "+key) {
				some.WriteString(line)
			}
		}
		locked := max(0, values["file"]-values["shmem"]-values["inactive_file"]-values["active_file"])
		want := values["anon"] + values["shmem"] + max(0, values["kernel"]-values["slab_reclaimable"]) + values["sock"] + min(locked, values["unevictable"])
		full, errFull := parseMemoryStat([]byte(all.String()))
		part, errPart := parseMemoryStat([]byte(some.String()))
		if errFull != nil || errPart != nil {
			t.Fatal(errFull, errPart)
		}
		if got, ok := full.Held(); !ok || got.Floor || got.Bytes != uint64(want) {
			t.Fatalf("%+v, %d", got, want)
		}
		if got, ok := part.Held(); !ok || got.Bytes > uint64(want) || !got.Floor && got.Bytes != uint64(want) {
			t.Fatalf("%+v of %q, %d", got, some.String(), want)
		}
	})
}

func TestMemoryStatEvictable(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want uint64
		ok   bool
	}{
		"cache and dentries":     {"file 500\nshmem 200\nslab_reclaimable 100\n", 400, true},
		"mlocked":                {"file 500\nshmem 200\ninactive_file 150\nactive_file 50\nunevictable 400\nslab_reclaimable 1\n", 201, true},
		"file alone":             {"file 500\n", 500, true},
		"shmem more than file":   {"file 5\nshmem 9\n", 0, true},
		"no file":                {"anon 500\n", 0, false},
		"a sum that overflows":   {"file 18446744073709551615\nslab_reclaimable 1\n", 0, false},
		"nothing to take at all": {"file 0\nshmem 0\nslab_reclaimable 0\n", 0, true},
	} {
		if got, ok := memoryStat(t, tc.text).Evictable(); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %d, %t", name, got, ok)
		}
	}
}
