package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseFlatKeyed(t *testing.T) {
	f, err := parseFlatKeyed([]byte("b 2\na.x 1\nnr_periods -2147483648\nnewer_than_us 18446744073709551615\n"), "nr_periods")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a.x", "nr_periods", "newer_than_us"}, f.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for key, want := range map[string]uint64{"b": 2, "a.x": 1, "newer_than_us": 1<<64 - 1} {
		if got, ok := f.Get(key); !ok || got != want {
			t.Errorf("Get(%s) = %d, %t", key, got, ok)
		}
	}
	if got, ok := f.Get("absent"); ok || got != 0 {
		t.Errorf("absent key: %d, %t", got, ok)
	}
	if got, ok := f.Get("nr_periods"); ok || got != 0 {
		t.Errorf("a negative value came out as %d", got)
	}
	if got, ok := f.getSigned("nr_periods"); !ok || got != -2147483648 {
		t.Errorf("signed value: %d, %t", got, ok)
	}
}

func TestParseFlatKeyedErrors(t *testing.T) {
	for _, tc := range []struct {
		in     string
		line   int
		reason string
	}{
		{"a 1\nb -1\n", 2, "negative counter"},
		{"a 1\nb\n", 2, `not a line "key value"`},
		{"a 1\nb 3\na 1\n", 3, "duplicate key"},
		{"n 1\nn 1\n", 2, "duplicate key"},
		{"a 18446744073709551616\n", 1, "number does not fit"},
		{"a max\n", 1, "not a decimal number"},
		{"a 1 2\n", 1, "not a decimal number"},
		{"a  1\n", 1, "not a decimal number"},
		{" 1\n", 1, `not a line "key value"`},
		{"a\t1\n", 1, `not a line "key value"`},
		{"\x1b[2J 1\n", 1, `not a line "key value"`},
		{"a 1\n\nb 1\n", 2, `not a line "key value"`},
		{"a 1\r\nb 1\r\n", 1, "not a decimal number"},
		{"a 1\x00\n", 1, "not a decimal number"},
		{"n 9223372036854775808\n", 1, "not a signed 64-bit number"},
		{"n +1\n", 1, "not a signed 64-bit number"},
		{manyKeys(maxKeys + 1), maxKeys + 1, "more than 4096 keys"},
	} {
		f, err := parseFlatKeyed([]byte(tc.in), "n")
		bad, ok := errors.AsType[*ParseError](err)
		if !ok || bad.Line != tc.line || !strings.Contains(bad.Reason, tc.reason) {
			t.Errorf("%.40q: got %v, want line %d: %s", tc.in, err, tc.line, tc.reason)
		}
		if len(f.Keys()) != 0 {
			t.Errorf("%.40q: keys beside the error: %q", tc.in, f.Keys())
		}
	}
	if _, err := parseFlatKeyed([]byte(manyKeys(maxKeys))); err != nil {
		t.Errorf("%d keys: %v", maxKeys, err)
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d 1\n", i)
	}
	return b.String()
}

// Which files may be empty, and which may have negative values, differs.
func TestFlatKeyedFiles(t *testing.T) {
	if s, err := oneFile("cpu.stat.local", "").CPUStatLocal(); err != nil || len(s.Keys()) != 0 {
		t.Errorf("empty cpu.stat.local: %v, %v", s.Keys(), err)
	} else if v, ok := s.ThrottledUsec(); ok || v != 0 {
		t.Errorf("empty cpu.stat.local has throttled_usec %d", v)
	}
	for name, read := range map[string]func(Group) error{
		"cpu.stat":            func(g Group) error { _, err := g.CPUStat(); return err },
		"memory.stat":         func(g Group) error { _, err := g.MemoryStat(); return err },
		"memory.events":       func(g Group) error { _, err := g.MemoryEvents(); return err },
		"memory.events.local": func(g Group) error { _, err := g.MemoryEventsLocal(); return err },
		"memory.swap.events":  func(g Group) error { _, err := g.MemorySwapEvents(); return err },
		"pids.events":         func(g Group) error { _, err := g.PIDsEvents(); return err },
		"pids.events.local":   func(g Group) error { _, err := g.PIDsEventsLocal(); return err },
		"cgroup.events":       func(g Group) error { _, err := g.EventsFile(); return err },
		"cgroup.stat":         func(g Group) error { _, err := g.Stat(); return err },
	} {
		if bad, ok := errors.AsType[*ParseError](read(oneFile(name, ""))); !ok || bad.Reason != reasonEmpty {
			t.Errorf("empty %s: %v", name, bad)
		}
		if err := read(oneFile(name, "nr_periods -1\n")); (err == nil) != (name == "cpu.stat") {
			t.Errorf("nr_periods -1 in %s: %v", name, err)
		}
		if bad, ok := errors.AsType[*ParseError](read(oneFile(name, "usage -1\n"))); !ok || bad.Reason != "negative counter" {
			t.Errorf("negative value in %s: %v", name, bad)
		}
		if err := read(oneFile(name, "populated 1\n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCPUStatAccessors(t *testing.T) {
	s, err := oneFile("cpu.stat", "usage_usec 1\nuser_usec 2\nsystem_usec 3\nnr_periods -4\nnr_throttled -5\n"+
		"throttled_usec 6\nnr_bursts -7\nburst_usec 8\n").CPUStat()
	if err != nil {
		t.Fatal(err)
	}
	for want, get := range map[uint64]func() (uint64, bool){
		1: s.UsageUsec, 2: s.UserUsec, 3: s.SystemUsec, 6: s.ThrottledUsec, 8: s.BurstUsec,
	} {
		if got, ok := get(); !ok || got != want {
			t.Errorf("got %d, %t, want %d", got, ok, want)
		}
	}
	for want, get := range map[int64]func() (int64, bool){-4: s.NrPeriods, -5: s.NrThrottled, -7: s.NrBursts} {
		if got, ok := get(); !ok || got != want {
			t.Errorf("got %d, %t, want %d", got, ok, want)
		}
	}
	// The controller is off: the three usage keys alone.
	s, err = oneFile("cpu.stat", "usage_usec 1\nuser_usec 2\nsystem_usec 3\n").CPUStat()
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.NrPeriods(); ok || v != 0 {
		t.Errorf("absent nr_periods is %d", v)
	}
	if v, ok := s.NrThrottled(); ok || v != 0 {
		t.Errorf("absent nr_throttled is %d", v)
	}
}

// kernelKey draws keys such as "pgscan_kswapd" and "hugetlb.2MB".
func kernelKey() *rapid.Generator[string] { return rapid.StringMatching(`[a-z][a-z0-9_.]{0,20}`) }

func TestFlatKeyedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(kernelKey(), 0, 30, rapid.ID[string]).Draw(t, "keys")
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "signed" })
		var text strings.Builder
		want := flatKeyed{values: map[string]uint64{}}
		for _, key := range keys {
			want.keys = append(want.keys, key)
			want.values[key] = rapid.Uint64().Draw(t, key)
			fmt.Fprintf(&text, "%s %d\n", key, want.values[key])
		}
		if rapid.Bool().Draw(t, "with signed") {
			want.keys = append(want.keys, "signed")
			want.signed = map[string]int64{"signed": rapid.Int64().Draw(t, "signed")}
			fmt.Fprintf(&text, "signed %d\n", want.signed["signed"])
		}
		got, err := parseFlatKeyed([]byte(text.String()), "signed")
		if err != nil {
			t.Fatalf("%q: %v", text.String(), err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(flatKeyed{})); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}

func FuzzParseFlatKeyed(f *testing.F) {
	for _, seed := range []string{
		"usage_usec 35875742\nnr_periods -1\n", "low 0\nhigh 68\n", "a 1\na 2\n", "a -1\n", "", "\n\n", "a 1", "a 1\r\n", "\x00 1\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		flat, err := parseFlatKeyed(data, "nr_periods")
		if err != nil {
			if _, ok := errors.AsType[*ParseError](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		lines := 0
		for range numberedLines(data) {
			lines++
		}
		if len(flat.Keys()) != lines {
			t.Fatalf("%d lines, keys %q", lines, flat.Keys())
		}
		for _, key := range flat.Keys() {
			signed, isSigned := flat.getSigned(key)
			if value, ok := flat.Get(key); ok == (isSigned && signed < 0) || isSigned && signed >= 0 && value != uint64(signed) {
				t.Fatalf("key %q: %d, %t, signed %d, %t", key, value, ok, signed, isSigned)
			}
		}
	})
}
