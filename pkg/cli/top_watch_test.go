package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/noderes/kubectl-noderes/pkg/collect"
	"github.com/noderes/kubectl-noderes/pkg/diagnose"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// reading is of one pod that has used 2.5 s of CPU in each ten of seconds, and
// was throttled in 40 of 100 periods.
func reading(t *testing.T, n int) collect.TopReading {
	t.Helper()
	const id = `container="app",id="/kubepods/podu1/c1",name="c1",namespace="shop",pod="web-0"`
	at := 1000 * (1_790_000_000 + 10*n)
	b := snapshot.NewBuilder()
	for path, text := range map[string]string{
		"cluster/pods.json": `{"kind":"List","items":[{"metadata":{"name":"web-0","namespace":"shop","uid":"u1"},"spec":{"nodeName":"n1","containers":[{"name":"app"}]},"status":{"phase":"Running"}}]}`,
		"nodes/n1/metrics-cadvisor.txt": fmt.Sprintf("container_cpu_usage_seconds_total{%[1]s} %[2]g %[3]d\ncontainer_cpu_cfs_periods_total{%[1]s} %[4]d %[3]d\ncontainer_cpu_cfs_throttled_periods_total{%[1]s} %[5]d %[3]d\ncontainer_spec_cpu_quota{%[1]s} 50000\ncontainer_spec_cpu_period{%[1]s} 100000\n",
			id, 2.5*float64(n), at, 100*n, 40*n),
	} {
		if err := b.Add(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Build(snapshot.Manifest{CapturedAt: time.UnixMilli(int64(at)).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	return collect.TopReading{Snapshot: s}
}

// watched runs a table of containers over readings, of which those that are
// errors fail.
func watched(t *testing.T, o *topOptions, ctx context.Context, readings ...any) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.IOStreams = genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}
	o.watch = watchOptions{on: true, interval: 10 * time.Second, count: len(readings)}
	n := 0
	read := func(context.Context) (collect.TopReading, error) {
		n++
		if err, ok := readings[n-1].(error); ok {
			return collect.TopReading{}, err
		}
		return readings[n-1].(collect.TopReading), nil
	}
	var waits []time.Duration
	after := func(d time.Duration) <-chan time.Time {
		waits = append(waits, d)
		c := make(chan time.Time, 1)
		c <- time.Time{}
		return c
	}
	q := question{of: diagnose.TopOptions{Containers: true}, table: diagnose.TopPods}
	err = o.watchSource(ctx, q, read, after)
	for _, d := range waits {
		if d > 10*time.Second || d < 9*time.Second {
			t.Errorf("waited %s", d)
		}
	}
	return stdout.String(), stderr.String(), err
}

// In a pipe one table follows the other; the first says that it has no rates, and
// a reading that fails is a line.
func TestWatchInAPipe(t *testing.T) {
	more := reading(t, 4)
	more.NodesLeft = 3
	out, errOut, err := watched(t, &topOptions{outputOptions: outputOptions{output: formatText, color: colorAuto}}, t.Context(),
		reading(t, 1), errors.New("no \x1b[2J route"), reading(t, 2), reading(t, 2), more)
	if err != nil {
		t.Fatal(err)
	}
	tables := strings.Split(out, "\n\n")
	if len(tables) != 4 || strings.Contains(out+errOut, "\x1b") {
		t.Fatalf("%d tables:\n%s", len(tables), out)
	}
	for i, want := range []struct{ heading, row string }{
		{"2026-09-21T14:13:30Z  the first reading: rates need two, the next is in 10s\n", "? 0.5 >=40%(lifetime) "},
		{"2026-09-21T14:13:40Z\n", "0.25 0.5 >=40% "},
		{"2026-09-21T14:13:40Z\n", "0.25 0.5 >=40% "}, // the kubelet has nothing new
		{"2026-09-21T14:14:00Z\n", "0.25 0.5 >=40% "},
	} {
		if !strings.HasPrefix(tables[i], want.heading) || !strings.Contains(strings.Join(strings.Fields(tables[i]), " "), "shop web-0 app n1 "+want.row) {
			t.Errorf("table %d:\n%s", i, tables[i])
		}
	}
	lines := strings.Split(strings.TrimSpace(errOut), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], ": no reading: no ") || lines[1] != "warning: 3 more nodes are not asked and not shown, see --max-nodes" {
		t.Errorf("%q", lines)
	}
}

// If no reading succeeds that is an error; the first table that follows some that
// failed is the first.
func TestWatchFails(t *testing.T) {
	text := outputOptions{output: formatText, color: colorAuto}
	gone := errors.New("gone")
	if out, errOut, err := watched(t, &topOptions{outputOptions: text}, t.Context(), gone, gone); !errors.Is(err, gone) || out != "" || strings.Count(errOut, "\n") != 2 {
		t.Errorf("%v, %q, %q", err, out, errOut)
	}
	out, _, err := watched(t, &topOptions{outputOptions: text}, t.Context(), gone, reading(t, 1), gone)
	if err != nil || !strings.Contains(out, "the first reading") {
		t.Errorf("%v, %q", err, out)
	}
}

// Documents follow each other.
func TestWatchDocuments(t *testing.T) {
	out, errOut, err := watched(t, &topOptions{outputOptions: outputOptions{output: formatJSON}}, t.Context(), reading(t, 1), reading(t, 2))
	if err != nil || errOut != "" {
		t.Fatal(err, errOut)
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	for n := range 2 {
		var top report.Top
		if err := decoder.Decode(&top); err != nil {
			t.Fatal(err)
		}
		if used := top.Pods[0].CPU.Used; n == 0 && used != nil || n == 1 && (used == nil || *used != 0.25 || *top.Pods[0].SampleSeconds != 10) {
			t.Errorf("document %d: %+v", n, top.Pods[0])
		}
	}
	if err := decoder.Decode(new(any)); err != io.EOF {
		t.Error(err)
	}
	if out, _, err := watched(t, &topOptions{outputOptions: outputOptions{output: formatYAML}}, t.Context(), reading(t, 1), reading(t, 2)); err != nil || strings.Count(out, "---\n") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
}

// Ctrl-C, while a reading is made or waited for, ends without an error.
func TestWatchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := &topOptions{outputOptions: outputOptions{output: formatText, color: colorAuto}}
	var stdout bytes.Buffer
	o.IOStreams = genericiooptions.IOStreams{Out: &stdout, ErrOut: io.Discard}
	o.watch = watchOptions{on: true, interval: 10 * time.Second}
	q := question{table: diagnose.TopPods}
	never := func(time.Duration) <-chan time.Time {
		cancel()
		return nil
	}
	one := func(context.Context) (collect.TopReading, error) { return reading(t, 1), nil }
	if err := o.watchSource(ctx, q, one, never); err != nil || !strings.Contains(stdout.String(), "web-0") {
		t.Errorf("%v, %q", err, stdout.String())
	}
	failing := func(ctx context.Context) (collect.TopReading, error) { return collect.TopReading{}, ctx.Err() }
	if err := o.watchSource(ctx, q, failing, never); err != nil {
		t.Error(err)
	}
}

// On a terminal each table stands in the place of the last, is cut to the room
// there is, and stays when a reading fails.
func TestWatchOnATerminal(t *testing.T) {
	var stdout bytes.Buffer
	o := &topOptions{outputOptions: outputOptions{output: formatText}, IOStreams: genericiooptions.IOStreams{Out: &stdout}}
	d := &display{topOptions: o, text: true, height: func() int { return 5 }}
	if err := d.show("now", []string{"a \x1b[2J note"}, "HEAD\nrow 1\nrow 2\nrow 3\n"); err != nil {
		t.Fatal(err)
	}
	if err := d.fail("no reading"); err != nil {
		t.Fatal(err)
	}
	d.end()
	screens := strings.Split(stdout.String(), home)
	plain := func(s string) string {
		return strings.NewReplacer(clearEnd, "", clearAll, "", wrapOn, "", "\r", "").Replace(s)
	}
	if len(screens) != 3 || screens[0] != wrapOff || !strings.HasSuffix(stdout.String(), wrapOn) {
		t.Fatalf("%q", stdout.String())
	}
	if got := strings.Split(plain(screens[1]), "\n"); len(got) != 5 || got[0] != "now" || strings.Contains(got[1], "\x1b") || got[2] != "HEAD" || got[3] != "3 more lines" {
		t.Errorf("%q", got)
	}
	if got := plain(screens[2]); got != "no reading\nHEAD\nrow 1\n2 more lines\n" {
		t.Errorf("%q", got)
	}
}
