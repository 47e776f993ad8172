package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// ExplainNodePoolOptions are those of `explain nodepool`.
type ExplainNodePoolOptions struct {
	*explainOptions

	names []string
}

// NewExplainNodePoolOptions are the defaults.
func NewExplainNodePoolOptions(shared *explainOptions) *ExplainNodePoolOptions {
	return &ExplainNodePoolOptions{explainOptions: shared}
}

func newCmdExplainNodePool(o *ExplainNodePoolOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodepool (NAME... | nodepool/NAME...)",
		Aliases: []string{"nodepools", "nodepools.karpenter.sh"},
		Short:   "Explain what keeps a NodePool of Karpenter from shrinking",
		Long: templates.LongDesc(`
			Explain what keeps a NodePool of Karpenter from shrinking: its budgets, its limits, its
			policy, and the blockers of its nodes, each with the node's name.

			A node group of the Cluster Autoscaler can be named too, as its status names it: its
			minimum, its pauses, and what holds its nodes.`),
		Example: templates.Examples(`
			# Why are there still seven nodes?
			kubectl noderes explain nodepool default

			# The same from a bundle
			kubectl noderes explain nodepool default --from ./bundle

			# The same at another moment, when another window is open
			kubectl noderes explain nodepool/default --from ./bundle --at 2026-08-03T07:00:00Z`),
		ValidArgsFunction: completeNodePools(&o.sourceOptions),
		RunE:              o.execute,
	}
	o.karpenter.addFlags(cmd)
	o.karpenter.addPriceFlags(cmd)
	o.karpenter.addZoneFlag(cmd)
	return cmd
}

func (o *ExplainNodePoolOptions) execute(cmd *cobra.Command, args []string) error {
	if err := o.Complete(cmd, args); err != nil {
		return err
	}
	if err := o.Validate(cmd); err != nil {
		return err
	}
	return o.Run(cmd.Context())
}

// Complete fills what arguments and flags imply.
func (o *ExplainNodePoolOptions) Complete(_ *cobra.Command, args []string) error {
	if err := o.explainOptions.complete(); err != nil {
		return err
	}
	var err error
	o.names, err = resourceNames(kindNodePool, args)
	return err
}

// Validate refuses options that cannot be answered.
func (o *ExplainNodePoolOptions) Validate(cmd *cobra.Command) error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if f := cmd.Flags().Lookup("container"); f != nil && f.Changed {
		return usageErrorf(cmd, "--container is for pods")
	}
	if len(o.names) == 0 {
		return usageErrorf(cmd, "name the NodePool to explain")
	}
	return o.karpenter.validate()
}

// Run explains each NodePool.
func (o *ExplainNodePoolOptions) Run(ctx context.Context) error {
	want := collect.Request{Removal: collect.WholeCluster}
	s, failed, err := o.read(ctx, want)
	if err != nil {
		return err
	}
	if err := failed[collect.NodePools]; err != nil {
		return err
	}
	return o.explainIn(ctx, s, report.NodePoolReport, o.names, want, failed, func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.NodePool(s, name, diagnose.Options{At: o.at, Shrink: o.karpenter.options()})
	})
}
