package cli

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/collect/nodepod"
	"github.com/noderes/kubectl-noderes/pkg/collect/reader"
)

// imageVariable names the image of node pods where no flag does.
const imageVariable = "NODERES_NODE_POD_IMAGE"

// accessOptions bound how a cluster is read, and say how node pods are made.
type accessOptions struct {
	access     string
	pullPolicy string
	dryRun     string
	pods       collect.NodePods
}

var (
	accessValues = []string{string(collect.AccessAPI), string(collect.AccessExec), string(collect.AccessNode)}
	dryRunValues = []string{"none", "client", "server"}
	pullPolicies = []string{string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever)}
)

func (o *accessOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.access, "access", string(collect.AccessNode), "How a cluster may be read. One of: api, the API server and kubelets through it; exec, also the cgroups of the containers asked for, by commands run in them; node, also the node's files, by a pod that is made on it and deleted again")
	flags.DurationVar(&o.pods.Sample, "sample", 5*time.Second, "Time between the two readings of a node's counters, of which rates are made; 0 reads once")
	flags.StringVar(&o.pods.Namespace, "node-pod-namespace", nodepod.DefaultNamespace, "Namespace of the pod that reads a node's files; it must admit privileged ones")
	flags.StringVar(&o.pods.Image, "node-pod-image", "", "Image of that pod, with sh, cat, date, sleep and dmesg; by default that of $"+imageVariable+", else "+nodepod.DefaultImage)
	flags.StringVar(&o.pods.PullSecret, "node-pod-pull-secret", "", "Secret in that namespace to pull the image with")
	flags.StringVar(&o.pullPolicy, "node-pod-pull-policy", "", "When that image is pulled: Always, IfNotPresent or Never")
	flags.StringVar(&o.pods.PriorityClass, "node-pod-priority-class", "", "Priority class of that pod")
	flags.BoolVar(&o.pods.Privileged, "privileged", false, "Make that pod privileged, for nodes that keep the kernel log or the kubelet's state from any other")
	flags.StringVar(&o.dryRun, "dry-run", "none", "Print the pod that would be made and the rights that it takes, and do nothing else. One of: none; client; server, which asks the API server whether it would admit it")
	for name, values := range map[string][]string{"access": accessValues, "dry-run": dryRunValues, "node-pod-pull-policy": pullPolicies} {
		mustRegister(cmd, name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, name := range []string{"sample", "node-pod-namespace", "node-pod-image", "node-pod-pull-secret", "node-pod-priority-class"} {
		mustRegister(cmd, name, cobra.NoFileCompletions)
	}
}

// apply fills a request. A command without these flags reads no node.
func (o *accessOptions) apply(want *collect.Request, timeout time.Duration) error {
	if o.access == "" {
		want.Access = collect.AccessAPI
		return nil
	}
	pods := o.pods
	if pods.Image == "" {
		pods.Image = os.Getenv(imageVariable)
	}
	if pods.Image == "" {
		pods.Image = nodepod.DefaultImage
	}
	switch {
	case !slices.Contains(accessValues, o.access):
		return fmt.Errorf("--access=%q is none of api, exec, node", o.access)
	case !slices.Contains(dryRunValues, o.dryRun):
		return fmt.Errorf("--dry-run=%q is none of none, client, server", o.dryRun)
	case o.pullPolicy != "" && !slices.Contains(pullPolicies, o.pullPolicy):
		return fmt.Errorf("--node-pod-pull-policy=%q is none of Always, IfNotPresent, Never", o.pullPolicy)
	case pods.Namespace == "" || len(content.IsPathSegmentName(pods.Namespace)) > 0:
		return fmt.Errorf("--node-pod-namespace=%q is no name of a namespace", pods.Namespace)
	case pods.Sample < 0 || pods.Sample > reader.MaxSample || pods.Sample%time.Second != 0:
		return fmt.Errorf("--sample=%s is not a number of seconds up to %s", pods.Sample, reader.MaxSample)
	case pods.Sample > 0 && pods.Sample >= timeout && o.access != string(collect.AccessAPI):
		return fmt.Errorf("--sample=%s does not fit into --timeout=%s", pods.Sample, timeout)
	}
	pods.PullPolicy = corev1.PullPolicy(o.pullPolicy)
	pods.RunID = func() string { return rand.String(8) }
	want.Access, want.NodePods = collect.Access(o.access), pods
	return nil
}

// dryRunOutput ends a command that was to print what it would do.
type dryRunOutput struct{ text string }

func (dryRunOutput) Error() string { return "nothing was done: --dry-run" }
