// Package jsonobject reads one level of a JSON object in the order of its text, so that a reader can go on after a bad
// member and name it, and see a key that stands twice.
package jsonobject

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/noderes/kubectl-noderes/pkg/alloc/internal/cut"
)

// Member is one key of an object with the undecoded text of its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// IsNull reports whether the value is JSON's null.
func (m Member) IsNull() bool { return IsNull(m.Value) }

// IsNull reports whether raw is JSON's null.
func IsNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// Members returns the members of the one object that data holds, in the order of the text; a key that stands twice comes twice.
func Members(data []byte) ([]Member, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if tok != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %s", cut.Quote(string(bytes.TrimSpace(data))))
	}
	var members []Member
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return members, fmt.Errorf("JSON object: %w", err)
		}
		key, ok := tok.(string)
		if !ok {
			return members, fmt.Errorf("JSON object: key expected, have %v", tok)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return members, fmt.Errorf("JSON object: value of %s: %w", cut.Quote(key), err)
		}
		members = append(members, Member{key, value})
	}
	if _, err := dec.Token(); err != nil {
		return members, fmt.Errorf("JSON object: %w", err)
	}
	if dec.InputOffset() < int64(len(bytes.TrimRight(data, " \t\r\n"))) {
		return members, fmt.Errorf("JSON object: text after its end: %s", cut.Quote(string(data[dec.InputOffset():])))
	}
	return members, nil
}
