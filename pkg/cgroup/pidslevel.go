package cgroup

// PIDs is the pids controller of one group. A nil pointer is not known.
type PIDs struct {
	Group         Group
	Max           *Limit // Bytes is a number of tasks
	Current, Peak *uint64
	Events        *uint64 // max of pids.events
	Local         *uint64 // max of pids.events.local, which 6.1 lacks and 6.12 has
}

// PIDs reads the files of the pids controller. The errors are those of the
// files that were not read, by name; the root group has none of the files.
func (g Group) PIDs() (PIDs, map[string]error) {
	p := PIDs{Group: g}
	errs := map[string]error{}
	if max, err := g.PIDsMax(); err == nil {
		p.Max = &max
	} else {
		errs["pids.max"] = err
	}
	count := func(name string, read func() (uint64, error)) *uint64 {
		value, err := read()
		if err != nil {
			errs[name] = err
			return nil
		}
		return &value
	}
	p.Current = count("pids.current", g.PIDsCurrent)
	p.Peak = count("pids.peak", g.PIDsPeak)
	p.Events = count("pids.events", func() (uint64, error) { return eventsMax(g.PIDsEvents()) })
	p.Local = count("pids.events.local", func() (uint64, error) { return eventsMax(g.PIDsEventsLocal()) })
	return p, errs
}

func eventsMax(e PIDsEvents, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	max, ok := e.Max()
	if !ok {
		return 0, badText(0, "", "no key max")
	}
	return max, nil
}

// Limited says whether the group has a limit of its own.
func (p PIDs) Limited() bool { return p.Max != nil && !p.Max.Max }

// Full says whether as many tasks are in the group as it may have.
func (p PIDs) Full() bool { return p.Limited() && p.Current != nil && *p.Current >= p.Max.Bytes }

// WasFull says whether that was ever so, by the high-water mark.
func (p PIDs) WasFull() bool {
	return p.Full() || p.Limited() && p.Peak != nil && *p.Peak >= p.Max.Bytes
}

func moved(count *uint64) bool { return count != nil && *count > 0 }

// RefusingPIDs finds the group whose pids.max refused the forks that pids.events
// counts (most of them, where several did), among the groups from that of the forking processes up to the one
// below the root. sure is false where another one may have been it; ok is false
// where no refusal is counted, or none of the groups can have refused.
//
// Kernels that have pids.events.local count at the group whose limit was met,
// and in pids.events of all groups above (6.12). Kernels that lack it count in
// pids.events of the group that the forking process is in, whichever limit
// above was met (6.1): there the group is the one that was full. So it is with
// the mount option pids_localevents.
func RefusingPIDs(groups []PIDs) (index int, sure, ok bool) {
	for i, p := range groups {
		if moved(p.Local) && (!ok || *p.Local > *groups[index].Local) {
			index, sure, ok = i, true, true
		}
	}
	if ok {
		return index, sure, ok
	}
	if len(groups) == 0 || !moved(groups[0].Events) {
		// A group below, or one that is gone, met a limit of its own.
		return 0, false, false
	}
	var full, limited []int
	peaksKnown := true
	for i, p := range groups {
		if !p.Limited() {
			continue
		}
		limited = append(limited, i)
		if p.WasFull() {
			full = append(full, i)
		} else if p.Peak == nil {
			peaksKnown = false
		}
	}
	candidates := full
	if len(full) == 0 {
		candidates = limited
	}
	if len(candidates) == 0 {
		return 0, false, false
	}
	least := candidates[0]
	for _, i := range candidates {
		if groups[i].Max.Bytes < groups[least].Max.Bytes {
			least = i
		}
	}
	return least, len(full) == 1 && peaksKnown || len(limited) == 1, true
}
