package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/moby/term"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/noderes/kubectl-noderes/pkg/render"
	"github.com/noderes/kubectl-noderes/pkg/report"
)

const (
	formatText     = "text"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatJSONPath = "jsonpath"

	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// outputOptions say how reports are shown and which of them fail.
type outputOptions struct {
	output string
	color  string
	failOn string
}

func (o *outputOptions) addFlags(cmd *cobra.Command) {
	o.addFormatFlags(cmd)
	cmd.PersistentFlags().StringVar(&o.failOn, "fail-on", "", "Exit with status 2 if a finding is at least this grave: critical, warning or info")
	mustRegister(cmd, "fail-on", cobra.FixedCompletions(severityNames(), cobra.ShellCompDirectiveNoFileComp))
}

// addFormatFlags is for what has no findings.
func (o *outputOptions) addFormatFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVarP(&o.output, "output", "o", formatText, "Output format: text, json, yaml or jsonpath=TEMPLATE")
	flags.StringVar(&o.color, "color", colorAuto, "Colour text output: auto, always or never; auto obeys NO_COLOR and colours only a terminal")
	mustRegister(cmd, "output", cobra.FixedCompletions([]string{formatText, formatJSON, formatYAML, formatJSONPath + "="}, cobra.ShellCompDirectiveNoFileComp))
	mustRegister(cmd, "color", cobra.FixedCompletions([]string{colorAuto, colorAlways, colorNever}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *outputOptions) validate() error {
	if err := validateFormat(o.output, formatText, formatJSON, formatYAML, formatJSONPath); err != nil {
		return err
	}
	if !slices.Contains([]string{colorAuto, colorAlways, colorNever}, o.color) {
		return fmt.Errorf("--color=%q is none of auto, always, never", o.color)
	}
	if o.failOn != "" && !slices.Contains(severityNames(), o.failOn) {
		return fmt.Errorf("--fail-on=%q is none of %s", o.failOn, strings.Join(severityNames(), ", "))
	}
	return nil
}

// formatError refuses an output format in kubectl's words.
type formatError struct {
	output  string
	allowed []string
}

func (e *formatError) Error() string {
	return fmt.Sprintf("unable to match a printer suitable for the output format %q, allowed formats are: %s", e.output, strings.Join(slices.Sorted(slices.Values(e.allowed)), ","))
}

// validateFormat refuses an output format with the words kubectl uses.
func validateFormat(output string, allowed ...string) error {
	name, template, hasTemplate := strings.Cut(output, "=")
	if !slices.Contains(allowed, name) || (hasTemplate && name != formatJSONPath) {
		return &formatError{output, allowed}
	}
	if name == formatJSONPath && template == "" {
		return fmt.Errorf("template format specified but no template given: use --output=%s=TEMPLATE", formatJSONPath)
	}
	return nil
}

// write shows reports of one kind as one document: the bare report if one
// subject was asked about, else a list.
func (o *outputOptions) write(w io.Writer, kind report.Kind, reports []report.Report, list bool) error {
	var document any = report.NewList(kind, reports)
	if !list && len(reports) == 1 {
		document = reports[0]
	}
	return o.document(w, document, func(w io.Writer) error { return render.Text(w, reports, o.style(w)) })
}

// document shows one document in the format asked for.
func (o *outputOptions) document(w io.Writer, document any, text func(io.Writer) error) error {
	format, template, _ := strings.Cut(o.output, "=")
	switch format {
	case formatJSON:
		return render.JSON(w, document)
	case formatYAML:
		return render.YAML(w, document)
	case formatJSONPath:
		return render.JSONPath(w, document, template)
	default:
		return text(w)
	}
}

func (o *outputOptions) style(w io.Writer) render.Style {
	return render.Style{
		Color:   o.color == colorAlways || o.color == colorAuto && printers.AllowsColorOutput(w),
		Width:   terminalWidth(w),
		Unicode: unicodeLocale(os.Getenv),
	}
}

// checkFailOn is errFinding if a report holds a finding as grave as asked for.
func (o *outputOptions) checkFailOn(reports []report.Report) error {
	if o.failOn == "" {
		return nil
	}
	threshold := report.Severity(o.failOn).Rank()
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity.Rank() <= threshold {
				return errFinding
			}
		}
	}
	return nil
}

func severityNames() []string {
	var names []string
	for _, s := range report.Severities() {
		names = append(names, string(s))
	}
	return names
}

// terminalWidth is in columns, 0 where w is no terminal.
func terminalWidth(w io.Writer) int {
	fd, isTerminal := term.GetFdInfo(w)
	if !isTerminal {
		return 0
	}
	size, err := term.GetWinsize(fd)
	if err != nil {
		return 0
	}
	return int(size.Width)
}

// unicodeLocale says whether the locale's character set is UTF-8. The first
// variable that is set decides, as in POSIX setlocale.
func unicodeLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
