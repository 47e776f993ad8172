package cgroup

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/noderes/kubectl-noderes/pkg/cgroup/kernlog"
)

// What /proc showed on two recorded nodes: the kernel's own oom_score follows
// from status and oom_score_adj, exactly on Linux 6.1. On 6.12 status sums the
// counters of all CPUs and oom_score does not, so that they differ by a little.
func TestBadnessOfRecordedProcesses(t *testing.T) {
	for _, tc := range []struct {
		memTotalKB, rssKB, pteKB uint64
		adj                      int
		score, tolerance         uint64
	}{
		{6077656, 6660, 88, 1000, 1333, 0},
		{6077656, 4, 28, 1000, 1332, 0},
		{6077656, 4828, 92, 990, 1326, 0},
		{6077656, 109896, 288, -997, 14, 0},
		{6077656, 5876, 88, -998, 2, 0},
		{6084868, 109088, 292, 995, 1341, 2},
		{6084868, 37400, 156, 1000, 1336, 2},
		{6084868, 58484, 192, -997, 8, 2},
	} {
		total := Meminfo{"MemTotal": tc.memTotalKB * 1024}.TotalPages()
		task := Process{RSSKB: tc.rssKB, PgtablesKB: tc.pteKB, OOMScoreAdj: tc.adj}.OOMTask()
		if got := OOMScore(task.Badness(total), total); got > tc.score+tc.tolerance || got+tc.tolerance < tc.score {
			t.Errorf("%+v: oom_score %d, the kernel's is %d (%s)", tc, got, tc.score, task.Arithmetic(total))
		}
	}
}

// The kernel chose the task with the highest badness in every recorded report.
func TestBadnessOfRecordedKills(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors/kernel-samples.json")
	if err != nil {
		t.Fatal(err)
	}
	logs := []string{}
	var samples map[string]any
	if err := json.Unmarshal(data, &samples); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		case []any:
			lines := []string{}
			for _, x := range v {
				if s, ok := x.(string); ok {
					lines = append(lines, s)
				} else {
					walk(x)
				}
			}
			logs = append(logs, strings.Join(lines, "\n"))
		}
	}
	walk(samples)
	for _, name := range []string{"group-kill.log", "kernel-6.1.log", "starts-amid-report.log"} {
		data, err := os.ReadFile("kernlog/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, string(data))
	}
	checked := 0
	for _, log := range logs {
		for _, k := range kernlog.Parse([]byte(log), kernlog.Boot{}).Kills {
			total := k.LimitKB / 4
			if k.HasRAM {
				total = k.RAMPages - k.ReservedPages + k.TotalSwapKB/4
			}
			if total == 0 || len(k.Tasks) == 0 {
				continue
			}
			best, at := int64(math.MinInt64), int64(0)
			for _, row := range k.Tasks {
				task := OOMTask{RSS: row.RSS, Swap: row.SwapEnts, PgtablesBytes: row.PgtablesBytes, Adj: row.OOMScoreAdj}
				if b := task.Badness(total); task.Killable() && b >= best {
					best, at = b, row.PID
				}
			}
			if at != k.PID {
				t.Errorf("line %d: badness chooses %d, the kernel chose %d", k.Line, at, k.PID)
			}
			checked++
		}
	}
	if checked < 8 {
		t.Errorf("only %d reports with a task table", checked)
	}
}

func TestBadness(t *testing.T) {
	task := OOMTask{RSS: 222560, PgtablesBytes: 1863680, Adj: 1000}
	const total = 262014 - 14154
	if got := task.Badness(total); got != 222560+455+247000 {
		t.Errorf("badness %d", got)
	}
	if got, want := task.Arithmetic(total), "222560 + 0 + 1863680 / 4096 + 1000 × (247860 / 1000) = 470015"; got != want {
		t.Errorf("arithmetic %q, want %q", got, want)
	}
	guaranteed := OOMTask{RSS: 100, Adj: -997}
	if got, want := guaranteed.Arithmetic(total), "100 + 0 + 0 / 4096 − 997 × (247860 / 1000) = -246159"; got != want {
		t.Errorf("arithmetic %q, want %q", got, want)
	}
	// A daemon of 300 MiB on 16 GiB goes before a Guaranteed process that holds
	// all of it.
	ram := uint64(16 << 30 / 4096)
	if (OOMTask{RSS: 300 << 20 / 4096}).Badness(ram) <= (OOMTask{RSS: ram, Adj: OOMScoreAdjGuaranteed}).Badness(ram) {
		t.Error("a Guaranteed process goes before a daemon")
	}
	if (OOMTask{Adj: -1000}).Killable() || !(OOMTask{Adj: -999}).Killable() {
		t.Error("only -1000 is never killed")
	}
}

// No figure overflows, and more memory never makes a process safer.
func TestBadnessProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := OOMTask{
			RSS: rapid.Uint64().Draw(t, "rss"), Swap: rapid.Uint64().Draw(t, "swap"),
			PgtablesBytes: rapid.Uint64().Draw(t, "pgtables"), Adj: rapid.IntRange(-1000, 1000).Draw(t, "adj"),
		}
		total := rapid.Uint64().Draw(t, "total")
		more := task
		more.RSS += min(rapid.Uint64().Draw(t, "more"), math.MaxUint64-more.RSS)
		if more.Badness(total) < task.Badness(total) {
			t.Errorf("%+v is safer than %+v", more, task)
		}
		if s := OOMScore(task.Badness(total), total); s > 1_000_000_000 {
			t.Errorf("oom_score %d", s)
		}
		_ = task.Arithmetic(total)
	})
}

func TestProcesses(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	fsys := fstest.MapFS{
		"proc/7/status":          file("Name:\tcat: VmRSS:\t1 kB\nPid:\t7\nVmRSS:\t    5876 kB\nVmPTE:\t      88 kB\nVmSwap:\t       4 kB\n"),
		"proc/7/oom_score_adj":   file("-998\n"),
		"proc/7/cgroup":          file("1:name=systemd:/x\n0::/../kubepods.slice/a.scope\n"),
		"proc/12/status":         file("Name:\tkthreadd\nPid:\t12\n"),
		"proc/12/oom_score_adj":  file("0\n"),
		"proc/13/status":         file("VmRSS:\t1 kB\n"), // no name: no process
		"proc/14/status":         file("Name:\tx\nVmRSS:\t99999999999999999999 kB\n"),
		"proc/14/oom_score_adj":  file("5000\n"),
		"proc/15/oom_score_adj":  file("0\n"), // vanished meanwhile
		"proc/007/status":        file("Name:\tx\n"),
		"proc/99999999/status":   file("Name:\tx\n"),
		"proc/self":              file(""),
		"proc/sys/kernel/domain": file(""),
	}
	got, err := Processes(fsys)
	if err != nil {
		t.Fatal(err)
	}
	want := []Process{
		{PID: 7, Name: "cat: VmRSS:\t1 kB", RSSKB: 5876, SwapKB: 4, PgtablesKB: 88, HasMemory: true, OOMScoreAdj: -998, HasOOMScoreAdj: true, Cgroup: "/../kubepods.slice/a.scope"},
		{PID: 12, Name: "kthreadd", HasOOMScoreAdj: true},
		{PID: 14, Name: "x", OOMScoreAdj: 5000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := Processes(fstest.MapFS{}); err == nil {
		t.Error("no error without /proc")
	}
}

func TestMeminfo(t *testing.T) {
	m, err := ReadMeminfo(fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemTotal:        6077656 kB\nHugePages_Total:      64\nSwapTotal:       8 kB\nMemFree: -4 kB\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Meminfo{"MemTotal": 6077656 * 1024, "SwapTotal": 8192}, m); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if m.TotalPages() != 6077656/4+2 {
		t.Errorf("%d pages", m.TotalPages())
	}
	if _, err := ReadMeminfo(fstest.MapFS{"proc/meminfo": &fstest.MapFile{}}); err == nil {
		t.Error("an empty meminfo is no error")
	}
}

func FuzzProcessStatus(f *testing.F) {
	f.Add("Name:\tlabtool\nVmRSS:\t    5876 kB\nVmPTE:\t      88 kB\n", "990\n", "0::/kubepods.slice\n")
	f.Fuzz(func(t *testing.T, status, adj, group string) {
		ps, err := Processes(fstest.MapFS{
			"proc/1/status":        &fstest.MapFile{Data: []byte(status)},
			"proc/1/oom_score_adj": &fstest.MapFile{Data: []byte(adj)},
			"proc/1/cgroup":        &fstest.MapFile{Data: []byte(group)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ps {
			_ = p.OOMTask().Badness(1 << 40)
		}
	})
}
