package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

func withReady(status corev1.ConditionStatus) func(*bundle) {
	return func(b *bundle) {
		b.object().Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	}
}

// What is found of the next start where the files are there, and of what was
// checked where they are not.
func startCheckedFamily() family {
	one, strict := adjacent(8, 2, 8, 8), withOptions("strict-cpu-reservation")
	full := onMachine(one, strict, "", holds("a app 1-3", "b app 4-7"), whole("a", 1, "3"), whole("b", 2, "4"))
	numa4 := recorded("numa4-k61/bundle", "mill", "one")
	state := func(b *bundle) string { return b.root("var/lib/kubelet/memory_manager_state") }
	const invalid, healthy, missing = "kubelet-checkpoint-invalid@ proven", "node-healthy@ proven", "evidence-missing@ proven"
	unread := func(b *bundle) {
		b.forget(b.root("var/lib/kubelet"))
		b.forget(b.root("sys/fs/cgroup"))
		b.pods, b.events = nil, nil
	}
	return family{name: "start checked", codes: []report.Code{report.KubeletCheckpointInvalid, report.NodeHealthy, report.EvidenceMissing}, cases: []ruleCase{
		{name: "strict, and containers own the whole pool", on: full, edit: withReady(corev1.ConditionTrue), node: true, want: []string{invalid},
			text: []string{"With strict-cpu-reservation", "CPUs 1-7", "end any one of the pods ns/a and ns/b", `"entries[b][app]","value":"4-7"`}},
		{name: "strict, and the kubelet is down", on: full, edit: withReady(corev1.ConditionFalse), node: true, want: []string{invalid},
			text: []string{"With strict-cpu-reservation", "fills up again"}, lacks: []string{"While the kubelet runs"}},
		{name: "an empty pool without the option", on: onMachine(one, nil, "", holds("a app 0-7"), whole("a", 1, "7")), edit: withReady(corev1.ConditionTrue), node: true, want: []string{invalid},
			lacks: []string{"strict-cpu-reservation", "While the kubelet runs"}},
		{name: "another machine's memory", on: numa4, edit: func(b *bundle) {
			b.files[b.root("sys/devices/system/node/node3/meminfo")] = "Node 3 MemTotal:        2097152 kB\n"
		}, node: true, want: []string{invalid}, text: []string{"memory_manager_state", "stay on their NUMA nodes"}, lacks: []string{"keep CPUs"}},
		{name: "the configuration and the machine, and no more", on: numa4, edit: unread, node: true, want: []string{healthy},
			text: []string{"the kubelet's configuration", "the sums of reservedMemory", "424Mi + evictionHard[memory.available] 600Mi = 1Gi"}, lacks: []string{"were read", "checkpoint"}},
		{name: "a configuration whose sums differ", on: numa4, edit: inOrder(unread, func(b *bundle) { b.config(map[string]any{"reservedMemory": nil}) }), node: true, loose: true, not: []string{healthy, missing}},
		{name: "the configuration without a machine", on: numa4, edit: inOrder(unread, func(b *bundle) {
			b.forget(b.root("sys/devices/system"))
			b.forget("nodes/" + b.node + "/lscpu.txt")
		}), node: true, loose: true, lacks: []string{"the kubelet's configuration"}},
		{name: "a version whose rules are not known", on: numa4, edit: inOrder(unread, withVersion("v1.29.0")), node: true, loose: true, lacks: []string{"the kubelet's configuration"}},
		{name: "no memory checkpoint is still a configuration", on: numa4, edit: func(b *bundle) { b.forget(state(b)) }, node: true, want: []string{healthy},
			text: []string{"the CPU Manager's checkpoint", "the kubelet's configuration"}},
	}}
}

// The kubelet refuses a setting before it reads a checkpoint.
func TestSettingBeforeCheckpoint(t *testing.T) {
	b := onMachine(adjacent(8, 2, 8, 8), map[string]any{"cpuManagerPolicy": "none", "cpuManagerPolicyOptions": map[string]string{"full-pcpus-only": "true"}}, "0,2-7", holds("a app 1"), whole("a", 1, "1"))(t)
	var codes []report.Code
	for _, f := range b.explainNode(Options{}).Findings {
		if f.Severity == report.Critical {
			codes = append(codes, f.Code)
		}
		if f.Code == report.KubeletCheckpointInvalid && !strings.Contains(f.Summary, "only with another cpuManagerPolicyOptions") {
			t.Errorf("says %s", f.Summary)
		}
	}
	if want := []report.Code{report.KubeletConfigInvalid, report.KubeletCheckpointInvalid}; !slices.Equal(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
}

// What was not read is named, and nothing that was.
func TestUnread(t *testing.T) {
	b := recorded("numa4-k61/bundle", "mill", "one")(t)
	b.forget(b.root("var/lib/kubelet"))
	b.forget(b.root("sys/devices/system"))
	b.forgetTree()
	b.forget("nodes/" + b.node + "/lscpu.txt")
	n := newNodeCase(b.open(), b.node, time.Time{})
	if got, want := n.unread(), "its checkpoints, the machine's topology, which its configuration has to suit and its cgroups could not be read"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
