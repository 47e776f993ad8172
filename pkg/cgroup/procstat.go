package cgroup

import (
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// CPUTimes is /proc/stat: for each CPU how long it has been busy and idle, in
// the kernel's ticks (USER_HZ).
type CPUTimes map[int]CPUTime

// CPUTime is one CPU's time since boot. Idle includes waiting for I/O, in which
// the CPU could have run something else. Time stolen by the hypervisor counts
// as neither.
type CPUTime struct{ Busy, Idle uint64 }

// ReadCPUTimes reads /proc/stat of a node.
func ReadCPUTimes(fsys fs.FS) (CPUTimes, error) {
	const file = "proc/stat"
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	times, perr := parseCPUTimes(data)
	if perr != nil {
		perr.File = file
		return nil, perr
	}
	return times, nil
}

// parseCPUTimes reads the lines "cpuN user nice system idle iowait irq softirq
// steal guest guest_nice"; guest time is part of user time. Kernels before 2.6
// had fewer columns, later ones may have more.
func parseCPUTimes(data []byte) (CPUTimes, *ParseError) {
	times := CPUTimes{}
	for number, line := range numberedLines(data) {
		name, rest, _ := strings.Cut(line, " ")
		digits, ok := strings.CutPrefix(name, "cpu")
		if !ok || digits == "" {
			continue
		}
		id, err := strconv.Atoi(digits)
		if err != nil || id < 0 || id >= maxID || strconv.Itoa(id) != digits {
			return nil, badText(number, line, "not the number of a CPU")
		}
		if _, twice := times[id]; twice {
			return nil, badText(number, line, "the CPU stands twice")
		}
		columns := strings.Fields(rest)
		if len(columns) < 4 {
			return nil, badText(number, line, "fewer than 4 columns")
		}
		var t CPUTime
		for i, column := range columns[:min(len(columns), 7)] {
			ticks, err := kernelUint(column)
			if err != nil || ticks > maxTicks {
				return nil, badText(number, line, "not a number of ticks")
			}
			if i == 3 || i == 4 {
				t.Idle += ticks
			} else {
				t.Busy += ticks
			}
		}
		times[id] = t
	}
	if len(times) == 0 {
		return nil, badText(0, "", "no line of a CPU")
	}
	return times, nil
}

// maxTicks keeps sums from overflowing; at 1000 ticks a second it is 8,900
// years.
const maxTicks = 1 << 48

// CPUUsage is what CPUs did between two readings.
type CPUUsage struct {
	Busy, Idle uint64  // ticks, of all the CPUs
	IdleCPUs   float64 // how many CPUs' worth of the time was idle
}

// BusyShare is the part of the time in which the CPUs had something to run, 0
// to 1.
func (u CPUUsage) BusyShare() float64 { return float64(u.Busy) / float64(max(u.Busy+u.Idle, 1)) }

// Usage is what the CPUs of a set did between t and a later reading. false means
// that a CPU of the set is missing in a reading, went backwards or had no time
// counted; the kernel lets the idle time of a CPU go back a little.
func (t CPUTimes) Usage(later CPUTimes, set cpuset.CPUSet) (CPUUsage, bool) {
	var u CPUUsage
	for _, id := range set.UnsortedList() {
		a, okA := t[id]
		b, okB := later[id]
		if !okA || !okB || b.Busy < a.Busy {
			return CPUUsage{}, false
		}
		busy, idle := b.Busy-a.Busy, b.Idle-min(a.Idle, b.Idle)
		if busy+idle == 0 {
			return CPUUsage{}, false
		}
		u.Busy += busy
		u.Idle += idle
		u.IdleCPUs += float64(idle) / float64(busy+idle)
	}
	return u, !set.IsEmpty()
}

// CPUs are those that a reading names.
func (t CPUTimes) CPUs() cpuset.CPUSet {
	ids := make([]int, 0, len(t))
	for id := range t {
		ids = append(ids, id)
	}
	return cpuset.New(ids...)
}
