// Package cli is the command line: one file per command, each in kubectl's
// shape of options, Complete, Validate and Run. Nothing below it prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/noderes/kubectl-noderes/pkg/render"
)

// Exit codes of the plugin.
const (
	ExitReport  = 0 // a report was made
	ExitError   = 1 // an error, or no report
	ExitFinding = 2 // a report with a finding of the level that --fail-on names
)

// errFinding ends a command whose report holds what --fail-on asked for.
var errFinding = errors.New("a finding of the level of --fail-on")

// Main runs the command line and returns its exit code.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	cmd := NewCmdNoderes(streams)
	cmd.SetArgs(args)
	var dry dryRunOutput
	switch err := cmd.ExecuteContext(ctx); {
	case err == nil:
		return ExitReport
	case errors.As(err, &dry):
		fmt.Fprint(streams.Out, dry.text)
		return ExitReport
	case errors.Is(err, errFinding):
		return ExitFinding
	default:
		printError(streams.ErrOut, err)
		return ExitError
	}
}

// printError writes an error, whose text may quote what a stranger wrote.
func printError(w io.Writer, err error) {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, line := range lines {
		lines[i] = render.Escape(line)
	}
	fmt.Fprintln(w, "error: "+strings.Join(lines, "\n"))
}
