package render

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// wellFormed holds for whatever a report says.
func wellFormed(t rapid.TB, out string, s Style) {
	t.Helper()
	if !strings.HasSuffix(out, "\n") || strings.HasSuffix(out, "\n\n") {
		t.Fatalf("not one final newline: %q", out)
	}
	allowed := "\n"
	if s.Color {
		allowed += "\x1b"
	}
	noControls(t, out, allowed)
	if bare := stripColor(out); strings.Contains(bare, "\x1b") {
		t.Fatalf("an escape that sets no colour: %q", out)
	}
	for line := range strings.Lines(stripColor(out)) {
		line = strings.TrimSuffix(line, "\n")
		if line != strings.TrimRightFunc(line, unicode.IsSpace) {
			t.Fatalf("trailing blank: %q", line)
		}
	}
}

// stripColor takes the select-graphic-rendition sequences away.
func stripColor(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
		if end < 0 || after[end] != 'm' {
			b.WriteString("\x1b[")
			end = -1
		}
		s = after[end+1:]
	}
}

func anyStyle() *rapid.Generator[Style] {
	return rapid.Custom(func(t *rapid.T) Style {
		return Style{Color: rapid.Bool().Draw(t, "color"), Unicode: rapid.Bool().Draw(t, "unicode"),
			Width: rapid.OneOf(rapid.Just(0), rapid.IntRange(-1, 250)).Draw(t, "width")}
	})
}

func TestTextOfAnyReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, anyBytes()}
		reports := []report.Report{d.report()}
		if d.bool() {
			reports = append(reports, d.report())
		}
		s := anyStyle().Draw(t, "style")
		text := func(s Style) string {
			return written(t, func(w *bytes.Buffer) error { return Text(w, reports, s) })
		}
		out := text(s)
		wellFormed(t, out, s)
		if out != text(s) {
			t.Fatal("two outputs for one report")
		}
		// Colour adds nothing but colour.
		s.Color = !s.Color
		if plain := stripColor(text(s)); plain != stripColor(out) {
			t.Fatalf("colour changes the text:\n%s\n%s", plain, stripColor(out))
		}
	})
}

// TestNothingLost: whatever the width, each word of the report is there.
func TestNothingLost(t *testing.T) {
	squeeze := func(s string) string { return strings.Join(strings.Fields(stripColor(s)), "") }
	word := rapid.StringMatching(`[a-z]{1,8}|[가-힣]{1,4}|漢字|e\x{301}tat|👩‍🚀`)
	prose := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 1, 40).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		s := Style{Width: rapid.IntRange(40, 140).Draw(t, "width"), Unicode: true, Color: rapid.Bool().Draw(t, "color")}
		p := func() string { return prose.Draw(t, "prose") }
		r := bareReport()
		f := report.Finding{Severity: report.Warning, Code: "code", Summary: p(), Arithmetic: p(),
			Because:  []report.Evidence{{Field: "field", Value: "1", Source: "api:x", Means: p()}, {Field: "field", Value: p()}},
			Remedies: []report.Remedy{{Summary: p(), Effect: p(), Caution: p()}}, Subject: report.Subject{Kind: "Node", Name: "n1"}}
		r.Findings = []report.Finding{f}
		r.Gaps = []report.Gap{{Wanted: p(), Reason: p(), Costs: p(), Fix: p()}}
		out := written(t, func(w *bytes.Buffer) error { return Text(w, []report.Report{r}, s) })
		wellFormed(t, out, s)
		for line := range strings.Lines(out) {
			if cells := lipgloss.Width(strings.TrimSuffix(line, "\n")); cells > min(s.Width, 100) {
				t.Fatalf("%d cells at width %d: %q", cells, s.Width, line)
			}
		}
		all := squeeze(out)
		g := r.Gaps[0]
		for _, want := range []string{f.Summary, f.Arithmetic, f.Because[0].Means, f.Because[1].Value, f.Remedies[0].Summary, f.Remedies[0].Effect,
			f.Remedies[0].Caution, g.Wanted, g.Reason, g.Costs, g.Fix} {
			if !strings.Contains(all, squeeze(want)) {
				t.Fatalf("lost %q:\n%s", want, out)
			}
		}
	})
}

// TestFoldedPathsAreInLegend: a shortened source and the legend give the full one.
func TestFoldedPathsAreInLegend(t *testing.T) {
	r := oomReport()
	r.Findings[0].Because = append(r.Findings[0].Because, report.Evidence{Source: "node:/sys/fs/cgroup/kubepods.slice/no-resource-names-this-directory.slice/cpu.stat", Value: "1"})
	r.Resources.Containers = append(r.Resources.Containers, report.ResourceLevel{Name: "app", Level: "container", Cgroup: "/sys/fs/cgroup/kubepods.slice/second-app.scope"})
	out := written(t, func(w *bytes.Buffer) error { return Text(w, []report.Report{r}, Style{Width: 80}) })
	_, legend, _ := strings.Cut(out, "\nPATHS\n")
	full := map[string]string{}
	for line := range strings.Lines(legend) {
		if cells := strings.Fields(line); len(cells) == 2 {
			full[cells[0]] = cells[1]
		}
	}
	for _, label := range []string{"<app>", "<app-2>", "<pod>", "<kubepods>", "<dir>"} {
		if full[label] == "" {
			t.Errorf("no %s in the legend:\n%s", label, legend)
		}
	}
	for _, f := range r.Findings {
		for _, e := range f.Because {
			shown := e.Source
			for label, dir := range full {
				if rest, ok := strings.CutPrefix(e.Source, dir+"/"); ok && !strings.Contains(rest, "/") {
					shown = label + "/" + rest
				}
			}
			if !strings.Contains(out, shown) {
				t.Errorf("%s is not shown as %s:\n%s", e.Source, shown, out)
			}
			if strings.HasPrefix(e.Source, "node:") && shown == e.Source {
				t.Errorf("%s is not shortened", e.Source)
			}
		}
	}
}

func TestAbsentZeroUnlimited(t *testing.T) {
	r := bareReport()
	r.Resources = &report.Resources{Containers: []report.ResourceLevel{
		{Name: "absent", Level: "pod", Memory: &report.MemoryFacts{Min: &report.Limit{Value: 1}}},
		{Name: "zero", Level: "pod", Memory: &report.MemoryFacts{Max: &report.Limit{}, Min: &report.Limit{Value: 1}}},
		{Name: "unlimited", Level: "pod", Memory: &report.MemoryFacts{Max: &report.Limit{Unlimited: true}, Min: &report.Limit{Value: 1}}},
	}}
	out := written(t, func(w *bytes.Buffer) error { return Text(w, []report.Report{r}, Style{}) })
	for _, want := range []string{"pod absent ? 1", "pod zero 0 1", "pod unlimited unlimited 1"} {
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.Join(strings.Fields(line), " ") == want
		}
		if !found {
			t.Errorf("no row %q in\n%s", want, out)
		}
	}
}

func TestNoReports(t *testing.T) {
	if out := written(t, func(w *bytes.Buffer) error { return Text(w, nil, Style{}) }); out != "" {
		t.Errorf("%q", out)
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriteErrors(t *testing.T) {
	r := bareReport()
	for name, err := range map[string]error{
		"Text": Text(brokenPipe{}, []report.Report{r}, Style{}), "JSON": JSON(brokenPipe{}, r), "YAML": YAML(brokenPipe{}, r),
		"JSONPath": JSONPath(brokenPipe{}, r, "{.kind}"), "List": List(brokenPipe{}, []string{"a"}, nil, Style{}),
	} {
		if !errors.Is(err, errPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
