package cgroup

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestParseCPUMax(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   CPUMax
		reason string
	}{
		{"max 100000\n", CPUMax{Max: true, Period: 100000}, ""},
		{"max 50000\n", CPUMax{Max: true, Period: 50000}, ""},
		{"20000 100000\n", CPUMax{Quota: 20000, Period: 100000}, ""},
		{"9223372036854775807 1\n", CPUMax{Quota: math.MaxInt64, Period: 1}, ""},
		{"9223372036854775808 100000\n", CPUMax{}, "quota: number does not fit"},
		{"max 9223372036854775808\n", CPUMax{}, "period: number does not fit"},
		{"-1 100000\n", CPUMax{}, "quota: negative"},
		{"20000 -1\n", CPUMax{}, "period: negative"},
		{"0 100000\n", CPUMax{}, "quota: 0 is not possible"},
		{"20000 0\n", CPUMax{}, "period: 0 is not possible"},
		{"max 0\n", CPUMax{}, "period: 0 is not possible"},
		{"max\n", CPUMax{}, `not "quota period"`},
		{"20000\n", CPUMax{}, `not "quota period"`},
		{"20000 100000 0\n", CPUMax{}, "period: not a decimal number"},
		{"20000 max\n", CPUMax{}, "period: not a decimal number"},
		{" 100000\n", CPUMax{}, "quota: not a decimal number"},
		{"", CPUMax{}, "file is empty"},
		{"max 100000\nmax 100000\n", CPUMax{}, "unexpected line"},
	} {
		got, err := parseCPUMax([]byte(tc.in))
		checkParse(t, tc.in, got, tc.want, err, tc.reason)
	}
}

func TestCPUMaxRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := CPUMax{Max: rapid.Bool().Draw(t, "max"), Period: rapid.Uint64Range(1, math.MaxInt64).Draw(t, "period")}
		if !want.Max {
			want.Quota = rapid.Uint64Range(1, math.MaxInt64).Draw(t, "quota")
		}
		got, err := parseCPUMax([]byte(want.String() + "\n"))
		if err != nil || got != want {
			t.Fatalf("%v parsed as %v, %v", want, got, err)
		}
	})
}

func FuzzParseCPUMax(f *testing.F) {
	for _, seed := range []string{"max 100000\n", "20000 100000\n", "20000", "-1 100000\n", "0 0\n", "max max\n", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseCPUMax(data)
		if err != nil {
			return
		}
		if m.Period == 0 || m.Max != (m.Quota == 0) {
			t.Fatalf("%q parsed as %+v", data, m)
		}
		if again, err := parseCPUMax([]byte(m.String())); err != nil || again != m {
			t.Fatalf("%q parsed as %v, printed and parsed as %v, %v", data, m, again, err)
		}
	})
}
