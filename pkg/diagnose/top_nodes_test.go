package diagnose

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func TestTopNodes(t *testing.T) {
	text := func(r report.TopNode) string {
		used := "?"
		if r.CPU.Used != nil {
			used = fmt.Sprintf("%.3f", *r.CPU.Used)
		}
		return fmt.Sprintf("%s of %s, psi %s %s %s, memory %s + %s, kills %s, pods %s, cpus %s shared %s", used, valueText(r.CPU.Online),
			waitingText(r.Pressure.CPU), waitingText(r.Pressure.Memory), waitingText(r.Pressure.IO),
			valueText(r.Memory.WorkingSet), valueText(r.Memory.Available), valueText(r.OOMKills), valueText(r.Pods), valueText(r.Exclusive), valueText(r.Shared))
	}
	whole := func(archive string) func(testing.TB) *bundle {
		return func(t testing.TB) *bundle {
			files, err := archiveFiles(archive)
			if err != nil {
				t.Fatal(err)
			}
			b := throttledPod(t)
			b.files = maps.Clone(files)
			b.pods, err = itemsOf[corev1.Pod](files["cluster/pods.json"])
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	recording := whole("smt2-k612/bundle")
	samples := func(b *bundle, file string) (out []string) {
		for _, k := range b.samples() {
			out = append(out, fmt.Sprintf("nodes/%s/samples/%d/root/%s", b.node, k, file))
		}
		return append(out, b.root(file))
	}
	drop := func(b *bundle, files ...string) {
		for _, file := range files {
			for _, f := range samples(b, file) {
				delete(b.files, f)
			}
		}
	}
	const (
		rest    = "memory 1102618624 + 5128286208, kills 143, pods 17, cpus 2-5 shared 0-1,6-7"
		sampled = "2.419 of 8, psi 0.833 sample 0.000 sample 0.000 sample, "
	)
	for _, tc := range []struct {
		name string
		edit func(*bundle)
		want string
	}{
		{"as recorded", func(*bundle) {}, sampled + rest},
		// The recorder read /proc and the cgroups some seconds apart.
		{"by /proc/stat", func(b *bundle) { drop(b, "sys/fs/cgroup/cpu.stat") }, strings.Replace(sampled, "2.419", "2.236", 1) + rest},
		{"by /proc/pressure", func(b *bundle) { drop(b, "sys/fs/cgroup/cpu.pressure", "sys/fs/cgroup/io.pressure") },
			"2.419 of 8, psi 0.724 sample 0.000 sample 0.004 sample, " + rest},
		{"one reading", (*bundle).oneReading, "? of 8, psi 0.727 avg10 0.000 avg10 0.000 avg10, " + rest},
		{"nothing of the node but its name", func(b *bundle) { b.forget("nodes/" + b.node) },
			"? of ?, psi ? ? ?, memory ? + ?, kills ?, pods 17, cpus ? shared ?"},
		{"no pods", func(b *bundle) { b.pods = nil; delete(b.files, "cluster/pods.json") }, sampled + strings.Replace(rest, "pods 17", "pods ?", 1)},
		{"policy none", func(b *bundle) { b.config(map[string]any{"cpuManagerPolicy": "none"}) },
			sampled + strings.Replace(rest, "cpus 2-5 shared 0-1,6-7", "cpus  shared 0-7", 1)},
		{"memory without the kubelet's summary", func(b *bundle) { delete(b.files, "nodes/smt2/stats-summary.json") },
			sampled + strings.Replace(rest, "1102618624 + 5128286208", "1116643328 + 5114261504", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := recording(t)
			tc.edit(b)
			top, err := TopNodes(b.open(), TopOptions{})
			if err != nil || len(top.Nodes) != 1 {
				t.Fatalf("%d rows, %v", len(top.Nodes), err)
			}
			if got := text(top.Nodes[0]); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
	top, err := TopNodes(recording(t).open(), TopOptions{Names: []string{"nosuch", "smt2"}, SortBy: "pods"})
	if !isNotFound(err, "nosuch") || len(top.Nodes) != 1 || top.SortBy != "pods" {
		t.Errorf("%+v, %v", top, err)
	}
}
