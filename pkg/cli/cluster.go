package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // what a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// clusterOptions are kubectl's own flags of a connection, and how long to read.
// -n is each command's own.
type clusterOptions struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	timeout    time.Duration
	access     accessOptions
	errOut     func() io.Writer
}

func (o *clusterOptions) addFlags(cmd *cobra.Command) {
	o.addConnectionFlags(cmd)
	o.access.addFlags(cmd)
	o.errOut = cmd.ErrOrStderr
}

// addConnectionFlags are for who does not read nodes.
func (o *clusterOptions) addConnectionFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use for CLI requests.")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.LongName = ""
	names.AuthOverrideFlags.Username.LongName = "" // kubectl has neither of its own accord
	names.AuthOverrideFlags.Password.LongName = ""
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&o.overrides, flags, names)
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "How long to read from the cluster; what is not there by then is missing in the report. Each request is bounded by --request-timeout")
	mustRegister(cmd, "timeout", cobra.NoFileCompletions)
}

func (o *clusterOptions) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &o.overrides)
}

// namespace is the one asked for, else that of the kubeconfig's context.
func (o *clusterOptions) namespace(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	name, _, err := o.config().Namespace()
	return name, configured(err)
}

// read collects from the cluster, until a signal ends it.
func (o *clusterOptions) read(ctx context.Context, want collect.Request) (*snapshot.Snapshot, map[string]error, *collect.Client, error) {
	if o.timeout <= 0 {
		return nil, nil, nil, fmt.Errorf("--timeout=%s is no time to read in", o.timeout)
	}
	if err := o.access.apply(&want, o.timeout); err != nil {
		return nil, nil, nil, err
	}
	client, err := o.client()
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.access.dryRun == "client" || o.access.dryRun == "server" {
		text, err := collect.DryRun(ctx, client, want, o.access.dryRun == "server")
		if err != nil {
			return nil, nil, nil, err
		}
		return nil, nil, nil, dryRunOutput{text}
	}
	want.NodePods.Warn = func(text string) { fmt.Fprintln(o.errOut(), "warning: "+render.Escape(text)) }
	want.Tool, want.Now = "kubectl-noderes "+versionInfo().Version, time.Now()
	s, failed, err := collect.Collect(ctx, client, want)
	return s, failed, client, err
}

var errNoCluster = errors.New("no cluster is configured: give a kubeconfig, or a recorded bundle with --from=PATH, or try --from=demo")

// configured says in our words that there is no kubeconfig.
func configured(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errNoCluster
	}
	return err
}

func (o *clusterOptions) client() (*collect.Client, error) {
	config, err := o.config().ClientConfig()
	if err != nil {
		return nil, configured(err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// A redirect would carry a request for one node to where the answer says.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := collect.NewClient(client, base)
	c.AllowExec(config)
	return c, nil
}
