package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// topOptions are shared by the tables of pods and nodes.
type topOptions struct {
	sourceOptions
	outputOptions
	noHeaders bool
	watch     watchOptions
	genericiooptions.IOStreams
}

// NewCmdTop compares pods or nodes: `top pods`, `top nodes`.
func NewCmdTop(streams genericiooptions.IOStreams) *cobra.Command {
	o := &topOptions{IOStreams: streams}
	o.cluster = &clusterOptions{}
	cmd := &cobra.Command{
		Use:   "top (pods | nodes)",
		Short: "Compare pods or nodes by throttling, waiting, memory and kills",
		Long: templates.LongDesc(`
			Compare pods or nodes by what is held back, waits, is full or was killed.

			Of a cluster its kubelets are asked, which need the right to get nodes/proxy: see
			docs/rbac.md. They read their counters every 10 to 15 seconds, and rates need two
			readings. Without --watch there is one: CPU is then the kubelet's own average, marked
			(kubelet), and THROTTLED counts since the container was made, marked (lifetime).

			A value that is not known is ?, and -o json names what could not be read and why. Where
			there is no limit to be a share of stands -.`),
		Example: templates.Examples(`
			# What is throttled now, in the namespace of the context
			kubectl noderes top pods --watch

			# Two readings, of the second the rates, for a script
			kubectl noderes top nodes --watch --count 2 -o json

			# The pods of a recorded node, embedded in the plugin
			kubectl noderes top pods --from demo

			# The nodes of a bundle
			kubectl noderes top nodes --from ./bundle`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf(cmd, "%q: say top pods or top nodes", args[0])
			}
			return cmd.Help()
		},
	}
	o.addFromFlag(cmd)
	o.cluster.addConnectionFlags(cmd)
	o.watch.addFlags(cmd)
	o.addFormatFlags(cmd)
	cmd.PersistentFlags().BoolVar(&o.noHeaders, "no-headers", false, "Text without the line of headers")
	cmd.AddCommand(newCmdTopPods(NewTopPodsOptions(o)), newCmdTopNodes(NewTopNodesOptions(o)))
	return cmd
}

func (o *topOptions) validate() error {
	if err := o.outputOptions.validate(); err != nil {
		return err
	}
	if err := o.watch.validate(o.from); err != nil {
		return err
	}
	return o.sourceOptions.validate()
}

// addSortFlag offers the columns, the default first.
func addSortFlag(cmd *cobra.Command, sortBy *string, columns []string) {
	cmd.Flags().StringVar(sortBy, "sort-by", columns[0], "Column to sort by, the largest value first: "+strings.Join(columns, ", "))
	mustRegister(cmd, "sort-by", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp))
}

func validateColumn(sortBy string, columns []string) error {
	if !slices.Contains(columns, sortBy) {
		return fmt.Errorf("--sort-by=%q is none of %s", sortBy, strings.Join(columns, ", "))
	}
	return nil
}

// a question is what one table answers: how it is made of a snapshot, and what is
// read of a cluster for it.
type question struct {
	of    diagnose.TopOptions
	table func(*snapshot.Snapshot, diagnose.TopOptions) (report.Top, error)
	want  collect.TopRequest
}

// top shows one table of a bundle, or of a cluster again and again.
func (o *topOptions) top(ctx context.Context, q question) error {
	if o.from == "" {
		return o.live(ctx, q)
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return o.show(s, q)
}

// show shows one table. Names that were not found do not keep the others from
// being shown.
func (o *topOptions) show(s *snapshot.Snapshot, q question) error {
	top, err := q.table(s, q.of)
	rows := len(top.Pods) + len(top.Nodes)
	if err != nil && rows == 0 {
		return err
	}
	errWrite := o.document(o.Out, top, func(w io.Writer) error {
		if rows == 0 {
			_, err := fmt.Fprintln(o.ErrOut, "No resources found.")
			return err
		}
		return render.Top(w, top, !o.noHeaders, o.style(w))
	})
	if errWrite != nil {
		return errWrite
	}
	return err
}
