package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// ExplainNodeOptions are those of `explain node`.
type ExplainNodeOptions struct {
	*explainOptions

	names []string
}

// NewExplainNodeOptions are the defaults.
func NewExplainNodeOptions(shared *explainOptions) *ExplainNodeOptions {
	return &ExplainNodeOptions{explainOptions: shared}
}

func newCmdExplainNode(o *ExplainNodeOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "node (NAME... | node/NAME...)",
		Aliases: []string{"nodes", "no"},
		Short:   "Explain what is wrong with a node itself",
		Long: templates.LongDesc(`
			Explain what is wrong with a node itself: the kubelet's configuration, its checkpoints,
			what it reserves.

			With --from demo the name may be left out.`),
		Example: templates.Examples(`
			# The recorded node that is embedded in the plugin
			kubectl noderes explain node --from demo

			# A node of a bundle, as YAML
			kubectl noderes explain node/worker-1 --from ./bundle -o yaml`),
		ValidArgsFunction: completeNodes(&o.sourceOptions),
		RunE:              o.execute,
	}
}

func (o *ExplainNodeOptions) execute(cmd *cobra.Command, args []string) error {
	if err := o.Complete(cmd, args); err != nil {
		return err
	}
	if err := o.Validate(cmd); err != nil {
		return err
	}
	return o.Run(cmd.Context())
}

// Complete fills what arguments and flags imply.
func (o *ExplainNodeOptions) Complete(_ *cobra.Command, args []string) error {
	if err := o.explainOptions.complete(); err != nil {
		return err
	}
	names, err := resourceNames(kindNode, args)
	o.names = names
	return err
}

// Validate refuses options that cannot be answered.
func (o *ExplainNodeOptions) Validate(cmd *cobra.Command) error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("container"); f != nil && f.Changed {
		return usageErrorf(cmd, "--container is for pods")
	}
	if _, isDemo := o.recording(); len(o.names) == 0 && !isDemo {
		return usageErrorf(cmd, "name the node to explain")
	}
	return nil
}

// Run explains each node.
func (o *ExplainNodeOptions) Run(ctx context.Context) error {
	if name, isDemo := o.recording(); isDemo && len(o.names) == 0 {
		recording, err := demo.Find(name)
		if err != nil {
			return err
		}
		o.names = []string{recording.Node}
	}
	return o.explain(ctx, report.NodeReport, o.names, func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.Node(s, name, diagnose.Options{At: o.at})
	})
}
