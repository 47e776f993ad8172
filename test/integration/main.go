// Command integration builds what the tests of this module run: etcd, Kubernetes' control plane and kwok, with -karpenter Karpenter
// too, each from Go modules, into a folder of the user's cache that is named after their versions. The first build takes long, so it has a limit of its own; what
// a build that was cut off has compiled, the next one need not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/noderes/kubectl-noderes/test/integration/plane"
)

func main() {
	limit := flag.Duration("timeout", 20*time.Minute, "how long the build may take")
	karpenter := flag.Bool("karpenter", false, "build Karpenter too")
	flag.Parse()
	var more []string
	if *karpenter {
		more = append(more, plane.Karpenter)
	}
	// Ended from outside it removes what it had begun.
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(signalled, *limit)
	defer cancel()
	start := time.Now()
	err := plane.Build(ctx, "binaries", func(what string) {
		fmt.Printf("%s, %d s\n", what, int(time.Since(start).Seconds()))
	}, more...)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Printf("SKIPPED: the control plane is not built within %s\n", *limit)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	default:
		fmt.Printf("built, %d s\n", int(time.Since(start).Seconds()))
	}
}
