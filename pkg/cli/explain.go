package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// explainOptions are shared by everything that can be explained.
type explainOptions struct {
	sourceOptions
	outputOptions
	genericiooptions.IOStreams

	karpenter karpenterOptions // for nodes and NodePools
}

func (o *explainOptions) complete() error { return o.sourceOptions.complete() }

func (o *explainOptions) validate() error {
	if err := o.outputOptions.validate(); err != nil {
		return err
	}
	return o.sourceOptions.validate()
}

// explain reports each of the subjects named. Those that cannot be explained do
// not keep the others from being reported.
func (o *explainOptions) explain(ctx context.Context, kind report.Kind, names []string, want collect.Request, one func(*snapshot.Snapshot, string) (report.Report, error)) error {
	s, failed, err := o.read(ctx, want)
	if err != nil {
		return err
	}
	return o.explainIn(ctx, s, kind, names, want, failed, one)
}

// explainIn is explain for a snapshot that is open, with the subjects that it
// failed to give.
func (o *explainOptions) explainIn(ctx context.Context, s *snapshot.Snapshot, kind report.Kind, names []string, want collect.Request, failed map[string]error, one func(*snapshot.Snapshot, string) (report.Report, error)) error {
	var reports []report.Report
	var errs []error
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		subject := name
		if len(want.Pods) > 0 {
			subject = want.Pods[i].String()
		}
		if err := failed[subject]; err != nil {
			errs = append(errs, err)
			continue
		}
		r, err := one(s, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reports = append(reports, r)
	}
	if len(reports) > 0 {
		if err := o.write(o.Out, kind, reports, len(names) > 1); err != nil {
			return err
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return o.checkFailOn(reports)
}

// NewCmdExplain explains a pod, a node or a NodePool: `explain TYPE NAME` by its
// subcommands, `explain TYPE/NAME` by itself.
func NewCmdExplain(streams genericiooptions.IOStreams) *cobra.Command {
	shared := &explainOptions{IOStreams: streams}
	shared.cluster = &clusterOptions{}
	pod, node, pool := NewExplainPodOptions(shared), NewExplainNodeOptions(shared), NewExplainNodePoolOptions(shared)
	cmd := &cobra.Command{
		Use:   "explain (pod NAME | WORKLOAD/NAME | node NAME | nodepool NAME | TYPE/NAME)",
		Short: "Explain a pod, a node or a NodePool",
		Long: templates.LongDesc(`
			Explain a pod: its CPU time, its memory and kills, where it was placed. Of a workload,
			such as deploy/web, the pods that look worst.

			Explain a node: what is wrong with the node itself, and what keeps it from being removed.

			Explain a NodePool of Karpenter: what keeps it from shrinking.`),
		Example: templates.Examples(`
			# Why was this pod killed? A recorded node, embedded in the plugin
			kubectl noderes explain pod oom --from demo

			# A bundle, as JSON
			kubectl noderes explain pod/web-0 -n shop --from node.tar.gz -o json`),
		ValidArgsFunction: completeTypes(shared, pod),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			resource, _, ok := strings.Cut(args[0], "/")
			switch kind := resourceKind(resource); {
			case (kind == kindPod || isWorkload(resource)) && ok:
				if f := cmd.Flags().Lookup("karpenter-version"); f.Changed {
					return usageErrorf(cmd, "--karpenter-version is for nodes and nodepools")
				}
				return pod.execute(cmd, args)
			case kind == kindNode && ok:
				return node.execute(cmd, args)
			case kind == kindNodePool && ok:
				return pool.execute(cmd, args)
			case ok:
				return fmt.Errorf("%q: only pods, workloads, nodes and nodepools can be explained, not %q", args[0], resource)
			default:
				return fmt.Errorf("%q: say what it is: pod NAME, node NAME, nodepool NAME, or TYPE/NAME", args[0])
			}
		},
	}
	shared.sourceOptions.addFlags(cmd)
	shared.cluster.addFlags(cmd)
	shared.outputOptions.addFlags(cmd)
	pod.addFlags(cmd)
	shared.karpenter.addFlags(cmd)
	cmd.AddCommand(newCmdExplainPod(pod), newCmdExplainNode(node), newCmdExplainNodePool(pool))
	return cmd
}

type resourceType string

const (
	kindPod      resourceType = "pod"
	kindNode     resourceType = "node"
	kindNodePool resourceType = "nodepool"
)

// resourceKind knows the names and short names the API has for a type.
func resourceKind(name string) resourceType {
	switch strings.ToLower(name) {
	case "po", "pod", "pods":
		return kindPod
	case "no", "node", "nodes":
		return kindNode
	case "nodepool", "nodepools", "nodepool.karpenter.sh", "nodepools.karpenter.sh":
		return kindNodePool
	}
	return ""
}

// resourceNames takes NAME and TYPE/NAME arguments of one type.
func resourceNames(kind resourceType, args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		if !ok {
			name = arg
		} else if resourceKind(resource) != kind {
			return nil, fmt.Errorf("%q is no %s: name subjects of one type at a time", arg, kind)
		}
		if name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is no name of a %s", arg, kind)
		}
		names = append(names, name)
	}
	return names, nil
}

func usageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s\nSee '%s --help' for usage and examples", fmt.Sprintf(format, args...), cmd.CommandPath())
}
