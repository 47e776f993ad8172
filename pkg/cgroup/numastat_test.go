package cgroup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseNUMAStat(t *testing.T) {
	s, err := parseNUMAStat([]byte("anon N0=2355200 N2=4096\nkernel_stack N0=65536 N2=0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"anon", "kernel_stack"}, s.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	values, ok := s.Get("anon")
	if diff := cmp.Diff([]NodeValue{{0, 2355200}, {2, 4096}}, values); diff != "" || !ok {
		t.Errorf("anon (-want +got):\n%s", diff)
	}
	if v, ok := s.Node("kernel_stack", 2); !ok || v != 0 {
		t.Errorf("kernel_stack N2 = %d, %t", v, ok)
	}
	if v, ok := s.Node("anon", 1); ok || v != 0 {
		t.Errorf("absent node = %d, %t", v, ok)
	}
	if values, ok := s.Get("file"); ok || values != nil {
		t.Errorf("absent key = %v, %t", values, ok)
	}
	if _, ok := s.Node("file", 0); ok {
		t.Error("absent key has a node")
	}
}

func TestParseNUMAStatErrors(t *testing.T) {
	for _, tc := range []struct {
		in     string
		line   int
		reason string
	}{
		{"", 0, "file is empty"},
		{"anon\n", 1, "not a line"},
		{"anon \n", 1, "is not N0=value"},
		{"anon N0=1\nanon N0=1\n", 2, "duplicate key"},
		{"anon N0=-1\n", 1, "negative"},
		{"anon N0=1 N0=1\n", 1, "ascending"},
		{"anon N1=1 N0=1\n", 1, "ascending"},
		{"anon N65536=1\n", 1, "number above 65535"},
		{"anon N=1\n", 1, "not a decimal number"},
		{"anon N0\n", 1, "is not N0=value"},
		{"anon N0=1  N1=1\n", 1, "is not N0=value"},
		{"total=12 N0=12\n", 1, "not a line"},
		{"anon 12\n", 1, "is not N0=value"},
		{"anon N0=18446744073709551616\n", 1, "does not fit"},
	} {
		_, err := parseNUMAStat([]byte(tc.in))
		bad, ok := errors.AsType[*ParseError](err)
		if !ok || bad.Line != tc.line || !strings.Contains(bad.Reason, tc.reason) {
			t.Errorf("%q: got %v, want line %d: %s", tc.in, err, tc.line, tc.reason)
		}
	}
}

func printNUMAStat(s NUMAStat) string {
	var b strings.Builder
	for _, key := range s.keys {
		b.WriteString(key)
		for _, v := range s.values[key] {
			fmt.Fprintf(&b, " N%d=%d", v.Node, v.Value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestNUMAStatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := NUMAStat{values: map[string][]NodeValue{}}
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		want.keys = rapid.SliceOfNDistinct(kernelKey(), 1, 10, rapid.ID[string]).Draw(t, "keys")
		for _, key := range want.keys {
			for node := range nodes {
				want.values[key] = append(want.values[key], NodeValue{node * 2, rapid.Uint64().Draw(t, "value")})
			}
		}
		got, err := parseNUMAStat([]byte(printNUMAStat(want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(NUMAStat{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzParseNUMAStat(f *testing.F) {
	for _, seed := range []string{"anon N0=2355200 N1=0\nfile N0=0 N1=24576\n", "anon N0=-1\n", "", "anon", "anon N0=1 N0=2\n", "a N99999999999=1\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseNUMAStat(data)
		if err != nil {
			return
		}
		again, err := parseNUMAStat([]byte(printNUMAStat(s)))
		if err != nil {
			t.Fatalf("%q: printed form: %v", data, err)
		}
		if diff := cmp.Diff(s, again, cmp.AllowUnexported(NUMAStat{})); diff != "" {
			t.Fatalf("%q (-once +twice):\n%s", data, diff)
		}
	})
}
