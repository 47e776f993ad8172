package cgroup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrVanished means that the cgroup was removed after it was found: the
	// kernel answers ENODEV, not ENOENT, on an already open or cached file.
	// For a container's group it means that the container has exited.
	ErrVanished = errors.New("cgroup vanished")

	// ErrPressureDisabled means that the kernel keeps no pressure stall
	// information: psi=0, CONFIG_PSI_DEFAULT_DISABLED, or cgroup.pressure is 0
	// in that group.
	ErrPressureDisabled = errors.New("pressure stall information is disabled")
)

// ParseError is a cgroup file whose content is not what a kernel prints.
type ParseError struct {
	File   string // path in the file system that was read; "" if only the text was given
	Line   int    // counted from 1; 0 when the file as a whole is at fault
	Text   string // the offending text, cut to maxErrorText bytes
	Reason string
}

const maxErrorText = 80

func (e *ParseError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(printable(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	} else if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	b.WriteString(e.Reason)
	if e.Text != "" {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	return b.String()
}

func badText(line int, text, reason string) *ParseError {
	return &ParseError{Line: line, Text: cut(text), Reason: reason}
}

// cut also copies, so that an error does not keep a whole file in memory.
func cut(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.Clone(text)
}

// printable returns text as it is if it is safe to print, else escaped.
func printable(text string) string {
	quoted := strconv.Quote(text)
	if inner := quoted[1 : len(quoted)-1]; inner != text {
		return quoted
	}
	return text
}
