package topology

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/noderes/kubectl-noderes/pkg/alloc/cpuset"
)

//go:embed testdata/*.txtar
var recorded embed.FS

// recording returns the tree of a recorded machine and its lscpu table.
func recording(t testing.TB, name string) (fstest.MapFS, []byte) {
	t.Helper()
	data, err := recorded.ReadFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	var lscpu []byte
	for _, f := range txtar.Parse(data).Files {
		if f.Name == "lscpu.txt" {
			lscpu = f.Data
			continue
		}
		tree[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return tree, lscpu
}

// proc is a CPU of an invented machine. l3 < 0: no L3 cache.
type proc struct{ id, core, pkg, node, l3 int }

// machine writes the sysfs that the kernel would show for cpus, with cpuN entries in the node folders.
func machine(cpus []proc) fstest.MapFS {
	tree := fstest.MapFS{}
	put := func(path, format string, args ...any) {
		tree[path] = &fstest.MapFile{Data: []byte(fmt.Sprintf(format, args...) + "\n")}
	}
	var online cpuset.Set
	sharers := map[int]cpuset.Set{}
	for _, c := range cpus {
		online.Add(c.id)
		set := sharers[c.l3]
		set.Add(c.id)
		sharers[c.l3] = set
	}
	put(cpuDir+"/online", "%s", online)
	for _, c := range cpus {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, c.id)
		put(dir+"/topology/core_id", "%d", c.core)
		put(dir+"/topology/physical_package_id", "%d", c.pkg)
		if c.l3 >= 0 {
			put(dir+"/cache/index3/id", "%d", c.l3)
			put(dir+"/cache/index3/level", "3")
			put(dir+"/cache/index3/type", "Unified")
			put(dir+"/cache/index3/size", "16384K")
			put(dir+"/cache/index3/shared_cpu_map", "%s", mask(sharers[c.l3]))
			put(dir+"/cache/index3/shared_cpu_list", "%s", sharers[c.l3])
		}
		put(fmt.Sprintf("%s/node%d/cpu%d/online", nodeDir, c.node, c.id), "1")
	}
	return tree
}

// mask writes a set as the kernel's hexadecimal words.
func mask(s cpuset.Set) string {
	var words []string
	for word := cpuset.MaxCPUs/32 - 1; word >= 0; word-- {
		var w uint32
		for bit := range 32 {
			if s.Contains(word*32 + bit) {
				w |= 1 << bit
			}
		}
		if w != 0 || len(words) > 0 || word == 0 {
			words = append(words, fmt.Sprintf("%08x", w))
		}
	}
	return strings.Join(words, ",")
}

func set(t testing.TB, list string) cpuset.Set {
	t.Helper()
	s, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func groups(list []Group) string {
	var parts []string
	for _, g := range list {
		parts = append(parts, fmt.Sprintf("%d:%s", g.ID, g.CPUs))
	}
	return strings.Join(parts, " ")
}

// broken is a tree in which one file or folder cannot be read.
type broken struct {
	fs.FS
	path string
	err  error
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.path {
		return nil, &fs.PathError{Op: "open", Path: name, Err: b.err}
	}
	return b.FS.Open(name)
}
