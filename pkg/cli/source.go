package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/demo"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// sourceOptions say which snapshot is asked, a bundle's or a live cluster's, and
// for which moment.
type sourceOptions struct {
	from   string
	atFlag string
	// cluster is nil where only a bundle can be asked.
	cluster *clusterOptions

	at time.Time
}

func (o *sourceOptions) addFlags(cmd *cobra.Command) {
	o.addFromFlag(cmd)
	cmd.PersistentFlags().StringVar(&o.atFlag, "at", "", "Answer as of this moment (RFC 3339) instead of the one the bundle was captured at; data stay as they are")
	mustRegister(cmd, "at", cobra.NoFileCompletions)
}

// addFromFlag is for what does not depend on the moment.
func (o *sourceOptions) addFromFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&o.from, "from", "", "Bundle to read instead of a cluster: a folder, a .tar.gz, or demo or demo/NAME for an embedded recording (a folder called demo is ./demo)")
	mustRegister(cmd, "from", completeFrom)
}

func (o *sourceOptions) complete() error {
	if o.atFlag == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, o.atFlag)
	if err != nil {
		return fmt.Errorf("--at=%q is not a time in RFC 3339 form, such as 2026-11-30T07:07:47Z", o.atFlag)
	}
	o.at = at.UTC()
	return nil
}

var errNoSource = errors.New("this is not asked of a live cluster yet: give a recorded bundle with --from=PATH, or try --from=demo")

func (o *sourceOptions) validate() error {
	if o.from == "" && o.cluster == nil {
		return errNoSource
	}
	return nil
}

// recording is the embedded recording that --from names, if it names one.
func (o *sourceOptions) recording() (name string, ok bool) {
	if o.from == "demo" {
		return demo.Default, true
	}
	return strings.CutPrefix(o.from, "demo/")
}

// read is the snapshot that is asked: the bundle that --from names, else what is
// wanted of the cluster. Subjects that the cluster did not give have errors.
func (o *sourceOptions) read(ctx context.Context, want collect.Request) (*snapshot.Snapshot, map[string]error, error) {
	if o.from == "" {
		s, failed, _, err := o.cluster.read(ctx, want)
		return s, failed, err
	}
	s, err := o.open()
	return s, nil, err
}

func (o *sourceOptions) open() (*snapshot.Snapshot, error) {
	if name, ok := o.recording(); ok {
		return demo.Open(name)
	}
	return snapshot.Open(o.from)
}
