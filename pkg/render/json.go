package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// JSON writes a report.Report or report.List in the order of its fields,
// indented as kubectl indents. It differs from cli-runtime's JSONPrinter where
// that one is harder or less safe to read: <, > and & stand as themselves, and
// no unsafe character does.
func JSON(w io.Writer, v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	// Outside its strings JSON is ASCII, and its line breaks are the only
	// control characters.
	_, err = io.WriteString(w, escapeJSON(string(data), "\n"))
	return err
}

// escapeJSON writes unsafe characters but those to keep as JSON's \uXXXX. It
// may be used on a whole document: a string that has them there stays the same
// string.
func escapeJSON(s, keep string) string {
	return escape(s, func(b []byte, r rune) []byte {
		switch {
		case strings.ContainsRune(keep, r):
			return append(b, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			return appendEscape(appendEscape(b, high), low)
		}
		return appendEscape(b, r)
	})
}

// marshal gives v as indented JSON with a final newline; unsafe characters
// above ASCII, and DEL, are still themselves.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return buf.Bytes(), nil
}
