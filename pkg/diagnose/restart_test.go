package diagnose

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func restartsFamily() family {
	one, two := adjacent(8, 2, 8, 8), adjacent(8, 2, 4, 4)
	aligned := withOptions("full-pcpus-only")
	const refused = "would-be-refused-now@ proven"
	full := onMachine(one, aligned, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "4"))
	f := family{name: "restarts", codes: []report.Code{report.WouldBeRefusedNow, report.ReadmissionRefused, report.KubeletCheckpointInvalid}, cases: []ruleCase{
		{name: "whole cores of a kubelet to 1.36", on: full, edit: withVersion("v1.36.3"), want: []string{refused}, text: []string{"available physical CPUs = 2", "2-5", "before it sees"}},
		{name: "asked about the node", on: full, edit: withVersion("v1.35.1"), node: true, want: []string{refused}},
		{name: "from 1.37 on it keeps them", on: full, want: nil},
		{name: "as many whole cores are free", on: onMachine(one, aligned, "0-1,4-7", holds("a app 2-3"), whole("a", 1, "2")), edit: withVersion("v1.36.3"), want: nil},
		{name: "another pod of that node", on: onMachine(one, aligned, "0-1,6-7", holds("b app 2-5"), whole("a", 2, "500m"), whole("b", 1, "4")), edit: withVersion("v1.36.3"), want: nil},
		{name: "a version without rules of its own", on: full, edit: withVersion("v1.29.0"), want: nil},
		{name: "CPUs of two NUMA nodes, and single-numa-node since", on: onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "4")),
			want: []string{refused}, text: []string{"Topology locality"}},
		{name: "CPUs of one NUMA node", on: onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-3", holds("a app 4-7"), whole("a", 1, "4")), want: nil},
		{name: "a label that went", on: onMachine(one, nil, "0-7", nil, whole("a", 1, "500m")), edit: func(b *bundle) { b.pod().Spec.NodeSelector = map[string]string{"disk": "ssd"} },
			want: []string{refused}, text: []string{"NodeAffinity", "no such label"}},
		{name: "a label that it has", on: onMachine(one, nil, "0-7", nil, whole("a", 1, "500m")), edit: func(b *bundle) {
			b.pod().Spec.NodeSelector = map[string]string{"disk": "ssd"}
			b.object().Labels = map[string]string{"disk": "ssd"}
		}, want: nil},
		{name: "less is allocatable than runs, and it is the younger", on: onMachine(one, nil, "0-7", nil, whole("a", 2, "4500m"), whole("b", 1, "2500m")), edit: func(b *bundle) { b.object().Status.Allocatable = amounts("cpu", "6") },
			want: []string{refused}, text: []string{"OutOfcpu", "2500m"}},
		{name: "less is allocatable than runs, and it is the older", on: onMachine(one, nil, "0-7", nil, whole("a", 1, "4500m"), whole("b", 2, "2500m")), edit: func(b *bundle) { b.object().Status.Allocatable = amounts("cpu", "6") }, want: nil},
		{name: "a pod that waits", on: onMachine(one, nil, "0-7", nil, whole("a", 1, "9")), edit: func(b *bundle) { b.pod().Status = corev1.PodStatus{Phase: corev1.PodPending} }, want: nil},
		{name: "a checkpoint that the kubelet refuses before", on: onMachine(two, map[string]any{"topologyManagerPolicy": "single-numa-node"}, "0-1", holds("a app 2-5"), whole("a", 1, "4")), node: true,
			want: []string{"kubelet-checkpoint-invalid@ proven"}},
		{name: "a recorded pod", on: exclusivePod, want: nil},
	}}
	return f
}

// What a start with other settings would do stands in place of what is found of
// the next one.
func TestSuppose(t *testing.T) {
	one, two := adjacent(8, 2, 8, 8), adjacent(8, 2, 4, 4)
	full := onMachine(one, withOptions("full-pcpus-only"), "0-1,6-7", holds("a app 2-5"), whole("a", 1, "4"))
	split := onMachine(two, nil, "0-1,6-7", holds("a app 2-5"), whole("a", 1, "4"))
	for _, tc := range []struct {
		name string
		on   func(testing.TB) *bundle
		set  string
		want []string
		text string
	}{
		{"a downgrade of a full node", full, "kubeletVersion=1.36", []string{"readmission-refused likely", "would-be-refused-now likely"}, "Started with kubeletVersion=1.36"},
		{"an upgrade of it", inVersion(full, "v1.36.3"), "kubeletVersion=1.37", []string{"would-be-admitted-now likely"}, "kubelet 1.37 rules"},
		{"another policy of the Topology Manager", split, "topologyManagerPolicy=single-numa-node", []string{"readmission-refused likely", "would-be-refused-now likely"}, "Topology locality"},
		{"best-effort", split, "topologyManagerPolicy=best-effort", []string{"would-be-admitted-now likely"}, "1 pod again"},
		{"another policy of the CPU Manager", split, "cpuManagerPolicy=none", []string{"kubelet-checkpoint-invalid proven"}, "cpu_manager_state"},
		{"other reserved CPUs", split, "reservedSystemCPUs=2", []string{"kubelet-checkpoint-invalid proven"}, "not all reserved cpus"},
		{"an option that is alpha", split, "cpuManagerPolicyOptions.align-by-socket=true", []string{"kubelet-config-invalid proven"}, "Alpha-level Options not enabled"},
		{"the Memory Manager without reservedMemory", split, "memoryManagerPolicy=Static,evictionHard.memory.available=100Mi", []string{"reserved-memory-mismatch proven"}, "memory: 100Mi"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, err := ParseSettings([]string{tc.set})
			if err != nil {
				t.Fatal(err)
			}
			r := tc.on(t).explainNode(Options{Set: set})
			var got []string
			text := r.Versions.Replay
			for _, f := range r.Findings {
				if ofRules(startRules, f.Code) || f.Code == report.ReadmissionRefused || f.Code == report.WouldBeAdmittedNow {
					got = append(got, string(f.Code)+" "+string(f.Confidence))
					text += "\n" + f.Summary
					for _, m := range f.Remedies {
						text += "\n" + m.Patch
					}
				}
			}
			if strings.Join(got, ", ") != strings.Join(tc.want, ", ") {
				t.Errorf("%q, want %q\n%s", got, tc.want, text)
			}
			if !strings.Contains(text, tc.text) {
				t.Errorf("lacks %q: %s", tc.text, text)
			}
			for _, w := range malformed(r) {
				t.Error(w)
			}
		})
	}
}

func inVersion(on func(testing.TB) *bundle, version string) func(testing.TB) *bundle {
	return func(t testing.TB) *bundle {
		b := on(t)
		withVersion(version)(b)
		return b
	}
}

// A pod that runs without an entry differs from the replay by what is absent.
func TestMissingEntryIsEvidence(t *testing.T) {
	for _, ids := range [][]string{{"0", "1"}, {"0", "2"}} {
		b := sparse(ids...)(t)
		b.config(map[string]any{"topologyManagerPolicyOptions": map[string]string{}})
		running := whole("a", 1, "2")
		b.pods = []corev1.Pod{running}
		r := b.explainNode(Options{})
		p, err := Placement(b.open(), "n1", Options{})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := Pod(b.open(), "ns", "a", Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range append(append(r.Findings, p.Findings...), pod.Findings...) {
			if f.Code != report.PlacementDiffers {
				continue
			}
			found++
			if !slices.ContainsFunc(f.Because, func(e report.Evidence) bool { return e.Field == "entries[a][app]" && e.Value == "absent" }) {
				t.Errorf("%v: %s lacks the absent entry: %+v", ids, f.Summary, f.Because)
			}
		}
		if found == 0 {
			t.Errorf("%v: no %s", ids, report.PlacementDiffers)
		}
	}
}
