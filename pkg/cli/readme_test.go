package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	readme     = "../../README.md"
	flagsBegin = "<!-- flags: made from the commands by `make update-golden` -->\n"
	flagsEnd   = "<!-- end of flags -->\n"
)

// TestReadmeFlags keeps the table of flags true.
func TestReadmeFlags(t *testing.T) {
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), flagsBegin)
	got, after, okEnd := strings.Cut(rest, flagsEnd)
	if !ok || !okEnd {
		t.Fatalf("no section between %q and %q", flagsBegin, flagsEnd)
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	want := flagTable(NewCmdNoderes(streams))
	if *update {
		if err := os.WriteFile(readme, []byte(before+flagsBegin+want+flagsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the README's flags are not the commands' (-want +got):\n%s", diff)
	}
}

// flagTable is a row for each flag of our own commands, in their order.
func flagTable(root *cobra.Command) string {
	type row struct {
		flag     *pflag.Flag
		commands []string
	}
	var rows []*row
	byKey := map[string]*row{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			// pod and explain share flags, for `explain pod/NAME`.
			key := f.Name + f.Usage
			if byKey[key] == nil {
				byKey[key] = &row{flag: f}
				rows = append(rows, byKey[key])
			}
			byKey[key].commands = append(byKey[key].commands, strings.TrimPrefix(cmd.CommandPath(), commandName+" "))
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)

	var b strings.Builder
	b.WriteString("| flag | of | default | |\n|---|---|---|---|\n")
	for _, r := range rows {
		name := "`--" + r.flag.Name + "`"
		if r.flag.Shorthand != "" {
			name = "`-" + r.flag.Shorthand + "`, " + name
		}
		def := ""
		if r.flag.DefValue != "" {
			def = "`" + r.flag.DefValue + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, strings.Join(r.commands, "`, `"), def, r.flag.Usage)
	}
	return b.String()
}
