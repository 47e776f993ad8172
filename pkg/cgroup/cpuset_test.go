package cgroup

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"
)

func TestParseList(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   []int
		reason string
	}{
		{"0-3,8,10-11\n", []int{0, 1, 2, 3, 8, 10, 11}, ""},
		{"0-1,6-7", []int{0, 1, 6, 7}, ""},
		{"0\n", []int{0}, ""},
		{"65535\n", []int{65535}, ""},
		{"2-2\n", []int{2}, ""},
		{"\n", nil, ""},
		{"", nil, ""},
		{"0-4294967295\n", nil, "number above 65535"},
		{"0-65536\n", nil, "number above 65535"},
		{"0-99999999999999999999\n", nil, "does not fit"},
		{"3-1\n", nil, "ascending"},
		{"0-3,2\n", nil, "ascending"},
		{"5,4\n", nil, "ascending"},
		{"1,1\n", nil, "ascending"},
		{"0-65535,0-65535\n", nil, "ascending"},
		{"-1\n", nil, "not a decimal number"},
		{"1-\n", nil, "not a decimal number"},
		{"1,\n", nil, "not a decimal number"},
		{"1, 2\n", nil, "not a decimal number"},
		{"1--2\n", nil, "negative"},
		{"0-31:2/8\n", nil, "not a decimal number"},
		{" (null)\n", nil, "not a decimal number"},
		{"0\n1\n", nil, "unexpected line"},
		{"0\x00\n", nil, "not a decimal number"},
	} {
		got, err := parseList([]byte(tc.in))
		bad, isParse := errors.AsType[*ParseError](err)
		switch {
		case tc.reason == "" && (err != nil || !got.Equals(cpuset.New(tc.want...))):
			t.Errorf("%q: got %v, %v", tc.in, got, err)
		case tc.reason != "" && (!isParse || !strings.Contains(bad.Reason, tc.reason) || !got.IsEmpty()):
			t.Errorf("%q: got %v, %v, want %s", tc.in, got, err, tc.reason)
		}
	}
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := cpuset.New(rapid.SliceOf(rapid.IntRange(0, maxID-1)).Draw(t, "ids")...)
		got, err := parseList([]byte(want.String() + "\n"))
		if err != nil || !got.Equals(want) {
			t.Fatalf("%q parsed as %v, %v", want, got, err)
		}
	})
}

func FuzzParseList(f *testing.F) {
	for _, seed := range []string{"0-3,8,10-11\n", "", "\n", "0-4294967295", "3-1", "0-65535,0-65535", "1,,2", "-"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := parseList(data)
		if err != nil {
			return
		}
		if again, err := parseList([]byte(set.String())); err != nil || !again.Equals(set) {
			t.Fatalf("%q parsed as %v, printed and parsed as %v, %v", data, set, again, err)
		}
	})
}
