package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// ExplainPodOptions are those of `explain pod`.
type ExplainPodOptions struct {
	*explainOptions
	namespaceFlag string
	container     string

	// Instead of names: pods of workloads, or those that labels select.
	selector      string
	allNamespaces bool
	maxPods       int

	namespace string
	names     []string
	// selection is nil where pods are named.
	selection *workload.Selection
}

// NewExplainPodOptions are the defaults.
func NewExplainPodOptions(shared *explainOptions) *ExplainPodOptions {
	return &ExplainPodOptions{explainOptions: shared}
}

func (o *ExplainPodOptions) addFlags(cmd *cobra.Command) {
	addNamespaceFlag(cmd, &o.namespaceFlag)
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "Only this container and what concerns the whole pod")
	addMaxPodsFlag(cmd, &o.maxPods)
	mustRegister(cmd, "namespace", completeNamespaces(&o.sourceOptions))
	mustRegister(cmd, "container", completeContainers(o))
}

// addSelectFlags are for `explain pod` only: `explain` alone takes TYPE/NAME.
func (o *ExplainPodOptions) addSelectFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Explain the pods whose labels match, such as app=web")
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Explain pods of all namespaces")
	mustRegister(cmd, "selector", cobra.NoFileCompletions)
}

func newCmdExplainPod(o *ExplainPodOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pod (NAME... | pod/NAME... | WORKLOAD/NAME... | -l SELECTOR | -A)",
		Aliases: []string{"pods", "po"},
		Short:   "Explain a pod's CPU time, memory, kills and placement",
		Long: templates.LongDesc(`
			Explain everything that can be said about a pod: whether and at which level it is
			throttled, what killed it and at which limit, what fills its memory, which CPUs it owns
			or why it owns none.

			Without a namespace that of the kubeconfig's context is meant; in a bundle the only pod
			of that name. With --from demo the name may be left out: the recording's OOM-killed pod
			is explained.

			Of a workload (deploy/web, sts/db, ds/agent, job/import, rs/web-5d4) or of a selector the
			pods are explained that look worst to the API server, at most --max-pods of them: the
			worst verdict first, and pods with the same findings only once in text. That is a list
			in -o json, of one pod too.`),
		Example: templates.Examples(`
			# Why does this pod keep dying? A recorded node, embedded in the plugin
			kubectl noderes explain pod oom --from demo

			# Two pods of a bundle, one container each
			kubectl noderes explain pod web-0 web-1 -n shop -c app --from node.tar.gz

			# What is wrong with the pods of a Deployment?
			kubectl noderes explain deploy/web -n shop

			# The worst pods of a cluster
			kubectl noderes explain pod -A --max-pods 5

			# The code of the first finding
			kubectl noderes explain pod web-0 --from ./bundle -o jsonpath='{.findings[0].code}'

			# Fail a script if anything critical is found
			kubectl noderes explain pod web-0 --from ./bundle --fail-on critical`),
		ValidArgsFunction: completePods(&o.sourceOptions, &o.namespaceFlag),
		RunE:              o.execute,
	}
	o.addFlags(cmd)
	o.addSelectFlags(cmd)
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
	refs, pods, err := workloadNames(args)
	if err != nil {
		return err
	}
	if o.names, err = resourceNames(kindPod, pods); err != nil {
		return err
	}
	if len(refs) > 0 || o.selector != "" || o.allNamespaces {
		o.selection = &workload.Selection{Namespace: o.namespace, Workloads: refs, Most: o.maxPods}
	}
	if o.selector != "" {
		if o.selection.Labels, err = labels.Parse(o.selector); err != nil {
			return fmt.Errorf("--selector=%q: %w", o.selector, err)
		}
	}
	return nil
}

// Validate refuses options that cannot be answered.
func (o *ExplainPodOptions) Validate(cmd *cobra.Command) error {
	if err := o.explainOptions.validate(); err != nil {
		return err
	}
	if sel := o.selection; sel != nil {
		switch {
		case len(o.names) > 0 && len(sel.Workloads) > 0:
			return usageErrorf(cmd, "name pods or workloads, not both")
		case o.selector != "" && len(o.names)+len(sel.Workloads) > 0:
			return usageErrorf(cmd, "name cannot be provided when a selector is specified")
		case o.allNamespaces && len(o.names)+len(sel.Workloads) > 0:
			return usageErrorf(cmd, "a resource cannot be retrieved by name across all namespaces")
		}
		return validateMaxPods(o.maxPods)
	}
	if _, isDemo := o.recording(); len(o.names) == 0 && !isDemo {
		return usageErrorf(cmd, "name the pod to explain, or its workload, or select pods with -l or -A")
	}
	return nil
}

// Run explains each pod.
func (o *ExplainPodOptions) Run(ctx context.Context) error {
	if o.selection != nil {
		return o.runSelection(ctx)
	}
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
