package render

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestTopCells(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	u := func(v uint64) *uint64 { return &v }
	for _, tc := range []struct{ name, got, want string }{
		{"no CPUs", cpus(f(0)), "0"},
		{"unknown CPUs", cpus(nil), "?"},
		{"hardly any", cpus(f(0.0004)), "<0.001"},
		{"a whole", cpus(f(100)), "100"},
		{"rounded", cpus(f(0.21149)), "0.211"},
		{"limit", cpuLimit(&report.Limit{Value: 5000}, u(100000)), "0.05"},
		{"no limit", cpuLimit(&report.Limit{Unlimited: true}, nil), "unlimited"},
		{"limit unknown", cpuLimit(nil, u(100000)), "?"},
		{"limit of no period", cpuLimit(&report.Limit{Value: 5000}, u(0)), "?"},
		{"all", percent(f(1), false), "100%"},
		{"nearly all is not all", percent(f(0.99999), false), "99.9%"},
		{"no rounding error", percent(f(0.29), false), "29%"},
		{"a tenth", percent(f(0.001), false), "0.1%"},
		{"less", percent(f(0.0009), false), "<0.1%"},
		{"zero", percent(f(0), true), "0%"},
		{"no limit to be a share of", percent(nil, true), "-"},
		{"share unknown", percent(nil, false), "?"},
		{"own level", throttled(&report.TopThrottled{Share: f(0.5), Level: "container", Over: report.OverSample}), "50%"},
		{"the pod's, of a life, at least", throttled(&report.TopThrottled{Share: f(0.5), Level: "pod", Over: report.OverLifetime, AtLeast: true}), ">=50%(pod,lifetime)"},
		{"no quota", throttled(&report.TopThrottled{Unlimited: true}), "-"},
		{"throttling unknown", throttled(nil), "?"},
		{"waiting", waiting(&report.TopWaiting{Share: 0.25, Over: report.OverSample}), "25%"},
		{"the kernel's average", waiting(&report.TopWaiting{Share: 0.25, Over: report.OverAvg10}), "25%(avg10)"},
		{"waiting unknown", waiting(nil), "?"},
		{"held", nonReclaimable(&report.TopNonReclaimable{Share: f(0.7), Level: "pod", AtLeast: true}), ">=70%(pod)"},
		{"held without limit", nonReclaimable(&report.TopNonReclaimable{Bytes: u(1), AtLeast: true, Max: &report.Limit{Unlimited: true}}), "-"},
		{"own CPUs", ownCPUs(report.TopCPUSet{Exclusive: "2-3"}), "2-3"},
		{"shared", ownCPUs(report.TopCPUSet{Shared: true}), "shared"},
		{"both", ownCPUs(report.TopCPUSet{Exclusive: "2-3", Shared: true}), "2-3+shared"},
		{"neither", ownCPUs(report.TopCPUSet{}), "-"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}

func TestTopHeaders(t *testing.T) {
	for _, top := range []report.Top{
		{Pods: []report.TopPod{{Namespace: "shop", Name: "web"}}},
		{Pods: []report.TopPod{{Namespace: "shop", Name: "web", Container: "app"}}},
		{Nodes: []report.TopNode{{Name: "n1"}}},
	} {
		write := func(headers bool) []string {
			var out bytes.Buffer
			if err := Top(&out, top, headers, Style{}); err != nil {
				t.Fatal(err)
			}
			return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		}
		with, without := write(true), write(false)
		if len(with) != 2 || len(without) != 1 {
			t.Fatalf("%d and %d lines", len(with), len(without))
		}
		if heads, cells := strings.Fields(with[0]), strings.Fields(with[1]); len(heads) != len(cells) {
			t.Errorf("%d headers, %d cells:\n%s\n%s", len(heads), len(cells), with[0], with[1])
		}
		if got, want := strings.Fields(without[0]), strings.Fields(with[1]); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q, with headers %q", got, want)
		}
	}
	var out bytes.Buffer
	if err := Top(&out, report.Top{}, true, Style{}); err != nil || out.Len() > 0 {
		t.Errorf("no rows: %q, %v", out.String(), err)
	}
}

// Whatever a table says, each row is one line, and nothing acts on a terminal.
func TestTopIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw{t, anyBytes()}
		top := d.top()
		s := anyStyle().Draw(t, "style")
		var out bytes.Buffer
		if err := Top(&out, top, d.bool(), s); err != nil {
			t.Fatal(err)
		}
		rows := len(top.Pods)
		if rows == 0 {
			rows = len(top.Nodes)
		}
		if rows == 0 {
			if out.Len() > 0 {
				t.Fatalf("no rows, %q", out.String())
			}
			return
		}
		wellFormed(t, out.String(), s)
		if lines := strings.Count(out.String(), "\n"); lines != rows && lines != rows+1 {
			t.Fatalf("%d lines for %d rows", lines, rows)
		}
		for _, write := range []func() error{
			func() error { return JSON(&out, top) }, func() error { return YAML(&out, top) }, func() error { return JSONPath(&out, top, "{.pods[*].name}") },
		} {
			out.Reset()
			if err := write(); err != nil {
				t.Fatal(err)
			}
			noControls(t, out.String(), "\n\t")
		}
	})
}

func (d draw) top() report.Top {
	pods := func() report.TopPod {
		return report.TopPod{
			Namespace: d.s(), Name: d.s(), Container: d.s(), Node: d.s(), Phase: d.s(),
			CPU: report.TopCPU{Used: maybe(d, d.share), Quota: maybe(d, d.limit), Period: maybe(d, d.uint), Throttled: maybe(d, func() report.TopThrottled {
				return report.TopThrottled{Share: maybe(d, d.share), Unlimited: d.bool(), AtLeast: d.bool(), Over: report.Window(d.s()), Level: d.s()}
			}), Waiting: maybe(d, d.waiting)},
			Memory: report.TopMemory{Current: maybe(d, d.uint), Max: maybe(d, d.limit), Share: maybe(d, d.share), NonReclaimable: maybe(d, func() report.TopNonReclaimable {
				return report.TopNonReclaimable{Share: maybe(d, d.share), AtLeast: d.bool(), Max: maybe(d, d.limit), Level: d.s()}
			})},
			OOMKills: maybe(d, d.uint),
			CPUs:     maybe(d, func() report.TopCPUSet { return report.TopCPUSet{Exclusive: d.s(), Shared: d.bool()} }),
		}
	}
	if d.bool() {
		return report.Top{APIVersion: report.APIVersion, Kind: report.TopReport, ObservedAt: d.time(), Pods: some(d, pods)}
	}
	return report.Top{APIVersion: report.APIVersion, Kind: report.TopReport, ObservedAt: d.time(), Nodes: some(d, func() report.TopNode {
		return report.TopNode{Name: d.s(), CPU: report.TopNodeCPU{Used: maybe(d, d.share), Online: maybe(d, d.int)},
			Pressure: report.TopPressure{CPU: maybe(d, d.waiting), Memory: maybe(d, d.waiting), IO: maybe(d, d.waiting)},
			Memory:   report.TopNodeMemory{WorkingSet: maybe(d, d.uint), Available: maybe(d, d.uint)},
			OOMKills: maybe(d, d.uint), Pods: maybe(d, d.int), Exclusive: maybe(d, d.s), Shared: maybe(d, d.s)}
	})}
}

func (d draw) share() float64 {
	return rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(math.MaxFloat64), rapid.Just(-1.0)).Draw(d.t, "share")
}

func (d draw) waiting() report.TopWaiting {
	return report.TopWaiting{Share: d.share(), Over: report.Window(d.s())}
}
