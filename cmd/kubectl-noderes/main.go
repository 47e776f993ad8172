// Command kubectl-noderes explains what a node does to its pods.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // schedules name time zones; not every machine has the data

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/noderes/kubectl-noderes/pkg/cli"
)

func main() {
	// A signal ends the process at once: there is nothing to put in order.
	os.Exit(cli.Main(context.Background(), cli.Words(os.Args), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
