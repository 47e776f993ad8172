package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// PlacementOptions are those of `placement`.
type PlacementOptions struct {
	explainOptions

	names []string
}

// NewCmdPlacement maps who holds which CPUs and memory of a node.
func NewCmdPlacement(streams genericiooptions.IOStreams) *cobra.Command {
	o := &PlacementOptions{explainOptions: explainOptions{IOStreams: streams}}
	o.cluster = &clusterOptions{}
	cmd := &cobra.Command{
		Use:   "placement (NODE... | node/NODE...)",
		Short: "Show who holds which CPUs and memory of a node, and replay it",
		Long: templates.LongDesc(`
			Show who holds which CPUs and memory of a node: sockets, NUMA nodes, caches, cores and
			threads with their owners, what is reserved, shared and free.

			The kubelet's rules are replayed over the node's pods: whether they give exactly what the
			checkpoints record, and if not, what pods since deleted can have held.

			With --from demo the name may be left out.`),
		Example: templates.Examples(`
			# The recorded node that is embedded in the plugin
			kubectl noderes placement --from demo

			# A node of a bundle, as JSON
			kubectl noderes placement worker-1 --from ./bundle -o json`),
		ValidArgsFunction: completeNodes(&o.sourceOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.sourceOptions.addFlags(cmd)
	o.cluster.addFlags(cmd)
	o.outputOptions.addFlags(cmd)
	return cmd
}

// Complete fills what arguments and flags imply.
func (o *PlacementOptions) Complete(args []string) error {
	if err := o.explainOptions.complete(); err != nil {
		return err
	}
	names, err := resourceNames(kindNode, args)
	o.names = names
	return err
}

// Validate refuses options that cannot be answered.
func (o *PlacementOptions) Validate(cmd *cobra.Command) error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if _, isDemo := o.recording(); len(o.names) == 0 && !isDemo {
		return usageErrorf(cmd, "name the node")
	}
	return nil
}

// Run maps each node.
func (o *PlacementOptions) Run(ctx context.Context) error {
	if name, isDemo := o.recording(); isDemo && len(o.names) == 0 {
		recording, err := demo.Find(name)
		if err != nil {
			return err
		}
		o.names = []string{recording.Node}
	}
	return o.explain(ctx, report.PlacementReport, o.names, collect.Request{Nodes: o.names}, func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.Placement(s, name, diagnose.Options{At: o.at})
	})
}
