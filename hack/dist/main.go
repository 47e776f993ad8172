// Command dist builds the release: an archive for each platform of krew's list,
// their checksums and the rendered krew manifest. The same commit gives the
// same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const binary = "kubectl-noderes"

// platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func (p platform) key() string { return p.os + "_" + p.arch }

func (p platform) binary() string {
	if p.os == "windows" {
		return binary + ".exe"
	}
	return binary
}

func (p platform) archive(version string) string {
	name := binary + "_" + version + "_" + p.key()
	if p.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// platforms are those krew accepts, save darwin/386, for which Go has no port.
var platforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"linux", "386"}, {"linux", "amd64"}, {"linux", "arm"}, {"linux", "arm64"}, {"linux", "ppc64le"},
	{"windows", "386"}, {"windows", "amd64"}, {"windows", "arm64"},
}

type options struct {
	version, ldflags, out, only string
	date                        time.Time
}

func main() {
	var o options
	var date string
	flag.StringVar(&o.version, "version", "", "semantic version with v")
	flag.StringVar(&date, "date", "", "time of every file in the archives, RFC 3339")
	flag.StringVar(&o.ldflags, "ldflags", "", "flags of the linker")
	flag.StringVar(&o.out, "out", "dist", "folder to write to")
	flag.StringVar(&o.only, "only", "", "build only these platforms, os_arch,...; the krew manifest is not written")
	flag.Parse()
	var err error
	if o.date, err = time.Parse(time.RFC3339, date); err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.version == "" {
		return errors.New("-version is needed")
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	r := release{Version: o.version, SHA256: map[string]string{}}
	var sums strings.Builder
	for _, p := range platforms {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+p.key()+",") {
			continue
		}
		data, err := build(p, o)
		if err != nil {
			return fmt.Errorf("%s: %w", p.key(), err)
		}
		name := p.archive(o.version)
		if err := os.WriteFile(filepath.Join(o.out, name), data, 0o644); err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		r.SHA256[p.key()] = hex.EncodeToString(sum[:])
		fmt.Fprintf(&sums, "%x  %s\n", sum, name)
		fmt.Printf("%s %d bytes\n", name, len(data))
	}
	if err := os.WriteFile(filepath.Join(o.out, "checksums.txt"), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	if o.only != "" {
		return nil
	}
	text, err := os.ReadFile("krew.yaml")
	if err != nil {
		return err
	}
	manifest, err := renderManifest(text, r)
	if err != nil {
		return err
	}
	// krew wants the file to be called as the plugin is.
	return os.WriteFile(filepath.Join(o.out, "noderes.yaml"), manifest, 0o644)
}

// build returns the archive of one platform.
func build(p platform, o options) ([]byte, error) {
	dir, err := os.MkdirTemp("", "noderes-dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, p.binary())
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", o.ldflags, "-o", bin, "./cmd/"+binary)
	// Go's baseline of each architecture, whatever the builder's environment.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOARM=6", "GO386=sse2", "GOAMD64=v1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	entries, err := contents(p, bin)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if p.os == "windows" {
		err = writeZip(&out, entries, o.date)
	} else {
		err = writeTarGz(&out, entries, o.date)
	}
	return out.Bytes(), err
}

// contents are the files of an archive. kubectl cannot run the completion
// script on Windows, so it is left out there.
func contents(p platform, bin string) ([]entry, error) {
	files := []struct {
		name, path string
		mode       int64
	}{
		{"LICENSE", "LICENSE", 0o644},
		{p.binary(), bin, 0o755},
		{"kubectl_complete-noderes", "hack/kubectl_complete-noderes", 0o755},
	}
	if p.os == "windows" {
		files = files[:2]
	}
	var entries []entry
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{f.name, f.mode, data})
	}
	return entries, nil
}
