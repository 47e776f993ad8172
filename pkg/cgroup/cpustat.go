package cgroup

// CPUStat is cpu.stat, or cpu.stat.local with its one key throttled_usec.
// Without nr_periods the cpu controller is off in that group: the parent's
// cgroup.subtree_control does not list it.
type CPUStat struct{ flatKeyed }

// cpuStatSigned are the keys that the kernel prints with %d from an int
// (cpu_extra_stat_show): they turn negative after 2^31 periods.
var cpuStatSigned = []string{"nr_periods", "nr_throttled", "nr_bursts"}

// CPUStat reads cpu.stat: hierarchical usage, and the bandwidth counters of
// this group alone. The root has the file too, with bandwidth counters of 0.
func (g Group) CPUStat() (CPUStat, error) { return readFile(g, "cpu.stat", parseCPUStat) }

// CPUStatLocal reads cpu.stat.local (absent in kernel 6.1, there in 6.12):
// throttled_usec counts throttling inherited from an ancestor as well. The
// file is empty, and gives no key and no error, where the cpu controller is
// off (cgroup_local_stat_show).
func (g Group) CPUStatLocal() (CPUStat, error) {
	return readFile(g, "cpu.stat.local", parseCPUStatLocal)
}

// UsageUsec is CPU time in µs, descendants included.
func (s CPUStat) UsageUsec() (uint64, bool) { return s.Get("usage_usec") }

// UserUsec is the part of UsageUsec spent in user mode, µs.
func (s CPUStat) UserUsec() (uint64, bool) { return s.Get("user_usec") }

// SystemUsec is the part of UsageUsec spent in the kernel, µs.
func (s CPUStat) SystemUsec() (uint64, bool) { return s.Get("system_usec") }

// NrPeriods is the number of periods in which the group had something to run.
// It wraps at 2^31 to negative: take differences modulo 2^32.
func (s CPUStat) NrPeriods() (int64, bool) { return s.getSigned("nr_periods") }

// NrThrottled is the number of periods in which the quota ran out; it wraps as
// NrPeriods does.
func (s CPUStat) NrThrottled() (int64, bool) { return s.getSigned("nr_throttled") }

// NrBursts is the number of periods that used accumulated burst; it wraps as
// NrPeriods does.
func (s CPUStat) NrBursts() (int64, bool) { return s.getSigned("nr_bursts") }

// ThrottledUsec is the throttled time in µs, summed over the run queues of all
// CPUs: it can exceed wall time and is no thread's wait. In cpu.stat it counts
// this group's own quota only.
func (s CPUStat) ThrottledUsec() (uint64, bool) { return s.Get("throttled_usec") }

// BurstUsec is CPU time beyond the quota, from accumulated burst, µs.
func (s CPUStat) BurstUsec() (uint64, bool) { return s.Get("burst_usec") }

func parseCPUStat(data []byte) (CPUStat, error) {
	f, err := parseFilledFlatKeyed(data, cpuStatSigned...)
	return CPUStat{f}, err
}

func parseCPUStatLocal(data []byte) (CPUStat, error) {
	f, err := parseFlatKeyed(data, cpuStatSigned...)
	return CPUStat{f}, err
}
