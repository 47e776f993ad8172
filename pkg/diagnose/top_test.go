package diagnose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/noderes/kubectl-noderes/pkg/cgroup"
	"github.com/noderes/kubectl-noderes/pkg/report"
	"github.com/noderes/kubectl-noderes/pkg/snapshot"
)

// Whatever file is missing or damaged, no value becomes another: it stays, it is
// unknown, it is said to be a lower bound, or it speaks of another time or level.
func TestTopNeverInvents(t *testing.T) {
	b := podLevelPod(t)
	lighten(b)
	delete(b.files, "gaps.json")
	read := readTree{b.fsys(), map[string]bool{}}
	whole := topTree(t, read)
	damages := []string{"", "garbage", "18446744073709551616\n", "-1\n", "\x00"}
	tried := 0
	for i, file := range slices.Sorted(maps.Keys(read.MapFS)) {
		if !read.read[file] || file == "bundle.json" || file == "cluster/pods.json" {
			continue
		}
		tried++
		damaged := tree{maps.Clone(read.MapFS), read.folders}
		entry := *damaged.MapFS[file]
		entry.Data = []byte(damages[i%len(damages)])
		damaged.MapFS[file] = &entry
		if invented := inventions(whole, topTree(t, damaged)); len(invented) > 0 {
			t.Errorf("%s is %q: %s", file, entry.Data, strings.Join(invented, "; "))
		}
		if !strings.Contains(file, "/samples/1/") {
			continue
		}
		// Gone from both samples: one would stand in for the other.
		delete(damaged.MapFS, file)
		delete(damaged.MapFS, strings.Replace(file, "/samples/1/", "/samples/0/", 1))
		if invented := inventions(whole, topTree(t, damaged)); len(invented) > 0 {
			t.Errorf("%s is lost: %s", file, strings.Join(invented, "; "))
		}
	}
	if tried < 50 {
		t.Errorf("only %d files were read", tried)
	}
}

// topTree are the rows of pods, containers and nodes of a tree.
func topTree(t *testing.T, fsys fs.FS) []map[string]any {
	t.Helper()
	s, err := snapshot.FromFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	add := func(top report.Top, err error) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Pods, Nodes []map[string]any }
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		rows = append(append(rows, doc.Pods...), doc.Nodes...)
	}
	add(TopPods(s, TopOptions{SortBy: "name"}))
	add(TopPods(s, TopOptions{SortBy: "name", Containers: true}))
	add(TopNodes(s, TopOptions{SortBy: "name"}))
	return rows
}

// inventions are values that the whole has otherwise.
func inventions(whole, damaged []map[string]any) []string {
	if len(whole) != len(damaged) {
		return []string{fmt.Sprintf("%d rows, then %d", len(whole), len(damaged))}
	}
	var out []string
	var compare func(path string, a, b any)
	compare = func(path string, a, b any) {
		was, okA := a.(map[string]any)
		is, okB := b.(map[string]any)
		if !okA || !okB {
			if !cmp.Equal(a, b) {
				out = append(out, fmt.Sprintf("%s was %v, is %v", path, a, b))
			}
			return
		}
		for _, key := range []string{"over", "level", "cgroup", "source", "atLeast"} {
			if is[key] != was[key] {
				return // of another time or place, and says so
			}
		}
		for key, v := range is {
			compare(path+"."+key, was[key], v)
		}
	}
	for i := range whole {
		compare(fmt.Sprint(whole[i]["name"], "/", whole[i]["container"]), whole[i], damaged[i])
	}
	return out
}

// Values stand from the largest to the smallest, then the rows that have none of
// the kind, then those of which it is not known; equal ones by name.
func TestTopOrder(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	count := func(v uint64) *uint64 { return &v }
	row := func(name string, edit func(*report.TopPod)) report.TopPod {
		r := report.TopPod{Namespace: "b", Name: name}
		if edit != nil {
			edit(&r)
		}
		return r
	}
	rows := []report.TopPod{
		row("unknown", nil),
		row("none", func(r *report.TopPod) {
			r.CPU.Throttled = &report.TopThrottled{Unlimited: true}
			r.Memory = report.TopMemory{Max: &report.Limit{Unlimited: true}, NonReclaimable: &report.TopNonReclaimable{Max: &report.Limit{Unlimited: true}}}
			r.CPUs = &report.TopCPUSet{Shared: true}
		}),
		row("zero", func(r *report.TopPod) {
			r.CPU = report.TopCPU{Used: share(0), Throttled: &report.TopThrottled{Share: share(0)}, Waiting: &report.TopWaiting{}}
			r.Memory = report.TopMemory{Current: count(0), Share: share(0), NonReclaimable: &report.TopNonReclaimable{Share: share(0)}}
			r.OOMKills = count(0)
			r.CPUs = &report.TopCPUSet{Exclusive: "7"}
		}),
		row("most", func(r *report.TopPod) {
			r.CPU = report.TopCPU{Used: share(9), Throttled: &report.TopThrottled{Share: share(1)}, Waiting: &report.TopWaiting{Share: 1}}
			r.Memory = report.TopMemory{Current: count(math.MaxUint64), Share: share(1), NonReclaimable: &report.TopNonReclaimable{Share: share(1)}}
			r.OOMKills = count(math.MaxUint64)
			r.CPUs = &report.TopCPUSet{Exclusive: "0-3"}
		}),
		row("a", nil),
		{Namespace: "a", Name: "z", Container: "y"},
		{Namespace: "a", Name: "z", Container: "x"},
	}
	unknown := []string{"a/z/x", "a/z/y", "b/a/", "b/unknown/"}
	for _, column := range TopPodColumns() {
		want := append([]string{"b/most/", "b/zero/", "b/none/"}, unknown...)
		switch column {
		case "name":
			want = []string{"a/z/x", "a/z/y", "b/a/", "b/most/", "b/none/", "b/unknown/", "b/zero/"}
		case "wait", "cpu", "memory", "oom": // none is not a thing there
			want = append([]string{"b/most/", "b/zero/"}, "a/z/x", "a/z/y", "b/a/", "b/none/", "b/unknown/")
		}
		got := slices.Clone(rows)
		by, err := sortRows(got, topPodColumns, column, byPodName)
		if err != nil || by != column {
			t.Fatalf("%q: %q, %v", column, by, err)
		}
		var names []string
		for _, r := range got {
			names = append(names, r.Namespace+"/"+r.Name+"/"+r.Container)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", column, diff)
		}
	}
	if by, err := sortRows(slices.Clone(rows), topPodColumns, "", byPodName); by != "throttled" || err != nil {
		t.Errorf("default: %q, %v", by, err)
	}
	if _, err := sortRows(rows, topPodColumns, "NAME", byPodName); err == nil {
		t.Error("a column that is none")
	}
}

func TestTopPodsChosen(t *testing.T) {
	s := openTestBundle(t, "testdata/cases/smt2-k612/bundle.tar.gz")
	names := func(o TopOptions) []string {
		t.Helper()
		top, err := TopPods(s, o)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range top.Pods {
			out = append(out, strings.Trim(r.Name+"/"+r.Container, "/"))
		}
		return out
	}
	all := names(TopOptions{SortBy: "name"})
	if len(all) != 17 || slices.Contains(all, "reject-smt") {
		t.Errorf("all: %q", all)
	}
	if got := names(TopOptions{Names: []string{"reject-smt", "oom", "oom"}, SortBy: "name"}); !slices.Equal(got, []string{"oom", "reject-smt"}) {
		t.Errorf("by name: %q", got)
	}
	if got := names(TopOptions{Names: []string{"sidecar"}, Containers: true, SortBy: "name"}); !slices.Equal(got, []string{"sidecar/app", "sidecar/proxy"}) {
		t.Errorf("containers: %q", got)
	}
	if got := names(TopOptions{Node: "smt2", Namespace: "shop", SortBy: "name"}); !slices.Equal(got, all) {
		t.Errorf("of node and namespace: %q", got)
	}
	if got := names(TopOptions{Namespace: "nosuch"}); len(got) != 0 {
		t.Errorf("of no namespace: %q", got)
	}
	if _, err := TopPods(s, TopOptions{Node: "nosuch"}); !isNotFound(err, "nosuch") {
		t.Errorf("no such node: %v", err)
	}
	top, err := TopPods(s, TopOptions{Names: []string{"oom", "nosuch"}})
	if !isNotFound(err, "nosuch") || len(top.Pods) != 1 {
		t.Errorf("one of two: %d rows, %v", len(top.Pods), err)
	}
	if _, err := TopPods(s, TopOptions{SortBy: "age"}); err == nil {
		t.Error("sorted by a column that is none")
	}
}

func isNotFound(err error, name string) bool {
	var missing *NotFoundError
	return errors.As(err, &missing) && missing.Name == name
}

// One pod and nothing else: a row of names, and gaps.
func TestTopOfOnePod(t *testing.T) {
	b := throttledPod(t)
	b.files = map[string]string{"bundle.json": b.files["bundle.json"]}
	b.nodes, b.events = nil, nil
	for _, containers := range []bool{false, true} {
		got := topRow(b, TopOptions{Containers: containers})
		want := report.TopPod{Namespace: "shop", Name: "throttled", Node: "smt2", Phase: "Running"}
		if containers {
			want.Container = "app"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	top, err := TopPods(b.open(), TopOptions{})
	if err != nil || len(top.Gaps) == 0 {
		t.Errorf("%d gaps, %v", len(top.Gaps), err)
	}
	if nodes, err := TopNodes(b.open(), TopOptions{}); err != nil || nodes.Nodes == nil || len(nodes.Nodes) > 0 {
		t.Errorf("nodes: %+v, %v", nodes.Nodes, err)
	}
	b.pods = nil
	if _, err := TopPods(b.open(), TopOptions{}); !errors.Is(err, snapshot.ErrNotCollected) {
		t.Errorf("no pods: %v", err)
	}

	// On no node it is shown by name only.
	b = throttledPod(t)
	b.pod().Spec.NodeName = ""
	if top, err := TopPods(b.open(), TopOptions{}); err != nil || len(top.Pods) > 0 {
		t.Errorf("unscheduled: %d rows, %v", len(top.Pods), err)
	}
	if got := topRow(b, TopOptions{Names: []string{"throttled"}}); got.Node != "" || got.CPU.Quota != nil || got.CPUs != nil {
		t.Errorf("unscheduled by name: %+v", got)
	}
}

// openCount counts how often each file is opened.
type openCount struct {
	tree
	opened map[string]int
}

func (t openCount) Open(name string) (fs.File, error) {
	t.opened[name]++
	return t.tree.Open(name)
}

// What pods share is not read for each of them.
func TestTopReadsOnce(t *testing.T) {
	const pods = 30
	b := throttledPod(t)
	lighten(b)
	dir := b.dir(podGroup)
	old := strings.ReplaceAll(cgroup.PodUID(b.pod()), "-", "_")
	first := b.clone()
	for i := range pods {
		p := first.pods[0].DeepCopy()
		uid := fmt.Sprintf("%08x-0000-0000-0000-000000000000", i)
		p.Name, p.UID = fmt.Sprintf("web-%03d", i), types.UID(uid)
		b.pods = append(b.pods, *p)
		for file, text := range first.files {
			if strings.Contains(file, dir+"/") {
				b.files[strings.ReplaceAll(file, old, strings.ReplaceAll(uid, "-", "_"))] = text
			}
		}
	}
	files := openCount{b.fsys(), map[string]int{}}
	s, err := snapshot.FromFS(files)
	if err != nil {
		t.Fatal(err)
	}
	top, err := TopPods(s, TopOptions{})
	if err != nil || len(top.Pods) != pods+1 {
		t.Fatalf("%d rows, %v", len(top.Pods), err)
	}
	for _, r := range top.Pods {
		if got := throttledText(r.CPU.Throttled); got != "1.000 300/300 sample container app" {
			t.Fatalf("%s: %s", r.Name, got)
		}
	}
	total := 0
	for file, n := range files.opened {
		if total += n; n > 20 && !strings.Contains(file, "-pod") {
			t.Errorf("%s opened %d times", file, n)
		}
	}
	if perPod := total / pods; perPod > 100 {
		t.Errorf("%d files opened for each pod", perPod)
	}
}
