package jsonobject

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	got, err := Members([]byte(` {"b":1,"a":{"x":[1,2]},"b":null} ` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{"b", json.RawMessage("1")}, {"a", json.RawMessage(`{"x":[1,2]}`)}, {"b", json.RawMessage("null")}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("members (-want +got):\n%s", d)
	}
	if !got[2].IsNull() || got[0].IsNull() {
		t.Error("IsNull is wrong")
	}
}

func TestMembersRefuses(t *testing.T) {
	for _, in := range []string{"", "null", "[]", `"a"`, "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1}{"b":2}`, `{"a":1}x`, "\x00\x00"} {
		if got, err := Members([]byte(in)); err == nil {
			t.Errorf("Members(%q) = %v, want an error", in, got)
		}
	}
}

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":{"b":[1]},"a":2}`, `{"a":1} x`, "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Members(data)
		var object map[string]json.RawMessage
		want := json.Unmarshal(data, &object) == nil && object != nil
		if (err == nil) != want {
			t.Errorf("Members(%q) error %v, but encoding/json takes it: %v", data, err, want)
		}
	})
}
