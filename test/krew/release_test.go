package krew

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// maxBytes bounds each binary: 32 MiB.
const maxBytes = 32 << 20

// release is what `make dist` wrote: archives, checksums and the manifest.
type release struct {
	dir, version string
	manifest     []byte
	sums         map[string]string // by archive
}

func readRelease(t *testing.T, dir string) release {
	t.Helper()
	r := release{dir: dir, sums: map[string]string{}}
	var err error
	if r.manifest, err = os.ReadFile(filepath.Join(dir, "noderes.yaml")); err != nil {
		t.Skipf("SKIPPED: no release to test, see `make krew`: %v", err)
	}
	m := regexp.MustCompile(`(?m)^  version: "(\S+)"$`).FindSubmatch(r.manifest)
	if m == nil {
		t.Fatalf("the manifest has no version:\n%s", r.manifest)
	}
	r.version = string(m[1])
	list, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("checksums.txt: %q", line)
		}
		r.sums[name] = sum
	}
	return r
}

func (r release) archive() string {
	return fmt.Sprintf("kubectl-noderes_%s_%s_%s.tar.gz", r.version, runtime.GOOS, runtime.GOARCH)
}

// served is the manifest with its archives on the server instead of the
// project's release page.
func (r release) served(t *testing.T, server string) string {
	t.Helper()
	const page = "https://github.com/noderes/kubectl-noderes/releases/download/"
	if n := strings.Count(string(r.manifest), page+r.version+"/"); n != len(r.sums) {
		t.Fatalf("%d archives, %d addresses in the manifest", len(r.sums), n)
	}
	return strings.ReplaceAll(string(r.manifest), page, server+"/")
}

// next is a later release: the same source by a higher version, only for this
// platform. krew does not look at the sums of others.
func (r release) next(t *testing.T, ctx context.Context, version string) release {
	t.Helper()
	next := release{dir: t.TempDir(), version: version, sums: map[string]string{}}
	makeArchive(t, ctx, "../..", next)
	text := strings.ReplaceAll(string(r.manifest), r.version, version)
	for name, sum := range r.sums {
		renamed := strings.ReplaceAll(name, r.version, version)
		next.sums[renamed] = sum
		if renamed == next.archive() {
			text = strings.ReplaceAll(text, sum, fileSum(t, filepath.Join(next.dir, renamed)))
		}
	}
	next.manifest = []byte(text)
	return next
}

// makeArchive makes the release's archive for this platform of the source at dir.
func makeArchive(t *testing.T, ctx context.Context, dir string, r release) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/dist", "-version", r.version, "-date", "2026-01-02T03:04:05Z", "-out", r.dir,
		"-only", runtime.GOOS+"_"+runtime.GOARCH, "-ldflags", "-s -w -X github.com/noderes/kubectl-noderes/pkg/cli.version="+r.version)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestReproducible: the same source elsewhere, without its repository, gives the
// same archive.
func TestReproducible(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: archives of Windows are zip files")
	}
	readRelease(t, dist) // or skip
	source := t.TempDir()
	for _, name := range []string{"cmd", "hack", "pkg"} {
		if err := os.CopyFS(filepath.Join(source, name), os.DirFS(filepath.Join("../..", name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(source, name), string(data))
	}
	var sums []string
	for _, dir := range []string{"../..", source} {
		r := release{dir: t.TempDir(), version: "v99.0.1"}
		makeArchive(t, t.Context(), dir, r)
		sums = append(sums, fileSum(t, filepath.Join(r.dir, r.archive())))
	}
	if sums[0] != sums[1] {
		t.Errorf("two archives of the same source: %q", sums)
	}
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// TestArchives looks into every archive of the release.
func TestArchives(t *testing.T) {
	r := readRelease(t, dist)
	if len(r.sums) != 10 {
		t.Errorf("%d archives, want 10: krew's eleven platforms save darwin/386", len(r.sums))
	}
	license, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, sum := range r.sums {
		path := filepath.Join(r.dir, name)
		if got := fileSum(t, path); got != sum {
			t.Errorf("%s: sum %s, checksums.txt says %s", name, got, sum)
		}
		if strings.Count(string(r.manifest), sum) != 1 {
			t.Errorf("%s: its sum is not once in the manifest", name)
		}
		files := unpack(t, path)
		want := []string{"LICENSE", "kubectl-noderes", "kubectl_complete-noderes"}
		if strings.HasSuffix(name, ".zip") {
			want = []string{"LICENSE", "kubectl-noderes.exe"}
		}
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
		if !bytes.Equal(files["LICENSE"], license) {
			t.Errorf("%s: another LICENSE", name)
		}
		size := len(files["kubectl-noderes"]) + len(files["kubectl-noderes.exe"])
		t.Logf("%s: binary of %d bytes", name, size)
		if size >= maxBytes {
			t.Errorf("%s: the binary has %d bytes, it must stay below %d", name, size, maxBytes)
		}
	}
}

func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	add := func(name string, r io.Reader) {
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
	}
	if strings.HasSuffix(path, ".zip") {
		zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, f := range zr.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, r)
		}
		return files
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		add(h.Name, tr)
	}
}
