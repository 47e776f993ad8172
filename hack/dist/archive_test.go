package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testEntries(t *testing.T, p platform) []entry {
	t.Helper()
	t.Chdir("../..")
	bin := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(bin, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := contents(p, bin)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestWriteTarGz(t *testing.T) {
	entries := testEntries(t, platform{"linux", "amd64"})
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var first, second bytes.Buffer
	for _, w := range []io.Writer{&first, &second} {
		if err := writeTarGz(w, entries, modified); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same entries give different bytes")
	}
	zr, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.Mode
		if !h.ModTime.Equal(modified) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s: time %v, owner %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
	}
	want := map[string]int64{"LICENSE": 0o644, "kubectl-noderes": 0o755, "kubectl_complete-noderes": 0o755}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files and modes (-want +got):\n%s", diff)
	}
}

func TestWriteZip(t *testing.T) {
	entries := testEntries(t, platform{"windows", "amd64"})
	modified := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	var first, second bytes.Buffer
	for _, w := range []io.Writer{&first, &second} {
		if err := writeZip(w, entries, modified); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same entries give different bytes")
	}
	zr, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range zr.File {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{"LICENSE", "kubectl-noderes.exe"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
