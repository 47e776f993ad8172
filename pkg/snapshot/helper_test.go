package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

const manifest = `{"formatVersion":1,"capturedAt":"2026-03-04T10:00:00Z","tool":"t","server":"v1.37.2"}`

// mapFS is a bundle of these files and a bundle.json.
func mapFS(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{manifestName: {Data: []byte(manifest)}}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return m
}

func bundleOf(t *testing.T, files map[string]string) *Snapshot {
	t.Helper()
	s, err := FromFS(mapFS(files))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// entry is one of a tar. A name that ends in a slash is a folder.
type entry struct {
	name string
	data string
	typ  byte
}

func tarOf(t rapid.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		hdr := &tar.Header{Name: e.name, Typeflag: e.typ, Mode: 0o644, Size: int64(len(e.data))}
		switch {
		case e.typ == 0 && strings.HasSuffix(e.name, "/"):
			hdr.Typeflag = tar.TypeDir
		case e.typ == 0:
			hdr.Typeflag = tar.TypeReg
		case e.typ == tar.TypeSymlink || e.typ == tar.TypeLink:
			hdr.Linkname = "/etc/shadow"
		case e.typ == tar.TypeXGlobalHeader:
			hdr = &tar.Header{Name: e.name, Typeflag: e.typ, PAXRecords: map[string]string{"comment": "c"}}
		}
		if err := w.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gzipped(t rapid.TB, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func tgz(t rapid.TB, entries ...entry) []byte {
	t.Helper()
	return gzipped(t, tarOf(t, entries...))
}

// kind names what an absent file's error is, and fails if it is more than one.
func kind(t *testing.T, err error) string {
	t.Helper()
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) {
		t.Errorf("%v is no *fs.PathError", err)
	}
	var gap *GapError
	var kinds []string
	if errors.Is(err, fs.ErrNotExist) {
		kinds = append(kinds, "not exist")
	}
	if errors.Is(err, ErrNotCollected) {
		kinds = append(kinds, "not collected")
	}
	if errors.As(err, &gap) {
		kinds = append(kinds, "gap "+gap.Reason)
	}
	switch {
	case err == nil:
		return "there"
	case len(kinds) == 0:
		return err.Error()
	case len(kinds) > 1:
		t.Errorf("%v is %q at once", err, kinds)
	}
	return kinds[0]
}
