package krew

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	krewModule = "sigs.k8s.io/krew@v0.4.4"
	// krewSum is the module's hash as the checksum database has it.
	krewSum = "h1:9lL9N7gbRpk/nG73b07IeNAGqsneD/mAiw0jmtjtnFs="
)

// world is a user's machine of its own: HOME, krew's root and a PATH on which
// kubectl is the real one and, of plugins, only krew's folder and krew itself.
type world struct {
	t     *testing.T
	ctx   context.Context
	tools string // kubectl, kubectl-krew, validate-krew-manifest
	root  string // KREW_ROOT
	env   []string
}

// newWorld builds the tools. What cannot be had here skips the test; what is
// here and does not build fails it.
func newWorld(t *testing.T, ctx context.Context) *world {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: git is not installed; krew needs it")
	}
	dir := t.TempDir()
	w := &world{t: t, ctx: ctx, tools: filepath.Join(dir, "tools"), root: filepath.Join(dir, "krew")}
	for _, d := range []string{w.tools, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	var module struct{ Dir, Sum, Error string }
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", krewModule)
	download.Dir = dir
	out, err := download.Output()
	if json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v %s", krewModule, err, module.Error)
	}
	if module.Sum != krewSum {
		t.Fatalf("%s has sum %s, want %s", krewModule, module.Sum, krewSum)
	}
	w.build(module.Dir, "kubectl-krew", "./cmd/krew")
	w.build(module.Dir, "validate-krew-manifest", "./cmd/validate-krew-manifest")
	w.build("../kubectl", "kubectl", ".")

	if err := os.Symlink(git, filepath.Join(w.tools, "git")); err != nil {
		t.Fatal(err)
	}
	w.env = []string{
		"HOME=" + filepath.Join(dir, "home"),
		"TMPDIR=" + filepath.Join(dir, "tmp"),
		"KREW_ROOT=" + w.root,
		"KREW_NO_UPGRADE_CHECK=1",
		// kubectl runs the completer, and git its helpers, by the PATH.
		"PATH=" + strings.Join([]string{filepath.Join(w.root, "bin"), w.tools, "/usr/bin", "/bin"}, string(os.PathListSeparator)),
		// Nothing but loopback can be reached.
		"http_proxy=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "no_proxy=127.0.0.1",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost",
		"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost",
	}
	return w
}

func (w *world) build(dir, name, pkg string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(w.tools, name), pkg)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case bytes.Contains(out, []byte("dial tcp")) || bytes.Contains(out, []byte("module lookup disabled")):
		w.t.Skipf("SKIPPED: the modules of %s cannot be downloaded:\n%s", name, out)
	default:
		w.t.Fatalf("%s does not build: %v\n%s", name, err, out)
	}
}

// run gives stdout and stderr of a command that must succeed.
func (w *world) run(args ...string) (string, string) {
	w.t.Helper()
	stdout, stderr, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout, stderr
}

func (w *world) try(args ...string) (string, string, error) {
	name := args[0]
	if path := filepath.Join(w.tools, name); exists(path) {
		name = path
	}
	cmd := exec.CommandContext(w.ctx, name, args[1:]...)
	cmd.Env = w.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return stdout.String(), stderr.String(), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
