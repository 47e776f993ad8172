package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
	"github.com/noderes/kubectl-noderes/pkg/workload"
)

// CollectOptions are those of `collect`.
type CollectOptions struct {
	clusterOptions
	genericiooptions.IOStreams

	namespaceFlag string
	output        string
	maxPods       int

	want  collect.Request
	pools []string
}

// NewCmdCollect writes a bundle of a live cluster.
func NewCmdCollect(streams genericiooptions.IOStreams) *cobra.Command {
	o := &CollectOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "collect (NODE... | node/NAME... | pod/NAME... | WORKLOAD/NAME... | nodepool/NAME...) -o FILE",
		Short: "Write what a report of nodes, pods or NodePools is made from to a bundle",
		Long: templates.LongDesc(`
			Write what a report of these nodes, pods or NodePools is made from to a bundle, a .tar.gz
			that --from reads: without the cluster, with the report that the cluster would have given.

			Read are the API server and, through it, the kubelet's configz, stats/summary and
			metrics/cadvisor. With a node or a NodePool, in a cluster with Karpenter or the Cluster
			Autoscaler, so is what tells why nodes stay: their objects, and of every node and pod what
			says where pods can run.

			Secrets, ConfigMaps, the values of environment variables and the arguments of containers
			are left out, save numbers that size a runtime and the settings of what removes nodes.`),
		Example: templates.Examples(`
			# A pod, its node and the pods beside it
			kubectl noderes collect pod/web-0 -n shop -o web-0.tar.gz

			# The pods of a Deployment that look worst
			kubectl noderes collect deploy/web -n shop -o web.tar.gz

			# Two nodes
			kubectl noderes collect worker-1 worker-2 -o nodes.tar.gz

			# A NodePool of Karpenter, with all that says why it does not shrink
			kubectl noderes collect nodepool/default -o default.tar.gz`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(args); err != nil {
				return err
			}
			if err := o.Validate(cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	addNamespaceFlag(cmd, &o.namespaceFlag)
	addMaxPodsFlag(cmd, &o.maxPods)
	mustRegister(cmd, "namespace", cobra.NoFileCompletions)
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "File to write the bundle to; one that is there is replaced")
	return cmd
}

// Complete takes the subjects.
func (o *CollectOptions) Complete(args []string) error {
	for _, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		if kind, isWorkload := workload.KindOf(resource); ok && isWorkload && name != "" && !strings.Contains(name, "/") {
			namespace, err := o.namespace(o.namespaceFlag)
			if err != nil {
				return err
			}
			if o.want.Select == nil {
				o.want.Select = &workload.Selection{Namespace: namespace}
			}
			o.want.Select.Workloads = append(o.want.Select.Workloads, workload.Ref{Kind: kind, Namespace: namespace, Name: name})
			continue
		}
		if !ok {
			resource, name = string(kindNode), arg
		}
		kind := resourceKind(resource)
		switch {
		case name == "" || strings.Contains(name, "/") || kind == "":
			return fmt.Errorf("%q is neither NODE, node/NAME, pod/NAME, WORKLOAD/NAME nor nodepool/NAME", arg)
		case kind == kindNode:
			o.want.Nodes = append(o.want.Nodes, name)
			o.want.Removal = collect.WholeCluster
		case kind == kindNodePool:
			o.pools = append(o.pools, name)
			o.want.Removal = collect.WholeCluster
		default:
			namespace, err := o.namespace(o.namespaceFlag)
			if err != nil {
				return err
			}
			o.want.Pods = append(o.want.Pods, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return nil
}

// Validate refuses options that cannot be answered.
func (o *CollectOptions) Validate(cmd *cobra.Command) error {
	switch {
	case len(o.want.Nodes)+len(o.want.Pods)+len(o.pools) == 0 && o.want.Select == nil:
		return usageErrorf(cmd, "name the nodes, pods or NodePools to collect")
	case o.output == "":
		return usageErrorf(cmd, "say where to write the bundle: -o FILE")
	}
	if o.want.Select != nil {
		o.want.Select.Most = o.maxPods
		return validateMaxPods(o.maxPods)
	}
	return nil
}

// Run reads the cluster and writes the bundle, of all subjects or not at all.
func (o *CollectOptions) Run(ctx context.Context) error {
	s, failed, client, err := o.read(ctx, o.want)
	if err != nil {
		return err
	}
	var errs []error
	for _, node := range o.want.Nodes {
		errs = append(errs, failed[node])
	}
	for _, pod := range o.want.Pods {
		errs = append(errs, failed[pod.String()])
	}
	if o.want.Select != nil {
		for _, ref := range o.want.Select.Workloads {
			errs = append(errs, failed[ref.String()])
		}
	}
	errs = append(errs, o.findPools(s, failed))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := writeBundle(s, o.output); err != nil {
		return err
	}
	requests, bytes := client.Cost()
	_, err = fmt.Fprintf(o.ErrOut, "%s: read %d bytes with %d requests\n", o.output, bytes, requests)
	return err
}

// findPools is the error of those NodePools that are not there.
func (o *CollectOptions) findPools(s *snapshot.Snapshot, failed map[string]error) error {
	if len(o.pools) == 0 {
		return nil
	}
	if err := failed[collect.NodePools]; err != nil {
		return err
	}
	known, err := diagnose.NodePools(s)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range o.pools {
		if !slices.Contains(known, name) {
			errs = append(errs, &diagnose.NotFoundError{What: collect.NodePools, Name: name, In: "the cluster", Known: known})
		}
	}
	return errors.Join(errs...)
}

// writeBundle leaves either the whole file or none.
func writeBundle(s *snapshot.Snapshot, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // for its owner alone to read
	if err != nil {
		return err
	}
	err = s.WriteArchive(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
