package cgroup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	k612Pod   = "/kubepods.slice/kubepods-pod903e64c4_db59_4bbd_8a04_1f321f872b9c.slice"
	k612Scope = k612Pod + "/cri-containerd-fd9ff228091566eb2ac745062f5c9f2815e874550618ddf3664dfa7c0d1bf282.scope"
	k61Scope  = "/kubepods.slice/kubepods-poddac91104_890e_44af_bd5c_fa84c36e5162.slice" +
		"/cri-containerd-16be44f21de385491d5d181f8d8dbe3a6df90c24bb3192680c7dfc67bbebfc79.scope"
)

// reading is what one method of Group returned, printed as JSON; or "absent".
func reading[T any](t *testing.T, value T, err error) string {
	t.Helper()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case err != nil:
		t.Error(err)
		return "error"
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known prints a value that may be absent.
func known[T any](t *testing.T, value T, ok bool) string {
	t.Helper()
	if !ok {
		return "absent"
	}
	return reading(t, value, nil)
}

// readGroup reads every file that Group has a method for.
func readGroup(t *testing.T, g Group) map[string]string {
	t.Helper()
	got := map[string]string{}
	limits := map[string]func() (Limit, error){
		"memory.max": g.MemoryMax, "memory.high": g.MemoryHigh, "memory.low": g.MemoryLow, "memory.min": g.MemoryMin,
		"memory.swap.max": g.MemorySwapMax, "memory.swap.high": g.MemorySwapHigh, "pids.max": g.PIDsMax,
	}
	for name, read := range limits {
		limit, err := read()
		got[name] = reading(t, limit.String(), err)
	}
	values := map[string]func() (uint64, error){
		"cpu.max.burst": g.CPUMaxBurst, "cpu.weight": g.CPUWeight, "cpu.idle": g.CPUIdle,
		"memory.current": g.MemoryCurrent, "memory.peak": g.MemoryPeak,
		"memory.swap.current": g.MemorySwapCurrent, "memory.swap.peak": g.MemorySwapPeak,
		"pids.current": g.PIDsCurrent, "pids.peak": g.PIDsPeak,
	}
	for name, read := range values {
		value, err := read()
		got[name] = reading(t, value, err)
	}
	cpuMax, err := g.CPUMax()
	got["cpu.max"] = reading(t, cpuMax.String(), err)
	oomGroup, err := g.MemoryOOMGroup()
	got["memory.oom.group"] = reading(t, oomGroup, err)
	partition, err := g.CPUSetPartition()
	got["cpuset.cpus.partition"] = reading(t, partition, err)
	typ, err := g.Type()
	got["cgroup.type"] = reading(t, typ, err)

	set, err := g.CPUSetCPUs()
	got["cpuset.cpus"] = reading(t, set.String(), err)
	set, err = g.CPUSetCPUsEffective()
	got["cpuset.cpus.effective"] = reading(t, set.String(), err)
	set, err = g.CPUSetMems()
	got["cpuset.mems"] = reading(t, set.String(), err)
	set, err = g.CPUSetMemsEffective()
	got["cpuset.mems.effective"] = reading(t, set.String(), err)

	words, err := g.Controllers()
	got["cgroup.controllers"] = reading(t, strings.Join(words, " "), err)
	words, err = g.SubtreeControl()
	got["cgroup.subtree_control"] = reading(t, strings.Join(words, " "), err)
	pids, err := g.Procs()
	got["cgroup.procs"] = reading(t, pids, err)
	pids, err = g.Threads()
	got["cgroup.threads"] = reading(t, pids, err)

	for _, resource := range pressureResources {
		p, err := g.Pressure(resource)
		got[resource+".pressure"] = reading(t, p, err)
	}

	cpuStat, err := g.CPUStat()
	got["cpu.stat"] = reading(t, cpuStat.Keys(), err)
	periods, ok := cpuStat.NrPeriods()
	got["cpu.stat nr_periods"] = known(t, periods, ok)
	throttled, ok := cpuStat.NrThrottled()
	got["cpu.stat nr_throttled"] = known(t, throttled, ok)
	usec, ok := cpuStat.ThrottledUsec()
	got["cpu.stat throttled_usec"] = known(t, usec, ok)
	local, err := g.CPUStatLocal()
	got["cpu.stat.local"] = reading(t, local.Keys(), err)
	usec, ok = local.ThrottledUsec()
	got["cpu.stat.local throttled_usec"] = known(t, usec, ok)

	stat, err := g.MemoryStat()
	got["memory.stat"] = reading(t, len(stat.Keys()), err)
	bytes, ok := stat.Anon()
	got["memory.stat anon"] = known(t, bytes, ok)
	held, ok := stat.Held()
	got["memory.stat nonreclaimable"] = known(t, held.Bytes, ok && !held.Floor)
	numa, err := g.MemoryNUMAStat()
	got["memory.numa_stat"] = reading(t, len(numa.Keys()), err)
	anon, ok := numa.Get("anon")
	got["memory.numa_stat anon"] = known(t, anon, ok)

	events, err := g.MemoryEvents()
	got["memory.events"] = reading(t, events.Keys(), err)
	count, ok := events.OOMKill()
	got["memory.events oom_kill"] = known(t, count, ok)
	events, err = g.MemoryEventsLocal()
	got["memory.events.local"] = reading(t, events.Keys(), err)
	events, err = g.MemorySwapEvents()
	got["memory.swap.events"] = reading(t, events.Keys(), err)
	pidsEvents, err := g.PIDsEvents()
	got["pids.events"] = reading(t, pidsEvents.Keys(), err)
	pidsEvents, err = g.PIDsEventsLocal()
	got["pids.events.local"] = reading(t, pidsEvents.Keys(), err)
	state, err := g.EventsFile()
	got["cgroup.events"] = reading(t, state.Keys(), err)
	populated, ok := state.Populated()
	got["cgroup.events populated"] = known(t, populated, ok)
	descendants, err := g.Stat()
	got["cgroup.stat"] = reading(t, len(descendants.Keys()), err)
	count, ok = descendants.NrDescendants()
	got["cgroup.stat nr_descendants"] = known(t, count, ok)
	return got
}

// Everything that a container's group holds on two real kernels.
func TestRecordedContainers(t *testing.T) {
	const events6 = `["low","high","max","oom","oom_kill","oom_group_kill"]`
	const idle = `{"Some":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":0},"Full":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":0}}`
	for _, tc := range []struct {
		tree, path string
		want       map[string]string
	}{
		{"k612", k612Scope, map[string]string{
			"cgroup.controllers":            `"cpuset cpu io memory hugetlb pids rdma misc"`,
			"cgroup.events":                 `["populated","frozen"]`,
			"cgroup.events populated":       "true",
			"cgroup.procs":                  "[1113]",
			"cgroup.stat":                   "20",
			"cgroup.stat nr_descendants":    "0",
			"cgroup.subtree_control":        `""`,
			"cgroup.threads":                "absent",
			"cgroup.type":                   "absent",
			"cpu.idle":                      "absent",
			"cpu.max":                       `"20000 100000"`,
			"cpu.max.burst":                 "0",
			"cpu.pressure":                  `{"Some":{"Avg10":51.43,"Avg60":62.6,"Avg300":63.7,"Total":2549888735},"Full":{"Avg10":50.58,"Avg60":61.07,"Avg300":62.24,"Total":2496752345}}`,
			"cpu.stat":                      `["usage_usec","user_usec","system_usec","nice_usec","nr_periods","nr_throttled","throttled_usec","nr_bursts","burst_usec"]`,
			"cpu.stat nr_periods":           "38785",
			"cpu.stat nr_throttled":         "37999",
			"cpu.stat throttled_usec":       "3532180399",
			"cpu.stat.local":                `["throttled_usec"]`,
			"cpu.stat.local throttled_usec": "4468228745",
			"cpu.weight":                    "29",
			"cpuset.cpus":                   `"0-1,6-7"`,
			"cpuset.cpus.effective":         `"0-1,6-7"`,
			"cpuset.cpus.partition":         `"member"`,
			"cpuset.mems":                   `""`,
			"cpuset.mems.effective":         `"0-1"`,
			"io.pressure":                   `{"Some":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":1922372},"Full":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":1470872}}`,
			"irq.pressure":                  "absent",
			"memory.current":                "2781184",
			"memory.events":                 events6,
			"memory.events oom_kill":        "0",
			"memory.events.local":           events6,
			"memory.high":                   `"max"`,
			"memory.low":                    `"0"`,
			"memory.max":                    `"201326592"`,
			"memory.min":                    `"0"`,
			"memory.numa_stat":              "31",
			"memory.numa_stat anon":         `[{"Node":0,"Value":0},{"Node":1,"Value":2355200}]`,
			"memory.oom.group":              "true",
			"memory.peak":                   "5881856",
			"memory.pressure":               idle,
			"memory.stat":                   "65",
			"memory.stat anon":              "2355200",
			"memory.stat nonreclaimable":    "2689512", // 2355200 + 397312 - 63000
			"memory.swap.current":           "0",
			"memory.swap.events":            `["high","max","fail"]`,
			"memory.swap.high":              "absent",
			"memory.swap.max":               `"0"`,
			"memory.swap.peak":              "absent",
			"pids.current":                  "8",
			"pids.events":                   `["max"]`,
			"pids.events.local":             `["max"]`,
			"pids.max":                      `"7119"`,
			"pids.peak":                     "8",
		}},
		{"k61", k61Scope, map[string]string{
			"cgroup.controllers":            `"cpuset cpu io memory hugetlb pids rdma misc"`,
			"cgroup.events":                 `["populated","frozen"]`,
			"cgroup.events populated":       "true",
			"cgroup.procs":                  "[1099]",
			"cgroup.stat":                   "2",
			"cgroup.stat nr_descendants":    "0",
			"cgroup.subtree_control":        `""`,
			"cgroup.threads":                "absent",
			"cgroup.type":                   "absent",
			"cpu.idle":                      "absent",
			"cpu.max":                       `"10000 100000"`,
			"cpu.max.burst":                 "0",
			"cpu.pressure":                  `{"Some":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":11400839},"Full":{"Avg10":0,"Avg60":0,"Avg300":0,"Total":11281842}}`,
			"cpu.stat":                      `["usage_usec","user_usec","system_usec","nr_periods","nr_throttled","throttled_usec","nr_bursts","burst_usec"]`,
			"cpu.stat nr_periods":           "95",
			"cpu.stat nr_throttled":         "29",
			"cpu.stat throttled_usec":       "3312593",
			"cpu.stat.local":                "absent",
			"cpu.stat.local throttled_usec": "absent",
			"cpu.weight":                    "17",
			"cpuset.cpus":                   `"0,4-5"`,
			"cpuset.cpus.effective":         `"0,4-5"`,
			"cpuset.cpus.partition":         `"member"`,
			"cpuset.mems":                   `"0"`,
			"cpuset.mems.effective":         `"0"`,
			"io.pressure":                   idle,
			"irq.pressure":                  "absent",
			"memory.current":                "2748416",
			"memory.events":                 events6,
			"memory.events oom_kill":        "0",
			"memory.events.local":           events6,
			"memory.high":                   `"max"`,
			"memory.low":                    `"0"`,
			"memory.max":                    `"67108864"`,
			"memory.min":                    `"0"`,
			"memory.numa_stat":              "27",
			"memory.numa_stat anon":         `[{"Node":0,"Value":2355200},{"Node":1,"Value":0},{"Node":2,"Value":0},{"Node":3,"Value":0}]`,
			"memory.oom.group":              "false",
			"memory.peak":                   "9703424",
			"memory.pressure":               idle,
			"memory.stat":                   "51",
			"memory.stat anon":              "2355200",
			"memory.stat nonreclaimable":    "2656664", // 2355200 + 364544 - 63080
			"memory.swap.current":           "0",
			"memory.swap.events":            `["high","max","fail"]`,
			"memory.swap.high":              "absent",
			"memory.swap.max":               `"0"`,
			"memory.swap.peak":              "absent",
			"pids.current":                  "7",
			"pids.events":                   `["max"]`,
			"pids.events.local":             "absent",
			"pids.max":                      `"7110"`,
			"pids.peak":                     "7",
		}},
	} {
		t.Run(tc.tree, func(t *testing.T) {
			got := readGroup(t, Group{FS: loadTree(t, tc.tree), Path: tc.path})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The root has no limits, and zeros where others have counters.
func TestRecordedRoots(t *testing.T) {
	for tree, wantSubtree := range map[string]string{
		"k612": `"cpuset cpu io memory hugetlb pids rdma misc"`,
		"k61":  `"cpuset cpu io memory hugetlb pids rdma misc"`,
	} {
		got := readGroup(t, Group{FS: loadTree(t, tree), Path: "/"})
		for name, want := range map[string]string{
			"cgroup.subtree_control": wantSubtree,
			"cpu.max":                "absent",
			"cpu.weight":             "absent",
			"cpuset.cpus":            "absent",
			"memory.max":             "absent",
			"memory.current":         "absent",
			"memory.events":          "absent",
			"cgroup.events":          "absent",
			"cpu.stat nr_periods":    "0",
			"cpu.stat nr_throttled":  "0",
		} {
			if got[name] != want {
				t.Errorf("%s: %s is %s, want %s", tree, name, got[name], want)
			}
		}
		for _, name := range []string{"memory.stat", "memory.stat nonreclaimable", "cpuset.cpus.effective", "cpu.pressure", "memory.numa_stat"} {
			if got[name] == "absent" {
				t.Errorf("%s: %s is absent", tree, name)
			}
		}
	}
}

// No file of either tree, of any group, is refused.
func TestRecordedTreesParse(t *testing.T) {
	for _, name := range []string{"k612", "k61"} {
		root := Group{FS: loadTree(t, name), Path: "/"}
		groups := []Group{root}
		if err := walkGroups(root, 8, maxWalkEntries, func(g Group) step {
			groups = append(groups, g)
			return enter
		}); err != nil {
			t.Fatal(err)
		}
		if len(groups) < 8 {
			t.Errorf("%s: only %d groups", name, len(groups))
		}
		for _, g := range groups {
			readGroup(t, g)
		}
	}
}

// Files captured on two kernels, apart from any node.
func TestKernelSampleFiles(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors/kernel-samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var samples struct {
		Files map[string]map[string][]string `json:"files"`
	}
	if err := json.Unmarshal(data, &samples); err != nil {
		t.Fatal(err)
	}
	if len(samples.Files) != 2 {
		t.Fatalf("files of %d kernels", len(samples.Files))
	}
	for kernel, files := range samples.Files {
		for name, lines := range files {
			_, file, isRoot := strings.Cut(name, "ROOT ")
			if !isRoot {
				file = name
			}
			g := oneFile(file, strings.Join(lines, "\n")+"\n")
			var keys []string
			var get func(string) (uint64, bool)
			switch file {
			case "memory.stat":
				s, err := g.MemoryStat()
				if err != nil {
					t.Error(err)
				}
				keys, get = s.Keys(), s.Get
			case "cpu.stat":
				s, err := g.CPUStat()
				if err != nil {
					t.Error(err)
				}
				keys, get = s.Keys(), s.Get
			case "memory.events":
				s, err := g.MemoryEvents()
				if err != nil {
					t.Error(err)
				}
				keys, get = s.Keys(), s.Get
			case "memory.swap.events":
				s, err := g.MemorySwapEvents()
				if err != nil {
					t.Error(err)
				}
				keys, get = s.Keys(), s.Get
			case "cpu.pressure":
				p, err := g.Pressure("cpu")
				if err != nil {
					t.Error(err)
				} else if got := printPressure(p); got != strings.Join(lines, "\n")+"\n" {
					t.Errorf("%s %s: printed again as %q", kernel, name, got)
				}
				continue
			case "cpuset.cpus.partition":
				if got, err := g.CPUSetPartition(); err != nil || got != lines[0] {
					t.Errorf("%s %s: %q, %v", kernel, name, got, err)
				}
				continue
			default:
				t.Errorf("%s: file %q has no test", kernel, name)
				continue
			}
			if len(keys) != len(lines) {
				t.Errorf("%s %s: %d keys of %d lines", kernel, name, len(keys), len(lines))
			}
			for i, line := range lines {
				key, value, _ := strings.Cut(line, " ")
				want, err := kernelUint(value)
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := get(key); !ok || got != want || keys[i] != key {
					t.Errorf("%s %s: %q gave %q, %d, %t", kernel, name, line, keys[i], got, ok)
				}
			}
		}
	}
}
