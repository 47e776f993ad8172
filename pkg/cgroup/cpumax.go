package cgroup

import (
	"math"
	"strconv"
	"strings"
)

// CPUMax is cpu.max: a quota of CPU time in each period.
type CPUMax struct {
	Quota  uint64 // µs in each period; 0 when Max
	Max    bool   // no quota
	Period uint64 // µs, never 0 in a file that was read; set even when Max
}

// String prints the file as the kernel does: "20000 100000", "max 100000".
func (m CPUMax) String() string {
	quota := "max"
	if !m.Max {
		quota = strconv.FormatUint(m.Quota, 10)
	}
	return quota + " " + strconv.FormatUint(m.Period, 10)
}

// CPUMax reads cpu.max. The root group has no such file.
func (g Group) CPUMax() (CPUMax, error) { return readFile(g, "cpu.max", parseCPUMax) }

// CPUMaxBurst reads cpu.max.burst in µs. The kubelet never sets it.
func (g Group) CPUMaxBurst() (uint64, error) { return readFile(g, "cpu.max.burst", parseValue) }

// CPUWeight reads cpu.weight, 1 to 10000; 0 while cpu.idle is 1.
func (g Group) CPUWeight() (uint64, error) { return readFile(g, "cpu.weight", parseValue) }

// CPUIdle reads cpu.idle, 1 for a group that runs like SCHED_IDLE. The kubelet
// never sets it.
func (g Group) CPUIdle() (uint64, error) { return readFile(g, "cpu.idle", parseValue) }

// parseCPUMax parses "QUOTA PERIOD". A writer may give the quota alone, the
// kernel always prints both. It keeps both at 1 ms at least and prints them
// from signed 64-bit numbers.
func parseCPUMax(data []byte) (CPUMax, error) {
	text, err := singleLine(data)
	if err != nil {
		return CPUMax{}, err
	}
	quota, period, found := strings.Cut(text, " ")
	if !found {
		return CPUMax{}, badText(1, text, `not "quota period"`)
	}
	var m CPUMax
	if m.Period, err = positive(period); err != nil {
		return CPUMax{}, badText(1, text, "period: "+err.Error())
	}
	if quota == "max" {
		m.Max = true
		return m, nil
	}
	if m.Quota, err = positive(quota); err != nil {
		return CPUMax{}, badText(1, text, "quota: "+err.Error())
	}
	return m, nil
}

// positive parses a duration that is neither 0 nor beyond a signed 64-bit
// number, so that arithmetic on it cannot divide by 0.
func positive(text string) (uint64, error) {
	value, err := kernelUint(text)
	switch {
	case err != nil:
		return 0, err
	case value == 0:
		return 0, errZero
	case value > math.MaxInt64:
		return 0, errTooLarge
	}
	return value, nil
}
