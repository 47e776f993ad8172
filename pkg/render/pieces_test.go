package render

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestByteSize(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 1023: "1023", 1024: "1Ki", 1025: "1.0Ki", 4096: "4Ki", 134217728: "128Mi", 1500 << 20: "1500Mi", 459997184: "438.7Mi",
		133697536: "127.5Mi", 3 << 30: "3Gi", 5632 << 20: "5632Mi", 10000 << 20: "9.8Gi", 1<<30 - 1: "1.0Gi", 1<<20 - 1: "1.0Mi", 1023 << 10: "1023Ki",
		1 << 60: "1Ei", math.MaxUint64: "16.0Ei", math.MaxInt64: "8.0Ei",
	} {
		if got := byteSize(n); got != want {
			t.Errorf("byteSize(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestMicros(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0s", 834: "834us", 1000: "1ms", 20000: "20ms", 1002345: "1.002345s", 3_600_000_000: "1h0m0s", 999: "999us",
		math.MaxInt64 / 1000: "2562047h47m16.854775s", math.MaxUint64: "18446744073709551615us",
	} {
		if got := micros(n); got != want {
			t.Errorf("micros(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if got := count(ptr[int64](math.MinInt64)) + count(ptr(-997)) + count(ptr[uint64](math.MaxUint64)) + count[int](nil); got != "-9223372036854775808-99718446744073709551615?" {
		t.Error(got)
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, nil},
		{"   ", 10, nil},
		{"one two three", 0, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 6, []string{"one", "two", "three"}},
		{"/a/long/path/stays whole", 8, []string{"/a/long/path/stays", "whole"}},
		{"x /a/long/path y", 8, []string{"x", "/a/long/path", "y"}},
		{"a  b   c", 4, []string{"a  b", "c"}},
		{"한국어 문장", 6, []string{"한국어", "문장"}},
		{"容器被限制在配额", 6, []string{"容器被", "限制在", "配额"}},
		{"id=容器被限制", 7, []string{"id=容器", "被限制"}},
		{"e\u0301e\u0301 e\u0301e\u0301", 5, []string{"e\u0301e\u0301 e\u0301e\u0301"}},
		{"가\u1100\u1161나", 2, []string{"가\u1100\u1161나"}},
	} {
		if diff := cmp.Diff(test.want, wrap(test.text, test.width)); diff != "" {
			t.Errorf("wrap(%q, %d) (-want +got):\n%s", test.text, test.width, diff)
		}
	}
}

func TestList(t *testing.T) {
	header := []string{"name", "replays", "what it shows"}
	rows := [][]string{
		{"oom", "kubelet 1.37", "a container at its limit"},
		{"한국어", "", ""},
		{"short"},
		{"hostile\x1b[2J\u202e", "x ", "nl\ntab\t ", "beyond the header"},
		{},
	}
	golden(t, "list.txt", []byte(written(t, func(w *bytes.Buffer) error { return List(w, header, rows, Style{Width: 20, Unicode: true}) })))
	if out := written(t, func(w *bytes.Buffer) error { return List(w, nil, nil, Style{}) }); out != "" {
		t.Errorf("empty list: %q", out)
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SliceOfN(anyBytes(), 0, 4)
		header, rows, s := line.Draw(t, "header"), rapid.SliceOfN(line, 0, 4).Draw(t, "rows"), anyStyle().Draw(t, "style")
		if out := written(t, func(w *bytes.Buffer) error { return List(w, header, rows, s) }); out != "" {
			wellFormed(t, out, s)
		}
	})
}
