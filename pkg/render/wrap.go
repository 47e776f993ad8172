package render

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/lipgloss"
)

// wrap breaks escaped text at spaces into lines of at most width cells; 0 is
// unlimited. A word that is wider by itself keeps a line of its own, whole, so
// that paths and names survive copying; only words of Han, kana or Hangul,
// which those scripts may break anywhere, are broken. Lines end in no blank;
// blank text has no line.
func wrap(text string, width int) []string {
	text = trimRight(text)
	switch {
	case text == "":
		return nil
	case width <= 0 || lipgloss.Width(text) <= width:
		return []string{text}
	}
	var lines []string
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case line == "" && len(lines) > 0: // blanks at the break
			line = word
		case lipgloss.Width(line+" "+word) <= width:
			line += " " + word
			continue
		default:
			lines = appendLine(lines, line)
			line = word
		}
		if lipgloss.Width(line) > width {
			pieces := breakCJK(line, width)
			for _, piece := range pieces[:len(pieces)-1] {
				lines = appendLine(lines, piece)
			}
			line = pieces[len(pieces)-1]
		}
	}
	return appendLine(lines, line)
}

func appendLine(lines []string, line string) []string {
	if line = trimRight(line); line == "" {
		return lines
	}
	return append(lines, line)
}

// breakCJK breaks a word between CJK characters into pieces of at most width
// cells where it can.
func breakCJK(word string, width int) []string {
	var pieces []string
	piece := ""
	for _, part := range splitCJK(word) {
		if piece != "" && lipgloss.Width(piece+part) > width {
			pieces = append(pieces, piece)
			piece = ""
		}
		piece += part
	}
	return append(pieces, piece)
}

// splitCJK cuts a word wherever it may be broken.
func splitCJK(word string) []string {
	var parts []string
	start, before := 0, rune(0)
	for at, r := range word {
		if cjk(before) && cjk(r) {
			parts = append(parts, word[start:at])
			start = at
		}
		before = r
	}
	return append(parts, word[start:])
}

// cjk leaves out conjoining jamo: a break could split their syllable.
func cjk(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0xac00 && r <= 0xd7a3
}

func trimRight(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

// pad fills s with blanks up to width cells, before it or behind it.
func pad(s string, width int, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
	if right {
		return blanks + s
	}
	return s + blanks
}
