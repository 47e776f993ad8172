package diagnose

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// What an exclusive set is explained with is the replay's own run.
func TestWhyTheseCPUs(t *testing.T) {
	single := map[string]any{"topologyManagerPolicy": "single-numa-node"}
	for _, tc := range []struct {
		name string
		on   []cpuRow
		with map[string]any
		pool string
		cpus string
		size string
		want []string
	}{
		{"a core and a thread", adjacent(8, 2, 8, 8), nil, "0-1,5-7", "2-4", "3", []string{"taken: whole core 2-3, then single CPU 4"}},
		{"a NUMA node and a core", adjacent(16, 2, 8, 8), nil, "0-7", "8-15", "8", []string{"taken: whole NUMA node 8-15"}},
		{"hints", adjacent(8, 2, 4, 4), single, "0-1,4-7", "2-3", "2", []string{"cpu prefers NUMA nodes 0 or 1 (1 wider", "merged: NUMA node 0", "whole core 2-3"}},
		{"one node", adjacent(8, 2, 4, 4), single, "0-3", "4-7", "4", []string{"cpu prefers NUMA node 1 (1 wider or further set would do)"}},
		{"caches", adjacent(16, 2, 16, 4), withOptions(preferUncore), "0-3,8-15", "4-7", "4", []string{"whole last level cache 4-7"}},
		{"spread", adjacent(8, 1, 4, 4), withOptions("distribute-cpus-across-numa"), "0,3,6-7", "1-2,4-5", "4", []string{"2 CPUs from each of NUMA nodes 0-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := onMachine(tc.on, tc.with, tc.pool, holds("a app "+tc.cpus), whole("a", 1, tc.size))(t).explain(Options{})
			for _, f := range r.Findings {
				if f.Code != report.ExclusiveCPUs {
					continue
				}
				for _, w := range tc.want {
					if !strings.Contains(f.Arithmetic, w) {
						t.Errorf("lacks %q: %s", w, f.Arithmetic)
					}
				}
				return
			}
			t.Error("no exclusive CPUs")
		})
	}
}

// The second container's part is its own.
func TestWhyOfTheSecondContainer(t *testing.T) {
	p := whole("a", 1, "2")
	second := *p.Spec.Containers[0].DeepCopy()
	second.Name = "b"
	p.Spec.Containers = append(p.Spec.Containers, second)
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "b", State: p.Status.ContainerStatuses[0].State})
	r := onMachine(adjacent(8, 2, 8, 8), nil, "0-1,6-7", holds("a app 2-3", "a b 4-5"), p)(t).explain(Options{})
	for _, f := range r.Findings {
		if f.Code == report.ExclusiveCPUs && f.Subject.Container == "b" && f.Arithmetic != "taken: whole core 4-5" {
			t.Error(f.Arithmetic)
		}
	}
}
