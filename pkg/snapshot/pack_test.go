package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func archiveOf(t rapid.TB, s *Snapshot) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := s.WriteArchive(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestWriteArchiveHeaders(t *testing.T) {
	long := "nodes/n/root/" + strings.Repeat("kubepods.slice/", 20) + "cpu.stat"
	m := mapFS(map[string]string{"a/b": "1", "a.txt": "2", "unknown": "", long: "3"})
	m["empty"] = &fstest.MapFile{Mode: fs.ModeDir | 0o700}
	m["a/b"].ModTime = time.Now()
	m["a/b"].Mode = 0o600
	s, err := FromFS(m)
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(archiveOf(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if zr.Name != "" || !zr.ModTime.IsZero() || zr.Comment != "" || zr.Extra != nil {
		t.Errorf("gzip header says %+v", zr.Header)
	}
	var got []string
	tr := tar.NewReader(zr)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d %d%d%s%s", hdr.Name, hdr.Mode, hdr.ModTime.Unix(), hdr.Uid, hdr.Gid, hdr.Uname, hdr.Gname))
	}
	want := []string{"a.txt 644 0 00", "a/b 644 0 00", "bundle.json 644 0 00", "empty/ 755 0 00", long + " 644 0 00", "unknown 644 0 00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// genTree is a bundle of any shape an archive can hold. A path that would need a
// file to be a folder as well is left out.
func genTree(t *rapid.T) fstest.MapFS {
	element := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "a.b", "nodes", "samples", "root", "0", "PaxHeaders.0", "GNUSparseFile.0"}),
		rapid.StringMatching(`[a-z0-9._-]{1,130}`),
		rapid.StringMatching(`[ =\n"'%\x01\x1b가Ω]{1,4}`),
	).Filter(func(s string) bool { return s != "." && s != ".." })
	paths := rapid.SliceOfN(rapid.SliceOfN(element, 1, 6), 0, 20).Draw(t, "paths")
	m := fstest.MapFS{manifestName: {Data: []byte(manifest)}}
	for i, parts := range paths {
		name := path.Join(parts...)
		clash := name == gapsName // would have to make sense
		for other := range m {
			clash = clash || other == name || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
		}
		if clash {
			continue
		}
		if rapid.IntRange(0, 5).Draw(t, fmt.Sprint("folder ", i)) == 0 {
			m[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			continue
		}
		m[name] = &fstest.MapFile{Data: rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, fmt.Sprint("data ", i))}
	}
	return m
}

// contents are all files of a tree, and all folders with a slash at the end.
func contents(t rapid.TB, fsys fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestArchiveRoundTrip(t *testing.T) {
	scratch := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := genTree(t)
		s, err := FromFS(m)
		if err != nil {
			t.Fatal(err)
		}
		archive := archiveOf(t, s)
		if !bytes.Equal(archive, archiveOf(t, s)) {
			t.Fatal("the same snapshot gives other bytes")
		}
		again, err := ReadArchive(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, m), contents(t, again.tree)); diff != "" {
			t.Fatal(diff)
		}
		if !bytes.Equal(archive, archiveOf(t, again)) {
			t.Fatal("the snapshot read back gives other bytes")
		}

		// The folder and the folder one down are the same bundle, too.
		if rapid.IntRange(0, 3).Draw(t, "also on disk") > 0 {
			return
		}
		dir, err := os.MkdirTemp(scratch, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if err := os.CopyFS(dir, again.tree); err != nil {
			t.Fatal(err)
		}
		folder, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, m), contents(t, folder.tree)); diff != "" {
			t.Fatal(diff)
		}
		var entries []entry
		for name, data := range contents(t, m) {
			if name != "./" {
				entries = append(entries, entry{name: "down/" + name, data: data})
			}
		}
		slices.SortFunc(entries, func(a, b entry) int { return -strings.Compare(a.name, b.name) })
		down, err := ReadArchive(bytes.NewReader(tgz(t, entries...)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(contents(t, m), contents(t, down.tree)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestWriteArchiveRefuses(t *testing.T) {
	small := limits{entries: 3, totalBytes: 200, fileBytes: 120}
	tests := map[string]struct {
		files map[string]string
		mode  fs.FileMode // of "x"
		err   error
	}{
		"fits":          {map[string]string{"x": "1"}, 0, nil},
		"link":          {map[string]string{"x": "bundle.json"}, fs.ModeSymlink, ErrLink},
		"FIFO":          {map[string]string{"x": ""}, fs.ModeNamedPipe, ErrSpecialFile},
		"too long":      {map[string]string{strings.Repeat(strings.Repeat("d", 250)+"/", 17) + "x": ""}, 0, ErrPath},
		"entries":       {map[string]string{"x": "", "y": "", "z": ""}, 0, ErrTooManyEntries},
		"folders":       {map[string]string{"x/x/x/x/x": ""}, 0, ErrTooManyEntries},
		"bytes":         {map[string]string{"x": strings.Repeat("x", 110), "y": "123456"}, 0, ErrTooManyBytes},
		"bytes of file": {map[string]string{"x": strings.Repeat("x", 121)}, 0, ErrFileTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := mapFS(test.files)
			if f, ok := m["x"]; ok {
				f.Mode = test.mode
			}
			s, err := newSnapshot(anyTree{m, small}, small)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.WriteArchive(io.Discard); !errors.Is(err, test.err) {
				t.Errorf("err = %v, want %v", err, test.err)
			}
		})
	}
	full := errors.New("disk full")
	if err := bundleOf(t, nil).WriteArchive(errWriter{full}); !errors.Is(err, full) {
		t.Errorf("err = %v, want %v", err, full)
	}
}

type errWriter struct{ err error }

func (w errWriter) Write([]byte) (int, error) { return 0, w.err }

// What has been read at the limit of entries can be written again.
func TestWriteArchiveAtTheLimit(t *testing.T) {
	lim := limits{entries: 4, totalBytes: 1 << 10, fileBytes: 1 << 10}
	s, err := readArchive(bytes.NewReader(tgz(t, bundleJSON, entry{name: "a/b/c/d/1"}, entry{name: "a/b/c/d/2"}, entry{name: "a/b/c/d/3"})), lim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readArchive(bytes.NewReader(archiveOf(t, s)), lim); err != nil {
		t.Error(err)
	}
}

func TestOpenTellsApart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.CopyFS(dir, mapFS(map[string]string{"cluster/x": "1"})); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "folder")
	if err := os.WriteFile(file, tgz(t, bundleJSON, entry{name: "cluster/x", data: "1"}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file} {
		s, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := s.File("cluster/x"); err != nil || string(data) != "1" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	one, _ := Open(dir)
	two, _ := Open(file)
	if !bytes.Equal(archiveOf(t, one), archiveOf(t, two)) {
		t.Error("a folder and an archive of the same files give other bytes")
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
	if _, err := Open(filepath.Dir(file)); !errors.Is(err, ErrNoManifest) {
		t.Errorf("err = %v", err)
	}
	if _, err := Open(filepath.Join(dir, manifestName)); !errors.Is(err, ErrDamaged) {
		t.Errorf("err = %v", err)
	}
}

// TestBackslashNames keeps the cgroups of systemd units whose names are escaped.
func TestBackslashNames(t *testing.T) {
	path := `nodes/n/root/sys/fs/cgroup/system.slice/system-serial\x2dgetty.slice/cpu.max`
	s, err := FromFS(fstest.MapFS{
		manifestName: {Data: []byte(`{"formatVersion":1,"capturedAt":"2026-01-01T00:00:00Z"}`)},
		path:         {Data: []byte("max 100000\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := s.WriteArchive(&archive); err != nil {
		t.Fatal(err)
	}
	back, err := ReadArchive(&archive)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := back.File(path); err != nil || string(data) != "max 100000\n" {
		t.Errorf("%q, %v", data, err)
	}
}
