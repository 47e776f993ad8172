package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/render"
)

// DemoOptions are those of `demo`.
type DemoOptions struct {
	genericiooptions.IOStreams
}

// NewCmdDemo lists the embedded recordings.
func NewCmdDemo(streams genericiooptions.IOStreams) *cobra.Command {
	o := &DemoOptions{IOStreams: streams}
	return &cobra.Command{
		Use:   "demo",
		Short: "List the embedded recordings and what each pod shows",
		Long: templates.LongDesc(`
			List the recordings of real nodes that are embedded in the plugin, and what each of their
			pods shows. They are what --from demo reads, without a cluster.`),
		Example: templates.Examples(`
			# What is there
			kubectl noderes demo

			# One of them
			kubectl noderes explain pod wide --from demo/numa4`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.Run(cmd.Context())
		},
	}
}

// Run lists the recordings.
func (o *DemoOptions) Run(context.Context) error {
	style := render.Style{Width: terminalWidth(o.Out), Unicode: unicodeLocale(os.Getenv)}
	for _, r := range demo.List() {
		fmt.Fprintf(o.Out, "--from demo/%s\n%s\n\n", r.Name, r.About)
		var rows [][]string
		for _, p := range r.Pods {
			rows = append(rows, []string{p.Namespace, p.Name, p.Shows})
		}
		if err := render.List(o.Out, []string{"NAMESPACE", "POD", "SHOWS"}, rows, style); err != nil {
			return err
		}
		fmt.Fprintln(o.Out)
	}
	_, err := fmt.Fprintf(o.Out, "Explain one: %s explain pod NAME --from demo/RECORDING (demo alone is demo/%s)\n", commandName, demo.Default)
	return err
}
