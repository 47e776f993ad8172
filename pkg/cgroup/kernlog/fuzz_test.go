package kernlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// check holds for any input.
func check(t interface{ Fatalf(string, ...any) }, log []byte) {
	got := Parse(log, boot)
	lines := bytes.Count(log, []byte("\n"))
	if len(log) > 0 && log[len(log)-1] != '\n' {
		lines++
	}
	if got.Lines != lines {
		t.Fatalf("%d lines, want %d", got.Lines, lines)
	}
	for _, k := range append(got.Kills, got.NoKillable...) {
		if k.Line < 1 || k.Line > lines {
			t.Fatalf("line %d of %d", k.Line, lines)
		}
		if k.Global && k.OOMMemcg != "" {
			t.Fatalf("global and for the limit of %q", k.OOMMemcg)
		}
		if len(k.Stats) > maxStats || len(k.Task) > maxComm {
			t.Fatalf("%d keys, task %q", len(k.Stats), k.Task)
		}
		pids := map[int64]bool{}
		for _, v := range k.Victims {
			if pids[v.PID] || len(v.Comm) > maxComm {
				t.Fatalf("victims %+v", k.Victims)
			}
			pids[v.PID] = true
		}
	}
	for _, k := range got.Kills {
		if len(k.Victims) == 0 && !k.Truncated && !k.AlreadyExiting {
			t.Fatalf("nobody died: %+v", k)
		}
	}
	for _, k := range got.NoKillable {
		if len(k.Victims) > 0 {
			t.Fatalf("nothing killable, and killed: %+v", k)
		}
	}
}

func FuzzKernlogParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.log")
	if err != nil || len(files) != 3 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, block := range sampleBlocks(f) {
		f.Add([]byte(strings.Join(block.Log, "\n")))
	}
	f.Add([]byte(bare1 + bare2 + bare3))
	f.Add([]byte("4,1,18446744073709551615,-;Out of memory: Killed process 1 (\\x0a) total-vm:1kB\n"))
	f.Add([]byte("<999>[1.1][T1] oom-kill:constraint=,nodemask=,cpuset=,mems_allowed=,oom_memcg=,task_memcg=,task=,pid=1,uid=1"))
	f.Add([]byte("Feb 29 00:00:00.9 h kernel: [1.] Tasks in  are going to be killed due to memory.oom.group set"))
	f.Fuzz(func(t *testing.T, log []byte) { check(t, log) })
}

// Lines of real logs in any order, and cut anywhere.
func TestShuffledLines(t *testing.T) {
	var lines [][]byte
	for _, name := range []string{"starts-amid-report.log", "group-kill.log", "kernel-6.1.log"} {
		for line := range bytes.SplitSeq(readLog(t, name), []byte("\n")) {
			if bytes.Contains(line, []byte("oom")) || bytes.Contains(line, []byte("Kill")) || len(lines)%3 == 0 {
				lines = append(lines, line)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var log []byte
		for _, line := range rapid.SliceOfN(rapid.SampledFrom(lines), 0, 40).Draw(t, "lines") {
			log = append(append(log, line...), '\n')
		}
		from := rapid.IntRange(0, len(log)).Draw(t, "from")
		check(t, log[from:rapid.IntRange(from, len(log)).Draw(t, "to")])
	})
}

// Where the log is cut does not change the kills of which enough is left.
func TestCutAnywhere(t *testing.T) {
	log := readLog(t, "group-kill.log")
	whole := Parse(log, Boot{}).Kills[0]
	end := bytes.Index(log, []byte("are going to be killed"))
	chosen := bytes.Index(log, []byte("oom-kill:"))
	for at := 0; at < end; at++ {
		if log[at] != '\n' || at > chosen-40 && at < chosen {
			continue
		}
		got := Parse(log[at+1:], Boot{})
		if at >= chosen {
			continue
		}
		k := got.Kills[0]
		// Rows cannot be read without their header.
		opts := cmpopts.IgnoreFields(Kill{}, "Line", "InvokedBy", "Truncated", "Stats", "Tasks", "UsageKB", "LimitKB", "HasLimit", "SwapLimitKB", "HasSwap", "Victims")
		if diff := cmp.Diff(whole, k, opts); diff != "" || !k.Truncated || k.Victims[0] != whole.Victims[0] {
			t.Fatalf("cut at byte %d (-whole +rest)\n%s", at, diff)
		}
	}
}

// Each of these was made to be slow or large.
func TestHostile(t *testing.T) {
	const size = 1 << 19
	fill := func(line string) []byte { return bytes.Repeat([]byte(line), size/len(line)+1)[:size] }
	many := func(format string) []byte {
		var b bytes.Buffer
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.Bytes()
	}
	for name, log := range map[string][]byte{
		"one line":       bytes.Repeat([]byte("x"), size),
		"NULs":           make([]byte, size),
		"newlines":       fill("\n"),
		"spaces":         fill(" "),
		"headers":        fill("a invoked oom-killer: \n"),
		"bare kills":     many("Out of memory: Killed process %d (a)\n"),
		"chosen":         many(chosenLine("0.1", 1, "a") + "%d\n"),
		"one group":      append([]byte("Killed process 1 (a)\nTasks in /x are going to be killed due to memory.oom.group set\n"), many("Killed process %d (a)\n")...),
		"groups":         many("Killed process %d (a)\nTasks in /x are going to be killed due to memory.oom.group set\n"),
		"rows":           append([]byte("[pid] uid tgid name\n"), many("[%d] 1 1 a\n")...),
		"rows and kills": append(append(append([]byte("[pid] uid tgid name\n"), many("[%d] 1 1 a\n")...), "Killed process 1 (a)\nTasks in /x are going to be killed due to memory.oom.group set\n"...), many("Killed process 9%d (a) total-vm:0kB, anon-rss:0kB, file-rss:0kB, oom_score_adj:0\n")...),
		"stats":          append([]byte("memory: usage 1kB, limit 1kB\n"), many("a%d 1\n")...),
		"old stats":      many("Memory cgroup stats for /x: cache:" + strings.Repeat("%[1]d:1KB ", 200) + "\n"),
		"memcgs":         fill("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=,cpuset=,mems_allowed=0,oom_memcg=" + strings.Repeat(",task_memcg=", 300) + "\n"),
		"mems":           fill("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=,cpuset=" + strings.Repeat(",mems_allowed=0", 300) + "\n"),
		"escapes":        fill("6,1,1,-;" + strings.Repeat(`\x0a`, 1000) + "\n"),
		"one escape":     append([]byte("6,1,1,-;a 1"), fill(`\x0aa 1`)...),
		"notes":          fill("Memory failure: \n"),
		"reaped":         append([]byte(bare1), fill("oom_reaper: reaped process 11 (a)\n")...),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			check(t, log)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	var b bytes.Buffer
	for i := range maxReports + 1000 {
		fmt.Fprintf(&b, "Out of memory: Killed process %d (a)\n", i+1)
	}
	got := Parse(b.Bytes(), Boot{})
	// The guess at the log's start takes a place.
	if len(got.Kills) != maxReports-1 || got.Skipped != 1001 {
		t.Errorf("%d kills, %d skipped", len(got.Kills), got.Skipped)
	}
	if got := Parse(bytes.Repeat([]byte("Memory failure: x\n"), MaxNotes+5), Boot{}); len(got.Notes) != MaxNotes {
		t.Errorf("%d notes", len(got.Notes))
	}
}

// benchmarkLog is a log of the usual size, 130 KB, and of the usual content:
// reports of OOM kills one after another.
func benchmarkLog(b *testing.B) []byte {
	report := readLog(b, "group-kill.log")
	return bytes.Repeat(report, 130000/len(report)+1)
}

func BenchmarkParse(b *testing.B) {
	log := benchmarkLog(b)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(log, boot)
	}
}

func BenchmarkParseOtherLines(b *testing.B) {
	log := bytes.Repeat([]byte("[  123.456789] IPVS: wlc: UDP 10.96.0.10:53 - no destination available for this connection\n"), 700000)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		Parse(log, boot)
	}
}
