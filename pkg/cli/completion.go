package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
)

// completer is the executable that kubectl asks for the plugin's completions.
const completer = "kubectl_complete-noderes"

const completionNote = `
kubectl asks a plugin for completions by an executable called
kubectl_complete-noderes on the PATH, which it runs with the words typed so far.
The plugin is that executable when it is called by that name. krew links only
the plugin, so after an installation by krew one link is to be made by hand; it
stays right when the plugin is upgraded, and is of no effect without it:

	cd "${KREW_ROOT:-$HOME/.krew}/bin" && ln -s kubectl-noderes kubectl_complete-noderes

Without krew put the script kubectl_complete-noderes of the release archive
beside the plugin, or make the same link there. On Windows copy
kubectl-noderes.exe to kubectl_complete-noderes.exe in a folder of the PATH.
`

// Words are the words of the command line, argv without the program. By the
// completer's name they are a request for completions.
func Words(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if strings.TrimSuffix(filepath.Base(argv[0]), ".exe") == completer {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// addCompletion adds cobra's completion command, and how kubectl uses it.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Long += completionNote
		}
	}
}

// mustRegister panics on a flag that does not exist, which no input can cause.
func mustRegister(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

func completeFrom(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := []cobra.Completion{"demo"}
	for _, r := range demo.List() {
		names = append(names, "demo/"+r.Name)
	}
	if names = withPrefix(names, toComplete); len(names) > 0 {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func completeTypes(shared *explainOptions, pod *ExplainPodOptions) cobra.CompletionFunc {
	pods, nodes := completePods(&shared.sourceOptions, &pod.namespaceFlag), completeNodes(&shared.sourceOptions)
	pools := completeNodePools(&shared.sourceOptions)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		resource, _, ok := strings.Cut(toComplete, "/")
		switch kind := resourceKind(resource); {
		case ok && kind == kindPod:
			return pods(cmd, args, toComplete)
		case ok && kind == kindNode:
			return nodes(cmd, args, toComplete)
		case ok && kind == kindNodePool:
			return pools(cmd, args, toComplete)
		}
		return withPrefix([]cobra.Completion{"pod/", "node/", "nodepool/"}, toComplete), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

func completePods(o *sourceOptions, namespace *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		for _, p := range o.pods() {
			if *namespace == "" || *namespace == p.Namespace {
				names = append(names, p.Name)
			}
		}
		return completeNames(names, args, toComplete)
	}
}

func completeNodes(o *sourceOptions) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if o.validate() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := o.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeNames(s.NodeNames(), args, toComplete)
	}
}

func completeNodePools(o *sourceOptions) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if o.validate() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := o.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := diagnose.NodePools(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeNames(names, args, toComplete)
	}
}

func completeNamespaces(o *sourceOptions) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		for _, p := range o.pods() {
			names = append(names, p.Namespace)
		}
		return completeNames(names, nil, toComplete)
	}
}

func completeContainers(o *ExplainPodOptions) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		named, err := resourceNames(kindPod, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, p := range o.pods() {
			if ns := o.namespaceFlag; slices.Contains(named, p.Name) && (ns == "" || ns == p.Namespace) {
				names = append(names, containerNames(p)...)
			}
		}
		return completeNames(names, nil, toComplete)
	}
}

func containerNames(p corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

// pods are those of --from; completion has nobody to tell about an error.
func (o *sourceOptions) pods() []corev1.Pod {
	if o.validate() != nil {
		return nil
	}
	s, err := o.open()
	if err != nil {
		return nil
	}
	pods, err := s.Pods()
	if err != nil {
		return nil
	}
	return pods
}

// completeNames offers each name once, save those already given. A TYPE/ before
// the word is kept.
func completeNames(names, given []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	prefix := ""
	if resource, _, ok := strings.Cut(toComplete, "/"); ok {
		prefix = resource + "/"
	}
	seen := map[string]bool{}
	for _, g := range given {
		seen[g] = true
	}
	var out []cobra.Completion
	for _, name := range names {
		if name = prefix + name; !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return withPrefix(out, toComplete), cobra.ShellCompDirectiveNoFileComp
}

func withPrefix(names []cobra.Completion, prefix string) []cobra.Completion {
	var out []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}
