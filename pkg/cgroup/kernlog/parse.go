package kernlog

import (
	"bytes"
	"time"
)

// maxMessage bounds what is read of one message. The kernel's own are below
// 2 KiB.
const maxMessage = 4096

// What is kept of a log is bounded: a log may be a forgery made of nothing but
// the shortest lines.
const (
	maxReports = 50000
	maxVictims = 1 << 18
	maxTasks   = 1 << 19
)

// groupGap is the longest pause between the kills of one group, printed one
// after another by the same CPU.
const groupGap = 2 * time.Second

// Parse reads a kernel log. Lines that say nothing about memory are skipped;
// whatever the input, there is a result.
func Parse(log []byte, boot Boot) Log {
	p := parser{boot: boot, pending: map[int64]*report{}, owner: map[int64]*report{}}
	p.begin()
	var last head
	for number := 1; len(log) > 0; number++ {
		line, rest, _ := bytes.Cut(log, []byte("\n"))
		log = rest
		p.log.Lines = number
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > 0 && line[0] == 0 {
			line = bytes.TrimLeft(line, "\x00")
		}
		if len(line) > 0 && line[0] == ' ' {
			// The rest of a message of several lines, or a record's dictionary.
			if !last.kmsg && !last.foreign {
				p.message(number, last, bytes.TrimLeft(line, " "))
			}
			continue
		}
		h, text := splitHead(line)
		if h.stamped() {
			if !last.stamped() {
				p.log.First = boot.stamp(h)
			}
			last = h
		}
		if h.foreign {
			continue
		}
		if h.kmsg {
			p.record(number, h, text)
			continue
		}
		p.message(number, h, text)
	}
	if last.stamped() {
		p.log.Last = boot.stamp(last)
	}
	p.finish()
	return p.log
}

// parser keeps the reports that are being read. The kernel prints them one at
// a time, but other messages come in between, and the beginning of the log may
// fall into one.
type parser struct {
	boot    Boot
	log     Log
	reports []*report

	open    *report // being printed: its oom-kill line has not come yet
	section section
	columns taskColumns

	pending map[int64]*report // oom-kill line read, victim's end awaited, by PID
	owner   map[int64]*report // of each victim

	last       *report // to which the last "Killed process" belongs
	lastJoined bool    // it joined as a member of the group killed
	lastEvent  *report // whose oom-kill line or victim was the last of all

	victims, tasks int // kept so far
}

type section int

const (
	sectionNone  section = iota
	sectionStats         // lines of memory.stat
	sectionTasks         // rows of the task table
)

func (p *parser) newReport() *report {
	r := &report{}
	if len(p.reports) == maxReports {
		p.log.Skipped++
		r.dropped = true
		return r
	}
	p.reports = append(p.reports, r)
	return r
}

// begin assumes that the log starts amid a report: the next lines tell.
func (p *parser) begin() {
	p.open = p.newReport()
	p.open.guessed, p.open.Truncated = true, true
	p.section = sectionStats
}

// current is the report being printed; a line of one whose beginning is lost
// begins it.
func (p *parser) current() *report {
	if p.open == nil {
		p.open = p.newReport()
		p.open.Truncated = true
	}
	p.open.guessed = false
	return p.open
}

// record reads a record of /dev/kmsg, which may be of several lines.
func (p *parser) record(number int, h head, text []byte) {
	text = unescape(text[:min(len(text), 4*maxMessage)])
	first, _, several := bytes.Cut(text, []byte("\n"))
	if _, _, isStat := parseStat(first); !several || !isStat && !bytes.HasPrefix(first, statsPrefix) {
		p.message(number, h, text)
		return
	}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		p.message(number, h, line)
	}
}

var (
	statsPrefix    = []byte("Memory cgroup stats for ")
	memcgPrefix    = []byte("Memory cgroup out of memory: ")
	globalPrefix   = []byte("Out of memory: ")
	allocatingTask = []byte("Out of memory (oom_kill_allocating_task): ")
	noKillable     = []byte("Out of memory and no killable processes")
	killedPrefix   = []byte("Killed process ")
	choosingPrefix = []byte("Kill process ")
	exitingPrefix  = []byte("OOM victim ")
	groupPrefix    = []byte("Tasks in ")
	groupSuffix    = []byte(" are going to be killed due to memory.oom.group set")
	oldMemcgPrefix = []byte("Task in ")
	oldMemcgMiddle = []byte(" killed as a result of limit of ")
	reapedPrefix   = []byte("oom_reaper: reaped process ")
	unreapedPrefix = []byte("oom_reaper: unable to reap pid:")
	tasksPrefix    = []byte("Tasks state (memory values in pages)")
	memoryPrefix   = []byte("memory: ")
	swapPrefix     = []byte("swap: ")
	periodPrefix   = []byte("cfs_period_timer[cpu")
	periodScaled   = []byte("period too short, scaling up")
	hardwarePrefix = []byte("Memory failure: ")
	panicPrefix    = []byte("Kernel panic - not syncing: Out of memory")
	forkPrefix     = []byte("cgroup: fork rejected by pids controller in ")
	panicOnOOM     = []byte("panic_on_oom is enabled")

	totalSwapPrefix = []byte("Total swap = ")
	ramSuffix       = []byte(" pages RAM")
	reservedSuffix  = []byte(" pages reserved")
)

// message reads one message and sorts it by how it begins.
func (p *parser) message(number int, h head, text []byte) {
	if len(text) == 0 {
		return
	}
	text = text[:min(len(text), maxMessage)]
	if comm, ok := parseHeader(text); ok {
		p.header(number, h, comm)
		return
	}
	switch text[0] {
	case 'o':
		if rest, ok := bytes.CutPrefix(text, oomKillPrefix); ok {
			p.oomKill(number, h, parseOOMKill(rest))
			return
		}
		if rest, ok := bytes.CutPrefix(text, reapedPrefix); ok {
			p.reaped(rest, true)
			return
		}
		if rest, ok := bytes.CutPrefix(text, unreapedPrefix); ok {
			p.reaped(rest, false)
			return
		}
	case 'M':
		if rest, ok := bytes.CutPrefix(text, statsPrefix); ok {
			p.statsTitle(rest)
			return
		}
		if rest, ok := bytes.CutPrefix(text, memcgPrefix); ok {
			p.verdict(number, h, rest, ConstraintMemcg)
			return
		}
		if bytes.HasPrefix(text, hardwarePrefix) {
			p.note(MemoryFailure, number, h, text)
			return
		}
	case 'O':
		if bytes.HasPrefix(text, noKillable) {
			p.nothingKillable(number, h)
			return
		}
		for _, prefix := range [][]byte{globalPrefix, allocatingTask} {
			if rest, ok := bytes.CutPrefix(text, prefix); ok {
				p.verdict(number, h, rest, ConstraintNone)
				return
			}
		}
	case 'K':
		if bytes.HasPrefix(text, killedPrefix) {
			p.verdict(number, h, text, ConstraintUnknown)
			return
		}
		if bytes.HasPrefix(text, panicPrefix) && bytes.Contains(text, panicOnOOM) {
			p.note(PanicOnOOM, number, h, text)
			return
		}
	case 'T':
		if rest, ok := bytes.CutPrefix(text, totalSwapPrefix); ok {
			p.totalSwap(rest)
			return
		}
		if bytes.HasPrefix(text, tasksPrefix) {
			p.current()
			p.section, p.columns = sectionTasks, nil
			return
		}
		if rest, ok := bytes.CutPrefix(text, groupPrefix); ok {
			if memcg, ok := bytes.CutSuffix(rest, groupSuffix); ok {
				p.group(number, h, string(memcg))
				return
			}
		}
		if rest, ok := bytes.CutPrefix(text, oldMemcgPrefix); ok {
			if task, limit, ok := bytes.Cut(rest, oldMemcgMiddle); ok {
				r := p.current()
				r.TaskMemcg, r.OOMMemcg, r.Constraint = string(task), string(limit), ConstraintMemcg
				return
			}
		}
	case 'm':
		if rest, ok := bytes.CutPrefix(text, memoryPrefix); ok {
			if usage, limit, ok := parseUsage(rest); ok {
				r := p.current()
				r.UsageKB, r.LimitKB, r.HasLimit = usage, limit, true
				p.section = sectionStats
				return
			}
		}
	case 's':
		if rest, ok := bytes.CutPrefix(text, swapPrefix); ok && p.open != nil {
			if usage, limit, ok := parseUsage(rest); ok {
				r := p.current()
				r.SwapUsageKB, r.SwapLimitKB, r.HasSwap = usage, limit, true
				return
			}
		}
	case 'c':
		if bytes.HasPrefix(text, periodPrefix) && bytes.Contains(text, periodScaled) {
			p.note(PeriodScaled, number, h, text)
			return
		}
		if bytes.HasPrefix(text, forkPrefix) {
			p.note(ForkRejected, number, h, text)
			return
		}
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if p.pages(text) {
			return
		}
	case '[':
		if columns, ok := parseTaskHeader(text); ok {
			p.current()
			p.section, p.columns = sectionTasks, columns
			return
		}
		if p.open != nil && p.section == sectionTasks && p.columns != nil {
			if task, ok := p.columns.parseRow(text); ok {
				p.addTask(task)
			}
			return
		}
	}
	if p.open == nil || p.section != sectionStats {
		return
	}
	if key, value, ok := parseStat(text); ok {
		p.open.addStat(key, value)
		return
	}
	// The log does not start amid a report after all. Its first line may be
	// the end of one.
	if p.open.guessed && number > 1 {
		p.open.dropped = true
		p.open = nil
	}
}

func (p *parser) note(kind NoteKind, number int, h head, text []byte) {
	if len(p.log.Notes) < MaxNotes {
		p.log.Notes = append(p.log.Notes, Note{Kind: kind, Time: p.boot.stamp(h), Line: number, Text: string(text[:min(len(text), maxNote)])})
	}
}
