package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

// checkInvariants checks what holds for every topology.
func checkInvariants(t interface{ Fatalf(string, ...any) }, topo *Topology) {
	all := topo.AllCPUs()
	if all.Size() != len(topo.CPUs) || len(topo.CPUs) == 0 {
		t.Fatalf("%d cpus, set %s", len(topo.CPUs), all)
	}
	for name, list := range map[string][]Group{"cores": topo.Cores, "sockets": topo.Sockets, "uncore": topo.UncoreCaches} {
		var seen cpuset.Set
		for i, g := range list {
			if g.CPUs.IsEmpty() || !seen.Intersection(g.CPUs).IsEmpty() || i > 0 && g.ID <= list[i-1].ID {
				t.Fatalf("%s: %v", name, list)
			}
			seen = seen.Union(g.CPUs)
		}
		if seen != all {
			t.Fatalf("%s hold %s of %s", name, seen, all)
		}
	}
	for _, c := range topo.Cores {
		if first, _ := c.CPUs.First(); first != c.ID {
			t.Fatalf("core %d has %s", c.ID, c.CPUs)
		}
	}
	var seen cpuset.Set
	for _, n := range topo.NUMANodes {
		seen = seen.Union(n.CPUs)
	}
	if seen != all {
		t.Fatalf("nodes hold %s of %s", seen, all)
	}
}

func TestFromLscpuRecordings(t *testing.T) {
	for _, name := range []string{"numa4", "smt2"} {
		tree, lscpu := recording(t, name)
		want, err := FromSysfs(tree)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromLscpu(lscpu)
		if err != nil {
			t.Fatal(err)
		}
		sameView(t, want, got)
		if want, got := len(want.Kernel.Caches), len(got.Kernel.Caches); want != got {
			t.Errorf("%s: %d caches, sysfs has %d", name, got, want)
		}
		if len(got.Notes) != 0 || got.NUMANodes[0].HasMemTotal || got.NUMANodes[0].HasDistances {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func sameView(t interface{ Fatalf(string, ...any) }, want, got *Topology) {
	if d := cmp.Diff(want.CPUs, got.CPUs); d != "" {
		t.Fatalf("CPUs, sysfs against lscpu (-want +got):\n%s", d)
	}
	counts := func(t *Topology) [5]int {
		return [...]int{t.NumCPUs, t.NumCores, t.NumSockets, t.NumNUMANodes, t.NumUncoreCaches}
	}
	if counts(want) != counts(got) {
		t.Fatalf("counts %v, sysfs %v", counts(got), counts(want))
	}
}

// lscpuOf writes the table that lscpu prints for cpus.
func lscpuOf(cpus []proc) []byte {
	var b strings.Builder
	b.WriteString("# The following is the parsable format, which can be fed to other\n# CPU,Core,Socket,Node,,L1d,L3\n")
	for _, c := range cpus {
		l3 := fmt.Sprint(c.l3)
		if c.l3 < 0 {
			l3 = ""
		}
		fmt.Fprintf(&b, "%d,%d,%d,%d,,%d,%s\n", c.id, c.core, c.pkg, c.node, c.id, l3)
	}
	return []byte(b.String())
}

// Wherever lscpu tells all, its table and sysfs give the same view.
func TestLscpuAgreesWithSysfs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 130), 1, 24, rapid.ID).Draw(t, "ids")
		var cpus []proc
		for _, id := range ids {
			cpus = append(cpus, proc{
				id, rapid.IntRange(0, 5).Draw(t, "core"), rapid.IntRange(0, 2).Draw(t, "package"),
				rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "node"), rapid.IntRange(0, 3).Draw(t, "l3"),
			})
		}
		fromSysfs, err := FromSysfs(machine(cpus))
		if err != nil {
			t.Fatalf("sysfs: %v", err)
		}
		fromLscpu, err := FromLscpu(lscpuOf(cpus))
		if err != nil {
			t.Fatalf("lscpu: %v", err)
		}
		checkInvariants(t, fromSysfs)
		checkInvariants(t, fromLscpu)
		sameView(t, fromSysfs, fromLscpu)
	})
}

func TestFromLscpuForms(t *testing.T) {
	for _, tc := range []struct{ name, text, cores, nodes, uncore string }{
		{"order and case of columns, CACHE", "# socket,NODE,core,Cpu,L1d:L1i:L2:L3\n0,0,0,0,0:0:0:0\n0,0,0,1,0:0:0:0\n0,0,1,2,1:1:1:1\n0,0,1,3,1:1:1:1\n",
			"0:0-1 2:2-3", "0:0-3", "0:0-1 1:2-3"},
		{"plain CACHE", "# CPU,CORE,SOCKET,NODE,CACHE\r\n0,0,0,0,0:0:0:0\r\n1,1,0,0,1:1:1:1\r\n", "0:0 1:1", "0:0-1", "0:0 1:1"},
		{"no L3 at all", "# CPU,Core,Socket,Node,,L1d,L1i,L2\n0,0,0,0,,0,0,0\n1,1,1,0,,1,1,1\n", "0:0 1:1", "0:0-1", "0:0 1:1"},
		{"no caches", "# CPU,Core,Socket,Node,,\n0,0,0,0,,\n1,1,0,0,,\n", "0:0 1:1", "0:0-1", "0:0-1"},
		{"no Node column", "# CPU,Core,Socket\n0,0,0\n1,1,1\n", "0:0 1:1", "0:0 1:1", "0:0 1:1"},
		{"Node column empty", "# CPU,Core,Socket,Node\n0,0,0,\n1,1,1,\n", "0:0 1:1", "0:0 1:1", "0:0 1:1"},
		{"offline rows", "# CPU,Core,Socket,Node,Online\n0,0,0,0,Y\n1,-,-,-,N\n2,,,,no\n", "0:0", "0:0", "0:0"},
		{"offline rows without the column", "# CPU,Core,Socket,Node,,L1d\n0,0,0,0,,0\n1,,,,,\n", "0:0", "0:0", "0:0"},
		{"sparse nodes", "# CPU,Core,Socket,Node\n0,0,0,0\n9,1,0,8\n", "0:0 9:9", "0:0 8:9", "0:0,9"},
		// The fourth core has its L3 alone: 1 ≠ 2 cores × 1 thread.
		{"a missing L3", "# CPU,Core,Socket,Node,,L3\n0,0,0,0,,\n1,1,0,0,,5\n", "0:0 1:1", "0:0-1", "0:0 5:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := FromLscpu([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			checkInvariants(t, got)
			nodes := got.group(func(c CPU) int { return c.NUMANode })
			if groups(got.Cores) != tc.cores || groups(nodes) != tc.nodes || groups(got.UncoreCaches) != tc.uncore {
				t.Errorf("cores %s, nodes %s, uncore %s", groups(got.Cores), groups(nodes), groups(got.UncoreCaches))
			}
		})
	}
}

func TestFromLscpuRefuses(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "lscpu: no rows"},
		{"# CPU,Core,Socket\n", "lscpu: no rows"},
		{"0,0,0,0\n", `no column cpu in header ""`},
		{"CPU NODE SOCKET CORE\n0 0 0 0\n", "no column cpu in header"},
		{"# CPU,Node\n0,0\n", "no column core in header"},
		{"# CPU,Core,Socket,cpu\n0,0,0,0\n", "two columns cpu in header"},
		{"# CPU,Core,Socket\n0,0\n", `row "0,0" has 2 cells, the header names 3`},
		{"# CPU,Core,Socket\n0,0,0,0\n", "has 4 cells"},
		{"# CPU,Core,Socket\n0,0,0\n0,1,0\n", "cpu 0 has two rows"},
		{"# CPU,Core,Socket\n-,0,0\n", "names no cpu"},
		{"# CPU,Core,Socket\n0,-1,0\n", `column "core": not an id: "-1"`},
		{"# CPU,Core,Socket\n99999999999999999999,0,0\n", "not an id"},
		{"# CPU,Core,Socket\n2048,0,0\n", "cpu id is not between 0 and 2047"},
		{"# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,\n", "some cpus have a NUMA node and some have none"},
		{"# CPU,Core,Socket\n0,,\n", "no usable cpu"},
		{"# CPU,Core,Socket,L1d:L1i\n0,0,0,0:0:0\n", "3 caches, the header names 2"},
		{"# CPU,Core,Socket\n\x00\x1b[2J,0,0\n", `not an id: "\x00\x1b[2J"`},
	} {
		got, err := FromLscpu([]byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("FromLscpu(%q) = %v, %v; want %s", tc.text, got, err, tc.want)
		}
	}
}

func TestReadPrefersSysfs(t *testing.T) {
	tree, lscpu := recording(t, "numa4")
	if got, err := Read(tree, lscpu); err != nil || got.Source != Sysfs {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Read(nil, lscpu); err != nil || got.Source != Lscpu {
		t.Errorf("without a tree: %v, %v", got, err)
	}
	if got, err := Read(fstest.MapFS{}, lscpu); err != nil || got.Source != Lscpu {
		t.Errorf("with an empty tree: %v, %v", got, err)
	}
	for _, fsys := range []fs.FS{nil, fstest.MapFS{}} {
		if _, err := Read(fsys, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without any: %v", err)
		}
	}
	if _, err := Read(fstest.MapFS{}, []byte{}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty table is not an absent one: %v", err)
	}
	if _, err := Read(broken{tree, cpuDir, syscall.EIO}, lscpu); !errors.Is(err, syscall.EIO) {
		t.Errorf("unreadable sysfs must not fall back to lscpu: %v", err)
	}
}

func TestReadLscpuBesideNodes(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const table = "# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,1\n"
	tree := fstest.MapFS{
		nodeDir + "/node0/meminfo":                                    file("Node 0 MemTotal:       98041856 kB\n"),
		nodeDir + "/node0/distance":                                   file("10 21\n"),
		nodeDir + "/node1/hugepages/hugepages-1048576kB/nr_hugepages": file("4\n"),
		nodeDir + "/node2/meminfo":                                    file("Node 2 MemTotal:       5 kB\n"),
		nodeDir + "/node2/cpulist":                                    file("\n"),
		cpuDir + "/isolated":                                          file("1\n"),
		cpuDir + "/offline":                                           file("2-3\n"),
		"proc/meminfo":                                                file("MemTotal: 98041861 kB\n"),
	}
	got, err := Read(tree, []byte(table))
	if err != nil {
		t.Fatal(err)
	}
	want := []NUMANode{
		{ID: 0, CPUs: set(t, "0"), MemTotal: 100394860544, HasMemTotal: true, Distances: []uint64{10, 21}, HasDistances: true},
		{ID: 1, CPUs: set(t, "1"), HugePages: []HugePages{{1048576, 4, true}}},
		{ID: 2, MemTotal: 5120, HasMemTotal: true},
	}
	if d := cmp.Diff(want, got.NUMANodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
	if got.Kernel.Isolated != (List{set(t, "1"), true}) || got.Kernel.Offline != (List{set(t, "2-3"), true}) || got.MemTotal != 98041861*1024 {
		t.Errorf("%+v", got)
	}
	if len(got.Notes) != 0 {
		t.Errorf("notes %v", got.Notes)
	}

	tree[nodeDir+"/node0/cpulist"] = file("0-1\n")
	tree[cpuDir+"/online"] = file("0\n")
	if got, err = Read(tree, []byte(table)); err != nil {
		t.Fatal(err)
	}
	wantNotes := []Note{
		{cpuDir + "/online", `"0", but lscpu lists "0-1"`},
		{nodeDir + "/node0", `has the cpus "0-1", but lscpu puts "0" there`},
	}
	if d := cmp.Diff(wantNotes, got.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

func TestReadNodesOfLscpuWithoutNodeColumn(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	table := []byte("# CPU,Core,Socket\n0,0,0\n1,1,0\n")
	tree := fstest.MapFS{nodeDir + "/node0/cpulist": file("0\n"), nodeDir + "/node4/cpulist": file("1\n")}
	got, err := Read(tree, table)
	if err != nil || len(got.NUMANodes) != 2 || got.NUMANodes[1].ID != 4 || got.NUMANodes[1].CPUs != set(t, "1") {
		t.Errorf("%+v, %v", got, err)
	}
	tree = fstest.MapFS{nodeDir + "/node3/meminfo": file("Node 3 MemTotal: 1 kB\n")}
	if got, err = Read(tree, table); err != nil || len(got.NUMANodes) != 1 || got.NUMANodes[0].CPUs != set(t, "0-1") {
		t.Errorf("one node: %+v, %v", got, err)
	}
	tree[nodeDir+"/node0/meminfo"] = file("Node 0 MemTotal: 1 kB\n")
	if got, err = Read(tree, table); err == nil || !strings.Contains(err.Error(), "no NUMA node named for cpu 0") {
		t.Errorf("two nodes without lists: %+v, %v", got, err)
	}
}

func FuzzFromLscpu(f *testing.F) {
	f.Add([]byte("# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n"))
	f.Add([]byte("# CPU,Core,Socket,L1d:L3\n0,0,0,0:\n1,0,0,:0\n"))
	f.Add([]byte("# CPU,Core,Socket,Node,Online\n0,0,0,0,Y\n1,-,-,-,N\n"))
	f.Add([]byte("#\n,,,\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := FromLscpu(text); err == nil {
			checkInvariants(t, got)
		}
	})
}
