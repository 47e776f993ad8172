// Command kubectl-noderes explains what a node does to its pods.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // schedules name time zones; not every machine has the data

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/noderes/kubectl-noderes/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	os.Exit(cli.Main(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
