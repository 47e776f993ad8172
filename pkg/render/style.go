package render

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Style says what the reader's terminal can show.
type Style struct {
	Color bool
	// Width is in cells of the display. 0 is unlimited: nothing is wrapped or
	// folded.
	Width int
	// Unicode allows separators and rules beyond ASCII. It does not touch what
	// the report says.
	Unicode bool
}

// maxProse is the width that prose is wrapped at on wider terminals.
const maxProse = 100

// prose gives the width for prose, 0 for unlimited.
func (s Style) prose() int { return max(0, min(s.Width, maxProse)) }

// separator stands between the parts of a heading.
func (s Style) separator() string {
	if s.Unicode {
		return " · "
	}
	return " | "
}

// rule is what lines between reports are made of.
func (s Style) rule() string {
	if s.Unicode {
		return "─"
	}
	return "-"
}

// palette holds the few styles in use. Colour only repeats what words say.
type palette struct {
	plain, strong, faint, command     lipgloss.Style
	critical, warning, info, doubtful lipgloss.Style
}

// newPalette takes 16 colours or none. The renderer is told everything, so it
// asks neither the terminal nor the environment.
func newPalette(color bool) palette {
	profile := termenv.Ascii
	if color {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(io.Discard, termenv.WithProfile(profile))
	r.SetColorProfile(profile)
	r.SetHasDarkBackground(true)

	const red, yellow, cyan = lipgloss.Color("1"), lipgloss.Color("3"), lipgloss.Color("6")
	plain := r.NewStyle()
	return palette{
		plain:    plain,
		strong:   plain.Bold(true),
		faint:    plain.Faint(true),
		command:  plain.Foreground(cyan),
		critical: plain.Bold(true).Foreground(red),
		warning:  plain.Bold(true).Foreground(yellow),
		info:     plain.Bold(true).Foreground(cyan),
		doubtful: plain.Foreground(yellow),
	}
}

func (p palette) severity(s report.Severity) lipgloss.Style {
	switch s {
	case report.Critical:
		return p.critical
	case report.Warning:
		return p.warning
	case report.Info:
		return p.info
	}
	return p.strong
}

// confidence is plain for what is proven.
func (p palette) confidence(c report.Confidence) lipgloss.Style {
	if c == report.Proven {
		return p.plain
	}
	return p.doubtful
}
