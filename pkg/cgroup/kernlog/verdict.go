package kernlog

import "bytes"

// verdict reads what follows "Out of memory: ".
func (p *parser) verdict(number int, h head, text []byte, c Constraint) {
	if rest, ok := bytes.CutPrefix(text, killedPrefix); ok {
		if v, ok := parseKilled(rest); ok {
			p.killed(number, h, v, c)
		}
		return
	}
	if rest, ok := bytes.CutPrefix(text, choosingPrefix); ok { // up to 4.19
		if pid, rest, ok := cutProcess(rest); ok {
			comm, _, _ := cutComm(rest, ") score ")
			p.chosen(number, h, pid, comm, c)
		}
		return
	}
	if rest, ok := bytes.CutPrefix(text, exitingPrefix); ok {
		if pid, rest, ok := cutProcess(rest); ok {
			comm, _, _ := cutComm(rest, ") is already exiting")
			p.exiting(number, h, pid, comm, c)
		}
	}
}

// chosen reads the line of old kernels that names the victim, or the parent
// of the one that will be.
func (p *parser) chosen(number int, h head, pid int64, comm string, c Constraint) {
	r := p.takeOpen()
	r.Bare = false
	r.hasOOMKill, r.anyVictim = true, true
	r.Task, r.PID = comm, pid
	r.setConstraint(c)
	r.setTime(timedChosen, number, p.boot.stamp(h))
	p.lastEvent = r
}

// killed finds the report that a victim belongs to.
func (p *parser) killed(number int, h head, v Victim, c Constraint) {
	stamp := p.boot.stamp(h)
	due := p.lastEvent
	if due != nil && !due.awaitsVictim() {
		due = nil
	}
	r, joined := p.pending[v.PID], false
	switch {
	case r != nil:
		delete(p.pending, v.PID)
	case due != nil && due.anyVictim:
		r = due
	case due != nil && due.Task == v.Comm:
		// Its first thread has ended meanwhile; this is another.
		r = due
		delete(p.pending, r.PID)
		v.PID, v.TID = r.PID, v.PID
	case p.last != nil && p.last.holds(v, stamp):
		r, joined = p.last, true
		v = r.identify(v)
	default:
		r = p.takeOpen()
		if due != nil {
			due.stray = r
		}
	}
	if r == p.open || p.open != nil && p.open.guessed {
		p.open, p.section = nil, sectionNone
	}
	r.settled = true
	r.setConstraint(c)
	r.setTime(timedKilled, number, stamp)
	r.lastKill, r.lastKillLine, r.lastVerdict = stamp, number, c
	added := p.addVictim(r, v)
	p.last, p.lastJoined, p.lastEvent = r, joined && added, r
}

// group reads that the first victim's whole cgroup dies. That victim's line
// was the one before.
func (p *parser) group(number int, h head, memcg string) {
	r := p.last
	switch {
	case p.lastEvent != nil && p.lastEvent.awaitsVictim():
		r = p.lastEvent // the line is lost
		r.settled = true
		delete(p.pending, r.PID)
		if r.PID != 0 {
			p.addVictim(r, Victim{PID: r.PID, Comm: r.Task, UID: r.UID, HasUID: r.HasUID})
		}
	case r == nil:
		r = p.newReport()
		r.Truncated, r.settled = true, true
		r.setTime(timedStart, number, p.boot.stamp(h))
	case r.GroupKill != "" && p.lastJoined:
		r = p.split(r)
	}
	r.GroupKill = memcg
	if r.TaskMemcg == "" {
		r.TaskMemcg = memcg
	}
	r.lastKill = p.boot.stamp(h)
	p.last, p.lastEvent, p.lastJoined = r, r, false
}

// split makes the last victim of a group the first of another: it turned out
// to be no member.
func (p *parser) split(r *report) *report {
	moved := r.Victims[len(r.Victims)-1]
	r.Victims = r.Victims[:len(r.Victims)-1]
	delete(r.byPID, moved.PID)
	delete(r.byPID, moved.TID)
	delete(r.bySizes, moved.sizes())
	p.victims--

	next := p.newReport()
	next.Bare, next.settled = true, true
	next.setConstraint(r.lastVerdict)
	next.setTime(timedKilled, r.lastKillLine, r.lastKill)
	p.addVictim(next, moved)
	return next
}

// exiting reads that a process to be killed is dying already: the one chosen,
// or a member of its group, which then dies with it.
func (p *parser) exiting(number int, h head, pid int64, comm string, c Constraint) {
	stamp := p.boot.stamp(h)
	r := p.pending[pid]
	switch {
	case r != nil:
		delete(p.pending, pid)
	case p.lastEvent != nil && p.lastEvent.awaitsVictim() && p.lastEvent.anyVictim:
		r = p.lastEvent
	case p.last != nil && p.last.holds(Victim{PID: pid, Comm: comm}, stamp):
		return
	default:
		r = p.takeOpen()
	}
	r.settled, r.AlreadyExiting = true, true
	if r.PID == 0 {
		r.PID, r.Task = pid, comm
	}
	r.setConstraint(c)
	r.setTime(timedKilled, number, stamp)
	p.lastEvent = r
}

// reaped reads what the OOM reaper, which comes later, made of a victim.
func (p *parser) reaped(text []byte, done bool) {
	pid, _, ok := cutProcess(text)
	if !ok {
		return
	}
	if r := p.owner[pid]; r != nil {
		if i, ok := r.byPID[pid]; ok {
			r.Victims[i].Reaped, r.Victims[i].Unreaped = done, !done
		}
	}
}
