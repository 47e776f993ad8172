package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
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
			Compare the pods that are on nodes. Of a bundle those of all namespaces are shown, unless
			one is named; of a cluster those of the context's namespace, or with -A or --node of all.
			Pods that have ended are shown by name only.

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
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces; of a bundle, and with --node, that is so without --namespace too")
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
	if o.from == "" && o.allNamespaces && len(o.names) > 0 {
		return errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	return o.topOptions.validate()
}

// Run shows the table.
func (o *TopPodsOptions) Run(ctx context.Context) error {
	// A node is asked about with all that is on it.
	if o.from == "" && !o.allNamespaces && (o.node == "" || o.namespaceFlag != "" || len(o.names) > 0) {
		namespace, err := o.cluster.namespace(o.namespaceFlag)
		if err != nil {
			return err
		}
		o.namespace = namespace
	}
	return o.top(ctx, question{
		of:    diagnose.TopOptions{Names: o.names, Namespace: o.namespace, Node: o.node, Containers: o.containers, SortBy: o.sortBy},
		table: diagnose.TopPods,
		want:  collect.TopRequest{Namespace: o.namespace, Node: o.node, Names: o.names},
	})
}
