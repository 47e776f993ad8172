package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/yaml"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/diagnose/shrink"
	"github.com/noderes/kubectl-noderes/pkg/disruption/karpenter"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// BudgetsOptions are those of `budgets`.
type BudgetsOptions struct {
	explainOptions

	names    []string
	filename string
	ahead    string
	horizon  time.Duration
	suggest  bool

	shrink shrink.Options
}

// NewCmdBudgets tells what the disruption budgets of NodePools allow.
func NewCmdBudgets(streams genericiooptions.IOStreams) *cobra.Command {
	o := &BudgetsOptions{explainOptions: explainOptions{IOStreams: streams}}
	o.cluster = &clusterOptions{}
	cmd := &cobra.Command{
		Use:   "budgets [NODEPOOL... | nodepool/NODEPOOL...]",
		Short: "Tell what the disruption budgets of Karpenter's NodePools allow",
		Long: templates.LongDesc(`
			Tell for each NodePool and disruption reason what the budgets allow: the value of each
			budget, which one decides, what is left after the nodes that consume, until when, and a
			timeline. What the budgets do against their author's likely intent is said with the fix.

			Schedules are in UTC; with --timezone the times of a zone stand beside it. Without a
			name every NodePool is told. For a node group of the Cluster Autoscaler, which has no
			budgets, what bounds it instead is told.

			Of the cluster the NodePools, their nodes and NodeClaims are read. A NodePool given with -f
			stands in for the one of its name; without a cluster or bundle its budgets are told alone.`),
		Example: templates.Examples(`
			# All pools, now
			kubectl noderes budgets

			# A week of one pool of a bundle, by the clock of Seoul
			kubectl noderes budgets service --from ./bundle --for 7d --timezone Asia/Seoul

			# A NodePool that is not applied yet, over the nodes that there are; fail in CI on a warning
			kubectl noderes budgets -f nodepool.yaml --fail-on warning

			# The least edit that lets empty nodes go, as a patch
			kubectl noderes budgets service --suggest`),
		ValidArgsFunction: completeNodePools(&o.sourceOptions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.sourceOptions.addFlags(cmd)
	o.cluster.addConnectionFlags(cmd) // reads no node
	o.outputOptions.addFlags(cmd)
	o.karpenter.addFlags(cmd)
	o.karpenter.addZoneFlag(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.filename, "filename", "f", "", "NodePool to try before it is applied, YAML or JSON; it stands in for the one of its name")
	flags.StringVar(&o.ahead, "for", "24h", "How far the timeline goes: 24h, 7d, up to 31d")
	flags.BoolVar(&o.suggest, "suggest", false, "Print the least edit that keeps the windows and lets empty nodes go, as a patch")
	mustRegister(cmd, "for", cobra.FixedCompletions([]string{"24h", "7d"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Complete fills what arguments and flags imply.
func (o *BudgetsOptions) Complete(args []string) error {
	if err := o.explainOptions.complete(); err != nil {
		return err
	}
	var err error
	if o.names, err = resourceNames(kindNodePool, args); err != nil {
		return err
	}
	o.horizon, err = parseAhead(o.ahead)
	return err
}

// parseAhead reads a duration, also in whole days.
func parseAhead(text string) (time.Duration, error) {
	const most = 31 * 24 * time.Hour
	written := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if _, err := fmt.Sscanf(days+"!", "%d!", &n); err != nil || n > 31 {
			n = 0
		}
		written = fmt.Sprintf("%dh", 24*n)
	}
	ahead, err := time.ParseDuration(written)
	if err != nil || ahead <= 0 || ahead > most {
		return 0, fmt.Errorf("--for=%q is no duration from 1m to 31d, such as 24h or 7d", text)
	}
	return ahead, nil
}

// Validate refuses options that cannot be answered.
func (o *BudgetsOptions) Validate() error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if err := o.karpenter.validate(); err != nil {
		return err
	}
	o.shrink = o.karpenter.options()
	o.shrink.Ahead = o.horizon
	return nil
}

// Run tells the budgets of each NodePool.
func (o *BudgetsOptions) Run(ctx context.Context) error {
	names := o.names
	if o.filename != "" {
		pool, err := o.readNodePool()
		if err != nil {
			return err
		}
		o.shrink.NodePools = []karpenter.NodePool{pool}
		if len(names) == 0 {
			names = []string{pool.Name}
		}
	}
	s, err := o.readBudgets(ctx, names)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names, err = diagnose.NodePools(s); err != nil {
			return err
		}
		if len(names) == 0 {
			return errors.New("there is no NodePool of Karpenter: the API server was asked and had none")
		}
	}
	one := func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.Budgets(s, name, diagnose.Options{At: o.at, Shrink: o.shrink})
	}
	if o.suggest && o.output == formatText {
		return o.patches(ctx, s, names, one)
	}
	return o.explainIn(ctx, s, report.BudgetReport, names, collect.Request{}, nil, one)
}

// readBudgets reads what the budgets of these pools, or of all, are counted
// over. A NodePool that was given can do without.
func (o *BudgetsOptions) readBudgets(ctx context.Context, names []string) (*snapshot.Snapshot, error) {
	s, failed, err := o.read(ctx, collect.Request{Removal: collect.BudgetsOnly, NodePools: names})
	switch {
	case o.filename == "":
		return s, errors.Join(err, failed[collect.NodePools])
	case errors.Is(err, errNoCluster):
		fmt.Fprintln(o.ErrOut, "note: no cluster is configured, so the budgets are told without nodes")
		return nothing()
	}
	if err == nil && failed[collect.NodePools] != nil {
		fmt.Fprintln(o.ErrOut, "note: of the cluster not all could be read: "+render.Escape(failed[collect.NodePools].Error()))
	}
	return s, err
}

// nothing is known of a cluster that is not configured.
func nothing() (*snapshot.Snapshot, error) {
	b := snapshot.NewBuilder()
	b.Gap(snapshot.Gap{Path: "cluster", Reason: snapshot.ReasonRefused, Detail: "no cluster is configured"})
	return b.Build(snapshot.Manifest{CapturedAt: time.Now().UTC().Truncate(time.Second)})
}

// patches writes the suggested edits alone, ready for a shell.
func (o *BudgetsOptions) patches(ctx context.Context, s *snapshot.Snapshot, names []string, one func(*snapshot.Snapshot, string) (report.Report, error)) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := one(s, name)
		if err != nil {
			return err
		}
		found := false
		for _, f := range r.Findings {
			for _, remedy := range f.Remedies {
				if f.Code == report.BudgetWithoutReasons && remedy.Command != "" {
					found = true
					fmt.Fprintf(o.Out, "# NodePool %s: %s\n# %s\n%s\n", render.Escape(name), render.Escape(remedy.Summary), render.Escape(remedy.Effect), render.Escape(remedy.Command))
				}
			}
		}
		if !found {
			fmt.Fprintf(o.Out, "# NodePool %s: no window stops Empty that an edit of its reasons would free\n", render.Escape(name))
		}
	}
	return nil
}

const maxNodePoolFile = 1 << 20

// readNodePool reads a NodePool as the API server would store it. What it would
// refuse is an error that names every rule.
func (o *BudgetsOptions) readNodePool() (karpenter.NodePool, error) {
	data, err := readFile(o.filename, maxNodePoolFile)
	if err != nil {
		return karpenter.NodePool{}, err
	}
	pool, err := parseNodePool(data, o.karpenter.version)
	if err != nil {
		return karpenter.NodePool{}, fmt.Errorf("%s: %w", o.filename, err)
	}
	return pool, nil
}

func parseNodePool(data []byte, version string) (karpenter.NodePool, error) {
	object, err := yaml.YAMLToJSON(data)
	if err != nil {
		return karpenter.NodePool{}, err
	}
	if err := snapshot.CheckQuantities(object); err != nil {
		return karpenter.NodePool{}, err
	}
	rules := karpenter.DefaultRules()
	if version != "" {
		if rules, _, err = karpenter.RulesFor(version); err != nil {
			return karpenter.NodePool{}, err
		}
	}
	if object, err = karpenter.WithDefaults(object, rules); err != nil {
		return karpenter.NodePool{}, err
	}
	violations, err := karpenter.DisruptionViolations(object, rules)
	if err != nil {
		return karpenter.NodePool{}, err
	}
	if len(violations) > 0 {
		var texts []string
		for _, v := range violations {
			texts = append(texts, v.String())
		}
		return karpenter.NodePool{}, fmt.Errorf("the API server would not store it: %s", strings.Join(texts, "; "))
	}
	pool, err := karpenter.DecodeNodePool(object)
	if err == nil && (pool.Kind != "NodePool" || pool.Name == "") {
		err = fmt.Errorf("not a NodePool with a name, but kind %q", pool.Kind)
	}
	return pool, err
}
