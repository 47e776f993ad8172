package kernlog

// addVictim adds a process, once: the first victim of a group is printed
// again among its members.
func (p *parser) addVictim(r *report, v Victim) bool {
	if i, ok := r.byPID[v.PID]; ok {
		if !r.Victims[i].HasSizes && v.HasSizes {
			r.Victims[i] = v
		}
		return false
	}
	if p.victims == maxVictims {
		r.Truncated = true
		return false
	}
	// Kernels before 5.6 print bytes and call them kB.
	if v.HasPgtables && len(r.Tasks) > 0 {
		if t, ok := r.row(v.PID); ok && t.HasPgtables && v.PgtablesKB == t.PgtablesBytes {
			v.PgtablesKB /= 1024
		}
	}
	if r.PID == 0 {
		r.PID, r.Task = v.PID, v.Comm
	}
	if r.PID == v.PID && !r.HasUID {
		r.UID, r.HasUID = v.UID, v.HasUID
	}
	if r.byPID == nil {
		r.byPID, r.bySizes = map[int64]int{}, map[Victim]int{}
	}
	p.victims++
	at := len(r.Victims)
	r.Victims = append(r.Victims, v)
	r.byPID[v.PID] = at
	r.bySizes[v.sizes()] = at
	if v.TID != 0 {
		r.byPID[v.TID] = at
	}
	if !r.dropped {
		p.owner[v.PID] = r
		if v.TID != 0 {
			p.owner[v.TID] = r
		}
	}
	return true
}

// sizes is the victim without what differs between threads of one process.
func (v Victim) sizes() Victim {
	v.PID, v.TID, v.Reaped, v.Unreaped = 0, 0, false, false
	return v
}

// holds says whether a process is a member of the group that r killed. A
// member's line may name any of its threads, which the task table does not
// have: then name and oom_score_adj have to be those of a row. Without a table
// only the time can tell.
func (r *report) holds(v Victim, now Stamp) bool {
	if r.GroupKill == "" {
		return false
	}
	if _, ok := r.byPID[v.PID]; ok {
		return true
	}
	if len(r.Tasks) > 0 {
		if _, ok := r.row(v.PID); ok {
			return true
		}
		if v.HasOOMScoreAdj && !r.index().kinds[taskKind{v.Comm, v.OOMScoreAdj}] {
			return false
		}
	}
	return within(r.lastKill, now, groupGap)
}

// identify finds out which process of the group a line that names a thread is
// about: a victim of which the same was printed before, or else a row of the
// task table of the same size.
func (r *report) identify(v Victim) Victim {
	if _, ok := r.byPID[v.PID]; ok || len(r.Tasks) == 0 {
		return v
	}
	if _, ok := r.row(v.PID); ok {
		return v
	}
	if i, ok := r.bySizes[v.sizes()]; ok && v.HasSizes {
		v.PID, v.TID = r.Victims[i].PID, v.PID
		return v
	}
	for _, pageKB := range []uint64{4, 16, 64} {
		shape := taskShape{taskKind{v.Comm, v.OOMScoreAdj}, v.TotalVMKB / pageKB}
		rows := r.index().shapes[shape]
		for len(rows) > 0 {
			pid := r.Tasks[rows[0]].PID
			rows = rows[1:]
			r.index().shapes[shape] = rows
			if _, killed := r.byPID[pid]; !killed {
				v.PID, v.TID = pid, v.PID
				return v
			}
		}
	}
	return v
}

// taskIndex finds the rows of a task table.
type taskIndex struct {
	byID   map[int64]int
	kinds  map[taskKind]bool
	shapes map[taskShape][]int
}

type taskKind struct {
	name string
	adj  int
}

type taskShape struct {
	taskKind
	totalVM uint64
}

func (r *report) index() *taskIndex {
	if r.tasks != nil {
		return r.tasks
	}
	r.tasks = &taskIndex{
		byID:   make(map[int64]int, len(r.Tasks)),
		kinds:  map[taskKind]bool{},
		shapes: map[taskShape][]int{},
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		r.tasks.byID[t.TGID] = i
		kind := taskKind{t.Name, t.OOMScoreAdj}
		r.tasks.kinds[kind] = true
		shape := taskShape{kind, t.TotalVM}
		r.tasks.shapes[shape] = append(r.tasks.shapes[shape], i)
	}
	for i := range r.Tasks {
		r.tasks.byID[r.Tasks[i].PID] = i
	}
	return r.tasks
}

func (r *report) row(pid int64) (Task, bool) {
	i, ok := r.index().byID[pid]
	if !ok {
		return Task{}, false
	}
	return r.Tasks[i], true
}
