package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// WhatIfOptions are those of `whatif`.
type WhatIfOptions struct {
	sourceOptions
	outputOptions
	genericiooptions.IOStreams
	namespaceFlag string

	files    []string
	nodes    []string
	selector string
	set      []string

	pods     []string
	settings diagnose.Settings
}

// NewWhatIfOptions are the defaults.
func NewWhatIfOptions(streams genericiooptions.IOStreams) *WhatIfOptions {
	return &WhatIfOptions{IOStreams: streams}
}

// NewCmdWhatIf asks whether a node's kubelet would admit a pod.
func NewCmdWhatIf(streams genericiooptions.IOStreams) *cobra.Command {
	o := NewWhatIfOptions(streams)
	cmd := &cobra.Command{
		Use:   "whatif (-f FILE | pod/NAME) (--node NODE | -l SELECTOR)",
		Short: "Say whether a node's kubelet would admit a pod, and with which CPUs and memory",
		Long: templates.LongDesc(`
			Say whether the kubelet of a node would admit a new pod now, with which CPUs and on
			which NUMA nodes; or else the kubelet's reason, the arithmetic behind it and the nearest
			changes that would be admitted, each found by running it.

			The kubelet's CPU, Memory and Topology Manager are replayed on the node's checkpoints,
			then its own fit check. The pod is a file (pods or workloads with a pod template, YAML or
			JSON, several documents) or another one like a pod of the bundle. It is defaulted as the
			API server does; the cluster's webhooks and LimitRanges are not applied. Whether the
			scheduler would choose the node is not asked.

			With --set the kubelet is first started with other settings, and the node's pods are
			admitted again in the order of their creation: on its checkpoints where it takes them,
			else as after their removal.`),
		Example: templates.Examples(`
			# Would this pod be admitted there?
			kubectl noderes whatif -f pod.yaml --node worker-1 --from ./bundle

			# One more like it, on every node of a pool
			kubectl noderes whatif pod/web-0 -n shop -l pool=pinned --from ./bundle

			# Under another policy and a newer kubelet
			kubectl noderes whatif -f pod.yaml --node worker-1 --from ./bundle --set topologyManagerPolicy=best-effort --set kubeletVersion=1.37

			# Other options and other reserved CPUs, the pod from standard input
			kubectl noderes whatif -f - --node worker-1 --from ./bundle --set cpuManagerPolicyOptions.full-pcpus-only=true,reservedSystemCPUs=0-1`),
		ValidArgsFunction: completeTemplate(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd, args); err != nil {
				return err
			}
			if err := o.Validate(cmd); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.sourceOptions.addFlags(cmd)
	o.outputOptions.addFlags(cmd)
	addNamespaceFlag(cmd, &o.namespaceFlag)
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "File with the pod, or with a workload that has a pod template; - is standard input")
	flags.StringSliceVar(&o.nodes, "node", nil, "Node to ask; several with commas, or repeated")
	flags.StringVarP(&o.selector, "selector", "l", "", "Ask all nodes whose labels match")
	flags.StringArrayVar(&o.set, "set", nil, "Suppose this setting of the kubelet, FIELD=VALUE or FIELD.KEY=VALUE of its configuration, or kubeletVersion=1.MINOR; may be repeated")
	mustRegister(cmd, "namespace", completeNamespaces(&o.sourceOptions))
	mustRegister(cmd, "node", completeNodes(&o.sourceOptions))
	mustRegister(cmd, "selector", cobra.NoFileCompletions)
	mustRegister(cmd, "set", completeSettings)
	return cmd
}

// completeTemplate offers pods of the bundle as pod/NAME.
func completeTemplate(o *WhatIfOptions) cobra.CompletionFunc {
	pods := completePods(&o.sourceOptions, &o.namespaceFlag)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if resource, _, ok := strings.Cut(toComplete, "/"); ok && resourceKind(resource) == kindPod {
			return pods(cmd, args, toComplete)
		}
		return withPrefix([]cobra.Completion{"pod/"}, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func completeSettings(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, field := range diagnose.SettableFields() {
		if !strings.HasSuffix(field, ".") {
			field += "="
		}
		out = append(out, field)
	}
	return withPrefix(out, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Complete fills what arguments and flags imply.
func (o *WhatIfOptions) Complete(_ *cobra.Command, args []string) error {
	if err := o.sourceOptions.complete(); err != nil {
		return err
	}
	for _, arg := range args {
		if !strings.Contains(arg, "/") {
			return fmt.Errorf("%q: say what it is: pod/NAME, or give a file with -f", arg)
		}
	}
	var err error
	if o.pods, err = resourceNames(kindPod, args); err != nil {
		return err
	}
	o.settings, err = diagnose.ParseSettings(o.set)
	if err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	return nil
}

// Validate refuses options that cannot be answered.
func (o *WhatIfOptions) Validate(cmd *cobra.Command) error {
	if err := o.outputOptions.validate(); err != nil {
		return err
	}
	if err := o.sourceOptions.validate(); err != nil {
		return err
	}
	_, isDemo := o.recording()
	switch {
	case len(o.files) == 0 && len(o.pods) == 0:
		return usageErrorf(cmd, "give the pod as -f FILE or as pod/NAME")
	case len(o.nodes) > 0 && o.selector != "":
		return usageErrorf(cmd, "--node and --selector exclude each other")
	case len(o.nodes) == 0 && o.selector == "" && !isDemo:
		return usageErrorf(cmd, "name the node to ask with --node, or several with --selector")
	}
	return nil
}

// Run asks about each pod.
func (o *WhatIfOptions) Run(ctx context.Context) error {
	s, err := o.open()
	if err != nil {
		return err
	}
	nodes, err := o.nodeNames(s)
	if err != nil {
		return err
	}
	pods, err := o.templates(s)
	if err != nil {
		return err
	}
	var reports []report.Report
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := diagnose.WhatIf(s, pod, nodes, diagnose.WhatIfOptions{Options: diagnose.Options{At: o.at}, Set: o.settings})
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if err := o.write(o.Out, report.WhatIfReport, reports, len(pods) > 1); err != nil {
		return err
	}
	return o.checkFailOn(reports)
}

func (o *WhatIfOptions) nodeNames(s *snapshot.Snapshot) ([]string, error) {
	if o.selector != "" {
		nodes, err := diagnose.SelectNodes(s, o.selector)
		if err == nil && len(nodes) == 0 {
			err = fmt.Errorf("no node of the bundle has labels that match %q", o.selector)
		}
		return nodes, err
	}
	if name, isDemo := o.recording(); isDemo && len(o.nodes) == 0 {
		recording, err := demo.Find(name)
		if err != nil {
			return nil, err
		}
		return []string{recording.Node}, nil
	}
	var names []string
	seen := map[string]bool{}
	for _, name := range o.nodes {
		name = strings.TrimPrefix(name, "node/")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// maxManifest bounds a file with pods.
const maxManifest = 4 << 20

func (o *WhatIfOptions) templates(s *snapshot.Snapshot) ([]diagnose.Template, error) {
	var out []diagnose.Template
	for _, name := range o.files {
		data, err := o.read(name)
		if err != nil {
			return nil, err
		}
		found, err := diagnose.Templates(data, "file:"+name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if namespace := o.namespaceFlag; namespace != "" {
			for _, t := range found {
				t.Namespace = namespace
			}
		}
		out = append(out, found...)
	}
	for _, name := range o.pods {
		t, err := diagnose.PodTemplate(s, o.namespaceFlag, name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (o *WhatIfOptions) read(name string) ([]byte, error) {
	in := o.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = errors.New("larger than 4 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
