package kernlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseOOMKill(t *testing.T) {
	const memcg = "CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,oom_memcg=/p,task_memcg=/p/c"
	full := oomKill{constraint: ConstraintMemcg, memsAllowed: "0-1", oomMemcg: "/p", taskMemcg: "/p/c", task: "eat", pid: 7, uid: 8, complete: true}
	with := func(change func(*oomKill)) oomKill {
		k := full
		change(&k)
		return k
	}
	for text, want := range map[string]oomKill{
		memcg + ",task=eat,pid=7,uid=8":                           full,
		memcg + ",task=,pid=1,uid=0,pid=7,uid=8":                  with(func(k *oomKill) { k.task = ",pid=1,uid=0" }),
		memcg + ",task=a,task=b,pid=7,uid=8":                      with(func(k *oomKill) { k.task = "a,task=b" }),
		memcg + "/x,task=longer than a name,task=eat,pid=7,uid=8": with(func(k *oomKill) { k.taskMemcg = "/p/c/x,task=longer than a name" }),
		memcg + ",task=eat) (,pid=7,uid=8":                        with(func(k *oomKill) { k.task = "eat) (" }),
		"CONSTRAINT_MEMORY_POLICY,nodemask=0-1,3,cpuset=/,mems_allowed=0-1,3,global_oom,task_memcg=/,task=eat,pid=7,uid=8": {
			constraint: ConstraintMemoryPolicy, nodemask: "0-1,3", memsAllowed: "0-1,3", global: true, taskMemcg: "/", task: "eat", pid: 7, uid: 8, complete: true},
		"CONSTRAINT_NONE,nodemask=(null),cpuset=a,mems_allowed=9,oom_memcgx,mems_allowed=0,global_oom,task_memcg=/x,task=eat,pid=7,uid=8": {
			constraint: ConstraintNone, memsAllowed: "0", global: true, taskMemcg: "/x", task: "eat", pid: 7, uid: 8, complete: true},
		// A cgroup that is named like a field.
		"CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/a,task_memcg=/b,task_memcg=/a,task_memcg=/b/c,task=eat,pid=7,uid=8": {
			constraint: ConstraintMemcg, memsAllowed: "0", oomMemcg: "/a,task_memcg=/b", taskMemcg: "/a,task_memcg=/b/c", task: "eat", pid: 7, uid: 8, complete: true},
		// Cut off by the length of a record.
		memcg:                        {constraint: ConstraintMemcg, memsAllowed: "0-1", oomMemcg: "/p", taskMemcg: "/p/c"},
		memcg + ",task=eat,pid=7":    {constraint: ConstraintMemcg, memsAllowed: "0-1", oomMemcg: "/p", taskMemcg: "/p/c,task=eat,pid=7"},
		"CONSTRAINT_MEMCG,nodemask=": {constraint: ConstraintMemcg},
		"CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/p": {constraint: ConstraintMemcg, memsAllowed: "0", oomMemcg: "/p"},
		"CONSTRAINT_NEW,nodemask=(null),cpuset=c":                               {},
		"": {},
		memcg + ",task=eat,pid=99999999999999999999,uid=8": {constraint: ConstraintMemcg, memsAllowed: "0-1", oomMemcg: "/p", taskMemcg: "/p/c,task=eat,pid=99999999999999999999,uid=8"},
	} {
		if diff := cmp.Diff(want, parseOOMKill([]byte(text)), cmp.AllowUnexported(oomKill{})); diff != "" {
			t.Errorf("%q (-want +got)\n%s", text, diff)
		}
	}
}

// A line that breaks off leaves the next victim to be this one's.
func TestOOMKillBreaksOff(t *testing.T) {
	k := one(t, other+"[    0.9] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/p,task_memcg=/p/c\n"+bare1)
	if !k.Truncated || k.OOMMemcg != "/p" || k.TaskMemcg != "/p/c" || k.PID != 11 || len(k.Victims) != 1 {
		t.Errorf("%+v", k)
	}
}

func TestNames(t *testing.T) {
	const tail = " total-vm:4kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:0 pgtables:5kB oom_score_adj:990"
	for _, comm := range []string{"a", "runc:[2:INIT]", "a b", "(", ")", "a) total-vm:1k", ") total-vm:1kB,", "), UID 0, total", "x (y) z", "(sd-pam)", "\x1b[31m", "\xff\xfe", "exactly 15 byte"} {
		v, ok := parseKilled([]byte("42 (" + comm + ")" + tail))
		if !ok || v.Comm != comm || v.PID != 42 || v.TotalVMKB != 4 || !v.HasSizes || v.OOMScoreAdj != 990 {
			t.Errorf("%q: %+v, %v", comm, v, ok)
		}
		got, ok := parseHeader([]byte(comm + " invoked oom-killer: gfp_mask=0xcc0"))
		if !ok || got != comm {
			t.Errorf("%q invoked: %q, %v", comm, got, ok)
		}
	}
	if _, ok := parseHeader([]byte("much longer than any name invoked oom-killer: gfp_mask=0xcc0")); ok {
		t.Error("a name of more than 15 bytes")
	}
	for text, want := range map[string]Victim{
		"42 (eat":                          {PID: 42, Comm: "eat"},
		"42 (eat)":                         {PID: 42, Comm: "eat"},
		"42 (eat) total-vm:4kB, anon-rss:": {PID: 42, Comm: "eat", TotalVMKB: 4},
		"42 (eat) total-vm:99999999999999999999kB, anon-rss:3kB, file-rss:2kB":    {PID: 42, Comm: "eat", AnonRSSKB: 3, FileRSSKB: 2},
		"42 (eat) total-vm:-1kB, anon-rss:3kB, file-rss:2kB, oom_score_adj:-2000": {PID: 42, Comm: "eat", AnonRSSKB: 3, FileRSSKB: 2},
	} {
		if got, ok := parseKilled([]byte(text)); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x (eat)", "-1 (eat)", "42", "42(eat)", "99999999999999999999 (eat)"} {
		if got, ok := parseKilled([]byte(text)); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseRow(t *testing.T) {
	columns, ok := parseTaskHeader([]byte("[  pid  ]   uid  tgid total_vm      rss something pgtables_bytes swapents oom_score_adj name"))
	if !ok {
		t.Fatal("no header")
	}
	got, ok := columns.parseRow([]byte("[ 123456]  1000 123456   332311    17786 what? 221184       16          -998 a  b 7"))
	want := Task{PID: 123456, UID: 1000, TGID: 123456, TotalVM: 332311, RSS: 17786, PgtablesBytes: 221184, HasPgtables: true, SwapEnts: 16, OOMScoreAdj: -998, Name: "a  b 7"}
	if !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, text := range []string{"", "[", "[]", "[ 1 ] 2", "[ 1] 2 3 4 5 6 7 8 x name", "[ 1] 2 3 4 99999999999999999999 6 7 8 9 name", "[1 2] 2 3 4 5 6 7 8 9 name"} {
		if got, ok := columns.parseRow([]byte(text)); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, text := range []string{"", "[", "[ pid ]", "[ pid ] name", "[ pid ] uid tgid", "[ 12 ] uid tgid name", "[ pid ] " + strings.Repeat("x ", 100) + "name"} {
		if got, ok := parseTaskHeader([]byte(text)); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
