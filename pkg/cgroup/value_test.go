package cgroup

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseLimit(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   Limit
		reason string
	}{
		{"max\n", Limit{Max: true}, ""},
		{"max", Limit{Max: true}, ""},
		{"0\n", Limit{}, ""},
		{"201326592\n", Limit{Bytes: 201326592}, ""},
		{"18446744073709551615\n", Limit{Bytes: math.MaxUint64}, ""},
		{"18446744073709551616\n", Limit{}, "number does not fit in 64 bits"},
		{"-1\n", Limit{}, "negative counter"},
		{"", Limit{}, "file is empty"},
		{"\n", Limit{}, "file is empty"},
		{"maximum\n", Limit{}, "not a decimal number"},
		{"MAX\n", Limit{}, "not a decimal number"},
		{"+1\n", Limit{}, "not a decimal number"},
		{"0x10\n", Limit{}, "not a decimal number"},
		{"1_000\n", Limit{}, "not a decimal number"},
		{"12\x00\n", Limit{}, "not a decimal number"},
		{"12 \n", Limit{}, "not a decimal number"},
		{"-\n", Limit{}, "not a decimal number"},
		{"--1\n", Limit{}, "not a decimal number"},
		{"1\n2\n", Limit{}, "unexpected line"},
	} {
		got, err := parseLimit([]byte(tc.in))
		checkParse(t, tc.in, got, tc.want, err, tc.reason)
	}
}

func TestParseValue(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   uint64
		reason string
	}{
		{"2781184\n", 2781184, ""},
		{"0\n", 0, ""},
		{"18446744073709551615\n", math.MaxUint64, ""},
		{"max\n", 0, "not a decimal number"},
		{"-4096\n", 0, "negative counter"},
		{"", 0, "file is empty"},
		{"1\n1\n", 0, "unexpected line"},
	} {
		got, err := parseValue([]byte(tc.in))
		checkParse(t, tc.in, got, tc.want, err, tc.reason)
	}
}

func TestParseFlag(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   bool
		reason string
	}{
		{"0\n", false, ""},
		{"1\n", true, ""},
		{"2\n", false, "neither 0 nor 1"},
		{"", false, "file is empty"},
		{"true\n", false, "neither 0 nor 1"},
	} {
		got, err := parseFlag([]byte(tc.in))
		checkParse(t, tc.in, got, tc.want, err, tc.reason)
	}
}

func TestParseWord(t *testing.T) {
	for _, tc := range []struct{ in, want, reason string }{
		{"domain\n", "domain", ""},
		{"isolated invalid (Parent is not a partition root)\n", "isolated invalid (Parent is not a partition root)", ""},
		{"", "", "file is empty"},
		{"a\x1b[2J\n", "", "not a line of plain text"},
		{"member\nroot\n", "", "unexpected line"},
		{strings.Repeat("a", 5000), "", "not a line of plain text"},
	} {
		got, err := parseWord([]byte(tc.in))
		checkParse(t, tc.in, got, tc.want, err, tc.reason)
	}
}

// checkParse compares a result with the wanted one, or the error's reason.
func checkParse[T comparable](t *testing.T, in string, got, want T, err error, reason string) {
	t.Helper()
	if reason == "" {
		if err != nil || got != want {
			t.Errorf("%.60q: got %v, %v, want %v", in, got, err, want)
		}
		return
	}
	bad, ok := errors.AsType[*ParseError](err)
	if !ok || !strings.Contains(bad.Reason, reason) || got != want {
		t.Errorf("%.60q: got %v, %v, want a ParseError %q", in, got, err, reason)
	}
}

func TestLimitRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Limit{Max: rapid.Bool().Draw(t, "max")}
		if !want.Max {
			want.Bytes = rapid.Uint64().Draw(t, "bytes")
		}
		got, err := parseLimit([]byte(want.String() + "\n"))
		if err != nil || got != want {
			t.Fatalf("%v parsed as %v, %v", want, got, err)
		}
	})
}

func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"max\n", "0\n", "-1\n", "18446744073709551616\n", "", "1\n2\n", "12\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limit, err := parseLimit(data)
		if err != nil {
			return
		}
		if again, err := parseLimit([]byte(limit.String())); err != nil || again != limit {
			t.Fatalf("%q parsed as %v, printed and parsed as %v, %v", data, limit, again, err)
		}
	})
}
