//go:build unix

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// folder is a bundle on disk.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, mapFS(files)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir string) *Snapshot {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFolderIsAFileSystem(t *testing.T) {
	s := open(t, folder(t, map[string]string{"a/b/c": "abc", "a.x": "", "nodes/n/root/x": "1"}))
	if err := fstest.TestFS(s.tree, "a/b/c", "a.x", manifestName); err != nil {
		t.Error(err)
	}
}

func TestFolderFollowsNoLinks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	dir := folder(t, map[string]string{gapsName: "[]", "nodes/n/root/proc/meminfo": "m", "nodes/n/samples/0/root/x": "0"})
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	links := map[string]string{
		"nodes/n/kernel.log":     secret,
		"nodes/n/kubelet.log":    "configz.json", // to nowhere
		"nodes/n/root/inside":    "proc/meminfo",
		"nodes/n/root/etc":       filepath.Dir(secret),
		"nodes/n/root/proc2":     "proc",
		"nodes/m":                "n",
		"nodes/n/samples/1":      "0",
		"cluster":                "nodes",
		"nodes/n/samples/0/loop": ".",
	}
	for name, target := range links {
		must(t, os.Symlink(target, in(name)))
	}
	s := open(t, dir)
	for _, name := range []string{
		"nodes/n/kernel.log", "nodes/n/kubelet.log", "nodes/n/root/inside", "nodes/n/root/etc", "nodes/n/root/etc/secret", "nodes/n/root/proc2/meminfo",
		"nodes/m", "nodes/m/root/proc/meminfo", "nodes/n/samples/1/root/x", "cluster/n/root/proc/meminfo", "nodes/n/samples/0/loop/loop/root/x",
	} {
		if data, err := s.File(name); !errors.Is(err, ErrLink) {
			t.Errorf("File(%q) = %q, %v", name, data, err)
		}
		if _, err := s.tree.Open(name); !errors.Is(err, ErrLink) {
			t.Errorf("Open(%q): %v", name, err)
		}
		if _, err := s.tree.ReadDir(name); !errors.Is(err, ErrLink) {
			t.Errorf("ReadDir(%q): %v", name, err)
		}
		if _, err := s.tree.Stat(name); !errors.Is(err, ErrLink) {
			t.Errorf("Stat(%q): %v", name, err)
		}
	}
	if _, err := s.Pods(); !errors.Is(err, ErrLink) || Reason(err) != ReasonUnreadable {
		t.Errorf("Pods: %v", err)
	}
	if got := s.NodeNames(); len(got) != 1 || got[0] != "n" {
		t.Errorf("NodeNames: %q", got)
	}
	// The latest sample cannot be read. The one before it is no replacement.
	if data, err := fs.ReadFile(s.Node("n").Files(), "x"); !errors.Is(err, ErrLink) {
		t.Errorf("a file of a linked sample: %q, %v", data, err)
	}
	if err := s.WriteArchive(io.Discard); !errors.Is(err, ErrLink) {
		t.Errorf("WriteArchive: %v", err)
	}

	must(t, os.Remove(in("nodes/n/samples/1")))
	must(t, os.RemoveAll(in("nodes/n/samples")))
	must(t, os.Symlink("root", in("nodes/n/samples")))
	if _, err := fs.Stat(open(t, dir).Node("n").Files(), "nowhere"); !errors.Is(err, ErrLink) {
		t.Errorf("what linked samples might hold: %v", err)
	}

	must(t, os.Remove(in(manifestName)))
	must(t, os.Symlink(secret, in(manifestName)))
	if _, err := Open(dir); !errors.Is(err, ErrLink) {
		t.Errorf("a linked %s: %v", manifestName, err)
	}
	// The path itself is the user's own.
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(folder(t, nil), link))
	open(t, link)
}

func TestFolderOpensNoFIFO(t *testing.T) {
	dir := folder(t, map[string]string{"nodes/n/root/x": ""})
	for _, name := range []string{"nodes/n/kernel.log", "nodes/n/root/proc", gapsName} {
		must(t, syscall.Mkfifo(filepath.Join(dir, filepath.FromSlash(name)), 0o600))
	}
	within(t, func() {
		if _, err := Open(dir); !errors.Is(err, ErrSpecialFile) {
			t.Errorf("Open: %v", err)
		}
	})
	must(t, os.Remove(filepath.Join(dir, gapsName)))
	s := open(t, dir)
	within(t, func() {
		if _, err := s.Node("n").File("kernel.log"); !errors.Is(err, ErrSpecialFile) {
			t.Errorf("kernel.log: %v", err)
		}
		if _, err := fs.ReadFile(s.Node("n").Files(), "proc/meminfo"); !errors.Is(err, ErrSpecialFile) {
			t.Errorf("below a FIFO: %v", err)
		}
		if err := s.WriteArchive(io.Discard); !errors.Is(err, ErrSpecialFile) {
			t.Errorf("WriteArchive: %v", err)
		}
		if _, err := s.Node("n").Files().Open("x"); err != nil {
			t.Error(err)
		}
	})
	// One put there after the listing must not block either.
	name := filepath.Join(dir, "nodes", "n", "root", "x")
	must(t, os.Remove(name))
	must(t, syscall.Mkfifo(name, 0o600))
	within(t, func() {
		if _, err := fs.ReadFile(s.Node("n").Files(), "x"); !errors.Is(err, ErrSpecialFile) {
			t.Errorf("a new FIFO: %v", err)
		}
	})
}

// within fails where f blocks, as opening a FIFO does.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("blocked")
	}
}

func TestFolderLimits(t *testing.T) {
	dir := folder(t, map[string]string{"a/1": "", "a/2": "", "a/3": "", "big": strings.Repeat("x", 201), "fits": strings.Repeat("x", 200), "b/1": ""})
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	lim := limits{entries: 7, totalBytes: 1 << 20, fileBytes: 200} // 5 at the top
	s, err := newSnapshot(newDirTree(root, lim), lim)
	must(t, err)
	if _, err := s.File("big"); !errors.Is(err, ErrFileTooLarge) || Reason(err) != ReasonTooLarge {
		t.Errorf("big: %v", err)
	}
	if _, err := s.File("fits"); err != nil {
		t.Error(err)
	}
	if _, err := s.File("a/1"); !errors.Is(err, ErrTooManyEntries) {
		t.Errorf("a/1: %v", err)
	}
	if _, err := s.tree.ReadDir("a"); !errors.Is(err, ErrTooManyEntries) {
		t.Errorf("a: %v", err)
	}

	sparse := filepath.Join(dir, "sparse")
	must(t, os.WriteFile(sparse, nil, 0o600))
	must(t, os.Truncate(sparse, MaxFileBytes+1))
	if _, err := open(t, dir).File("sparse"); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("sparse: %v", err)
	}
}

func TestFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := folder(t, map[string]string{gapsName: "[]", "nodes/n/kernel.log": "", "nodes/n/root/x": ""})
	must(t, os.Chmod(filepath.Join(dir, "nodes", "n", "kernel.log"), 0))
	must(t, os.Chmod(filepath.Join(dir, "nodes", "n", "root"), 0))
	defer os.Chmod(filepath.Join(dir, "nodes", "n", "root"), 0o700)
	n := open(t, dir).Node("n")
	if _, err := n.File("kernel.log"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("kernel.log: %v", err)
	}
	if _, err := n.Files().Open("x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("below a closed folder: %v", err)
	}
}

// A file that was listed and has gone is not one that never was.
func TestFolderThatChanges(t *testing.T) {
	dir := folder(t, map[string]string{gapsName: "[]", "nodes/n/a": "", "nodes/n/b": ""})
	n := open(t, dir).Node("n")
	if _, err := n.File("a"); err != nil {
		t.Fatal(err)
	}
	must(t, os.Remove(filepath.Join(dir, "nodes", "n", "b")))
	if _, err := n.File("b"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "changed") {
		t.Errorf("err = %v", err)
	}
}

func TestFolderOddNames(t *testing.T) {
	dir := folder(t, nil)
	for _, name := range []string{`back\slash`, "bad\xff", "esc\x1b[0m"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	s := open(t, dir)
	if data, err := s.File(`back\slash`); err != nil || string(data) != "x" {
		t.Errorf("a systemd unit's name: %q, %v", data, err)
	}
	if _, err := s.File("bad\xff"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("no UTF-8: %v", err)
	}
	if err := s.WriteArchive(io.Discard); !errors.Is(err, ErrPath) {
		t.Errorf("WriteArchive: %v", err)
	}
}

// Reading one node's files must not list the others', nor read any.
func TestFolderIsReadLazily(t *testing.T) {
	files := map[string]string{"cluster/pods.json": `{"kind":"List","items":[]}`}
	for i := range 50 {
		files[fmt.Sprintf("nodes/n%d/root/proc/%d/status", i, i)] = ""
	}
	s := open(t, folder(t, files))
	tree := s.tree.(*dirTree)
	if got := len(tree.folders); got != 1 {
		t.Errorf("%d folders were listed on opening", got)
	}
	if _, err := s.Pods(); err != nil {
		t.Error(err)
	}
	if _, err := s.Node("n7").Files().Open("proc/7/status"); err != nil {
		t.Error(err)
	}
	// ".", cluster, nodes, n7, root, proc and 7
	if got := len(tree.folders); got != 7 {
		t.Errorf("%d folders were listed", got)
	}
}

func TestFolderConcurrently(t *testing.T) {
	s := open(t, folder(t, map[string]string{"nodes/n/root/a/b": "x", "nodes/n/samples/0/root/a/c": "y"}))
	done := make(chan []byte)
	for range 8 {
		go func() {
			var all bytes.Buffer
			n := s.Node("n")
			for _, name := range []string{"a/b", "a/c"} {
				data, _ := fs.ReadFile(n.Files(), name)
				all.Write(data)
			}
			s.NodeNames()
			s.Pods()
			done <- all.Bytes()
		}()
	}
	for range 8 {
		if got := <-done; string(got) != "xy" {
			t.Errorf("read %q", got)
		}
	}
}
