package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
)

const commandName = "kubectl noderes"

// NewCmdNoderes is the root command.
func NewCmdNoderes(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-noderes",
		Short: "Explain why a pod is slow, dead or misplaced on its node",
		Long: templates.LongDesc(`
			Explain why a pod is slow, dead or misplaced on its node.

			Every verdict comes with the arithmetic behind it and the file or API field that each
			number was read from. What the data cannot prove is said to be unproven.

			Exit status: 0 a report was made, 1 an error, 2 only with --fail-on and a finding of
			that level.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: commandName},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.AddCommand(
		NewCmdExplain(streams),
		NewCmdBudgets(streams),
		NewCmdPlacement(streams),
		NewCmdWhatIf(streams),
		NewCmdTop(streams),
		NewCmdCollect(streams),
		NewCmdCleanup(streams),
		NewCmdDemo(streams),
		NewCmdVersion(streams),
	)
	addCompletion(cmd)
	return cmd
}
