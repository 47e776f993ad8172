// Package promtext reads the Prometheus text format, of which it is given whole answers. It is pure: text in, values out.
package promtext

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxMillis is the year 9999, the last that RFC 3339 can write.
const maxMillis = 253402300800000

// Sample is one line of the Prometheus text format.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
	Text   string    // of the value, as written
	At     time.Time // zero where the line has none
}

// mostSamples bounds what is read of one answer.
const mostSamples = 500_000

// Read reads the lines of the named metrics from the Prometheus text format, in their order. Lines that cannot be read are left
// out; the error names the first of them and says how many there are.
func Read(text string, names ...string) ([]Sample, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var out []Sample
	var first error
	broken, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "{ \t")
		if end <= 0 || !wanted[line[:end]] {
			continue
		}
		s, err := parseSample(line[:end], line[end:])
		if err != nil {
			if broken++; first == nil {
				first = fmt.Errorf("line %d: %w", number, err)
			}
			continue
		}
		if len(out) == mostSamples {
			return out, fmt.Errorf("line %d: more than %d samples", number, mostSamples)
		}
		out = append(out, s)
	}
	if broken > 1 {
		first = fmt.Errorf("%w, and %d more lines", first, broken-1)
	}
	return out, first
}

// Keep are the lines of the named metrics as they stand. What they say of themselves in comments is left out.
func Keep(text []byte, names ...string) []byte {
	var kept bytes.Buffer
	for line := range bytes.Lines(text) {
		name := line
		if end := bytes.IndexAny(line, "{ \t\r\n"); end >= 0 {
			name = line[:end]
		}
		if slices.Contains(names, string(name)) {
			kept.Write(line)
		}
	}
	return kept.Bytes()
}

func parseSample(name, rest string) (Sample, error) {
	s := Sample{Name: name, Labels: map[string]string{}}
	if strings.HasPrefix(rest, "{") {
		var err error
		if rest, err = parseLabels(rest[1:], s.Labels); err != nil {
			return Sample{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return Sample{}, fmt.Errorf("%s has no value", name)
	}
	if len(fields) > 1 {
		if ms, err := strconv.ParseInt(fields[1], 10, 64); err == nil && ms > 0 && ms < maxMillis {
			s.At = time.UnixMilli(ms).UTC()
		}
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %.40q is no number", name, fields[0])
	}
	s.Value, s.Text = value, fields[0]
	return s, nil
}

// parseLabels reads `a="x",b="y"}` and returns what follows the brace.
func parseLabels(rest string, labels map[string]string) (string, error) {
	for {
		rest = strings.TrimLeft(rest, " \t,")
		if after, ok := strings.CutPrefix(rest, "}"); ok {
			return after, nil
		}
		key, after, ok := strings.Cut(rest, "=")
		key, after = strings.TrimSpace(key), strings.TrimLeft(after, " \t")
		if !ok || key == "" || !strings.HasPrefix(after, `"`) {
			return "", fmt.Errorf("labels end in %.40q", rest)
		}
		value, after, err := parseQuoted(after[1:])
		if err != nil {
			return "", fmt.Errorf("label %.40q: %w", key, err)
		}
		labels[key], rest = value, after
	}
}

// parseQuoted reads up to the closing quote; a backslash escapes itself, the quote and n.
func parseQuoted(rest string) (value, after string, err error) {
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return b.String(), rest[i+1:], nil
		case c == '\\' && i+1 < len(rest):
			i++
			if rest[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(rest[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("its quote is not closed")
}
