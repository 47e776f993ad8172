package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// YAML writes a report.Report or report.List as one document, in the order of
// its fields.
//
// sigs.k8s.io/yaml sorts keys, and the library below it refuses DEL and C1 controls
// on the way in and writes bidirectional controls as they are on the way out.
// So the document is decoded in order, and strings with such characters pass
// the library as placeholders and come out double-quoted and escaped.
func YAML(w io.Writer, v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	data, restore, err := maskUnsafe(data)
	if err != nil {
		return err
	}
	var doc yaml.MapSlice
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("ordering %T: %w", v, err)
	}
	out, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encoding %T: %w", v, err)
	}
	_, err = restore.WriteString(w, string(out))
	return err
}

// maskUnsafe replaces each string of a JSON document that YAML could not carry
// safely by a word that occurs nowhere else; restore puts the quoted string in
// the word's place.
func maskUnsafe(data []byte) (masked []byte, restore *strings.Replacer, err error) {
	prefix := "escaped"
	for bytes.Contains(data, []byte(prefix)) {
		prefix += "x"
	}
	var pairs []string
	for len(data) > 0 {
		start := bytes.IndexByte(data, '"')
		if start < 0 {
			break
		}
		end := start + stringLiteral(data[start:])
		literal := data[start:end]
		var s string
		if err := json.Unmarshal(literal, &s); err != nil {
			return nil, nil, fmt.Errorf("string %.80q: %w", literal, err)
		}
		masked = append(masked, data[:start]...)
		if strings.ContainsFunc(s, unsafeInYAML) || s == mergeKey {
			word := prefix + strconv.Itoa(len(pairs)) + "z"
			if len(s) > maxSimpleKey {
				word += strings.Repeat("z", maxSimpleKey)
			}
			pairs = append(pairs, word, quoteYAML(s))
			masked = strconv.AppendQuote(masked, word)
		} else {
			masked = append(masked, literal...)
		}
		data = data[end:]
	}
	return append(masked, data...), strings.NewReplacer(pairs...), nil
}

// maxSimpleKey is the length beyond which the library writes a mapping's key
// as "? key": a placeholder is kept as long as that for a long string, since
// parsers refuse a simple key of more than 1024 characters.
const maxSimpleKey = 128

// mergeKey as a key would come out bare, and be read as the merge of another
// mapping.
const mergeKey = "<<"

// stringLiteral gives the length of the JSON string that data begins with.
func stringLiteral(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// unsafeInYAML adds what YAML's character set leaves out. A newline is safe:
// it makes a block of lines.
func unsafeInYAML(r rune) bool {
	return r != '\n' && r != '\t' && needsEscape(r) || r == 0xfffe || r == 0xffff
}

// quoteYAML writes s in YAML's double-quoted style.
func quoteYAML(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case needsEscape(r) || unsafeInYAML(r):
			b = appendEscape(b, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
