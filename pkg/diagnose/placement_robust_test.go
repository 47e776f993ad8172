package diagnose

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// Whatever one file of a node says, its placement is told without a panic, and
// a replay is not claimed from a checkpoint that was spoilt.
func TestPlacementOfDamage(t *testing.T) {
	wide := recorded("numa4-k61/bundle", "mill", "wide")
	whole := wide(t)
	kinds := slices.Sorted(maps.Keys(damages))
	for i, file := range slices.Sorted(maps.Keys(whole.files)) {
		_, inNode, _ := strings.Cut(file, "/root/")
		tried := kinds
		switch {
		case strings.HasPrefix(inNode, "var/"), strings.HasSuffix(file, "configz.json"):
		case *exhaustive && (strings.HasPrefix(inNode, "sys/devices/system/") || strings.HasSuffix(file, "memory.numa_stat")):
		case strings.HasPrefix(inNode, "sys/devices/system/") && i%8 == 0:
			tried = kinds[i/8%len(kinds):][:1]
		default:
			continue
		}
		for _, kind := range tried {
			text := damages[kind]
			b := wide(t)
			b.files[file] = text
			if kind == "lost" {
				delete(b.files, file)
			}
			r, err := Placement(b.open(), b.node, Options{})
			if err != nil {
				t.Errorf("%s of %s: %v", kind, file, err)
				continue
			}
			for _, w := range malformed(r) {
				t.Errorf("%s of %s: %s", kind, file, w)
			}
			for _, f := range r.Findings {
				if f.Code == report.PlacementReplayed && strings.HasSuffix(file, "cpu_manager_state") {
					t.Errorf("%s of %s: %s", kind, file, f.Summary)
				}
			}
		}
	}
}

// Where only PodResources names a set, the facts say so.
func TestPlacementByPodResources(t *testing.T) {
	b := onMachine(adjacent(8, 2, 8, 8), nil, "0-1,4-7", nil, whole("a", 1, "2"))(t)
	b.forget(b.root("var"))
	b.files["nodes/n1/podresources.json"] = `{"list":{"pod_resources":[{"name":"a","namespace":"ns","containers":[{"name":"app","cpu_ids":["3","2"]}]}]}}`
	r, err := Placement(b.open(), "n1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Placement.Containers) != 1 || *r.Placement.Containers[0].CPUs != "2-3" || r.Placement.Containers[0].Source != podResourcesSource {
		data, _ := json.Marshal(r.Placement)
		t.Error(string(data))
	}
	// With the checkpoint both are shown.
	b = onMachine(adjacent(8, 2, 8, 8), nil, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2"))(t)
	b.files["nodes/n1/podresources.json"] = `{"list":{"pod_resources":[{"name":"a","namespace":"ns","containers":[{"name":"app","cpu_ids":[4]}]}]}}`
	data, _ := json.Marshal(b.explain(Options{}).Findings)
	if !strings.Contains(string(data), "names others than the checkpoint") {
		t.Error(string(data))
	}
}
