package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// JSONPath writes what a template picks from a report.Report or report.List,
// as kubectl's -o jsonpath= does: expressions stand in braces, a key that is
// not there gives nothing, no newline is added. A template without any brace,
// which kubectl would print as it is, is taken for one expression, with or
// without its leading dot.
func JSONPath(w io.Writer, v any, template string) error {
	if !strings.ContainsAny(template, "{}") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	printer, err := printers.NewJSONPathPrinter(template)
	if err != nil {
		return fmt.Errorf("parsing jsonpath %.80q: %w", template, err)
	}
	object, err := generic(v)
	if err != nil {
		return err
	}
	// Not PrintObj: it would decode large integers to 1.34217728e+08, and on an
	// error print the whole object.
	var buf bytes.Buffer
	if err := printer.AllowMissingKeys(true).Execute(&buf, object); err != nil {
		return fmt.Errorf("jsonpath %.80q: %w", template, err)
	}
	// JSON's escapes, since what was picked may be a piece of JSON.
	_, err = io.WriteString(w, escapeJSON(buf.String(), "\n\t"))
	return err
}

// generic gives v as maps, slices, strings, bools and numbers, integers as
// int64 or uint64: the kinds that templates can compare with theirs.
func generic(v any) (any, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var object any
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("decoding %T: %w", v, err)
	}
	return numbers(object), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		return number(v)
	}
	return v
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	f, _ := n.Float64() // ±Inf where a float64 cannot hold it
	return f
}
