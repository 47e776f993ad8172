package cli

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// TestMain makes the test binary the plugin for scripts that need a process of
// its own: an environment, a working directory.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-noderes": func() {
			streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
			os.Exit(Main(context.Background(), os.Args[1:], streams))
		},
	})
}

func TestScripts(t *testing.T) {
	// Scripts run in this process must not find a cluster.
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ESC", "\x1b")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"noderes": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg {
					ts.Fatalf("say which status is meant")
				}
				runInProcess(ts, ExitReport, args)
			},
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) == 0 {
					ts.Fatalf("usage: status CODE ARG...")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				runInProcess(ts, want, args[1:])
			},
		},
	})
}

// runInProcess spares the start of a process, which takes most of the time.
func runInProcess(ts *testscript.TestScript, want int, args []string) {
	streams := genericiooptions.IOStreams{Out: ts.Stdout(), ErrOut: ts.Stderr()}
	if got := Main(context.Background(), args, streams); got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}
