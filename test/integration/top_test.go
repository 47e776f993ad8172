package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/test/integration/standin"
)

// topTable is what the tests read of a table.
type topTable struct {
	Pods  []topPod
	Nodes []struct {
		Name string
		CPU  struct {
			Used   *float64
			Online *int
		}
		Pods *int
	}
}

type topPod struct {
	Name          string
	SampleSeconds *float64
	CPU           struct {
		Used      *float64
		Over      string
		Throttled *struct {
			Share *float64
			Over  string
		}
	}
	Memory struct{ Current *uint64 }
}

// TestTop: one reading of the kubelet's API by the API server, with the role of the documentation.
func TestTop(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	out, errs, err := live.noderes(t, user, "top", "pods", "--node", recording, "-o", "json")
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v\n%s", err, errs)
	}
	rows := mustJSON[topTable](t, out).Pods
	i := slices.IndexFunc(rows, func(r topPod) bool { return r.Name == "throttled" })
	if i < 0 || len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[i]
	if r.SampleSeconds != nil || r.CPU.Used == nil || r.CPU.Over != "kubelet" || r.CPU.Throttled == nil || *r.CPU.Throttled.Share < 0.9 || r.CPU.Throttled.Over != "lifetime" || r.Memory.Current == nil {
		t.Errorf("%+v", r)
	}
	out, errs, err = live.noderes(t, user, "top", "nodes", recording, "-o", "json")
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v\n%s", err, errs)
	}
	if n := mustJSON[topTable](t, out).Nodes; len(n) != 1 || n[0].CPU.Used == nil || n[0].CPU.Online == nil || n[0].Pods == nil || *n[0].Pods < 10 {
		t.Errorf("%+v", n)
	}
	out, errs, err = live.noderes(t, user, "top", "pods", "gone", "throttled", "-n", live.pods[0].Namespace)
	if err == nil || !bytes.Contains(out, []byte("throttled")) || !bytes.Contains(errs, []byte(`pods "gone" not found in namespace "`+live.pods[0].Namespace+`"`)) {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}

// TestTopRights: without the kubelets the table stands, and a line tells what would fill it; without the pods there is none.
func TestTopRights(t *testing.T) {
	all := rightsOf(apiOnly(t))
	user := live.userWith(t, slices.DeleteFunc(slices.Clone(all), func(r right) bool { return r.resource == "nodes/proxy" }))
	out, errs, err := live.noderes(t, user, "top", "pods", "-n", live.pods[0].Namespace, "--node", recording)
	if err != nil || !bytes.Contains(out, []byte("throttled")) || string(errs) != "warning: node "+recording+": Forbidden: needs get nodes/proxy\n" {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	t.Run("none", func(t *testing.T) {
		nobody := live.userWith(t, nil)
		for _, c := range []struct {
			need right
			args []string
		}{{right{verb: "list", resource: "pods"}, []string{"top", "pods"}}, {right{verb: "list", resource: "nodes"}, []string{"top", "nodes"}}} {
			out, errs, err := live.noderes(t, nobody, c.args...)
			if err == nil || len(out) > 0 || !oneError(errs, c.need) {
				t.Errorf("%v: %v\n%s%s", c.args, err, out, errs)
			}
		}
	})
}

var metric = regexp.MustCompile(`(?m)^(container_[a-z_]+)(\{.*\}) (\S+) (\d+)$`)

// advance makes the kubelet's metrics those of ten seconds later, in which every cgroup used 4 s of CPU.
func advance(body []byte) []byte {
	return metric.ReplaceAllFunc(body, func(line []byte) []byte {
		m := metric.FindSubmatch(line)
		value, at := string(m[3]), string(m[4])
		if string(m[1]) == "container_cpu_usage_seconds_total" {
			v, _ := strconv.ParseFloat(value, 64)
			value = strconv.FormatFloat(v+4, 'f', -1, 64)
		}
		ms, _ := strconv.ParseInt(at, 10, 64)
		return fmt.Appendf(nil, "%s%s %s %d", m[1], m[2], value, ms+10000)
	})
}

// TestTopWatch: the second reading gives rates, one that fails is a line, and what does not change is read once.
func TestTopWatch(t *testing.T) {
	user := live.userWith(t, rightsOf(apiOnly(t)))
	recorded := live.kubelet.Answer(standin.CAdvisor, nil)
	defer live.kubelet.Answer(standin.CAdvisor, recorded)
	before, configz := live.kubelet.Asked(standin.CAdvisor), live.kubelet.Asked(standin.Configz)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // new counters for each reading
		defer close(done)
		body, seen := recorded, before
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if n := live.kubelet.Asked(standin.CAdvisor); n > seen {
				seen, body = n, advance(body)
				live.kubelet.Answer(standin.CAdvisor, body)
			}
		}
	}()
	out, errs, err := live.noderes(t, user, "top", "pods", "throttled", "-n", live.pods[0].Namespace, "--watch", "--interval", "1s", "--count", "3", "-o", "json")
	close(stop)
	<-done
	if err != nil || len(errs) > 0 {
		t.Fatalf("%v\n%s", err, errs)
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for n := range 3 {
		var table topTable
		if err := decoder.Decode(&table); err != nil || len(table.Pods) != 1 {
			t.Fatalf("document %d: %v\n%s", n, err, out)
		}
		r := table.Pods[0]
		if n == 0 && (r.SampleSeconds != nil || r.CPU.Over != "kubelet") || n > 0 && (r.SampleSeconds == nil || *r.SampleSeconds != 10 || r.CPU.Used == nil || *r.CPU.Used < 0.399 || *r.CPU.Used > 0.401) {
			t.Errorf("document %d: %+v", n, r)
		}
	}
	if asked := live.kubelet.Asked(standin.CAdvisor) - before; asked != 3 {
		t.Errorf("%d readings of the metrics", asked)
	}
	if asked := live.kubelet.Asked(standin.Configz) - configz; asked != 1 {
		t.Errorf("%d readings of the configuration", asked)
	}
}

// TestTopWatchSurvives: the API server is killed between two readings, and interrupted the command ends without an error.
func TestTopWatchSurvives(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	user := live.userWith(t, rightsOf(apiOnly(t)))
	cmd := exec.CommandContext(ctx, live.plugin, "top", "pods", "--node", recording, "--watch", "--interval", "1s", "--timeout", "2s")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"HOME=" + cmd.Dir, "KUBECONFIG=" + user}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tables, lines := make(chan string, 100), make(chan string, 100)
	follow := func(r io.Reader, word string, to chan<- string) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := r.Read(buffer)
			if strings.Contains(string(buffer[:n]), word) {
				to <- string(buffer[:n])
			}
			if err != nil {
				close(to)
				return
			}
		}
	}
	go follow(stdout, "throttled", tables)
	go follow(stderr, "no reading", lines)
	next := func(from <-chan string, what string) string {
		t.Helper()
		select {
		case text, ok := <-from:
			if !ok {
				t.Fatalf("ended before %s", what)
			}
			return text
		case <-ctx.Done():
			t.Fatalf("no %s", what)
		}
		return ""
	}
	if text := next(tables, "table"); !strings.Contains(text, "the first reading: rates need two") || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	live.KillAPI()
	next(lines, "line of a reading that failed")
	if err := live.StartAPI(ctx); err != nil {
		t.Fatal(err)
	}
	for len(tables) > 0 {
		<-tables
	}
	next(tables, "table after the API server came back")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	go func() { // to the end
		for range tables {
		}
	}()
	for range lines {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
