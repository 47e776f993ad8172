package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/diagnose"
)

// TopPodsOptions are those of `top pods`.
type TopPodsOptions struct {
	*topOptions
	namespaceFlag string
	allNamespaces bool
	node          string
	containers    bool
	sortBy        string

	namespace string
	names     []string
}

// NewTopPodsOptions are the defaults.
func NewTopPodsOptions(shared *topOptions) *TopPodsOptions {
	return &TopPodsOptions{topOptions: shared}
}

func newCmdTopPods(o *TopPodsOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pods [NAME... | pod/NAME...]",
		Aliases: []string{"pod", "po"},
		Short:   "Compare pods, or their containers",
		Long: templates.LongDesc(`
			Compare the pods that are on nodes: those of all namespaces, unless one is named. Pods
			that have ended are shown by name only.

			CPU is the average of the sample, in CPUs, and LIMIT the one in force. THROTTLED is the
			share of its periods that a quota cut short, at the level where it was largest: (pod)
			says that it is not the container's own quota, (lifetime) that there was no second
			sample. WAIT is the part of the time in which a thread waited for CPU, of the sample or
			(avg10) of the last 10 seconds. MEMORY is in use, MEMORY% its share of the limit, and
			NONRECLAIMABLE the share of the limit that cannot be freed without swap. A pod's row
			shows of its containers what is worst. OOM-KILLS are processes killed since the pod's
			cgroup was made. CPUS are those of its own, or shared.

			A value that is not known is ?, and >= stands before what may be more; -o json names
			what could not be read and why. Where there is no limit to be a share of stands -.`),
		Example: templates.Examples(`
			# What is throttled most? A recorded node, embedded in the plugin
			kubectl noderes top pods --from demo

			# Containers of a namespace, by how full they are
			kubectl noderes top pods -n shop --containers --sort-by nonreclaimable --from node.tar.gz

			# Names of the pods that had processes killed for memory
			kubectl noderes top pods --from ./bundle -o jsonpath='{.pods[?(@.oomKills>0)].name}'`),
		ValidArgsFunction: completePods(&o.sourceOptions, &o.namespaceFlag),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd, args); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	addNamespaceFlag(cmd, &o.namespaceFlag)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "All namespaces, whatever --namespace says; so it is without --namespace too")
	flags.StringVar(&o.node, "node", "", "Only pods of this node")
	flags.BoolVar(&o.containers, "containers", false, "A row for each container")
	addSortFlag(cmd, &o.sortBy, diagnose.TopPodColumns())
	mustRegister(cmd, "namespace", completeNamespaces(&o.sourceOptions))
	mustRegister(cmd, "node", completeNodes(&o.sourceOptions))
	return cmd
}

// Complete fills what arguments and flags imply.
func (o *TopPodsOptions) Complete(_ *cobra.Command, args []string) error {
	if !o.allNamespaces {
		o.namespace = o.namespaceFlag
	}
	names, err := resourceNames(kindPod, args)
	o.names = names
	return err
}

// Validate refuses options that cannot be answered.
func (o *TopPodsOptions) Validate() error {
	if err := validateColumn(o.sortBy, diagnose.TopPodColumns()); err != nil {
		return err
	}
	return o.topOptions.validate()
}

// Run shows the table.
func (o *TopPodsOptions) Run(ctx context.Context) error {
	return o.top(ctx, diagnose.TopOptions{Names: o.names, Namespace: o.namespace, Node: o.node, Containers: o.containers, SortBy: o.sortBy}, diagnose.TopPods)
}
