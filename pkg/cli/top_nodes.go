package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
)

// TopNodesOptions are those of `top nodes`.
type TopNodesOptions struct {
	*topOptions
	sortBy string

	names []string
}

// NewTopNodesOptions are the defaults.
func NewTopNodesOptions(shared *topOptions) *TopNodesOptions {
	return &TopNodesOptions{topOptions: shared}
}

func newCmdTopNodes(o *TopNodesOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodes [NAME... | node/NAME...]",
		Aliases: []string{"node", "no"},
		Short:   "Compare nodes",
		Long: templates.LongDesc(`
			Compare nodes.

			CPU is the average of the sample, in CPUs, of those online. PSI is the part of the time
			in which some task waited for CPU, memory or I/O, of the sample or (avg10) of the last
			10 seconds. MEMORY is the working set and AVAILABLE the rest, the kubelet's
			memory.available. OOM-KILLS are processes of pods. CPUS are those that containers own,
			SHARED-CPUS those of all others.

			A value that is not known is ?, and -o json names what could not be read and why.`),
		Example: templates.Examples(`
			# A recorded node, embedded in the plugin
			kubectl noderes top nodes --from demo

			# The nodes of a bundle, by their working set
			kubectl noderes top nodes --sort-by memory --from ./bundle`),
		ValidArgsFunction: completeNodes(&o.sourceOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	addSortFlag(cmd, &o.sortBy, diagnose.TopNodeColumns())
	return cmd
}

// Complete fills what arguments imply.
func (o *TopNodesOptions) Complete(_ *cobra.Command, args []string) error {
	names, err := resourceNames(kindNode, args)
	o.names = names
	return err
}

// Validate refuses options that cannot be answered.
func (o *TopNodesOptions) Validate() error {
	if err := validateColumn(o.sortBy, diagnose.TopNodeColumns()); err != nil {
		return err
	}
	return o.topOptions.validate()
}

// Run shows the table.
func (o *TopNodesOptions) Run(ctx context.Context) error {
	return o.top(ctx, question{
		of:    diagnose.TopOptions{Names: o.names, SortBy: o.sortBy},
		table: diagnose.TopNodes,
		want:  collect.TopRequest{OfNodes: true, Names: o.names},
	})
}
