package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
)

// karpenterOptions are what a question supposes of Karpenter.
type karpenterOptions struct {
	version string
}

func (o *karpenterOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.version, "karpenter-version", "", "Rules of this Karpenter, such as 1.14 or v1.6.4, where the bundle does not tell its version")
	mustRegister(cmd, "karpenter-version", cobra.NoFileCompletions)
}

func (o *karpenterOptions) validate() error {
	if o.version == "" {
		return nil
	}
	if _, _, err := karpenter.RulesFor(o.version); err != nil {
		return fmt.Errorf("--karpenter-version: %w", err)
	}
	return nil
}

func (o *karpenterOptions) options() shrink.Options {
	return shrink.Options{KarpenterVersion: o.version}
}
