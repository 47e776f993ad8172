// Package krew installs the release with krew 0.4.4 itself and runs the plugin
// through kubectl. It reaches nothing but the Go module proxy and loopback.
package krew

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// dist is where `make dist` writes.
const dist = "../../dist"

func TestKrew(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: krew makes links, and the test reads them, otherwise on Windows")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	old := readRelease(t, dist)
	w := newWorld(t, ctx)
	updated := old.next(t, ctx, "v99.0.0")

	mux := http.NewServeMux()
	for _, r := range []release{old, updated} {
		mux.Handle("/"+r.version+"/", http.StripPrefix("/"+r.version+"/", http.FileServer(http.Dir(r.dir))))
	}
	server := httptest.NewServer(mux)
	defer server.Close()

	t.Run("validate", func(t *testing.T) {
		// krew's own command: the rules of its index, and an installation of every platform.
		w.on(t)
		file := filepath.Join(t.TempDir(), "noderes.yaml")
		write(t, file, old.served(t, server.URL))
		if _, stderr := w.run("validate-krew-manifest", "-manifest", file); !strings.Contains(stderr, "all 10 spec.platforms installed fine") {
			t.Errorf("%s", stderr)
		}
		write(t, file, strings.Replace(old.served(t, server.URL), "shortDescription: ", "shortDescription: \"\" #", 1))
		if _, stderr, err := w.try("validate-krew-manifest", "-manifest", file); err == nil || !strings.Contains(stderr, "short description") {
			t.Errorf("no error without a short description: %v\n%s", err, stderr)
		}
	})

	t.Run("index", func(t *testing.T) {
		w.on(t)
		index := t.TempDir()
		w.commit(index, old.served(t, server.URL), "Add noderes")
		w.run("kubectl", "krew", "index", "add", "local", index)

		_, stderr := w.run("kubectl", "krew", "install", "local/noderes")
		if !strings.Contains(stderr, "Installed plugin: noderes") || !strings.Contains(stderr, "kubectl noderes explain pod --from demo") {
			t.Errorf("install says:\n%s", stderr)
		}
		w.works(old.version)

		w.commit(index, updated.served(t, server.URL), "Update noderes")
		if _, stderr := w.run("kubectl", "krew", "upgrade", "noderes"); !strings.Contains(stderr, "Upgraded plugin: local/noderes") {
			t.Errorf("upgrade says:\n%s", stderr)
		}
		w.works(updated.version)
		w.gone()
	})

	t.Run("archive", func(t *testing.T) {
		w.on(t)
		// The addresses are the published ones: what is installed is the file.
		w.run("kubectl", "krew", "install", "--manifest", abs(t, dist, "noderes.yaml"), "--archive", abs(t, dist, old.archive()))
		w.works(old.version)
		w.gone()
	})

	t.Run("tampered", func(t *testing.T) {
		w.on(t)
		if _, stderr, err := w.try("kubectl", "krew", "install", "--manifest", abs(t, dist, "noderes.yaml"), "--archive", filepath.Join(updated.dir, updated.archive())); err == nil || !strings.Contains(stderr, "checksum") {
			t.Errorf("another archive than the manifest's was installed: %v\n%s", err, stderr)
		}
	})

	// krew refuses to uninstall while it has no index, so this comes last.
	w.run("kubectl", "krew", "index", "remove", "local")
	if exists(filepath.Join(w.root, "index", "local")) {
		t.Error("the index is left")
	}
}

// on makes failures those of a subtest.
func (w *world) on(t *testing.T) {
	outer := w.t
	w.t = t
	t.Cleanup(func() { w.t = outer })
}

// works runs the installed plugin, and its completion as the README has it set up.
func (w *world) works(version string) {
	w.t.Helper()
	if out, _ := w.run("kubectl", "noderes", "version"); !strings.Contains(out, version) {
		w.t.Errorf("version is not %s:\n%s", version, out)
	}
	if out, _ := w.run("kubectl", "noderes", "explain", "pod", "--from", "demo"); !strings.Contains(out, "container-memory-limit-oom") {
		w.t.Errorf("explain pod --from demo says:\n%s", out)
	}
	if out, _ := w.run("kubectl", "plugin", "list"); !strings.Contains(out, filepath.Join(w.root, "bin", "kubectl-noderes")) {
		w.t.Errorf("plugin list says:\n%s", out)
	}
	license := filepath.Join(w.root, "store", "noderes", version, "LICENSE")
	if !exists(license) {
		w.t.Errorf("%s is not installed", license)
	}

	words := []string{"kubectl", "__complete", "noderes", "explain", "pod", "--from", "demo", "-n", "shop", "thr"}
	if link := filepath.Join(w.root, "bin", "kubectl_complete-noderes"); !exists(link) {
		if out, _ := w.run(words...); strings.Contains(out, "throttled") {
			w.t.Errorf("completes without a completer:\n%s", out)
		}
		w.run("sh", "-c", readmeCommand(w.t))
	}
	if out, _ := w.run(words...); out != "throttled\n:4\n" {
		w.t.Errorf("completions of a pod's name: %q", out)
	}
	if out, _ := w.run("kubectl", "__complete", "noderes", "expl"); !strings.HasPrefix(out, "explain\t") {
		w.t.Errorf("completions of a command: %q", out)
	}
}

// readmeCommand is the line by which the README makes the completer's link.
func readmeCommand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    cd ") && strings.Contains(line, "ln -s") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatal("the README does not say how to link the completer")
	return ""
}

// gone uninstalls and looks for what is left: the user's own link alone.
func (w *world) gone() {
	w.t.Helper()
	w.run("kubectl", "krew", "uninstall", "noderes")
	if _, stderr, err := w.try("kubectl", "noderes", "version"); err == nil || !strings.Contains(stderr, "unknown command") {
		w.t.Errorf("still there: %v\n%s", err, stderr)
	}
	if out, _ := w.run("kubectl", "__complete", "noderes", "expl"); strings.Contains(out, "explain") {
		w.t.Errorf("the dangling link completes: %q", out)
	}
	for _, path := range []string{"bin/kubectl-noderes", "store/noderes", "receipts/noderes.yaml"} {
		if exists(filepath.Join(w.root, path)) {
			w.t.Errorf("%s is left", path)
		}
	}
	if err := os.Remove(filepath.Join(w.root, "bin", "kubectl_complete-noderes")); err != nil {
		w.t.Error(err)
	}
}

// commit makes the manifest the only plugin of the index at dir, a git repository.
func (w *world) commit(dir, manifest, message string) {
	w.t.Helper()
	if !exists(filepath.Join(dir, ".git")) {
		w.run("git", "init", "-q", "-b", "main", dir)
		if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	write(w.t, filepath.Join(dir, "plugins", "noderes.yaml"), manifest)
	w.run("git", "-C", dir, "add", "plugins")
	w.run("git", "-C", dir, "commit", "-q", "-m", message)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func abs(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
