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

func TestParsePressure(t *testing.T) {
	const some = "some avg10=51.43 avg60=62.60 avg300=63.70 total=2549888735\n"
	const full = "full avg10=50.58 avg60=61.07 avg300=62.24 total=2496752345\n"
	wantSome := &PressureLine{Avg10: 51.43, Avg60: 62.6, Avg300: 63.7, Total: 2549888735}
	wantFull := &PressureLine{Avg10: 50.58, Avg60: 61.07, Avg300: 62.24, Total: 2496752345}
	for _, tc := range []struct {
		in   string
		want Pressure
	}{
		{some + full, Pressure{Some: wantSome, Full: wantFull}},
		{some, Pressure{Some: wantSome}},
		{full, Pressure{Full: wantFull}},
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=0 new=x\nlater avg10=1.00 avg60=0.00 avg300=0.00 total=0\n",
			Pressure{Some: &PressureLine{}}},
	} {
		got, err := parsePressure([]byte(tc.in))
		if err != nil {
			t.Errorf("%q: %v", tc.in, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.in, diff)
		}
	}
	for _, tc := range []struct {
		in     string
		line   int
		reason string
	}{
		{"", 0, "file is empty"},
		{"\n", 0, "file is empty"},
		{"later avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", 0, "neither a line some"},
		{some + some, 2, "duplicate line"},
		{"some avg10=0.00 avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", 1, "duplicate field"},
		{"some avg10=0.00 avg60=0.00 avg300=0.00\n", 1, "field total is missing"},
		{"some avg10=0.00 avg60=0.00 total=0\n", 1, "field avg300 is missing"},
		{"some\n", 1, "not key=value"},
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n", 1, "negative"},
		{"some avg10=-1.00 avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10=NaN avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10=1e9 avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10=1.2.3 avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10= avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10=" + strings.Repeat("9", 400) + " avg60=0.00 avg300=0.00 total=1\n", 1, "not a decimal number"},
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=1.5\n", 1, "not a decimal number"},
	} {
		got, err := parsePressure([]byte(tc.in))
		bad, ok := errors.AsType[*ParseError](err)
		if !ok || bad.Line != tc.line || !strings.Contains(bad.Reason, tc.reason) || got != (Pressure{}) {
			t.Errorf("%.60q: got %v, %v, want line %d: %s", tc.in, got, err, tc.line, tc.reason)
		}
	}
}

func TestPressureResource(t *testing.T) {
	g := oneFile("irq.pressure", "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
	p, err := g.Pressure("irq")
	if err != nil || p.Some != nil || p.Full == nil || p.Full.Total != 7 {
		t.Errorf("irq: %+v, %v", p, err)
	}
	if _, err := g.Pressure("cpu"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrPressureDisabled) {
		t.Errorf("cpu: %v", err)
	}
	if _, err := g.Pressure("../../x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown resource: %v", err)
	}
}

func printPressure(p Pressure) string {
	var b strings.Builder
	for _, l := range []struct {
		kind string
		line *PressureLine
	}{{"some", p.Some}, {"full", p.Full}} {
		if l.line != nil {
			fmt.Fprintf(&b, "%s avg10=%.2f avg60=%.2f avg300=%.2f total=%d\n",
				l.kind, l.line.Avg10, l.line.Avg60, l.line.Avg300, l.line.Total)
		}
	}
	return b.String()
}

func TestPressureRoundTrip(t *testing.T) {
	line := rapid.Custom(func(t *rapid.T) *PressureLine {
		percent := rapid.Map(rapid.IntRange(0, 10000), func(n int) float64 { return float64(n) / 100 })
		return &PressureLine{
			Avg10: percent.Draw(t, "avg10"), Avg60: percent.Draw(t, "avg60"), Avg300: percent.Draw(t, "avg300"),
			Total: rapid.Uint64().Draw(t, "total"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var want Pressure
		which := rapid.IntRange(1, 3).Draw(t, "lines")
		if which&1 != 0 {
			want.Some = line.Draw(t, "some")
		}
		if which&2 != 0 {
			want.Full = line.Draw(t, "full")
		}
		got, err := parsePressure([]byte(printPressure(want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func FuzzParsePressure(f *testing.F) {
	for _, seed := range []string{
		"some avg10=0.54 avg60=1.61 avg300=0.58 total=2283234\nfull avg10=0.21 avg60=0.40 avg300=0.13 total=731595\n",
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "some\n", "", "x y=z\n", "some avg10=NaN avg60=. avg300=1e9 total=0\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePressure(data)
		if err != nil {
			return
		}
		if p.Some == nil && p.Full == nil {
			t.Fatalf("%q has no line", data)
		}
		for _, line := range []*PressureLine{p.Some, p.Full} {
			// Written so that NaN fails.
			if line != nil && !(line.Avg10 >= 0 && line.Avg60 >= 0 && line.Avg300 >= 0) {
				t.Fatalf("%q parsed as %+v", data, line)
			}
		}
	})
}
