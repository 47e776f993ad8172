package kernlog

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func readLog(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// one parses a log that has to hold exactly one kill.
func one(t *testing.T, log string) Kill {
	t.Helper()
	got := Parse([]byte(log), Boot{})
	if len(got.Kills) != 1 || len(got.NoKillable) != 0 {
		t.Fatalf("%d kills, %d without a victim, want one kill:\n%+v", len(got.Kills), len(got.NoKillable), got)
	}
	return got.Kills[0]
}

type sampleBlock struct {
	Kernel string   `json:"kernel"`
	Case   string   `json:"case"`
	Log    []string `json:"log"`
}

func sampleBlocks(t testing.TB) []sampleBlock {
	t.Helper()
	data, err := os.ReadFile("../testdata/vectors/kernel-samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Blocks []sampleBlock `json:"blocks"`
	}
	if err := json.Unmarshal(data, &v); err != nil || len(v.Blocks) != 11 {
		t.Fatalf("%d blocks, %v", len(v.Blocks), err)
	}
	return v.Blocks
}

func uptime(d time.Duration) Stamp { return Stamp{Uptime: d, HasUptime: true} }

func TestSampleBlocks(t *testing.T) {
	const pod1, pod9 = "/kubepods.slice/kubepods-pod1.slice", "/kubepods.slice/kubepods-pod9.slice"
	// The lists are compared by what is needed to tell them apart.
	type summary struct {
		Kill
		Stats, Tasks int
		Anon, Shmem  uint64
	}
	base := Kill{InvokedBy: "eat", Task: "eat", HasUID: true}
	with := func(change func(*Kill)) Kill {
		k := base
		change(&k)
		return k
	}
	victim := func(pid int64, comm string, vm, anon, file, shmem, pgtables uint64, adj int) Victim {
		return Victim{PID: pid, Comm: comm, TotalVMKB: vm, AnonRSSKB: anon, FileRSSKB: file, HasSizes: true,
			ShmemRSSKB: shmem, HasShmem: true, PgtablesKB: pgtables, HasPgtables: true, HasUID: true,
			OOMScoreAdj: adj, HasOOMScoreAdj: true}
	}
	want := []summary{
		{Stats: 60, Tasks: 2, Anon: 66916352, Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(68914044*time.Microsecond), 99, 288
			k.Constraint, k.MemsAllowed = ConstraintMemcg, "0-1"
			k.OOMMemcg, k.TaskMemcg, k.GroupKill = pod1+"/cri-containerd-aaaa.scope", pod1+"/cri-containerd-aaaa.scope", pod1+"/cri-containerd-aaaa.scope"
			k.UsageKB, k.LimitKB, k.HasLimit = 65540, 65536, true
			k.SwapLimitKB, k.HasSwap = UnlimitedKB, true
			k.Victims = []Victim{
				victim(288, "eat", 1329244, 69596, 0, 1548, 216, 985),
				victim(287, "sleep", 2260, 0, 0, 1324, 36, 0),
			}
		})},
		{Stats: 60, Tasks: 1, Anon: 66953216, Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(69867721*time.Microsecond), 98, 298
			k.Constraint, k.MemsAllowed = ConstraintMemcg, "0-1"
			k.OOMMemcg, k.TaskMemcg = pod1, pod1+"/cri-containerd-aaaa.scope"
			k.UsageKB, k.LimitKB, k.HasLimit = 65536, 65536, true
			k.SwapLimitKB, k.HasSwap = UnlimitedKB, true
			k.Victims = []Victim{victim(298, "eat", 1329500, 69608, 0, 1548, 216, 985)}
		})},
		{Stats: 60, Tasks: 2, Anon: 1081344, Shmem: 65769472, Kill: with(func(k *Kill) {
			k.InvokedBy, k.Task = "dd", "dd"
			k.Time, k.Line, k.PID = uptime(72834150*time.Microsecond), 92, 321
			k.Constraint, k.MemsAllowed = ConstraintMemcg, "0-1"
			k.OOMMemcg, k.TaskMemcg = pod1, pod1+"/cri-containerd-aaaa.scope"
			k.UsageKB, k.LimitKB, k.HasLimit = 65536, 65536, true
			k.SwapLimitKB, k.HasSwap = UnlimitedKB, true
			k.Victims = []Victim{victim(321, "dd", 3284, 1024, 0, 828, 40, 0)}
		})},
		{Tasks: 1, Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(116464436*time.Microsecond), 38, 333
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintNone, "0-1", true, pod9+"/cri-containerd-a9.scope"
			k.RAMPages, k.ReservedPages, k.HasRAM = 262014, 14154, true
			k.Victims = []Victim{victim(333, "eat", 2828708, 888692, 0, 1548, 1820, 1000)}
		})},
		{Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(124840537*time.Microsecond), 6, 345
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintNone, "0-1", true, pod9+"/cri-containerd-a9.scope"
			k.GroupKill = pod9 + "/cri-containerd-a9.scope"
			k.Victims = []Victim{
				victim(345, "eat", 2762844, 861232, 0, 1548, 1768, 1000),
				victim(344, "sleep", 2260, 0, 0, 1324, 36, 0),
			}
		})},
		{Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(140268227*time.Microsecond), 6, 361
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintCpuset, "1", true, pod9+"/cri-containerd-a9.scope"
			k.Victims = []Victim{victim(361, "eat", 1943900, 413304, 0, 1548, 892, 500)}
		})},
		{Tasks: 1, Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(102933026*time.Microsecond), 36, 280
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintNone, "0-1", true, pod9+"/cri-containerd-a9.scope"
			k.RAMPages, k.ReservedPages, k.HasRAM = 262014, 12831, true
			k.Victims = []Victim{victim(280, "eat", 2763100, 891592, 4, 1552, 1832, 1000)}
		})},
		{Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(122728938*time.Microsecond), 6, 292
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintNone, "0-1", true, pod9+"/cri-containerd-a9.scope"
			k.GroupKill = pod9 + "/cri-containerd-a9.scope"
			k.Victims = []Victim{
				victim(292, "eat", 2763100, 897200, 4, 1552, 1844, 1000),
				victim(291, "sleep", 2260, 4, 0, 0, 28, 0),
			}
		})},
		{Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(147484847*time.Microsecond), 6, 308
			k.Constraint, k.MemsAllowed, k.Global, k.TaskMemcg = ConstraintCpuset, "1", true, pod9+"/cri-containerd-a9.scope"
			k.Victims = []Victim{victim(308, "eat", 1943900, 434184, 4, 1552, 936, 500)}
		})},
		{Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(141181425*time.Microsecond), 6, 300
			k.Constraint, k.Nodemask, k.MemsAllowed, k.Global = ConstraintMemoryPolicy, "1", "0-1", true
			k.TaskMemcg = pod9 + "/cri-containerd-a9.scope"
			k.Victims = []Victim{victim(300, "eat", 1943900, 438632, 4, 1552, 936, 500)}
		})},
		{Stats: 5, Anon: 24948736, Shmem: 41943040, Kill: with(func(k *Kill) {
			k.Time, k.Line, k.PID = uptime(175866344*time.Microsecond), 11, 336
			k.Constraint, k.MemsAllowed = ConstraintMemcg, "0-1"
			k.OOMMemcg, k.TaskMemcg = pod9+"/cri-containerd-a9.scope", pod9+"/cri-containerd-a9.scope"
			k.UsageKB, k.LimitKB, k.HasLimit = 65476, 65536, true
			k.Victims = []Victim{victim(336, "eat", 1268060, 28624, 4, 1552, 132, 500)}
		})},
	}
	for i, block := range sampleBlocks(t) {
		t.Run(fmt.Sprint(i, " ", block.Case), func(t *testing.T) {
			k := one(t, strings.Join(block.Log, "\n")+"\n")
			got := summary{Kill: k, Stats: len(k.Stats), Tasks: len(k.Tasks)}
			got.Anon, _ = k.Stats.Get("anon")
			got.Shmem, _ = k.Stats.Get("shmem")
			got.Kill.Stats, got.Kill.Tasks = nil, nil
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The kernel's tables with and without the parts of rss.
func TestTaskTables(t *testing.T) {
	blocks := sampleBlocks(t)
	k := one(t, strings.Join(blocks[0].Log, "\n"))
	want := []Task{
		{PID: 287, TGID: 287, Name: "sleep", TotalVM: 565, RSS: 331, RSSShmem: 331, HasRSSParts: true, PgtablesBytes: 36864, HasPgtables: true},
		{PID: 288, TGID: 288, Name: "eat", TotalVM: 332311, RSS: 17786, RSSAnon: 17399, RSSShmem: 387, HasRSSParts: true,
			PgtablesBytes: 221184, HasPgtables: true, OOMScoreAdj: 985},
	}
	if diff := cmp.Diff(want, k.Tasks); diff != "" {
		t.Error(diff)
	}
	k = one(t, strings.Join(blocks[6].Log, "\n"))
	want = []Task{{PID: 280, TGID: 280, Name: "eat", TotalVM: 690775, RSS: 223287, PgtablesBytes: 1875968, HasPgtables: true, OOMScoreAdj: 1000}}
	if diff := cmp.Diff(want, k.Tasks); diff != "" {
		t.Error(diff)
	}
}

func TestStartsAmidReport(t *testing.T) {
	got := Parse(readLog(t, "starts-amid-report.log"), Boot{})
	if len(got.Kills) != 2 || got.Lines != 146 {
		t.Fatalf("%d kills in %d lines, want 2 in 146", len(got.Kills), got.Lines)
	}
	if got.First != uptime(2670576233*time.Microsecond) || got.Last != uptime(2850231621*time.Microsecond) {
		t.Errorf("from %v to %v", got.First, got.Last)
	}
	first, second := got.Kills[0], got.Kills[1]
	if !first.Truncated || first.InvokedBy != "" || first.HasLimit || first.PID != 8964 || len(first.Tasks) != 3 || len(first.Victims) != 1 {
		t.Errorf("first: %+v", first)
	}
	if _, ok := first.Stats.Get("anon"); ok {
		t.Error("anon is known, though the log starts behind it")
	}
	if scanned, ok := first.Stats.Get("pgscan"); !ok || scanned != 1075 {
		t.Errorf("pgscan %d, %v", scanned, ok)
	}
	if second.Truncated || second.InvokedBy != "labtool" || !second.HasLimit || second.LimitKB != 163840 || second.PID != 9022 {
		t.Errorf("second: %+v", second)
	}
	if second.GroupKill != second.TaskMemcg || !strings.HasPrefix(second.TaskMemcg, second.OOMMemcg+"/cri-containerd-") {
		t.Errorf("second: group %q, task %q, limit %q", second.GroupKill, second.TaskMemcg, second.OOMMemcg)
	}
}

// A parent and three children died. One was printed under a second thread's
// ID, and the chosen one was exiting when its turn came again.
func TestGroupKill(t *testing.T) {
	got := Parse(readLog(t, "group-kill.log"), Boot{})
	if len(got.Kills) != 2 {
		t.Fatalf("%d kills, want 2", len(got.Kills))
	}
	var pids []int64
	for _, v := range got.Kills[0].Victims {
		pids = append(pids, v.PID)
	}
	if diff := cmp.Diff([]int64{9609, 9529, 9596, 9606}, pids); diff != "" || got.Kills[0].AlreadyExiting {
		t.Errorf("victims (-want +got)\n%s", diff)
	}
	// The next report is cut off before the victim.
	if last := got.Kills[1]; !last.Truncated || last.InvokedBy != "labtool" || len(last.Victims) != 0 {
		t.Errorf("last: %+v", last)
	}
}

func TestGroupKillOfThreads(t *testing.T) {
	const log = `
[   10.000001] exe invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=990
[   10.000002] Tasks state (memory values in pages):
[   10.000003] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
[   10.000004] [   1972]     0  1972   306968     1114      550      564         0    86016        0          -998 exe
[   10.000005] [   6257]     0  6257   306968     1624     1061      563         0    98304        0           990 exe
[   10.000006] [   6276]     0  6276   317464    11412    10848      564         0   176128        0           990 exe
[   10.000007] [   6277]     0  6277   317208    11075    10526      549         0   176128        0           990 exe
[   10.000008] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/p,task_memcg=/p/c,task=exe,pid=6276,uid=0
[   10.000009] Memory cgroup out of memory: Killed process 6299 (exe) total-vm:1269856kB, anon-rss:43392kB, file-rss:2256kB, shmem-rss:0kB, UID:0 pgtables:172kB oom_score_adj:990
[   10.000010] Tasks in /p/c are going to be killed due to memory.oom.group set
[   10.000011] Memory cgroup out of memory: Killed process 6257 (exe) total-vm:1227872kB, anon-rss:4244kB, file-rss:2252kB, shmem-rss:0kB, UID:0 pgtables:96kB oom_score_adj:990
[   10.000012] Memory cgroup out of memory: Killed process 6296 (exe) total-vm:1269856kB, anon-rss:43392kB, file-rss:2256kB, shmem-rss:0kB, UID:0 pgtables:172kB oom_score_adj:990
[   10.000013] Memory cgroup out of memory: Killed process 6292 (exe) total-vm:1268832kB, anon-rss:42104kB, file-rss:2196kB, shmem-rss:0kB, UID:0 pgtables:172kB oom_score_adj:990
[   10.000014] oom_reaper: reaped process 6292 (exe), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
[   10.000015] oom_reaper: unable to reap pid:6257 (exe)
`
	k := one(t, log)
	type id struct {
		PID, TID         int64
		Reaped, Unreaped bool
	}
	var got []id
	for _, v := range k.Victims {
		got = append(got, id{v.PID, v.TID, v.Reaped, v.Unreaped})
	}
	want := []id{{6276, 6299, false, false}, {6257, 0, false, true}, {6277, 6292, true, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKernel61(t *testing.T) {
	got := Parse(readLog(t, "kernel-6.1.log"), Boot{})
	if len(got.Kills) != 2 {
		t.Fatalf("%d kills, want 2", len(got.Kills))
	}
	for i, k := range got.Kills {
		// The record of many lines has only one stamp, and an indented rest.
		if anon, ok := k.Stats.Get("anon"); !ok || anon < 100<<20 || len(k.Stats) != 51 {
			t.Errorf("%d: anon %d, %v, of %d keys", i, anon, ok, len(k.Stats))
		}
		if k.Truncated || k.GroupKill != "" || len(k.Victims) != 1 || k.LimitKB != 131072 || len(k.Tasks) != 4-i || k.Tasks[0].HasRSSParts {
			t.Errorf("%d: %+v", i, k)
		}
	}
}

const (
	bare1 = "[    1.000000] Memory cgroup out of memory: Killed process 11 (a) total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:1000 pgtables:5kB oom_score_adj:990\n"
	bare2 = "[    1.100000] Memory cgroup out of memory: Killed process 12 (b) total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:1000 pgtables:5kB oom_score_adj:990\n"
	bare3 = "[    9.000000] Out of memory: Killed process 13 (c) total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:0 pgtables:5kB oom_score_adj:0\n"
	other = "[    0.500000] eth0: link up\n[    0.600000] eth0: link down\n"
)

// Ten reports in 5 s are all that the kernel prints.
func TestBareKills(t *testing.T) {
	got := Parse([]byte(other+bare1+bare2+bare3), Boot{})
	victim := Victim{PID: 11, Comm: "a", TotalVMKB: 4, AnonRSSKB: 3, FileRSSKB: 2, HasSizes: true, ShmemRSSKB: 1, HasShmem: true,
		PgtablesKB: 5, HasPgtables: true, UID: 1000, HasUID: true, OOMScoreAdj: 990, HasOOMScoreAdj: true}
	want := Kill{Time: uptime(time.Second), Line: 3, Bare: true, Constraint: ConstraintMemcg, Task: "a", PID: 11, UID: 1000, HasUID: true, Victims: []Victim{victim}}
	if len(got.Kills) != 3 {
		t.Fatalf("%d kills, want 3", len(got.Kills))
	}
	if diff := cmp.Diff(want, got.Kills[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if k := got.Kills[2]; !k.Global || k.Constraint != ConstraintUnknown || !k.Bare {
		t.Errorf("global: %+v", k)
	}
	// At the very start of a log the report may have been lost.
	if k := one(t, bare1); !k.Truncated {
		t.Errorf("first line of a log: %+v", k)
	}
}

func TestBareGroupKills(t *testing.T) {
	const in = "[    %s] Tasks in %s are going to be killed due to memory.oom.group set\n"
	log := other + bare1 + fmt.Sprintf(in, "1.000100", "/x") + bare2 + bare1 +
		// Another group's first victim, which looks like a member until its own line.
		strings.Replace(bare1, "process 11", "process 21", 1) + fmt.Sprintf(in, "1.000200", "/y") + bare3
	got := Parse([]byte(log), Boot{})
	type group struct {
		PIDs  []int64
		Group string
		Line  int
	}
	var groups []group
	for _, k := range got.Kills {
		g := group{Group: k.GroupKill, Line: k.Line}
		for _, v := range k.Victims {
			g.PIDs = append(g.PIDs, v.PID)
		}
		groups = append(groups, g)
	}
	want := []group{{[]int64{11, 12}, "/x", 3}, {[]int64{21}, "/y", 7}, {[]int64{13}, "", 9}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, k := range got.Kills[:2] {
		if k.TaskMemcg != k.GroupKill || k.Constraint != ConstraintMemcg {
			t.Errorf("%+v", k)
		}
	}
}

func chosenLine(at string, pid int, comm string) string {
	return fmt.Sprintf("[    %s] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,oom_memcg=/p%d,task_memcg=/p%d/c,task=%s,pid=%d,uid=0\n", at, pid, pid, comm, pid)
}

// Reports of two CPUs that got mixed.
func TestPairedByPID(t *testing.T) {
	got := Parse([]byte(chosenLine("0.900000", 11, "a")+chosenLine("0.910000", 12, "b")+bare2+bare1), Boot{})
	if len(got.Kills) != 2 {
		t.Fatalf("%d kills, want 2", len(got.Kills))
	}
	for i, k := range got.Kills {
		want := []string{"/p11/c", "/p12/c"}[i]
		if k.TaskMemcg != want || len(k.Victims) != 1 || k.Victims[0].PID != k.PID {
			t.Errorf("%+v", k)
		}
	}
}

// Kernel 5.0 names the parent in the one line and kills a child.
func TestChildSacrificed(t *testing.T) {
	k := one(t, other+chosenLine("0.900000", 99, "parent")+bare1+other)
	if k.Task != "parent" || k.PID != 99 || k.TaskMemcg != "/p99/c" || len(k.Victims) != 1 || k.Victims[0].PID != 11 || k.Line != 4 {
		t.Errorf("%+v", k)
	}
}

func TestNoVictimKnown(t *testing.T) {
	k := one(t, other+chosenLine("0.900000", 99, "gone"))
	if !k.Truncated || len(k.Victims) != 0 || k.PID != 99 {
		t.Errorf("%+v", k)
	}
	k = one(t, other+chosenLine("0.900000", 99, "gone")+"[    0.910000] Memory cgroup out of memory: OOM victim 99 (gone) is already exiting. Skip killing the task\n"+other)
	if !k.AlreadyExiting || len(k.Victims) != 0 || k.Line != 4 {
		t.Errorf("%+v", k)
	}
}

func TestNoKillable(t *testing.T) {
	log := Parse([]byte(`[    5.000000] init invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-1000
[    5.000001] memory: usage 65536kB, limit 65536kB, failcnt 7
[    5.000002] Memory cgroup stats for /p:
[    5.000003] anon 4096
[    5.000004] Out of memory and no killable processes...
`+bare1), Boot{})
	if len(log.NoKillable) != 1 || len(log.Kills) != 1 {
		t.Fatalf("%+v", log)
	}
	got := log.NoKillable[0]
	want := Kill{Time: uptime(5000004 * time.Microsecond), Line: 5, InvokedBy: "init", OOMMemcg: "/p",
		UsageKB: 65536, LimitKB: 65536, HasLimit: true, Stats: Stats{{"anon", 4096}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKernel419(t *testing.T) {
	k := one(t, `[ 1000.100000] java invoked oom-killer: gfp_mask=0x6000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=968
[ 1000.100001] java cpuset=docker-abc.scope mems_allowed=0
[ 1000.100010] Task in /kubepods/burstable/podX/abc killed as a result of limit of /kubepods/burstable/podX
[ 1000.100011] memory: usage 262144kB, limit 262144kB, failcnt 9
[ 1000.100012] memory+swap: usage 262144kB, limit 9007199254740988kB, failcnt 0
[ 1000.100013] kmem: usage 3372kB, limit 9007199254740988kB, failcnt 0
[ 1000.100014] Memory cgroup stats for /kubepods/burstable/podX: cache:0KB rss:0KB rss_huge:0KB shmem:0KB mapped_file:0KB dirty:0KB writeback:0KB inactive_anon:0KB active_anon:0KB inactive_file:0KB active_file:0KB unevictable:0KB
[ 1000.100015] Memory cgroup stats for /kubepods/burstable/podX/abc: cache:12KB rss:258700KB rss_huge:0KB shmem:4KB mapped_file:0KB dirty:0KB writeback:0KB inactive_anon:0KB active_anon:258720KB inactive_file:0KB active_file:0KB unevictable:0KB
[ 1000.100016] [ pid ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[ 1000.100017] [ 4242]  1000  4242   900000    64675   729088        0           968 java
[ 1000.100018] Memory cgroup out of memory: Kill process 4242 (java) score 1900 or sacrifice child
[ 1000.100019] Killed process 4242 (java) total-vm:3600000kB, anon-rss:258700kB, file-rss:0kB, shmem-rss:4kB
[ 1000.200000] oom_reaper: reaped process 4242 (java), now anon-rss:0kB, file-rss:0kB, shmem-rss:4kB
`)
	want := Kill{
		Time: uptime(1000100019 * time.Microsecond), Line: 12, InvokedBy: "java", Constraint: ConstraintMemcg,
		OOMMemcg: "/kubepods/burstable/podX", TaskMemcg: "/kubepods/burstable/podX/abc", Task: "java", PID: 4242,
		UsageKB: 262144, LimitKB: 262144, HasLimit: true,
		Victims: []Victim{{PID: 4242, Comm: "java", TotalVMKB: 3600000, AnonRSSKB: 258700, HasSizes: true, ShmemRSSKB: 4, HasShmem: true, Reaped: true}},
		Tasks:   []Task{{PID: 4242, TGID: 4242, UID: 1000, Name: "java", TotalVM: 900000, RSS: 64675, PgtablesBytes: 729088, HasPgtables: true, OOMScoreAdj: 968}},
	}
	if diff := cmp.Diff(want, k, cmpopts.IgnoreFields(Kill{}, "Stats")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The line of each cgroup is without its descendants.
	for key, bytes := range map[string]uint64{"rss": 258700 << 10, "cache": 12 << 10, "shmem": 4 << 10, "unevictable": 0} {
		if got, ok := k.Stats.Get(key); !ok || got != bytes {
			t.Errorf("%s = %d, %v, want %d", key, got, ok, bytes)
		}
	}
	k = one(t, "[    1.0] Out of memory: Kill process 7 (x) score 9 or sacrifice child\n[    1.1] Killed process 8 (y) total-vm:4kB, anon-rss:3kB, file-rss:2kB\n")
	if !k.Global || k.PID != 7 || len(k.Victims) != 1 || k.Victims[0].PID != 8 || k.Victims[0].HasShmem || !k.Victims[0].HasSizes {
		t.Errorf("%+v", k)
	}
}

// Kernels before 5.6 say kB and mean bytes, and some distributions put the
// user before the sizes.
func TestOtherKillLines(t *testing.T) {
	k := one(t, `[    1.0] x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[    1.0] Tasks state (memory values in pages):
[    1.0] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[    1.0] [     11]     0    11        1        1   299008        0           990 a b
[    1.0] Out of memory: Killed process 11 (a b) total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:0 pgtables:299008kB oom_score_adj:990
`)
	if k.Victims[0].PgtablesKB != 292 || k.Tasks[0].Name != "a b" || k.Victims[0].Comm != "a b" {
		t.Errorf("%+v", k)
	}
	k = one(t, "[    1.0] Out of memory (oom_kill_allocating_task): Killed process 11 (a), UID 1000, total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB\n")
	if v := k.Victims[0]; !k.Global || v.UID != 1000 || !v.HasUID || !v.HasSizes || v.FileRSSKB != 2 {
		t.Errorf("%+v", k)
	}
	k = one(t, "[    1.0] Out of memory: Killed process 11 (a) total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:0 pgtables:77 oom_score_adj:-5\n")
	if v := k.Victims[0]; v.PgtablesKB != 77 || !v.HasPgtables || v.OOMScoreAdj != -5 {
		t.Errorf("%+v", k)
	}
}

// Other CPUs' lines within a report.
func TestInterleaved(t *testing.T) {
	clean := sampleBlocks(t)[0].Log
	var noisy []string
	for i, line := range clean {
		noisy = append(noisy, line, fmt.Sprintf("[   68.9%05d] cni0: port %d(veth) entered blocking state", i, i), "[   68.900001] audit: type=1400 pid=288 comm=\"eat\"")
	}
	opts := cmpopts.IgnoreFields(Kill{}, "Line")
	if diff := cmp.Diff(one(t, strings.Join(clean, "\n")), one(t, strings.Join(noisy, "\n")), opts); diff != "" {
		t.Errorf("(-clean +noisy)\n%s", diff)
	}
}

func TestNotes(t *testing.T) {
	got := Parse([]byte(`[    1.000000] cfs_period_timer[cpu3]: period too short, scaling up (new cfs_period_us = 2000, cfs_quota_us = 1000)
[    2.000000] Memory failure: 0x12345: recovery action for dirty LRU page: Recovered
[    3.000000] Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled
[    4.000000] cgroup: fork rejected by pids controller in /kubepods.slice/kubepods-pod1.slice
[    5.000000] Kernel panic - not syncing: Attempted to kill init!
`), Boot{})
	var kinds []NoteKind
	for i, n := range got.Notes {
		kinds = append(kinds, n.Kind)
		if n.Line != i+1 || n.Time.Uptime != time.Duration(i+1)*time.Second {
			t.Errorf("%+v", n)
		}
	}
	if diff := cmp.Diff([]NoteKind{PeriodScaled, MemoryFailure, PanicOnOOM, ForkRejected}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestForkRejectedIn(t *testing.T) {
	scope := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod00000000_0000_4000_8000_001963381606.slice/cri-containerd-" + strings.Repeat("a", 64) + ".scope"
	for _, c := range []struct {
		name, in, want string
	}{
		{"a container's", scope, scope},
		{"the root", "/", "/"},
		{"longer than a note", "/" + strings.Repeat("x", 500), ""},
	} {
		got := Parse([]byte("[    1.000000] cgroup: fork rejected by pids controller in "+c.in+"\n"), Boot{})
		if len(got.Notes) != 1 || got.Notes[0].ForkRejectedIn() != c.want {
			t.Errorf("%s: %+v", c.name, got.Notes)
		}
	}
	if got := (Note{Kind: MemoryFailure, Text: string(forkPrefix) + "/x"}).ForkRejectedIn(); got != "" {
		t.Errorf("of another kind: %q", got)
	}
}

func TestNothing(t *testing.T) {
	for _, log := range []string{"", "\n", "\n\n\x00", other, "anon 5\n", "[    1.0] anon 5\n[    1.1] file 7\n", "[    1.0] [  pid  ] uid name\n"} {
		if got := Parse([]byte(log), Boot{}); len(got.Kills)+len(got.NoKillable)+len(got.Notes) != 0 {
			t.Errorf("%q: %+v", log, got)
		}
	}
}

func TestGroupWithoutVictimLine(t *testing.T) {
	const group = "[    1.000100] Tasks in /p99/c are going to be killed due to memory.oom.group set\n"
	// The log starts behind the line.
	k := one(t, group+bare2+bare1)
	if !k.Truncated || k.GroupKill != "/p99/c" || k.TaskMemcg != "/p99/c" || len(k.Victims) != 2 {
		t.Errorf("%+v", k)
	}
	// The line is lost, but the one before says whom it was about.
	full := strings.Replace(bare2, "process 12 (b)", "process 99 (gone)", 1)
	k = one(t, other+chosenLine("0.900000", 99, "gone")+group+bare1+full)
	if k.PID != 99 || len(k.Victims) != 2 || k.Victims[0].PID != 99 || !k.Victims[0].HasSizes || k.Victims[1].PID != 11 {
		t.Errorf("%+v", k)
	}
	// Long after, another process dies alone.
	late := strings.Replace(bare2, "1.100000", "8.100000", 1)
	if got := Parse([]byte(other+bare1+group+late), Boot{}); len(got.Kills) != 2 {
		t.Errorf("%+v", got.Kills)
	}
}

func TestExitingMember(t *testing.T) {
	const group = "[    1.000100] Tasks in /x are going to be killed due to memory.oom.group set\n"
	const exiting = "[    1.000200] Memory cgroup out of memory: OOM victim 12 (b) is already exiting. Skip killing the task\n"
	if k := one(t, other+bare1+group+exiting); k.AlreadyExiting || len(k.Victims) != 1 {
		t.Errorf("member: %+v", k)
	}
	if k := one(t, other+exiting); !k.AlreadyExiting || !k.Bare || k.PID != 12 || k.Task != "b" || k.Constraint != ConstraintMemcg {
		t.Errorf("alone: %+v", k)
	}
}
