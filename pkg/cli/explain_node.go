package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// ExplainNodeOptions are those of `explain node`.
type ExplainNodeOptions struct {
	*explainOptions

	names []string
	// set are settings of the kubelet that the question supposes.
	set      []string
	settings diagnose.Settings
}

// NewExplainNodeOptions are the defaults.
func NewExplainNodeOptions(shared *explainOptions) *ExplainNodeOptions {
	return &ExplainNodeOptions{explainOptions: shared}
}

func newCmdExplainNode(o *ExplainNodeOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node (NAME... | node/NAME...)",
		Aliases: []string{"nodes", "no"},
		Short:   "Explain what is wrong with a node, and what keeps it from being removed",
		Long: templates.LongDesc(`
			Explain what is wrong with a node itself: the kubelet's configuration, its checkpoints,
			what it reserves, and what its next start would refuse.

			Then what keeps it from being removed by Karpenter or the Cluster Autoscaler: every blocker,
			not the first, until when, and who can lift it. On a node of Karpenter the short-lived pod
			that reads the node's files restarts consolidateAfter, as every pod does; with --access=api
			none is made.

			With --set the kubelet's next start is asked for with other settings or another version:
			whether it takes over the checkpoints, and which pods it would not admit again.

			With --from demo the name may be left out.`),
		Example: templates.Examples(`
			# The recorded node that is embedded in the plugin
			kubectl noderes explain node --from demo

			# A node of a bundle, as YAML
			kubectl noderes explain node/worker-1 --from ./bundle -o yaml

			# Why a node of Karpenter stays, without a pod on it
			kubectl noderes explain node worker-1 --access=api

			# What an upgrade of the kubelet would do with its checkpoints and pods
			kubectl noderes explain node worker-1 --from ./bundle --set kubeletVersion=1.37`),
		ValidArgsFunction: completeNodes(&o.sourceOptions),
		RunE:              o.execute,
	}
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "Suppose this setting of the kubelet, FIELD=VALUE or FIELD.KEY=VALUE of its configuration, or kubeletVersion=1.MINOR; may be repeated")
	mustRegister(cmd, "set", completeSettings)
	o.karpenter.addFlags(cmd)
	o.karpenter.addPriceFlags(cmd)
	o.karpenter.addZoneFlag(cmd)
	return cmd
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
	var err error
	if o.settings, err = diagnose.ParseSettings(o.set); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	o.names, err = resourceNames(kindNode, args)
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
	if err := o.karpenter.validate(); err != nil {
		return err
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
	return o.explain(ctx, report.NodeReport, o.names, collect.Request{Nodes: o.names, Removal: collect.WholeCluster}, func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.Node(s, name, diagnose.Options{At: o.at, Set: o.settings, Shrink: o.karpenter.options()})
	})
}
