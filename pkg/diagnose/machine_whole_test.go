package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// A machine that was read in part, or whose files contradict each other, is no
// basis for what the kubelet does at its start.
func TestMachineReadInPart(t *testing.T) {
	one := recorded("numa4-k61/bundle", "mill", "one")
	sys := func(b *bundle, file string) string { return b.root("sys/devices/system/" + file) }
	for _, file := range []string{
		"node/node1/cpulist",
		"node/node3",
		"node/node0/hugepages/hugepages-2048kB/nr_hugepages",
		"node/node0/distance",
		"cpu/cpu0/topology/core_id",
		"cpu/cpu0/topology/physical_package_id",
		"cpu/cpu5",
	} {
		for _, absent := range []struct {
			name, says string
			edit       func(b *bundle)
		}{
			{"not collected", "not collected", func(b *bundle) { b.forget(sys(b, file)) }},
			{"absent, but", "contradictory", func(b *bundle) { b.files["gaps.json"] = "[]"; b.forgetKnown(sys(b, file)) }},
			{"a named gap", "Timeout", func(b *bundle) {
				b.forget(sys(b, file))
				b.files["gaps.json"] = `[{"path":"` + sys(b, file) + `","reason":"Timeout"}]`
			}},
		} {
			t.Run(file+", "+absent.name, func(t *testing.T) {
				b := one(t)
				absent.edit(b)
				n := newNodeCase(b.open(), b.node, time.Time{})
				if faults := n.startFaults(); len(faults) > 0 {
					t.Errorf("finds that the start fails: %+v", faults)
				}
				if _, err := n.managers(); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), absent.says) {
					t.Errorf("the replay says %v, want %s of %s", err, absent.says, file)
				}
				for _, f := range b.explainNode(Options{}).Findings {
					if f.Severity == report.Critical {
						t.Errorf("%s %s: %s", f.Code, f.Confidence, f.Summary)
					}
					if f.Code == report.NodeHealthy && (strings.Contains(f.Summary, "well: the CPU Manager's checkpoint") || strings.Contains(f.Summary, "the kubelet's configuration")) {
						t.Errorf("names what could not be checked: %s", f.Summary)
					}
				}
			})
		}
	}
}

// lscpu and sysfs contradict each other; a CPU that both leave out is offline.
func TestMachineContradicted(t *testing.T) {
	b := recorded("numa4-k61/bundle", "mill", "one")(t)
	b.files["gaps.json"] = "[]"
	offline := func(b *bundle) {
		b.files[b.root("sys/devices/system/cpu/online")] = "0-6\n"
		b.files[b.root("sys/devices/system/node/node3/cpulist")] = "6\n"
		b.forgetKnown(b.root("sys/devices/system/cpu/cpu7/topology"))
	}
	offline(b)
	b.files["nodes/"+b.node+"/lscpu.txt"] = "# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,0\n2,2,0,1\n3,3,0,1\n4,4,1,2\n5,5,1,2\n6,6,1,3\n7,7,1,3\n"
	n := newNodeCase(b.open(), b.node, time.Time{})
	if _, err := n.managers(); err == nil || !strings.Contains(err.Error(), "contradictory: it lists the CPUs 0-7, sysfs has 0-6") || len(n.startFaults()) > 0 {
		t.Errorf("with lscpu of another machine: %v, faults %+v", err, n.startFaults())
	}
	b.forgetKnown("nodes/" + b.node + "/lscpu.txt")
	n = newNodeCase(b.open(), b.node, time.Time{})
	if !slices.ContainsFunc(n.startFaults(), func(f startFault) bool { return f.code == report.KubeletCheckpointInvalid }) {
		t.Error("a CPU that went offline is in the checkpoint, and no fault is found")
	}
}

// Nothing says where CPUs lie that the machine does not have.
func TestEntryBeyondMachine(t *testing.T) {
	b := onMachine(adjacent(8, 2, 4, 8), nil, "0-1,4-7", holds("a app 2-3,900"), whole("a", 1, "2"))(t)
	r := b.explain(Options{})
	for _, f := range r.Findings {
		switch f.Code {
		case report.NUMAAligned, report.NUMASplit, report.SMTSiblingShared, report.UncoreCacheSplit:
			t.Errorf("%s: %s", f.Code, f.Summary)
		case report.ExclusiveCPUs:
			if !strings.Contains(f.Summary, "the machine does not have 900") || strings.Contains(f.Summary, "NUMA node") || strings.Contains(f.Summary, "granted") {
				t.Errorf("says %s", f.Summary)
			}
		}
	}
	if !slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Code == report.KubeletCheckpointInvalid }) {
		t.Error("the contradiction is not shown")
	}
}
