package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/render"
)

// CleanupOptions are those of `cleanup`.
type CleanupOptions struct {
	clusterOptions
	genericiooptions.IOStreams

	namespace string
	all       bool
	dry       bool
}

// NewCmdCleanup deletes node pods that were left behind.
func NewCmdCleanup(streams genericiooptions.IOStreams) *cobra.Command {
	o := &CleanupOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Delete pods on nodes that an interrupted run left behind",
		Long: templates.LongDesc(`
			Delete the pods by which nodes are read, where a run that was killed left some behind.

			Every run deletes its own, and each ends by itself after five minutes at most; what is
			left then is an ended pod. Only pods are deleted that have the labels, the name and the
			annotation of such pods. A run that is under way loses its pod and reports what it has.`),
		Example: templates.Examples(`
			# What is there?
			kubectl noderes cleanup -A --dry-run

			# Delete what was left in one namespace
			kubectl noderes cleanup --node-pod-namespace node-debug`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	o.addConnectionFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "node-pod-namespace", nodepod.DefaultNamespace, "Namespace to look in")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "Look in all namespaces")
	flags.BoolVar(&o.dry, "dry-run", false, "Only say what would be deleted")
	mustRegister(cmd, "node-pod-namespace", cobra.NoFileCompletions)
	return cmd
}

// Run finds and deletes.
func (o *CleanupOptions) Run(ctx context.Context) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	namespace := o.namespace
	if o.all {
		namespace = ""
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	found, err := collect.Leftovers(ctx, client, namespace, !o.dry)
	var errs []error
	for _, left := range found {
		what := fmt.Sprintf("pod %s/%s on node %s, %s for %s", left.Namespace, left.Name, left.Node, left.Phase, duration.HumanDuration(left.Age.Truncate(time.Second)))
		switch {
		case left.Err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", what, left.Err))
			continue
		case o.dry:
			what += " (not deleted: --dry-run)"
		default:
			what += " deleted"
		}
		fmt.Fprintln(o.Out, render.Escape(what))
	}
	if err == nil && len(found) == 0 {
		fmt.Fprintln(o.ErrOut, "no pods were left behind")
	}
	return errors.Join(append(errs, err)...)
}
