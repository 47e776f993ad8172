// Package plane runs the control plane of Kubernetes 1.37 and kwok as plain processes on loopback, for tests.
package plane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// kubernetesVersion is the version of binaries/kubernetes/go.mod: without it the API server would call itself v0.0.0.
const kubernetesVersion = "v1.37.2"

// karpenterVersion is the version of binaries/karpenter/go.mod: Karpenter is told its own by the linker.
const karpenterVersion = "1.14.1"

// Karpenter is the name of the program that is built only for those who ask for it.
const Karpenter = "karpenter"

// A source is a nested module that pins the programs it builds.
type source struct {
	module   string // folder below binaries
	packages []string
	programs []string // what go build makes of packages
	ldflags  string
}

var sources = []source{
	{"etcd", []string{"."}, []string{"etcd"}, "-s -w"},
	{
		"kubernetes",
		[]string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes/cmd/kube-scheduler"},
		[]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"},
		"-s -w -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37",
	},
	{"kwok", []string{"sigs.k8s.io/kwok/cmd/kwok"}, []string{"kwok"}, "-s -w"},
	{Karpenter, []string{"."}, []string{Karpenter}, "-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=" + karpenterVersion},
}

// wanted are the sources of a control plane, and of the programs beyond it that are named.
func wanted(more []string) []source {
	return slices.DeleteFunc(slices.Clone(sources), func(s source) bool { return s.module == Karpenter && !slices.Contains(more, Karpenter) })
}

// Programs maps the name of a program to its path.
type Programs map[string]string

// ErrNotBuilt is what Find says of programs that Build has not made yet.
var ErrNotBuilt = errors.New("the control plane is not built")

// Find looks the programs of the nested modules below binaries up in the cache: those of a control plane, and more that are named.
func Find(binaries string, more ...string) (Programs, error) {
	found := Programs{}
	for _, s := range wanted(more) {
		dir, err := s.cached(binaries)
		if err != nil {
			return nil, err
		}
		for _, name := range s.programs {
			found[name] = filepath.Join(dir, name)
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", ErrNotBuilt, s.module)
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Build makes what the cache lacks of what Find looks for. It tells log what it begins; what is built when ctx ends stays in Go's
// build cache.
func Build(ctx context.Context, binaries string, log func(string), more ...string) error {
	for _, s := range wanted(more) {
		dir, err := s.cached(binaries)
		if err != nil {
			return err
		}
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		log("building " + s.module)
		if err := s.build(ctx, binaries, dir); err != nil {
			return fmt.Errorf("%s: %w", s.module, err)
		}
	}
	return nil
}

func (s source) build(ctx context.Context, binaries, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Renamed when whole, so that two builds at once and one that was cut off do no harm.
	made, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-ldflags", s.ldflags, "-o", made + string(filepath.Separator)}, s.packages...)...)
	cmd.Dir = filepath.Join(binaries, s.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	for _, name := range s.programs {
		if _, err := os.Stat(filepath.Join(made, name)); err != nil {
			return err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	if err := os.Rename(made, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil
		}
		return err
	}
	return nil
}

// cached is the folder of the user's cache for just these versions, flags and this compiler.
func (s source) cached(binaries string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH, s.packages, s.ldflags)
	files, err := filepath.Glob(filepath.Join(binaries, s.module, "*"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("no module in %s", filepath.Join(binaries, s.module))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(file), len(data))
		sum.Write(data)
	}
	return filepath.Join(cache, "kubectl-noderes", "integration", s.module+"-"+hex.EncodeToString(sum.Sum(nil)[:8])), nil
}
