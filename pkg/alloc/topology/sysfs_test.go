package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

func TestFromSysfsNUMA4(t *testing.T) {
	tree, _ := recording(t, "numa4")
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	var wantCPUs []CPU
	for id := range 8 {
		// The L3 of a package spans two nodes, so that it is nobody's node cache but an uncore cache of four cores.
		wantCPUs = append(wantCPUs, CPU{ID: id, Core: id, Socket: id / 4, NUMANode: id / 2, UncoreCache: id / 4, HasUncoreCache: true})
	}
	if d := cmp.Diff(wantCPUs, got.CPUs); d != "" {
		t.Errorf("CPUs (-want +got):\n%s", d)
	}
	hugePages := []HugePages{{SizeKiB: 2048, Count: 16, HasCount: true}}
	wantNodes := []NUMANode{
		{0, set(t, "0-1"), 2044923904, true, hugePages, []uint64{10, 12, 32, 32}, true},
		{1, set(t, "2-3"), 2066894848, true, hugePages, []uint64{12, 10, 32, 32}, true},
		{2, set(t, "4-5"), 1056276480, true, hugePages, []uint64{32, 32, 10, 12}, true},
		{3, set(t, "6-7"), 1055424512, true, hugePages, []uint64{32, 32, 12, 10}, true},
	}
	if d := cmp.Diff(wantNodes, got.NUMANodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
	counts := []int{got.NumCPUs, got.NumCores, got.NumSockets, got.NumNUMANodes, got.NumUncoreCaches, got.CPUsPerCore(), got.CPUsPerSocket(), got.CPUsPerUncoreCache()}
	if d := cmp.Diff([]int{8, 8, 2, 4, 2, 1, 4, 4}, counts); d != "" {
		t.Errorf("counts (-want +got):\n%s", d)
	}
	if got.MemTotal != 6077656*1024 || !got.HasMemTotal {
		t.Errorf("MemTotal = %d, %v", got.MemTotal, got.HasMemTotal)
	}
	if len(got.Notes) != 0 {
		t.Errorf("notes: %v", got.Notes)
	}
}

func TestFromSysfsSMT2(t *testing.T) {
	tree, _ := recording(t, "smt2")
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s := groups(got.Cores); s != "0:0-1 2:2-3 4:4-5 6:6-7" {
		t.Errorf("cores %s", s)
	}
	if s := groups(got.Sockets); s != "0:0-3 1:4-7" {
		t.Errorf("sockets %s", s)
	}
	// The L3 is the node's: no uncore cache, and the socket's id in its place.
	if s := groups(got.UncoreCaches); s != "0:0-3 1:4-7" {
		t.Errorf("uncore caches %s", s)
	}
	if c, ok := got.CPU(5); !ok || c != (CPU{ID: 5, Core: 4, Socket: 1, NUMANode: 1, UncoreCache: 1}) {
		t.Errorf("cpu 5: %+v, %v", c, ok)
	}
	if got.CPUsPerCore() != 2 {
		t.Errorf("CPUsPerCore = %d", got.CPUsPerCore())
	}
	if s := got.WholeCores(set(t, "1,4")).String(); s != "0-1,4-5" {
		t.Errorf("WholeCores = %s", s)
	}
	if s := got.AllCPUs().String(); s != "0-7" {
		t.Errorf("AllCPUs = %s", s)
	}

	wantKernel := Kernel{
		Online: List{set(t, "0-7"), true}, Offline: List{Known: true}, Isolated: List{Known: true}, NohzFull: List{Known: true},
	}
	for id := range 8 {
		wantKernel.CPUs = append(wantKernel.CPUs, KernelCPU{id, id % 4 / 2, id / 4, true, cpuset.Of(id&^1, id|1)})
	}
	for _, c := range []struct {
		level   int
		typ     string
		sizeKiB uint64
		of      int
	}{{1, "Data", 32, 1}, {1, "Instruction", 32, 1}, {2, "Unified", 4096, 2}, {3, "Unified", 16384, 4}} {
		for first := 0; first < 8; first += c.of {
			var shared cpuset.Set
			for id := range c.of {
				shared.Add(first + id)
			}
			wantKernel.Caches = append(wantKernel.Caches, Cache{c.level, c.typ, c.sizeKiB, first / c.of, true, shared})
		}
	}
	if d := cmp.Diff(wantKernel, got.Kernel); d != "" {
		t.Errorf("kernel's view (-want +got):\n%s", d)
	}
}

// A hybrid machine: two cores with two threads, three with one, and one of the siblings offline.
func TestFromSysfsUneven(t *testing.T) {
	tree := machine([]proc{{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 4, 0, 0, 0}, {4, 8, 0, 0, 0}, {5, 9, 0, 0, 0}, {6, 10, 0, 0, 0}})
	tree[cpuDir+"/cpu3/online"] = &fstest.MapFile{Data: []byte("0\n")} // the sibling of 2
	tree[nodeDir+"/node0/cpu3/online"] = &fstest.MapFile{Data: []byte("0\n")}
	tree[cpuDir+"/offline"] = &fstest.MapFile{Data: []byte("3,7-8191\n")}
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s := groups(got.Cores); s != "0:0-1 2:2 4:4 5:5 6:6" {
		t.Errorf("cores %s", s)
	}
	if got.NumCPUs != 6 || got.CPUsPerCore() != 1 {
		t.Errorf("%d cpus, %d per core", got.NumCPUs, got.CPUsPerCore())
	}
	// L3 shared by 6, but 5 cores × 2 threads = 10: the kubelet's count takes it for an uncore cache.
	if !got.CPUs[0].HasUncoreCache || got.CPUs[2].UncoreCache != 0 {
		t.Errorf("uncore: %+v", got.CPUs)
	}
	if len(got.Kernel.CPUs) != 7 || got.Kernel.CPUs[3].HasIDs {
		t.Errorf("kernel's cpus: %+v", got.Kernel.CPUs)
	}
	want := []Note{{cpuDir + "/offline", `cpu list "3,7-8191": at "7-8191": cpu id is not between 0 and 2047`}}
	if d := cmp.Diff(want, got.Notes); d != "" || got.Kernel.Offline.Known {
		t.Errorf("offline known: %v; notes (-want +got):\n%s", got.Kernel.Offline.Known, d)
	}
}

// Core ids are unique only inside a package and a node folder.
func TestFromSysfsSplitsCores(t *testing.T) {
	tree := machine([]proc{{0, 0, 0, 0, -1}, {1, 0, 0, 1, -1}, {2, 0, 1, 1, -1}, {10, 0, 0, 0, -1}})
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s := groups(got.Cores); s != "0:0,10 1:1 2:2" {
		t.Errorf("cores %s", s)
	}
	tree[cpuDir+"/cpu10/topology/book_id"] = &fstest.MapFile{Data: []byte("1\n")}
	if got, err = FromSysfs(tree); err != nil || groups(got.Cores) != "0:0 1:1 2:2 10:10" {
		t.Errorf("with book ids: %v, %v", groups(got.Cores), err)
	}
}

func TestFromSysfsUncore(t *testing.T) {
	// One node of eight cores, four to an L3.
	var cpus []proc
	for id := range 16 {
		cpus = append(cpus, proc{id, id % 8, 0, 0, id % 8 / 4})
	}
	tree := machine(cpus)
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s := groups(got.UncoreCaches); s != "0:0-3,8-11 1:4-7,12-15" || !got.CPUs[9].HasUncoreCache {
		t.Errorf("uncore caches %s", s)
	}

	// The first thread by name of core 2 is cpu10: a cache that cannot be described ends the search for the cores that follow.
	delete(tree, cpuDir+"/cpu10/cache/index3/id")
	if got, err = FromSysfs(tree); err != nil {
		t.Fatal(err)
	}
	// In the order of names the cores come as 0, 1, 2 (cpu10), 3 (cpu11), ...
	if s := groups(got.UncoreCaches); s != "0:0-15" || !got.CPUs[1].HasUncoreCache || got.CPUs[2].HasUncoreCache || got.CPUs[7].HasUncoreCache {
		t.Errorf("uncore caches %s, %+v", s, got.CPUs)
	}
	want := []Note{{cpuDir + "/cpu10/cache", "cache cannot be described: index3/no id; the kubelet looks for no further uncore cache in NUMA node 0"}}
	if d := cmp.Diff(want, got.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}

	// Without the mask the list is counted.
	tree = machine(cpus)
	for path := range maps.Clone(tree) {
		if strings.HasSuffix(path, "/shared_cpu_map") {
			delete(tree, path)
		}
	}
	if got, err = FromSysfs(tree); err != nil || groups(got.UncoreCaches) != "0:0-3,8-11 1:4-7,12-15" {
		t.Errorf("without masks: %s, %v", groups(got.UncoreCaches), err)
	}
}

func TestFromSysfsNodes(t *testing.T) {
	tree := machine([]proc{{0, 0, 0, 0, -1}, {1, 1, 0, 8, -1}})
	for path, text := range map[string]string{
		"/node0/meminfo":                                "Node 0 MemTotal:       100 kB\n",
		"/node0/distance":                               "10 20 40\n",
		"/node16/meminfo":                               "Node 16 MemTotal:       7 kB\n",
		"/node16/cpulist":                               "\n",
		"/node16/hugepages/hugepages-1048576kB/x":       "1\n",
		"/node16/hugepages/hugepages-2kB/nr_hugepages":  "3\n",
		"/node16/hugepages/demote\x1b[31m/nr_hugepages": "3\n",
	} {
		tree[nodeDir+path] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []NUMANode{
		{ID: 0, CPUs: set(t, "0"), MemTotal: 102400, HasMemTotal: true, Distances: []uint64{10, 20, 40}, HasDistances: true},
		{ID: 8, CPUs: set(t, "1")},
		{ID: 16, MemTotal: 7168, HasMemTotal: true, HugePages: []HugePages{{SizeKiB: 1048576}, {SizeKiB: 2, Count: 3, HasCount: true}}},
	}
	if d := cmp.Diff(want, got.NUMANodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
	if got.NumNUMANodes != 2 {
		t.Errorf("%d nodes with CPUs", got.NumNUMANodes)
	}
	if n := got.Notes[len(got.Notes)-1]; n.Text != `folder is not named for a page size: "demote\x1b[31m"` {
		t.Errorf("note: %v", n)
	}
}

func TestFromSysfsWithoutNodes(t *testing.T) {
	tree := machine([]proc{{0, 0, 3, 0, -1}, {1, 0, 3, 0, -1}, {2, 0, 5, 0, -1}})
	tree[cpuDir+"/cpu3/uevent"] = &fstest.MapFile{} // present, offline
	for path := range maps.Clone(tree) {
		if strings.HasPrefix(path, nodeDir) {
			delete(tree, path)
		}
	}
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []NUMANode{{ID: 3, CPUs: set(t, "0-1")}, {ID: 5, CPUs: set(t, "2")}}
	if d := cmp.Diff(want, got.NUMANodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
	if got.NumCPUs != 4 || len(got.CPUs) != 3 {
		t.Errorf("NumCPUs %d of %d: the kubelet counts folders here", got.NumCPUs, len(got.CPUs))
	}
}

func TestFromSysfsLeavesOut(t *testing.T) {
	tree := machine([]proc{{0, 0, 0, 0, -1}, {1, 1, 0, 0, -1}, {2, 2, 0, 0, -1}})
	delete(tree, cpuDir+"/cpu1/topology/core_id")
	delete(tree, nodeDir+"/node0/cpu2/online")
	tree[cpuDir+"/online"] = &fstest.MapFile{Data: []byte("0-3\n")}
	got, err := FromSysfs(tree)
	if err != nil {
		t.Fatal(err)
	}
	if s := got.AllCPUs().String(); s != "0" {
		t.Errorf("cpus %s", s)
	}
	want := []Note{
		{cpuDir + "/cpu1", "online, but without core_id or physical_package_id: the kubelet leaves it out"},
		{cpuDir + "/cpu2", "online, but in no NUMA node: the kubelet leaves it out"},
		{cpuDir + "/cpu3", "online, but has no folder here"},
	}
	if d := cmp.Diff(want, got.Notes[:3]); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

func TestFromSysfsRefuses(t *testing.T) {
	two := []proc{{0, 0, 0, 0, 0}, {1, 1, 0, 1, 0}}
	for _, tc := range []struct{ name, path, text, want string }{
		{"online empty", cpuDir + "/online", "\n", "online: empty, so that no cpu counts as online"},
		{"online beyond the set", cpuDir + "/online", "0-4095\n", "cpu id is not between 0 and 2047"},
		{"all offline", cpuDir + "/online", "5\n", "no usable cpu"},
		{"core_id", cpuDir + "/cpu0/topology/core_id", "x\n", `cpu0/topology/core_id: not a number: "x"`},
		{"package", cpuDir + "/cpu0/topology/physical_package_id", strings.Repeat("9", 500), `physical_package_id: not a number: "9999`},
		{"cpu in two nodes", nodeDir + "/node1/cpu0/online", "1", "cpu 0 is listed twice, in NUMA node 0 and 1"},
		{"node twice", nodeDir + "/node01/cpulist", "", "have the same number"},
		{"node number", nodeDir + "/node99999999999999999999/cpulist", "", "number out of range"},
		{"meminfo", nodeDir + "/node0/meminfo", "Node 0 MemTotal: many kB", "not a MemTotal in kB"},
		{"meminfo too large", nodeDir + "/node0/meminfo", "Node 0 MemTotal: 18446744073709551615 kB", "not a MemTotal in kB"},
		{"meminfo without", nodeDir + "/node0/meminfo", "", "no MemTotal in"},
		{"distance", nodeDir + "/node0/distance", "10  20", `not a distance: "" in "10  20"`},
		{"huge pages", nodeDir + "/node0/hugepages/hugepages-2048kB/nr_hugepages", "-1", "not a number of pages"},
		{"cpulist", nodeDir + "/node2/cpulist", "0-", "a number is missing"},
		{"proc/meminfo", "proc/meminfo", "\x00\x00", `no MemTotal in "\x00\x00"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := machine(two)
			tree[tc.path] = &fstest.MapFile{Data: []byte(tc.text)}
			if got, err := FromSysfs(tree); err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
				t.Errorf("topology %v, error %v; want %s", got, err, tc.want)
			}
		})
	}
	if _, err := FromSysfs(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty tree: %v", err)
	}
	tree := machine([]proc{{0, 0, 0, 0, 0}, {4096, 1, 0, 0, 0}})
	delete(tree, cpuDir+"/online")
	if _, err := FromSysfs(tree); !errors.Is(err, cpuset.ErrRange) {
		t.Errorf("cpu 4096: %v", err)
	}
}

// What cannot be read is not absent.
func TestFromSysfsUnreadable(t *testing.T) {
	tree, _ := recording(t, "numa4")
	tree[nodeDir+"/node0/cpu0/online"] = &fstest.MapFile{}
	for _, path := range []string{
		cpuDir, nodeDir, cpuDir + "/online", cpuDir + "/isolated", cpuDir + "/cpu3/topology/core_id", cpuDir + "/cpu3/topology/core_cpus_list",
		cpuDir + "/cpu0/cache", cpuDir + "/cpu0/cache/index3/id", nodeDir + "/node0", nodeDir + "/node1/cpulist", nodeDir + "/node1/meminfo",
		nodeDir + "/node1/distance", nodeDir + "/node1/hugepages", nodeDir + "/node1/hugepages/hugepages-2048kB/nr_hugepages",
		"proc/cpuinfo", "proc/meminfo",
	} {
		for _, fault := range []error{syscall.EIO, fs.ErrPermission} {
			if _, err := FromSysfs(broken{tree, path, fault}); !errors.Is(err, fault) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s with %v: error %v", path, fault, err)
			}
		}
	}
	if got, err := FromSysfs(broken{tree, "proc/cpuinfo", fs.ErrNotExist}); err != nil || got.NumSockets != 2 {
		t.Errorf("without proc/cpuinfo: %v", err)
	}
}

func TestNumSocketsFromCPUInfo(t *testing.T) {
	tree := machine([]proc{{0, 0, 0, 0, -1}, {1, 1, 1, 0, -1}, {2, 2, 2, 0, -1}})
	for text, want := range map[string]int{
		"": 3,
		"processor\t: 0\nphysical id\t: 0\nprocessor\t: 1\nphysical id\t: 0\n": 1,
		"physical id\t: 0\nphysical id\t: 7\nphysical idle : 3\n":              2,
		"physical id\t: none\n": 3,
	} {
		tree["proc/cpuinfo"] = &fstest.MapFile{Data: []byte(text)}
		got, err := FromSysfs(tree)
		if err != nil || got.NumSockets != want || got.CPUsPerSocket() != 3/want {
			t.Errorf("%q: %d sockets, %v; want %d", text, got.NumSockets, err, want)
		}
	}
}

func TestLargestMachine(t *testing.T) {
	var cpus []proc
	for id := range cpuset.MaxCPUs {
		cpus = append(cpus, proc{id, id % 1024, 0, 0, id % 64})
	}
	got, err := FromLscpu(lscpuOf(cpus))
	if err != nil || got.NumCPUs != cpuset.MaxCPUs || got.NumCores != 1024 || got.NumUncoreCaches != 64 {
		t.Fatalf("%v, %v", got, err)
	}
}

func FuzzFromSysfs(f *testing.F) {
	f.Add("online", "0-1\n")
	f.Add("cpu0/topology/core_id", "-1")
	f.Add("cpu1/cache/index3/shared_cpu_map", "ffffffff,,zz")
	f.Add("../node/node0/distance", "10 20")
	f.Add("../node/node1/meminfo", "Node 1 MemTotal: 18446744073709551615 kB")
	f.Add("../../../../proc/cpuinfo", "physical id\t: 0\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		path := fmt.Sprintf("%s/%s", cpuDir, name)
		if rest, ok := strings.CutPrefix(name, "../node/"); ok {
			path = nodeDir + "/" + rest
		} else if rest, ok := strings.CutPrefix(name, "../../../../"); ok {
			path = rest
		}
		if !fs.ValidPath(path) {
			return
		}
		tree := machine([]proc{{0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {2, 1, 0, 1, 0}})
		tree[path] = &fstest.MapFile{Data: []byte(text)}
		got, err := FromSysfs(tree)
		if err == nil {
			checkInvariants(t, got)
		}
	})
}
