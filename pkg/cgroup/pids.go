package cgroup

// PIDsEvents is pids.events or pids.events.local.
type PIDsEvents struct{ flatKeyed }

// PIDsCurrent reads pids.current: tasks, that is threads, in the group and
// below.
func (g Group) PIDsCurrent() (uint64, error) { return readFile(g, "pids.current", parseValue) }

// PIDsPeak reads pids.peak.
func (g Group) PIDsPeak() (uint64, error) { return readFile(g, "pids.peak", parseValue) }

// PIDsMax reads pids.max; Limit.Bytes is a number of tasks here.
func (g Group) PIDsMax() (Limit, error) { return readFile(g, "pids.max", parseLimit) }

// PIDsEvents reads pids.events.
func (g Group) PIDsEvents() (PIDsEvents, error) { return readFile(g, "pids.events", parsePIDsEvents) }

// PIDsEventsLocal reads pids.events.local (absent in kernel 6.1, there in 6.12).
func (g Group) PIDsEventsLocal() (PIDsEvents, error) {
	return readFile(g, "pids.events.local", parsePIDsEvents)
}

// Max counts forks that a pids.max refused: "Resource temporarily unavailable".
func (e PIDsEvents) Max() (uint64, bool) { return e.Get("max") }

func parsePIDsEvents(data []byte) (PIDsEvents, error) {
	f, err := parseFilledFlatKeyed(data)
	return PIDsEvents{f}, err
}
