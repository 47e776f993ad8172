package diagnose

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// apiOnly is the recorded node as its API told of it, and whole. Metrics are what
// its kubelet says then.
func apiOnly(t *testing.T, metrics func(string) string) (only, whole *snapshot.Snapshot) {
	t.Helper()
	whole = openTestBundle(t, "testdata/cases/smt2-k612/bundle.tar.gz")
	tree := fstest.MapFS{}
	for _, name := range []string{"bundle.json", "cluster/pods.json", "cluster/nodes.json", "nodes/smt2/configz.json", "nodes/smt2/stats-summary.json", "nodes/smt2/metrics-cadvisor.txt"} {
		data, err := whole.File(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".txt") && metrics != nil {
			data = []byte(metrics(string(data)))
		}
		tree[name] = &fstest.MapFile{Data: data}
	}
	only, err := snapshot.FromFS(tree)
	if err != nil {
		t.Fatal(err)
	}
	return only, whole
}

// What the kubelet tells of a node is what its files tell, as far as it goes, and
// where it does not go nothing is said.
func TestTopByTheKubelet(t *testing.T) {
	only, whole := apiOnly(t, nil)
	for _, containers := range []bool{false, true} {
		o := TopOptions{SortBy: "name", Containers: containers}
		told, err := TopPods(only, o)
		if err != nil {
			t.Fatal(err)
		}
		read, err := TopPods(whole, o)
		if err != nil || len(read.Pods) < 10 {
			t.Fatal(len(read.Pods), err)
		}
		// oom-group's container is between two lives in the one and not in the other.
		index := map[string]report.TopPod{}
		for _, r := range told.Pods {
			index[r.Name+"/"+r.Container] = r
		}
		compared := 0
		for _, want := range read.Pods {
			name := want.Name + "/" + want.Container
			got, ok := index[name]
			if !ok {
				t.Errorf("%s is not there", name)
				continue
			}
			if got.SampleSeconds != nil || got.CPU.Used != nil && got.CPU.Over != report.OverKubelet || got.CPUs != nil {
				t.Errorf("%s: of one reading %+v", name, got)
			}
			if got.CPU.Quota == nil || want.CPU.Quota == nil {
				continue
			}
			compared++
			if *got.CPU.Quota != *want.CPU.Quota || *got.CPU.Period != *want.CPU.Period || *got.Memory.Max != *want.Memory.Max {
				t.Errorf("%s: limits %+v %+v, by its files %+v %+v", name, got.CPU, got.Memory.Max, want.CPU, want.Memory.Max)
			}
			// Read some seconds before.
			if a, b := float64(*got.Memory.Current), float64(*want.Memory.Current); math.Abs(a-b) > 0.05*b+1<<20 {
				t.Errorf("%s: memory %.0f, by its files %.0f", name, a, b)
			}
			a, b := got.Memory.NonReclaimable, want.Memory.NonReclaimable
			if (a.Share == nil) != (b.Share == nil) || !a.AtLeast || a.Share != nil && *a.Share > *b.Share+0.01 {
				t.Errorf("%s: not reclaimable %+v, by its files %+v", name, a, b)
			}
			if x, y := got.CPU.Throttled, want.CPU.Throttled; x == nil || x.Unlimited != y.Unlimited || !x.Unlimited && x.Over != report.OverLifetime {
				t.Errorf("%s: throttled %s, by its files %s", name, throttledText(x), throttledText(y))
			}
		}
		if compared < 10 {
			t.Errorf("only %d rows were compared", compared)
		}
	}
	nodes, err := TopNodes(only, TopOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := nodes.Nodes[0]
	if n.CPU.Over != report.OverKubelet || n.CPU.Source != statsSource || *n.CPU.Online != 8 || math.Abs(*n.CPU.Used-2.15) > 0.01 ||
		n.Pressure.CPU.Over != report.OverAvg10 || math.Abs(n.Pressure.CPU.Share-0.9406) > 1e-9 || *n.Memory.Available != 5128286208 || n.OOMKills != nil || n.Exclusive != nil || *n.Pods != 17 {
		t.Errorf("node %+v", n)
	}
}

var metricLine = regexp.MustCompile(`(?m)^(container_[a-z_]+)\{(.*)\} (\S+) (\d+)$`)

// later is what the kubelet says ten seconds later, when each cgroup has had its
// counters grow by so much a second.
func later(growth map[string]float64) func(string) string {
	return func(text string) string {
		return metricLine.ReplaceAllStringFunc(text, func(line string) string {
			m := metricLine.FindStringSubmatch(line)
			at, _ := strconv.ParseInt(m[4], 10, 64)
			value := m[3]
			if by, ok := growth[m[1]]; ok {
				v, _ := strconv.ParseFloat(value, 64)
				value = strconv.FormatFloat(v+10*by, 'f', -1, 64)
			}
			return fmt.Sprintf("%s{%s} %s %d", m[1], m[2], value, at+10000)
		})
	}
}

// Two readings make rates, of every cgroup and of the node.
func TestTopRates(t *testing.T) {
	first, _ := apiOnly(t, nil)
	second, _ := apiOnly(t, later(map[string]float64{
		"container_cpu_usage_seconds_total": 0.4, "container_cpu_cfs_periods_total": 10, "container_cpu_cfs_throttled_periods_total": 2.5,
		"container_pressure_cpu_waiting_seconds_total": 0.125, "container_pressure_io_waiting_seconds_total": 0.25, "container_pressure_memory_waiting_seconds_total": 3,
	}))
	before := ReadUsage(first, nil)
	use := ReadUsage(second, before)
	rows := func(u Usage) []report.TopPod {
		t.Helper()
		top, err := TopPods(second, TopOptions{Names: []string{"throttled", "excl-a"}, SortBy: "name", Usage: u})
		if err != nil || len(top.Pods) != 2 {
			t.Fatal(top, err)
		}
		return top.Pods
	}
	got := rows(use)
	if r := got[0]; math.Abs(*r.CPU.Used-0.4) > 1e-6 || r.CPU.Over != "" || !r.CPU.Throttled.Unlimited || *r.SampleSeconds != 10 {
		t.Errorf("excl-a: %+v", r.CPU)
	}
	r := got[1]
	if math.Abs(*r.CPU.Used-0.4) > 1e-6 || throttledText(r.CPU.Throttled) != "0.250 25/100 sample container app" || r.CPU.Waiting.Over != report.OverSample || math.Abs(r.CPU.Waiting.Share-0.125) > 1e-6 {
		t.Errorf("throttled: %+v, %s, %+v", r.CPU, throttledText(r.CPU.Throttled), r.CPU.Waiting)
	}
	if alone := rows(nil); alone[1].SampleSeconds != nil {
		t.Errorf("of one reading: %+v", alone[1])
	}
	nodes, err := TopNodes(second, TopOptions{Usage: use})
	if err != nil {
		t.Fatal(err)
	}
	n := nodes.Nodes[0]
	if math.Abs(*n.CPU.Used-0.4) > 1e-6 || n.CPU.Source != cadvisorSource || math.Abs(n.Pressure.IO.Share-0.25) > 1e-6 || n.Pressure.Memory.Share != 1 || *n.SampleSeconds != 10 {
		t.Errorf("node %+v", n)
	}

	// A kubelet that does not answer once: its last counters wait for the next time,
	// and are not shown as this one's.
	silent, err := snapshot.FromFS(fstest.MapFS{"bundle.json": {Data: []byte(`{"formatVersion":1,"capturedAt":"2026-11-30T07:07:47Z"}`)},
		"cluster/pods.json": {Data: []byte(`{"kind":"List","items":[{"metadata":{"name":"throttled","namespace":"shop","uid":"2f792ede-09a3-4cdf-9c2b-6e5bdeb7b023"},"spec":{"nodeName":"smt2","containers":[{"name":"app"}]},"status":{"phase":"Running"}}]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	missed := ReadUsage(silent, before)
	top, err := TopPods(silent, TopOptions{Usage: missed})
	if err != nil || len(top.Pods) != 1 || top.Pods[0].Memory.Current != nil || top.Pods[0].CPU.Throttled != nil {
		t.Errorf("%+v, %v", top.Pods, err)
	}
	if got := rows(ReadUsage(second, missed)); got[1].SampleSeconds == nil || *got[1].SampleSeconds != 10 {
		t.Errorf("after a reading that failed: %+v", got[1])
	}
}

// A pod that was replaced by one of its name has nothing of the old one's.
func TestTopOfAnotherPod(t *testing.T) {
	only, _ := apiOnly(t, func(text string) string {
		return strings.ReplaceAll(text, "2f792ede_09a3_4cdf_9c2b_6e5bdeb7b023", "00000000_09a3_4cdf_9c2b_6e5bdeb7b023")
	})
	top, err := TopPods(only, TopOptions{Names: []string{"throttled"}})
	if err != nil || len(top.Pods) != 1 || top.Pods[0].Memory.Current != nil || top.Pods[0].CPU.Throttled != nil {
		t.Errorf("%+v, %v", top.Pods, err)
	}
}

// Kills that the kubelet saw are at least those; that it saw none tells nothing.
func TestTopKillsByTheKubelet(t *testing.T) {
	only, _ := apiOnly(t, func(text string) string {
		return regexp.MustCompile(`(?m)^(container_oom_events_total\{container="app",.*pod="throttled"\}) 0 `).ReplaceAllString(text, "$1 3 ")
	})
	top, err := TopPods(only, TopOptions{Names: []string{"throttled", "frac"}, SortBy: "oom"})
	if err != nil || top.Pods[0].Name != "throttled" || *top.Pods[0].OOMKills != 3 || !top.Pods[0].OOMKillsAtLeast || top.Pods[1].OOMKills != nil {
		t.Errorf("%+v, %v", top.Pods, err)
	}
}
