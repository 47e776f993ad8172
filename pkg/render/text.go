package render

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Text writes reports for reading: for each what was asked about, the findings
// with their evidence, the facts they refer to, the full paths of shortened
// sources and last what could not be read. Several reports are separated by a
// rule.
func Text(w io.Writer, reports []report.Report, s Style) error {
	p := page{style: s, palette: newPalette(s.Color)}
	for i, r := range reports {
		if i > 0 {
			p.blank()
			p.rule()
		}
		p.report(r)
	}
	return p.flush(w)
}

func ruleWidth(width int) int {
	if width <= 0 {
		return 80
	}
	return min(width, maxProse)
}

// page collects lines. No line ends in a blank.
type page struct {
	style   Style
	palette palette
	paths   paths
	// explained: the report has said what absent means.
	explained bool
	out       strings.Builder
}

func (p *page) flush(w io.Writer) error {
	_, err := io.WriteString(w, p.out.String())
	return err
}

func (p *page) blank() { p.out.WriteByte('\n') }

// line writes one line of escaped text in one style; blank text writes none.
func (p *page) line(indent int, style lipgloss.Style, text string) {
	if text = trimRight(text); text == "" {
		return
	}
	p.out.WriteString(strings.Repeat(" ", indent))
	p.out.WriteString(style.Render(text))
	p.out.WriteByte('\n')
}

// room is the width left for prose behind an indent: 0 is unlimited.
func (p *page) room(indent int) int {
	if p.style.prose() == 0 {
		return 0
	}
	const least = 8
	return max(least, p.style.prose()-indent)
}

// prose writes text of the report, wrapped.
func (p *page) prose(indent int, style lipgloss.Style, text string) {
	for _, line := range wrap(Escape(text), p.room(indent)) {
		p.line(indent, style, line)
	}
}

// labelled writes text of the report, wrapped, behind a label that takes width
// cells.
func (p *page) labelled(indent int, label string, width int, style lipgloss.Style, text string) {
	p.lines(indent, label, width, style, wrap(Escape(text), p.room(indent+width)))
}

// verbatim writes text that is to be copied: its own lines, never wrapped.
func (p *page) verbatim(indent int, label string, width int, style lipgloss.Style, text string) {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, trimRight(Escape(strings.TrimSuffix(line, "\n"))))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	p.lines(indent, label, width, style, lines)
}

func (p *page) lines(indent int, label string, width int, style lipgloss.Style, lines []string) {
	for i, line := range lines {
		switch {
		case i == 0:
			p.out.WriteString(strings.Repeat(" ", indent))
			p.out.WriteString(p.palette.faint.Render(label))
			if line != "" {
				p.out.WriteString(strings.Repeat(" ", width-lipgloss.Width(label)))
				p.out.WriteString(style.Render(line))
			}
			p.blank()
		case line == "":
			p.blank()
		default:
			p.line(indent+width, style, line)
		}
	}
}

// part is a piece of a heading, escaped.
type part struct {
	text  string
	style lipgloss.Style
}

// heading writes parts with separators, on as many lines as they need; lines
// after the first are indented. lead stands before the parts of the first.
func (p *page) heading(lead string, indent int, parts []part) {
	separator := p.style.separator()
	p.out.WriteString(lead)
	cells := lipgloss.Width(lead)
	first := true
	for _, part := range parts {
		text := strings.TrimSpace(part.text)
		if text == "" {
			continue
		}
		width := lipgloss.Width(text)
		switch {
		case first:
		case p.style.prose() > 0 && cells+lipgloss.Width(separator)+width > p.style.prose():
			p.out.WriteByte('\n')
			p.out.WriteString(strings.Repeat(" ", indent))
			cells = indent
		default:
			p.out.WriteString(p.palette.faint.Render(separator))
			cells += lipgloss.Width(separator)
		}
		p.out.WriteString(part.style.Render(text))
		cells += width
		first = false
	}
	p.blank()
}

// section opens a block of the report with its name and a remark.
func (p *page) section(name, remark string) {
	p.blank()
	p.out.WriteString(p.palette.strong.Render(name))
	if remark != "" {
		p.out.WriteString("  " + p.palette.faint.Render(remark))
	}
	p.blank()
}

func (p *page) report(r report.Report) {
	p.paths, p.explained = foldPaths(r, p.style), false
	p.subject(r)
	if len(r.Findings) == 0 {
		p.blank()
		p.line(0, p.palette.plain, "No findings.")
	}
	for _, f := range r.Findings {
		p.blank()
		p.finding(f, r)
	}
	p.whatIf(r.WhatIf)
	p.capacity(r.Capacity)
	p.budgets(r.Budgets)
	p.timeline(r.Timeline)
	if r.Resources != nil {
		p.resources(*r.Resources)
	}
	if r.Placement != nil {
		p.placement(*r.Placement)
	}
	p.legend()
	p.gaps(r.Gaps)
}

// subject writes what was asked about, when, and by whose rules.
func (p *page) subject(r report.Report) {
	name := kindNoun(r.Kind) + " " + qualified(r.Metadata.Namespace, r.Metadata.Name)
	if r.Metadata.Node != "" && r.Metadata.Node != r.Metadata.Name {
		name += " on " + Escape(r.Metadata.Node)
	}
	parts := []part{{name, p.palette.strong}}
	add := func(prefix, text string) {
		if text != "" {
			parts = append(parts, part{prefix + Escape(text), p.palette.plain})
		}
	}
	if r.Resources != nil {
		add("", r.Resources.QOSClass)
	}
	if !r.ObservedAt.IsZero() {
		add("observed ", rfc3339(r.ObservedAt))
	}
	p.heading("", 2, parts)

	parts = nil
	v := r.Versions
	add("kubelet ", v.Kubelet)
	add("kernel ", v.Kernel)
	add("", v.ContainerRuntime)
	add("karpenter ", v.Karpenter)
	add("replayed with ", v.Replay)
	if len(parts) > 0 {
		for i := range parts {
			parts[i].style = p.palette.faint
		}
		p.heading("", 2, parts)
	}
}

// gaps writes what could not be read, what that costs and what would mend it.
func (p *page) gaps(gaps []report.Gap) {
	if len(gaps) == 0 {
		return
	}
	p.section("GAPS", "what could not be read")
	const width = len("reason") + 2
	for _, g := range gaps {
		p.prose(2, p.palette.strong, g.Wanted)
		p.labelled(4, "reason", width, p.palette.plain, g.Reason)
		p.labelled(4, "costs", width, p.palette.plain, g.Costs)
		p.labelled(4, "fix", width, p.palette.command, g.Fix)
	}
}

// kindNoun gives the thing that a kind of report is about, escaped.
func kindNoun(k report.Kind) string { return lower(strings.TrimSuffix(string(k), "Report")) }

// lower escapes a kind and writes it as prose does.
func lower(kind string) string {
	if !utf8.ValidString(kind) {
		return Escape(kind)
	}
	return Escape(strings.ToLower(kind))
}

// qualified gives namespace/name, escaped.
func qualified(namespace, name string) string {
	if name == "" {
		name = "(unnamed)"
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return Escape(name)
}

func rfc3339(t metav1.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
