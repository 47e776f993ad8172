package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/noderes/kubectl-noderes/pkg/render"
)

// Set by the linker in releases: a semantic version with v, the commit's hash
// and the commit's date in RFC 3339.
var version, commit, date string

// replayProfile names the components whose rules the plugin applies.
const replayProfile = "kubelet 1.34-1.37"

// VersionInfo is what `version` shows.
type VersionInfo struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	Date      string `json:"date,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Replay is the range of components whose rules are applied.
	Replay string `json:"replay"`
}

// VersionOptions are those of `version`.
type VersionOptions struct {
	output string
	genericiooptions.IOStreams
}

// NewCmdVersion shows the plugin's version.
func NewCmdVersion(streams genericiooptions.IOStreams) *cobra.Command {
	o := &VersionOptions{output: formatText, IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the plugin's version and whose rules it applies",
		Example: templates.Examples(`
			kubectl noderes version -o json`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", o.output, "Output format: text, json or yaml")
	mustRegister(cmd, "output", cobra.FixedCompletions([]string{formatText, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Validate refuses unknown formats.
func (o *VersionOptions) Validate() error {
	return validateFormat(o.output, formatText, formatJSON, formatYAML)
}

// Run prints the version.
func (o *VersionOptions) Run(context.Context) error {
	info := versionInfo()
	switch o.output {
	case formatJSON:
		return render.JSON(o.Out, info)
	case formatYAML:
		return render.YAML(o.Out, info)
	}
	built := ""
	if info.Commit != "" {
		built = fmt.Sprintf(" (commit %s, %s)", info.Commit, info.Date)
	}
	_, err := fmt.Fprintf(o.Out, "kubectl-noderes %s%s\n%s %s\nreplays %s\n", info.Version, built, info.GoVersion, info.Platform, info.Replay)
	return err
}

func versionInfo() VersionInfo {
	info := VersionInfo{
		Version:   version,
		Commit:    commit,
		Date:      date,
		GoVersion: runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
		Replay:    replayProfile,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && info.Commit == "":
			info.Commit = s.Value
		case s.Key == "vcs.time" && info.Date == "":
			info.Date = s.Value
		}
	}
	return info
}
