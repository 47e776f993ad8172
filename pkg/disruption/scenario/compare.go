package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
)

// Differences compares an output with that of another implementation, both in JSON, in what a scenario's output holds; what the
// other says beyond that is passed over. Numbers may differ by two millionths. An error stands for every other: its text is not
// compared, and nothing beside it.
func Differences(own *Output, other []byte) ([]string, error) {
	encoded, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	var a, b map[string]any
	if err := decode(encoded, &a); err != nil {
		return nil, err
	}
	if err := decode(other, &b); err != nil {
		return nil, err
	}
	if a["error"] != nil || b["error"] != nil {
		if (a["error"] == nil) != (b["error"] == nil) {
			return []string{fmt.Sprintf("error: %v, other %v", a["error"], b["error"])}, nil
		}
		return nil, nil
	}
	var out []string
	compare("", a, b, reflect.TypeFor[Output](), &out)
	return out, nil
}

func decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	return dec.Decode(into)
}

// compare walks the type of the output, so that it sees also what only one of the two says.
func compare(path string, a, b any, t reflect.Type, out *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	differ := func() { *out = append(*out, fmt.Sprintf("%s: %v, other %v", path, a, b)) }
	switch t.Kind() {
	case reflect.Struct:
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		for i := range t.NumField() {
			name, _, _ := bytes.Cut([]byte(t.Field(i).Tag.Get("json")), []byte(","))
			compare(path+"."+string(name), x[string(name)], y[string(name)], t.Field(i).Type, out)
		}
	case reflect.Map:
		x, _ := a.(map[string]any)
		y, _ := b.(map[string]any)
		keys := map[string]bool{}
		for key := range x {
			keys[key] = true
		}
		for key := range y {
			keys[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if _, inX := x[key]; !inX || y[key] == nil {
				*out = append(*out, fmt.Sprintf("%s.%s: only one has it", path, key))
				continue
			}
			compare(path+"."+key, x[key], y[key], t.Elem(), out)
		}
	case reflect.Slice:
		x, _ := a.([]any)
		y, _ := b.([]any)
		if len(x) != len(y) {
			differ()
			return
		}
		for i := range x {
			compare(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], t.Elem(), out)
		}
	case reflect.Float64, reflect.Int:
		x, _ := a.(float64)
		y, _ := b.(float64)
		if math.Abs(x-y) > 2e-6*max(1, math.Abs(x)) {
			differ()
		}
	case reflect.Bool:
		x, _ := a.(bool)
		y, _ := b.(bool)
		if x != y {
			differ()
		}
	default:
		x, _ := a.(string)
		y, _ := b.(string)
		if x != y {
			differ()
		}
	}
}
