package kernlog

import (
	"bytes"
	"strings"
)

// report is a Kill in the making.
type report struct {
	Kill
	timed      int  // how near Time is to the victim's end
	hasHeader  bool // "invoked oom-killer"
	hasOOMKill bool // "oom-kill:…"
	anyVictim  bool // the next victim is this one's, whatever its PID
	settled    bool // a victim is known, or that there is none
	noKillable bool
	dropped    bool
	guessed    bool    // begun at the log's first line
	stray      *report // a victim without a report, printed where this one's was due

	lastKill     Stamp // of the last victim
	lastKillLine int
	lastVerdict  Constraint

	byPID   map[int64]int  // index of each victim, by PID and TID
	bySizes map[Victim]int // the same by name and amounts
	tasks   *taskIndex     // of Tasks, once needed
}

// How near a line is to the victim's end.
const (
	timedStart = iota + 1
	timedChosen
	timedKilled
)

func (r *report) setTime(near int, number int, s Stamp) {
	if near > r.timed {
		r.timed, r.Line, r.Time = near, number, s
	}
}

// setConstraint sets what the beginning of a verdict says of the cause.
func (r *report) setConstraint(c Constraint) {
	switch {
	case c == ConstraintMemcg && r.Constraint == ConstraintUnknown:
		r.Constraint = ConstraintMemcg
	case c == ConstraintNone && r.Constraint != ConstraintMemcg:
		r.Global, r.OOMMemcg = true, ""
	}
}

// awaitsVictim says whether the line that must follow is missing.
func (r *report) awaitsVictim() bool { return r.hasOOMKill && !r.settled }

// header begins a report.
func (p *parser) header(number int, h head, comm string) {
	p.open = p.newReport()
	p.open.hasHeader = true
	p.open.InvokedBy = comm
	p.open.setTime(timedStart, number, p.boot.stamp(h))
	p.section, p.columns = sectionNone, nil
	p.lastEvent = nil
}

// statsTitle reads "PATH:" or, of old kernels, "PATH: cache:0KB …".
func (p *parser) statsTitle(text []byte) {
	r := p.current()
	p.section = sectionStats
	if i := bytes.Index(text, []byte(": cache:")); i >= 0 {
		r.Stats.addOldStats(text[i+1:])
		text = text[:i]
	}
	if r.OOMMemcg == "" {
		r.OOMMemcg = string(bytes.TrimSuffix(text, []byte(":")))
	}
}

func (r *report) addStat(key []byte, value uint64) {
	if len(r.Stats) == maxStats {
		return
	}
	if r.Stats == nil {
		r.Stats = make(Stats, 0, 80)
	}
	r.Stats = append(r.Stats, Stat{Key: internKey(key), Value: value})
}

// pages reads "262014 pages RAM" and "14154 pages reserved", which stand in other
// dumps of the kernel's too: only those of a report that has begun count.
func (p *parser) pages(text []byte) bool {
	if p.open == nil || p.open.guessed || len(text) > 64 {
		return false
	}
	if digits, ok := bytes.CutSuffix(text, ramSuffix); ok {
		n, ok := parseUint(digits)
		p.open.RAMPages, p.open.HasRAM = n, ok
		return true
	}
	if digits, ok := bytes.CutSuffix(text, reservedSuffix); ok {
		p.open.ReservedPages, _ = parseUint(digits)
		return true
	}
	return false
}

func (p *parser) totalSwap(text []byte) {
	if p.open != nil && !p.open.guessed {
		p.open.TotalSwapKB, _ = parseUint(bytes.TrimSuffix(text, []byte("kB")))
	}
}

func (p *parser) addTask(t Task) {
	if p.tasks == maxTasks {
		p.open.Truncated = true
		return
	}
	p.tasks++
	p.open.Tasks = append(p.open.Tasks, t)
}

// oomKill ends a report: the victim's end comes next.
func (p *parser) oomKill(number int, h head, k oomKill) {
	r := p.current()
	p.open, p.section = nil, sectionNone
	r.hasOOMKill = true
	r.Constraint, r.Nodemask, r.MemsAllowed, r.Global = k.constraint, k.nodemask, k.memsAllowed, k.global
	if k.taskMemcg != "" {
		r.TaskMemcg = k.taskMemcg
	}
	if r.Global || k.oomMemcg != "" {
		r.OOMMemcg = k.oomMemcg
	}
	r.setTime(timedChosen, number, p.boot.stamp(h))
	p.lastEvent = r
	if !k.complete {
		r.Truncated, r.anyVictim = true, true
		return
	}
	r.Task, r.PID, r.UID, r.HasUID = k.task, k.pid, k.uid, true
	if !r.dropped {
		p.pending[k.pid] = r
	}
}

// nothingKillable ends a report without a victim.
func (p *parser) nothingKillable(number int, h head) {
	r := p.takeOpen()
	r.settled, r.noKillable = true, true
	r.setTime(timedKilled, number, p.boot.stamp(h))
	p.lastEvent = r
}

// takeOpen returns the report that a verdict without an oom-kill line ends, a
// bare one if there is none.
func (p *parser) takeOpen() *report {
	r := p.open
	if r == nil || r.guessed {
		r = p.newReport()
		r.Bare = true
		r.Truncated = p.open != nil // a guess: the log may start amid this one
	}
	p.open, p.section = nil, sectionNone
	return r
}

// finish sorts the reports into kills and others.
func (p *parser) finish() {
	for _, r := range p.reports {
		// Kernel 5.0 may name one process and kill a child of it.
		if s := r.stray; s != nil && r.awaitsVictim() && !s.dropped && len(s.Victims) > 0 {
			s.dropped, r.settled = true, true
			r.Victims, r.GroupKill = s.Victims, s.GroupKill
			r.setTime(timedKilled, s.Line, s.Time)
		}
	}
	for _, r := range p.reports {
		switch {
		case r.dropped, r.guessed, !r.settled && !r.hasHeader && !r.hasOOMKill:
		case r.noKillable:
			p.log.NoKillable = append(p.log.NoKillable, r.Kill)
		default:
			r.Truncated = r.Truncated || !r.settled
			p.log.Kills = append(p.log.Kills, r.Kill)
		}
	}
}

// internKey returns the key as a string, without a copy if it is a usual one:
// a log holds each of them many times.
func internKey(key []byte) string {
	if known, ok := usualKeys[string(key)]; ok {
		return known
	}
	return string(key)
}

var usualKeys = func() map[string]string {
	keys := map[string]string{}
	for key := range strings.FieldsSeq(`
		anon file kernel kernel_stack pagetables sec_pagetables percpu sock vmalloc shmem zswap zswapped
		file_mapped file_dirty file_writeback swapcached anon_thp file_thp shmem_thp
		inactive_anon active_anon inactive_file active_file unevictable slab_reclaimable slab_unreclaimable slab
		workingset_refault_anon workingset_refault_file workingset_activate_anon workingset_activate_file
		workingset_restore_anon workingset_restore_file workingset_nodereclaim
		pgdemote_kswapd pgdemote_direct pgdemote_khugepaged pgpromote_success pgscan pgsteal
		pgscan_kswapd pgscan_direct pgscan_khugepaged pgsteal_kswapd pgsteal_direct pgsteal_khugepaged
		pgfault pgmajfault pgrefill pgactivate pgdeactivate pglazyfree pglazyfreed swpin_zero swpout_zero
		zswpin zswpout zswpwb thp_fault_alloc thp_collapse_alloc thp_swpout thp_swpout_fallback
		numa_pages_migrated numa_pte_updates numa_hint_faults`) {
		keys[key] = key
	}
	return keys
}()
