package cpuset

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	kubeletcpuset "k8s.io/utils/cpuset"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Set
	}{
		{"", Set{}},
		{"0", Of(0)},
		{"0-3,8", Of(0, 1, 2, 3, 8)},
		{"8,0-3,2", Of(0, 1, 2, 3, 8)},
		{"5-5", Of(5)},
		{"007", Of(7)},
		{"+7", Of(7)}, // the kubelet's Atoi takes a sign
		{"2047", Of(2047)},
	} {
		got, err := Parse(tc.in)
		if err != nil || got != tc.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct {
		in, want string
		isRange  bool
	}{
		{" ", `cpu list " ": not a number`, false},
		{"0-3\n", `cpu list "0-3\n": not a number`, false},
		{" 1", `cpu list " 1": not a number`, false},
		{"1, 2", `cpu list "1, 2": at " 2": not a number`, false},
		{"1,", `cpu list "1,": at "": a number is missing`, false},
		{"-1", `cpu list "-1": a number is missing`, false},
		{"3-", `cpu list "3-": a number is missing`, false},
		{"3-1,5", `cpu list "3-1,5": at "3-1": range runs backwards`, false},
		{"0-31:2/4", `cpu list "0-31:2/4": not a number`, false},
		{"0x1f", `cpu list "0x1f": not a number`, false},
		{"1_0", `cpu list "1_0": not a number`, false},
		{"(null)", `cpu list "(null)": not a number`, false},
		{"1--2", `cpu list "1--2": cpu id is not between 0 and 2047`, true},
		{"2048", `cpu list "2048": cpu id is not between 0 and 2047`, true},
		{"0-8191", `cpu list "0-8191": cpu id is not between 0 and 2047`, true},
		{"0-99999999999999999999", `cpu list "0-99999999999999999999": cpu id is not between 0 and 2047`, true},
		{"1\x00", `cpu list "1\x00": not a number`, false},
	} {
		got, err := Parse(tc.in)
		if err == nil || err.Error() != tc.want || errors.Is(err, ErrRange) != tc.isRange || got != (Set{}) {
			t.Errorf("Parse(%q) = %q, %v; want error %s", tc.in, got, err, tc.want)
		}
	}
	long := strings.Repeat("1,", 1_000_000) + "x"
	if _, err := Parse(long); err == nil || len(err.Error()) > 200 {
		t.Errorf("a long list makes an error of %d bytes", len(err.Error()))
	}
}

// inRange tells texts whose numbers are small, for which the kubelet's parser, which knows no bound, must agree.
var inRange = regexp.MustCompile(`^\D*(\d{1,3}\D+)*\d{0,3}$`)

func agrees(t interface{ Errorf(string, ...any) }, s string) {
	got, err := Parse(s)
	want, wantErr := kubeletcpuset.Parse(s)
	if (err == nil) != (wantErr == nil) || err == nil && got.String() != want.String() {
		t.Errorf("Parse(%q) = %q, %v; kubelet's %q, %v", s, got, err, want, wantErr)
	}
}

func TestParseAsKubelet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("0123456789--,,+ x")), 0, 12, -1).Draw(t, "s")
		if inRange.MatchString(s) {
			agrees(t, s)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0-3,8", "0-3\n", "3-1", "-1", "0-99999999999", "  (null)\n", "1,,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		set, err := Parse(s)
		if err == nil {
			if back, err := Parse(set.String()); err != nil || back != set {
				t.Errorf("Parse(%q) = %q, which reads back as %q, %v", s, set, back, err)
			}
		} else if set != (Set{}) {
			t.Errorf("Parse(%q) gives both %q and %v", s, set, err)
		}
		if inRange.MatchString(s) {
			agrees(t, s)
		}
	})
}
