package cgroup

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// loadTree reads testdata/trees/NAME.txtar: a part of a real node's tree.
func loadTree(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/trees/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for _, file := range archive.Files {
		tree[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return tree
}

// groupTree makes a tree of the given groups and those above them.
func groupTree(groups ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, p := range append(groups, "/") {
		g := Group{Path: p}
		for _, g := range append(ancestors(g), g) {
			tree[g.File("cgroup.controllers")] = &fstest.MapFile{Data: []byte("cpu memory\n")}
		}
	}
	return tree
}

func oneFile(name, content string) Group {
	g := Group{Path: "/a"}
	g.FS = fstest.MapFS{g.File(name): {Data: []byte(content)}}
	return g
}

// faultyFS answers some paths with an error of its own.
type faultyFS struct {
	tree  fs.FS
	fault map[string]error
}

func (f faultyFS) Open(name string) (fs.File, error) {
	if err := f.fault[name]; err != nil {
		return nil, err
	}
	return f.tree.Open(name)
}

func TestGroupFile(t *testing.T) {
	for _, tc := range []struct{ path, name, want string }{
		{"/", "cpu.stat", "sys/fs/cgroup/cpu.stat"},
		{"/", "", "sys/fs/cgroup"},
		{"", "cpu.stat", "sys/fs/cgroup/cpu.stat"},
		{"/kubepods.slice", "cpu.max", "sys/fs/cgroup/kubepods.slice/cpu.max"},
		{"/kubepods.slice/", "cpu.max", "sys/fs/cgroup/kubepods.slice/cpu.max"},
		{"/../../../../etc", "passwd", "sys/fs/cgroup/etc/passwd"},
		{"/a/../../b", "cpu.max", "sys/fs/cgroup/b/cpu.max"},
	} {
		if got := (Group{Path: tc.path}).File(tc.name); got != tc.want {
			t.Errorf("Group{%q}.File(%q) = %q, want %q", tc.path, tc.name, got, tc.want)
		}
	}
}

func TestGroupChildren(t *testing.T) {
	tree := groupTree("/b", "/a", "/a/c")
	tree["sys/fs/cgroup/link"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("a")}
	for _, tc := range []struct {
		path string
		want []string
	}{
		{"/", []string{"a", "b"}},
		{"/a", []string{"c"}},
		{"/a/c", []string{}},
	} {
		got, err := Group{FS: tree, Path: tc.path}.Children()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.path, diff)
		}
	}
	if _, err := (Group{FS: tree, Path: "/none"}).Children(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent group: %v", err)
	}
}

// An absent file, an unreadable one, one of a removed group, an empty and a
// damaged one give five different errors.
func TestReadErrors(t *testing.T) {
	errGap := errors.New("forbidden by RBAC")
	faulty := func(err error) Group {
		return Group{Path: "/a", FS: faultyFS{fstest.MapFS{}, map[string]error{
			"sys/fs/cgroup/a/memory.max":   err,
			"sys/fs/cgroup/a/cpu.pressure": err,
		}}}
	}
	pathErr := func(err error) error { return &fs.PathError{Op: "read", Path: "p", Err: err} }

	for name, tc := range map[string]struct {
		group Group
		is    error
		not   []error
		text  string
	}{
		"absent":     {Group{FS: fstest.MapFS{}, Path: "/a"}, fs.ErrNotExist, []error{ErrVanished}, "sys/fs/cgroup/a/memory.max"},
		"unreadable": {faulty(errGap), errGap, []error{fs.ErrNotExist, ErrVanished}, "sys/fs/cgroup/a/memory.max"},
		"vanished":   {faulty(pathErr(syscall.ENODEV)), ErrVanished, []error{fs.ErrNotExist}, "vanished"},
		"no FS":      {Group{Path: "/a"}, fs.ErrInvalid, []error{fs.ErrNotExist}, "sys/fs/cgroup/a/memory.max"},
		"a folder":   {Group{FS: groupTree("/a/memory.max"), Path: "/a"}, nil, []error{fs.ErrNotExist, ErrVanished}, "memory.max"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.group.MemoryMax()
			if err == nil {
				t.Fatal("no error")
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v does not match %v", err, tc.is)
			}
			for _, not := range tc.not {
				if errors.Is(err, not) {
					t.Errorf("%v matches %v", err, not)
				}
			}
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%q does not contain %q", err, tc.text)
			}
			if _, isParse := errors.AsType[*ParseError](err); isParse {
				t.Errorf("%v is a ParseError", err)
			}
		})
	}

	t.Run("pressure disabled", func(t *testing.T) {
		_, err := faulty(pathErr(syscall.EOPNOTSUPP)).Pressure("cpu")
		if !errors.Is(err, ErrPressureDisabled) || !errors.Is(err, syscall.EOPNOTSUPP) {
			t.Errorf("got %v", err)
		}
		_, err = faulty(pathErr(syscall.EOPNOTSUPP)).MemoryMax()
		if errors.Is(err, ErrPressureDisabled) {
			t.Errorf("memory.max: %v", err)
		}
	})
}

func TestParseErrorNamesFileLineAndText(t *testing.T) {
	_, err := oneFile("memory.events", "low 0\nhigh -3\x1b[2J\n").MemoryEvents()
	bad, ok := errors.AsType[*ParseError](err)
	if !ok {
		t.Fatalf("%v is no ParseError", err)
	}
	want := &ParseError{File: "sys/fs/cgroup/a/memory.events", Line: 2, Text: "high -3\x1b[2J", Reason: "not a decimal number"}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const text = `sys/fs/cgroup/a/memory.events:2: not a decimal number: "high -3\x1b[2J"`
	if err.Error() != text {
		t.Errorf("text %q, want %q", err, text)
	}

	_, err = oneFile("cpu.max", "").CPUMax()
	if got, want := err.Error(), "sys/fs/cgroup/a/cpu.max: file is empty"; got != want {
		t.Errorf("empty file: %q, want %q", got, want)
	}

	_, err = oneFile("cpu.max", strings.Repeat("9", 1000)).CPUMax()
	if bad, _ := errors.AsType[*ParseError](err); bad == nil || len(bad.Text) != maxErrorText || len(err.Error()) > 200 {
		t.Errorf("long text is not cut: %v", err)
	}

	g := Group{Path: "/\x1b[31m"}
	g.FS = fstest.MapFS{g.File("cpu.max"): {Data: []byte("x\n")}}
	_, parseErr := g.CPUMax()
	_, readErr := g.MemoryMax()
	for _, err := range []error{parseErr, readErr} {
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("escape code in %q", err)
		}
	}
}

func TestReadRefusesHugeFile(t *testing.T) {
	_, err := oneFile("cgroup.procs", strings.Repeat("1\n", maxFileBytes/2+1)).Procs()
	if bad, ok := errors.AsType[*ParseError](err); !ok || bad.File != "sys/fs/cgroup/a/cgroup.procs" {
		t.Errorf("got %v", err)
	}
}
