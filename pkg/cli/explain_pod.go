package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// ExplainPodOptions are those of `explain pod`.
type ExplainPodOptions struct {
	*explainOptions
	namespaceFlag string
	container     string

	namespace string
	names     []string
}

// NewExplainPodOptions are the defaults.
func NewExplainPodOptions(shared *explainOptions) *ExplainPodOptions {
	return &ExplainPodOptions{explainOptions: shared}
}

func (o *ExplainPodOptions) addFlags(cmd *cobra.Command) {
	addNamespaceFlag(cmd, &o.namespaceFlag)
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "Only this container and what concerns the whole pod")
	mustRegister(cmd, "namespace", completeNamespaces(&o.sourceOptions))
	mustRegister(cmd, "container", completeContainers(o))
}

func newCmdExplainPod(o *ExplainPodOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pod (NAME... | pod/NAME...)",
		Aliases: []string{"pods", "po"},
		Short:   "Explain a pod's CPU time, memory, kills and placement",
		Long: templates.LongDesc(`
			Explain everything that can be said about a pod: whether and at which level it is
			throttled, what killed it and at which limit, what fills its memory, which CPUs it owns
			or why it owns none.

			Without a namespace that of the kubeconfig's context is meant; in a bundle the only pod
			of that name. With --from demo the name may be left out: the recording's OOM-killed pod
			is explained.`),
		Example: templates.Examples(`
			# Why does this pod keep dying? A recorded node, embedded in the plugin
			kubectl noderes explain pod oom --from demo

			# Two pods of a bundle, one container each
			kubectl noderes explain pod web-0 web-1 -n shop -c app --from node.tar.gz

			# The code of the first finding
			kubectl noderes explain pod web-0 --from ./bundle -o jsonpath='{.findings[0].code}'

			# Fail a script if anything critical is found
			kubectl noderes explain pod web-0 --from ./bundle --fail-on critical`),
		ValidArgsFunction: completePods(&o.sourceOptions, &o.namespaceFlag),
		RunE:              o.execute,
	}
	o.addFlags(cmd)
	return cmd
}

func (o *ExplainPodOptions) execute(cmd *cobra.Command, args []string) error {
	if err := o.Complete(cmd, args); err != nil {
		return err
	}
	if err := o.Validate(cmd); err != nil {
		return err
	}
	return o.Run(cmd.Context())
}

// Complete fills what arguments and flags imply.
func (o *ExplainPodOptions) Complete(_ *cobra.Command, args []string) error {
	if err := o.explainOptions.complete(); err != nil {
		return err
	}
	o.namespace = o.namespaceFlag
	names, err := resourceNames(kindPod, args)
	o.names = names
	return err
}

// Validate refuses options that cannot be answered.
func (o *ExplainPodOptions) Validate(cmd *cobra.Command) error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if _, isDemo := o.recording(); len(o.names) == 0 && !isDemo {
		return usageErrorf(cmd, "name the pod to explain")
	}
	return nil
}

// Run explains each pod.
func (o *ExplainPodOptions) Run(ctx context.Context) error {
	if name, isDemo := o.recording(); isDemo && len(o.names) == 0 {
		recording, err := demo.Find(name)
		if err != nil {
			return err
		}
		first := recording.Pods[0]
		o.namespace, o.names = first.Namespace, []string{first.Name}
	}
	want := collect.Request{}
	if o.from == "" {
		namespace, err := o.cluster.namespace(o.namespace)
		if err != nil {
			return err
		}
		o.namespace = namespace
		for _, name := range o.names {
			want.Pods = append(want.Pods, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return o.explain(ctx, report.PodReport, o.names, want, func(s *snapshot.Snapshot, name string) (report.Report, error) {
		return diagnose.Pod(s, o.namespace, name, diagnose.Options{At: o.at, Container: o.container})
	})
}
