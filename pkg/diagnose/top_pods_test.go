package diagnose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noderes/kubectl-noderes/pkg/report"
)

// topRow is the only row of a table of the bundle's pod.
func topRow(b *bundle, o TopOptions) report.TopPod {
	b.t.Helper()
	top, err := TopPods(b.open(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(top.Pods) != 1 {
		b.t.Fatalf("%d rows", len(top.Pods))
	}
	return top.Pods[0]
}

func throttledText(t *report.TopThrottled) string {
	switch {
	case t == nil:
		return "?"
	case t.Unlimited:
		return "unlimited"
	}
	counts := "?"
	if t.Periods != nil && t.Throttled != nil {
		counts = fmt.Sprintf("%d/%d", *t.Throttled, *t.Periods)
	}
	text := fmt.Sprintf("%.3f %s %s %s", *t.Share, counts, t.Over, t.Level)
	if t.Container != "" {
		text += " " + t.Container
	}
	if t.AtLeast {
		text = ">=" + text
	}
	return text
}

func waitingText(w *report.TopWaiting) string {
	if w == nil {
		return "?"
	}
	return fmt.Sprintf("%.3f %s", w.Share, w.Over)
}

func valueText[T any](v *T) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprint(*v)
}

func TestTopCPU(t *testing.T) {
	for _, tc := range []struct {
		name      string
		on        func(testing.TB) *bundle
		edit      func(*bundle)
		container string // a row of it, else of the pod
		throttled string
		waiting   string
		used      bool
	}{
		{name: "as recorded", on: throttledPod, throttled: "1.000 300/300 sample container app", waiting: "0.753 sample", used: true},
		{name: "container as recorded", on: throttledPod, container: "app", throttled: "1.000 300/300 sample container app", waiting: "0.730 sample", used: true},
		{name: "one reading", on: throttledPod, edit: (*bundle).oneReading, throttled: "0.997 37075/37174 lifetime container app", waiting: "0.749 avg10"},
		{name: "counters went down", on: throttledPod, edit: func(b *bundle) {
			b.cpu("app", cpuCounts{900, 900, 9000, 900}, cpuCounts{-800, -800, -8000, -800})
			b.cpu(podGroup, cpuCounts{900, 900, 9000, 900}, cpuCounts{-800, -800, -8000, -800})
		}, throttled: "?", waiting: "0.753 sample"},
		{name: "the pod's own counters not read", on: throttledPod, edit: func(b *bundle) {
			b.drop(podGroup, "cpu.stat", "cpu.max")
			delete(b.files, "gaps.json")
		}, throttled: ">=1.000 300/300 sample container app", waiting: "0.753 sample"},
		{name: "the container's counters not read", on: throttledPod, edit: func(b *bundle) { b.drop("app", "cpu.stat") },
			throttled: ">=1.000 305/305 sample container app", waiting: "0.753 sample", used: true},
		{name: "no counters at all", on: throttledPod, edit: func(b *bundle) {
			b.drop("app", "cpu.stat")
			b.drop(podGroup, "cpu.stat")
		}, throttled: "?", waiting: "0.753 sample"},
		{name: "too few periods", on: throttledPod, edit: func(b *bundle) {
			b.cpu("app", cpuCounts{}, cpuCounts{3, 1, 9, 9})
			b.cpu(podGroup, cpuCounts{}, cpuCounts{3, 1, 9, 9})
		}, throttled: "?", waiting: "0.753 sample", used: true},
		{name: "idle below a quota", on: throttledPod, edit: func(b *bundle) {
			b.cpu("app", cpuCounts{}, cpuCounts{})
			b.cpu(podGroup, cpuCounts{}, cpuCounts{})
		}, throttled: "0.000 0/0 sample container app", waiting: "0.753 sample", used: true},
		{name: "no quota", on: throttledPod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "max 100000")
			b.put(podGroup, "cpu.max", "max 100000")
		}, throttled: "unlimited", waiting: "0.753 sample", used: true},
		{name: "no quota of its own, the pod's not read", on: throttledPod, edit: func(b *bundle) {
			b.put("app", "cpu.max", "max 100000")
			b.drop(podGroup, "cpu.stat", "cpu.max")
		}, throttled: "?", waiting: "0.753 sample"},
		{name: "no pressure", on: throttledPod, edit: func(b *bundle) { b.drop(podGroup, "cpu.pressure") }, throttled: "1.000 300/300 sample container app", waiting: "?", used: true},
		{name: "pressure went down", on: throttledPod, edit: func(b *bundle) {
			b.putAt(1, podGroup, "cpu.pressure", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1")
		}, throttled: "1.000 300/300 sample container app", waiting: "0.125 avg10", used: true},
		{name: "a limit that moved", on: throttledPod, edit: func(b *bundle) {
			b.putAt(0, "app", "cpu.max", "9000 100000")
			b.putAt(0, podGroup, "cpu.max", "9000 100000")
		}, throttled: "?", waiting: "0.753 sample", used: true},
		{name: "cgroup v1", on: throttledPod, edit: func(b *bundle) {
			b.forgetTree()
			b.files["nodes/smt2/samples/1/root/sys/fs/cgroup/cpu,cpuacct/cpu.shares"] = "1024\n"
		}, throttled: "?", waiting: "?"},
		{name: "the pod's quota", on: podLevelPod, container: "a", throttled: "1.000 322/322 sample container a", waiting: "0.604 sample", used: true},
		{name: "the pod's quota alone", on: podLevelPod, container: "a", edit: func(b *bundle) { b.put("a", "cpu.max", "max 100000") },
			throttled: "0.965 303/314 sample pod", waiting: "0.604 sample", used: true},
		{name: "the pod's quota does not hold back who wants nothing", on: podLevelPod, container: "b", throttled: "0.000 0/2 sample container b", waiting: "0.000 sample", used: true},
		{name: "only the pod's quota, and it wants nothing", on: podLevelPod, container: "b", edit: func(b *bundle) { b.put("b", "cpu.max", "max 100000") },
			throttled: "0.000 ? sample pod", waiting: "0.000 sample", used: true},
		{name: "no container runs", on: oomPod, throttled: "0.000 0/0 sample pod", waiting: "0.000 sample", used: true},
		{name: "its container", on: oomPod, container: "app", throttled: "?", waiting: "?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tc.on(t)
			if tc.edit != nil {
				tc.edit(b)
			}
			var row report.TopPod
			if tc.container == "" {
				row = topRow(b, TopOptions{})
			} else {
				top, err := TopPods(b.open(), TopOptions{Containers: true})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(top.Pods, func(r report.TopPod) bool { return r.Container == tc.container })
				if i < 0 {
					t.Fatalf("no row of %s", tc.container)
				}
				row = top.Pods[i]
			}
			if got := throttledText(row.CPU.Throttled); got != tc.throttled {
				t.Errorf("throttled %s, want %s", got, tc.throttled)
			}
			if got := waitingText(row.CPU.Waiting); got != tc.waiting {
				t.Errorf("waiting %s, want %s", got, tc.waiting)
			}
			if got := row.CPU.Used != nil; got != tc.used {
				t.Errorf("used %s", valueText(row.CPU.Used))
			}
			if two := len(b.samples()) > 1; (row.SampleSeconds != nil) != two {
				t.Errorf("sampleSeconds %s of %d samples", valueText(row.SampleSeconds), len(b.samples()))
			}
		})
	}
}

func TestTopMemory(t *testing.T) {
	const unlimitedStat = "anon 1000\nfile 500\n"
	held := func(n *report.TopNonReclaimable) string {
		switch {
		case n == nil:
			return "?"
		case n.Share == nil:
			return "no limit, " + valueText(n.Bytes)
		}
		text := fmt.Sprintf("%.3f %s %s", *n.Share, n.Level, n.Container)
		if n.AtLeast {
			text = ">=" + text
		}
		return strings.TrimSpace(text)
	}
	for _, tc := range []struct {
		name       string
		on         func(testing.TB) *bundle
		edit       func(*bundle)
		container  bool // a row of the first container, else of the pod
		share, max string
		held       string
	}{
		{name: "as recorded", on: cachePod, share: "0.999", max: "134217728", held: "0.087 container app"},
		{name: "container as recorded", on: cachePod, container: true, share: "0.962", max: "134217728", held: "0.087 pod"},
		{name: "no limit", on: cachePod, edit: func(b *bundle) {
			b.put("app", "memory.max", "max")
			b.put(podGroup, "memory.max", "max")
			b.put(podGroup, "memory.stat", unlimitedStat)
		}, share: "?", max: "unlimited", held: "no limit, 1000"},
		{name: "a container's limit in a pod without", on: cachePod, edit: func(b *bundle) { b.put(podGroup, "memory.max", "max") }, share: "?", max: "unlimited", held: "0.051 container app"},
		{name: "limits not read", on: cachePod, edit: func(b *bundle) {
			b.drop("app", "memory.max")
			b.drop(podGroup, "memory.max")
		}, share: "?", max: "?", held: "?"},
		{name: "the container's limit not read", on: cachePod, edit: func(b *bundle) { b.drop("app", "memory.max") }, share: "0.999", max: "134217728", held: ">=0.087 container app"},
		{name: "nothing read of the use", on: cachePod, edit: func(b *bundle) {
			b.drop(podGroup, "memory.stat", "memory.current")
			b.drop("app", "memory.stat")
		}, share: "?", max: "134217728", held: "?"},
		{name: "keys missing", on: cachePod, edit: func(b *bundle) {
			b.put(podGroup, "memory.stat", "anon 67108864")
			b.put("app", "memory.stat", "anon 1")
		}, share: "0.999", max: "134217728", held: ">=0.500 container app"},
		{name: "a limit of nothing", on: cachePod, edit: func(b *bundle) {
			b.put(podGroup, "memory.max", "0")
			b.put("app", "memory.max", "0")
		}, share: "?", max: "0", held: "?"},
		{name: "more than any machine has", on: cachePod, edit: func(b *bundle) {
			for _, who := range []string{podGroup, "app"} {
				b.put(who, "memory.max", "1")
				b.put(who, "memory.current", "18446744073709551615")
				b.put(who, "memory.stat", "anon 18446744073709551615\nshmem 18446744073709551615")
			}
		}, share: "18446744073709551616.000", max: "1", held: ">=18446744073709551616.000 container app"},
		{name: "the pod's limit", on: podLimitPod, share: "0.684", max: "167772160", held: "0.684 pod"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tc.on(t)
			if tc.edit != nil {
				tc.edit(b)
			}
			m := topRow(b, TopOptions{Containers: tc.container}).Memory
			share, limit := "?", "?"
			if m.Share != nil {
				share = fmt.Sprintf("%.3f", *m.Share)
			}
			if m.Max != nil {
				text, err := json.Marshal(m.Max)
				if err != nil {
					t.Fatal(err)
				}
				limit = strings.Trim(string(text), `"`)
			}
			if share != tc.share || limit != tc.max {
				t.Errorf("%s of %s, want %s of %s", share, limit, tc.share, tc.max)
			}
			if got := held(m.NonReclaimable); got != tc.held {
				t.Errorf("not reclaimable %s, want %s", got, tc.held)
			}
		})
	}
}

func TestTopKillsAndCPUs(t *testing.T) {
	set := func(s *report.TopCPUSet) string {
		if s == nil {
			return "?"
		}
		return fmt.Sprintf("%q %t", s.Exclusive, s.Shared)
	}
	for _, tc := range []struct {
		name        string
		on          func(testing.TB) *bundle
		edit        func(*bundle)
		kills, cpus string
	}{
		{name: "killed and gone", on: oomPod, kills: "16", cpus: `"" true`},
		// 44 of 110 are counted twice: the first victim of each group kill.
		{name: "group kills", on: oomGroupPod, kills: "66", cpus: `"" true`},
		{name: "a kernel that does not count group kills", on: oomGroupPod, edit: func(b *bundle) { b.put(podGroup, "memory.events", "oom 4\noom_kill 12") }, kills: "12", cpus: `"" true`},
		{name: "events not read", on: oomPod, edit: func(b *bundle) { b.drop(podGroup, "memory.events") }, kills: "?", cpus: `"" true`},
		{name: "exclusive", on: exclusivePod, kills: "0", cpus: `"2-3" false`},
		{name: "checkpoint corrupt", on: exclusivePod, edit: func(b *bundle) { spoilChecksum(b, "cpu_manager_state") }, kills: "0", cpus: "?"},
		{name: "checkpoint not read", on: exclusivePod, edit: func(b *bundle) { delete(b.files, b.root("var/lib/kubelet/cpu_manager_state")) }, kills: "0", cpus: "?"},
		{name: "policy none", on: exclusivePod, edit: func(b *bundle) {
			delete(b.files, b.root("var/lib/kubelet/cpu_manager_state"))
			b.config(map[string]any{"cpuManagerPolicy": "none"})
		}, kills: "0", cpus: `"" true`},
		{name: "one owns, one shares", on: exclusivePod, edit: func(b *bundle) {
			k := *b.container("app").DeepCopy()
			k.Name = "side"
			b.pod().Spec.Containers = append(b.pod().Spec.Containers, k)
		}, kills: "0", cpus: `"2-3" true`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tc.on(t)
			if tc.edit != nil {
				tc.edit(b)
			}
			row := topRow(b, TopOptions{})
			if got := valueText(row.OOMKills); got != tc.kills {
				t.Errorf("kills %s, want %s", got, tc.kills)
			}
			if got := set(row.CPUs); got != tc.cpus {
				t.Errorf("CPUs %s, want %s", got, tc.cpus)
			}
		})
	}
}
