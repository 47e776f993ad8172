package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseWords(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
		bad  bool
	}{
		{"cpuset cpu io memory hugetlb pids rdma misc\n", []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc"}, false},
		{"", []string{}, false},
		{"\n", []string{}, false},
		{"cpu  memory\n", nil, true},
		{"cpu\nmemory\n", nil, true},
		{"cpu\x1b\n", nil, true},
		{strings.Repeat("a ", maxKeys) + "a\n", nil, true},
	} {
		got, err := parseWords([]byte(tc.in))
		if (err != nil) != tc.bad {
			t.Errorf("%.40q: %v", tc.in, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%.40q (-want +got):\n%s", tc.in, diff)
		}
	}
}

func TestParseProcs(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   []int
		reason string
	}{
		{"1113\n0\n7\n7\n", []int{1113, 0, 7, 7}, ""},
		{"4194304\n", []int{4194304}, ""},
		{"", []int{}, ""},
		{"4194305\n", nil, "process number above"},
		{"1\n-2\n", nil, "negative"},
		{"1 2\n", nil, "not a decimal number"},
	} {
		got, err := parseProcs([]byte(tc.in))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.in, diff)
		}
		if bad, _ := errors.AsType[*ParseError](err); (err != nil) != (tc.reason != "") ||
			bad != nil && !strings.Contains(bad.Reason, tc.reason) {
			t.Errorf("%q: got %v, want %q", tc.in, err, tc.reason)
		}
	}
}

func TestProcsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.IntRange(0, maxPID)).Draw(t, "pids")
		var b strings.Builder
		for _, pid := range want {
			fmt.Fprintln(&b, pid)
		}
		got, err := parseProcs([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]int{}, want...), got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestEventsAndStat(t *testing.T) {
	e, err := oneFile("cgroup.events", "populated 1\nfrozen 0\n").EventsFile()
	if err != nil {
		t.Fatal(err)
	}
	if populated, ok := e.Populated(); !populated || !ok {
		t.Errorf("populated: %t, %t", populated, ok)
	}
	if frozen, ok := e.Frozen(); frozen || !ok {
		t.Errorf("frozen: %t, %t", frozen, ok)
	}
	e, err = oneFile("cgroup.events", "populated 0\n").EventsFile()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.Frozen(); ok {
		t.Error("absent key frozen is known")
	}
	s, err := oneFile("cgroup.stat", "nr_descendants 52\nnr_dying_descendants 16\n").Stat()
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.NrDescendants(); v != 52 || !ok {
		t.Errorf("nr_descendants: %d, %t", v, ok)
	}
	if v, ok := s.NrDyingDescendants(); v != 16 || !ok {
		t.Errorf("nr_dying_descendants: %d, %t", v, ok)
	}
	if typ, err := oneFile("cgroup.type", "domain threaded\n").Type(); typ != "domain threaded" || err != nil {
		t.Errorf("type: %q, %v", typ, err)
	}
}

func FuzzParseProcs(f *testing.F) {
	for _, seed := range []string{"1113\n1\n", "", "0\n", "-1\n", "99999999999999999999\n", "1\n\n2\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pids, err := parseProcs(data)
		if err != nil {
			return
		}
		for _, pid := range pids {
			if pid < 0 || pid > maxPID {
				t.Fatalf("%q: process %d", data, pid)
			}
		}
	})
}

func TestText(t *testing.T) {
	if got, err := oneFile("hugetlb.2MB.max", "max\n").Text("hugetlb.2MB.max"); err != nil || got != "max" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := oneFile("cpu.max", "").Text("cpu.max"); err == nil {
		t.Error("an empty file has a text")
	}
	g := oneFile("cpu.max", "max 100000\n")
	for _, name := range []string{"../a/cpu.max", "../../../../etc/passwd"} {
		if got, err := g.Text(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
