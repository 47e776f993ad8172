package kernlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	wall = time.Date(2026, 11, 30, 2, 46, 2, 0, time.UTC)
	boot = Boot{Wall: wall.Add(time.Hour), Uptime: time.Hour + 68*time.Second}
)

// asUptime is the sample's line in another form; the sample's stamps lie around
// 68 s of uptime, that is around wall.
func rewrite(log []string, line func(stamp, message string) string) string {
	var b strings.Builder
	for _, l := range log {
		head, message, _ := strings.Cut(l, "] ")
		b.WriteString(line(strings.TrimSpace(strings.TrimPrefix(head, "[")), message))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	log := sampleBlocks(t)[0].Log
	const inUptime = 68914044 * time.Microsecond
	exact, second := wall.Add(inUptime-68*time.Second), wall
	at := func(stamp, layout string) string {
		d, err := time.ParseDuration(stamp + "s")
		if err != nil {
			t.Fatal(err)
		}
		return wall.Add(d - 68*time.Second).Format(layout)
	}
	usec := func(stamp string) string { return strings.Replace(stamp, ".", "", 1) }
	for name, c := range map[string]struct {
		line func(stamp, message string) string
		want Stamp
	}{
		"dmesg":             {func(s, m string) string { return fmt.Sprintf("[%12s] %s", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"dmesg, carriage":   {func(s, m string) string { return fmt.Sprintf("[%12s] %s\r", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"dmesg with caller": {func(s, m string) string { return fmt.Sprintf("[%12s][  T290] %s", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"dmesg with CPU":    {func(s, m string) string { return fmt.Sprintf("[%12s] [    C1] %s", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"dmesg -r":          {func(s, m string) string { return fmt.Sprintf("<4>[%12s] %s", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"dmesg -T":          {func(s, m string) string { return fmt.Sprintf("[%s] %s", at(s, time.ANSIC), m) }, Stamp{Wall: second, HasWall: true}},
		"dmesg iso":         {func(s, m string) string { return at(s, "2006-01-02T15:04:05,000000-07:00") + " " + m }, Stamp{Wall: exact, HasWall: true}},
		"no stamps":         {func(s, m string) string { return m }, Stamp{}},
		"kmsg":              {func(s, m string) string { return fmt.Sprintf("4,1234,%s,-;%s\n SUBSYSTEM=oom", usec(s), m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"kmsg with caller":  {func(s, m string) string { return fmt.Sprintf("4,1234,%s,-,caller=T290;%s", usec(s), m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"journal short":     {func(s, m string) string { return at(s, time.Stamp) + " node-1 kernel: " + m }, Stamp{Wall: second, HasWall: true}},
		"journal precise":   {func(s, m string) string { return at(s, "Jan _2 15:04:05.000000") + " node-1 kernel: " + m }, Stamp{Wall: exact, HasWall: true}},
		"journal iso":       {func(s, m string) string { return at(s, "2006-01-02T15:04:05-0700") + " node-1 kernel: " + m }, Stamp{Wall: second, HasWall: true}},
		"journal iso precise": {func(s, m string) string {
			return at(s, "2006-01-02T15:04:05.000000-0700") + " node-1 kernel: " + m
		}, Stamp{Wall: exact, HasWall: true}},
		"journal iso, colon": {func(s, m string) string {
			return at(s, "2006-01-02T15:04:05.000000-07:00") + " node-1 kernel: " + m
		}, Stamp{Wall: exact, HasWall: true}},
		"journal monotonic": {func(s, m string) string { return fmt.Sprintf("[%12s] node-1 kernel: %s", s, m) }, Stamp{Uptime: inUptime, HasUptime: true, Wall: exact, HasWall: true}},
		"rsyslog": {func(s, m string) string {
			return fmt.Sprintf("%s node-1 kernel: [%12s] %s", at(s, time.Stamp), s, m)
		}, Stamp{Uptime: inUptime, HasUptime: true, Wall: second, HasWall: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Parse([]byte(rewrite(log, c.line)), boot)
			if len(got.Kills) != 1 {
				t.Fatalf("%d kills, want 1", len(got.Kills))
			}
			opts := cmp.Options{cmpopts.IgnoreFields(Kill{}, "Time", "Line"), cmpopts.EquateApproxTime(0)}
			if diff := cmp.Diff(one(t, strings.Join(log, "\n")), got.Kills[0], opts); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.want, got.Kills[0].Time, opts); diff != "" {
				t.Errorf("time (-want +got)\n%s", diff)
			}
			if got.First.HasWall != c.want.HasWall || got.Last.HasUptime != c.want.HasUptime || got.Last.Wall.Before(got.First.Wall) {
				t.Errorf("from %+v to %+v", got.First, got.Last)
			}
		})
	}
}

func TestZeroBoot(t *testing.T) {
	for log, want := range map[string]Stamp{
		"[   68.5] x":                                      {Uptime: 68500 * time.Millisecond, HasUptime: true},
		"[Mon Nov 30 02:46:02 2026] x":                     {Wall: wall, HasWall: true},
		"2026-11-30T02:46:02Z node-1 kernel: x":            {Wall: wall, HasWall: true},
		"2026-11-30T03:46:02+0100 node-1 kernel: x":        {Wall: wall, HasWall: true},
		"Nov 30 02:46:02 node-1 kernel: x":                 {}, // of which year?
		"[99999999999999999999.5] x":                       {},
		"[9223372037.5] x":                                 {},
		"[Mon Nov 99 02:46:02 2026] x":                     {},
		"6,1,18446744073709551615,-;x":                     {},
		"2026-99-30T02:46:02Z node-1 kernel: x":            {},
		"Nov 30 02:46:02 node-1 systemd[1]: Started x.":    {},
		"[   68.1] x\n[Mon Nov 30 02:46:02 2026] y\nplain": {Wall: wall, HasWall: true},
	} {
		got := Parse([]byte(log), Boot{}).Last
		if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", log, diff)
		}
	}
}

func TestYear(t *testing.T) {
	at := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
	}
	for _, c := range []struct {
		now, want time.Time
		text      string
	}{
		{at(2027, 1, 2), at(2026, 12, 31), "Dec 31 12:00:00"},
		{at(2027, 1, 2), at(2027, 1, 1), "Jan  1 12:00:00"},
		{at(2026, 12, 31), at(2027, 1, 1), "Jan  1 12:00:00"}, // a clock that was a little behind
		{at(2026, 3, 1), at(2024, 2, 29), "Feb 29 12:00:00"},
	} {
		got := Parse([]byte(c.text+" node-1 kernel: x"), Boot{Wall: c.now}).First
		if !got.HasWall || !got.Wall.Equal(c.want) {
			t.Errorf("%s seen on %v: %v, want %v", c.text, c.now, got, c.want)
		}
	}
}

// Messages of others, who may write what they like.
func TestForeign(t *testing.T) {
	const message = "Out of memory: Killed process 13 (c) total-vm:4kB, anon-rss:3kB, file-rss:2kB"
	for _, head := range []string{
		"<30>[    1.000000] ",
		"30,5,1000000,-;",
		"Nov 30 02:46:02 node-1 app[77]: ",
		"Nov 30 02:46:02 node-1 kernel-like: ",
		"2026-11-30T02:46:02+0000 node-1 systemd[1]: ",
		"2026-11-30T02:46:02+0000 ",
		"2026-11-30T02:46:02+0000 node-1 app[77]: x\n    ",
		"6,5,1000000,-;x\n ",
	} {
		if got := Parse([]byte(head+message+"\n"), boot); len(got.Kills) != 0 {
			t.Errorf("%q: %+v", head, got.Kills)
		}
	}
}

// The memory.stat of 6.1 is one record of many lines.
func TestKmsgRecordOfManyLines(t *testing.T) {
	k := one(t, `6,1,1000000,-;x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
6,2,1000001,-;memory: usage 65476kB, limit 65536kB, failcnt 2651
6,3,1000002,-;Memory cgroup stats for /p:
6,4,1000003,-;anon 24948736\x0afile 41943040\x0akernel 155648
6,5,1000004,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/p,task_memcg=/p,task=a\x0ab,pid=5,uid=0
3,6,1000005,-;Memory cgroup out of memory: Killed process 5 (a\x0ab) total-vm:4kB, anon-rss:3kB, file-rss:2kB
`)
	if diff := cmp.Diff(Stats{{"anon", 24948736}, {"file", 41943040}, {"kernel", 155648}}, k.Stats); diff != "" {
		t.Error(diff)
	}
	if k.Task != "a\nb" || len(k.Victims) != 1 || k.Victims[0].Comm != "a\nb" || !k.Victims[0].HasSizes {
		t.Errorf("%+v", k)
	}
}
