package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"
)

const procStat = `cpu  356378 0 172369 2297484 460 0 18952 0 0 0
cpu0 118279 0 61584 112503 64 0 1142 0 0 0
cpu1 485 7 7538 346929 119 3 14022 55 9 9
intr 2796969 138 9
ctxt 3609986
btime 1796018261
procs_running 26
`

func TestReadCPUTimes(t *testing.T) {
	got, err := ReadCPUTimes(fstest.MapFS{"proc/stat": {Data: []byte(procStat)}})
	if err != nil {
		t.Fatal(err)
	}
	want := CPUTimes{0: {118279 + 61584 + 1142, 112503 + 64}, 1: {485 + 7 + 7538 + 3 + 14022, 346929 + 119}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if set := got.CPUs(); set.String() != "0-1" {
		t.Errorf("CPUs %s", set)
	}
	if _, err := ReadCPUTimes(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestCPUTimesRefused(t *testing.T) {
	for _, text := range []string{
		"", "intr 1\n", "cpu 1 2 3 4\n", "cpu0 1 2 3\n", "cpu0 1 2 3 x\n", "cpu0 1 2 3 -4\n", "cpu0 1 2 3 4\ncpu0 1 2 3 4\n",
		"cpux 1 2 3 4\n", "cpu00 1 2 3 4\n", "cpu99999999 1 2 3 4\n", "cpu0 99999999999999999999 2 3 4\n", "cpu0 1 2 3 9999999999999999\n",
	} {
		if got, err := parseCPUTimes([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCPUTimesUsage(t *testing.T) {
	before := CPUTimes{0: {100, 100}, 1: {100, 100}, 2: {100, 100}}
	after := CPUTimes{0: {200, 100}, 1: {150, 150}, 2: {100, 100}, 3: {1, 1}}
	for name, c := range map[string]struct {
		set        cpuset.CPUSet
		busy, idle float64
		ok         bool
	}{
		"busy":         {cpuset.New(0), 1, 0, true},
		"both":         {cpuset.New(0, 1), 0.75, 0.5, true},
		"half":         {cpuset.New(1), 0.5, 0.5, true},
		"nothing ran":  {cpuset.New(2), 0, 0, false},
		"new CPU":      {cpuset.New(0, 3), 0, 0, false},
		"no CPU":       {cpuset.New(), 0, 0, false},
		"unknown CPU":  {cpuset.New(9), 0, 0, false},
		"one of three": {cpuset.New(0, 1, 2), 0, 0, false},
	} {
		got, ok := before.Usage(after, c.set)
		if math.Abs(got.BusyShare()-c.busy) > 1e-12 || math.Abs(got.IdleCPUs-c.idle) > 1e-12 || ok != c.ok {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if _, ok := after.Usage(before, cpuset.New(0)); ok {
		t.Error("readings in the wrong order are taken")
	}
}

func FuzzParseCPUTimes(f *testing.F) {
	f.Add([]byte(procStat))
	f.Add([]byte("cpu0 1 2 3 4"))
	f.Add([]byte("cpu \ncpu1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		times, err := parseCPUTimes(data)
		if (err == nil) != (len(times) > 0) {
			t.Fatalf("%v, %v", times, err)
		}
		if err != nil {
			return
		}
		if got, ok := (CPUTimes{}).Usage(times, times.CPUs()); ok {
			t.Fatalf("usage from nothing: %+v", got)
		}
		if got, ok := times.Usage(times, times.CPUs()); ok {
			t.Fatalf("usage of no time: %+v", got)
		}
	})
}
